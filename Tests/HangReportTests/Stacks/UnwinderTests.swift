import Foundation
import Glibc
import Testing

@testable import HangReport

@Suite(.serialized) struct UnwinderTests {
  struct Build: Sendable, CustomTestStringConvertible {
    var name: String
    var options: [String]
    var testDescription: String { name }
  }
  static let builds = [
    Build(name: "optimised", options: ["-O", "-g"]),
    Build(name: "unoptimised", options: ["-Onone", "-g"]),
    Build(name: "static", options: ["-O", "-g", "-static-stdlib"]),
  ]

  @Test("names, files and lines of blocked threads", .timeLimit(.minutes(1)), arguments: builds)
  func blockedThreads(_ build: Build) throws {
    let source = Programs.swift
    let subject = try Subject(
      Workshop.shared.build(build.name, source, build.options))
    let expected: [(thread: String, frames: [(symbol: String, mark: String)])] = [
      (
        "plain",
        [
          ("blocked(_:)", "wait"), ("inlinedPart(_:)", "inlined"), ("middle(_:)", "middle"),
          ("outer()", "outer"),
        ]
      ),
      ("generic", [("blocked(_:)", "wait"), ("Box.generic(_:)", "generic")]),
      ("locked", [("blocked(_:)", "wait"), ("closure #1 in Account.transfer()", "locked")]),
      ("queue", [("blocked(_:)", "wait"), ("closure #1 in Account.sync(on:)", "queue")]),
      ("signal", [("blocked(_:)", "wait"), ("closure #6 in ", "signal")]),
      ("async", [("blocked(_:)", "wait"), ("leafAsync()", "async")]),
      ("main", [("blocked(_:)", "wait"), ("waitInMain()", "main"), ("main", "top")]),
    ]
    for (thread, frames) in expected {
      let (unwound, named) = try subject.unwind(thread)
      let text = Comment(rawValue: "\(thread)\n" + describe(named))
      #expect(unwound.isComplete, text)
      #expect(unwound.note == nil, text)
      let own = named.filter { !$0.runtime }
      for (symbol, mark) in frames {
        #expect(
          own.contains { ($0.symbol ?? "").hasPrefix(symbol) && $0.line == source.line(mark) },
          "\(symbol) at \(source.line(mark) ?? 0) in \(text)")
      }
      #expect(own.allSatisfy { $0.file?.hasSuffix(source.file) ?? false }, text)
    }
  }

  @Test("a recursion of a hundred calls is kept whole", .timeLimit(.minutes(1)))
  func deepStack() throws {
    let subject = try Subject(
      Workshop.shared.build("optimised", Programs.swift, ["-O", "-g"]))
    let (unwound, named) = try subject.unwind("deep")
    #expect(unwound.isComplete)
    #expect(named.filter { $0.symbol == "recurse(_:)" }.count >= 100)
  }
}

func describe(_ frames: [Frame]) -> String {
  frames.map { frame in
    let place = frame.file.map { " \($0):\(frame.line ?? 0):\(frame.column ?? 0)" } ?? ""
    return (frame.runtime ? "  - " : "  * ") + (frame.inlined ? "[inlined] " : "")
      + "\(frame.symbol ?? "??")\(place) \(frame.image)"
  }.joined(separator: "\n")
}
