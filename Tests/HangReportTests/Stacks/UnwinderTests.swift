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

extension UnwinderTests {
  @Test("five thousand stacks take well under a second", .timeLimit(.minutes(1)))
  func manyThreads() throws {
    let subject = try Subject(
      Workshop.shared.build("optimised", Programs.swift, ["-O", "-g"]))
    let (registers, stack) = try subject.capture(subject.tid("plain"))
    let unwinder = try Unwinder(images: subject.images(), memory: subject.memory)
    var frames = 0
    let time = ContinuousClock().measure {
      for _ in 0..<5000 { frames += unwinder.unwind(registers, stack: [stack]).frames.count }
    }
    print("5000 stacks, \(frames) frames: \(time)")
    #expect(frames >= 50_000)
    // Ten times what is asked of an optimised build.
    #expect(time < .seconds(10))
  }

  @Test("a running thread, stopped anywhere", .timeLimit(.minutes(1)))
  func busyThread() throws {
    let subject = try Subject(Workshop.shared.build("busy", Programs.busy, ["-O1", "-g"]))
    let images = try subject.images()
    let unwinder = try Unwinder(images: images, memory: subject.memory)
    let symbolizer = Symbolizer(images: images)
    var tops: Set<String> = []
    for _ in 0..<300 {
      let (registers, stack) = try subject.capture(subject.tid("main"), isResting: false)
      let unwound = unwinder.unwind(registers, stack: [stack])
      let frames = symbolizer.frames(for: unwound.frames)
      #expect(unwound.isComplete, Comment(rawValue: unwound.note ?? ""))
      let names = frames.map { $0.symbol ?? "??" }
      tops.insert(names[0])
      #expect(names.contains("spin") && names.contains("main"), "\(names)")
      // glibc's local functions have names where libc6-dbg is installed.
      #expect(!frames.contains { $0.symbol == nil && !$0.runtime }, "\(names)")
    }
    #expect(!tops.isEmpty)
  }

  @Test("a walk that cannot go on says so")
  func cutStacks() throws {
    let subject = try Subject(
      Workshop.shared.build("optimised", Programs.swift, ["-O", "-g"]))
    let (registers, stack) = try subject.capture(subject.tid("plain"))
    let images = try subject.images()
    let short = StackCopy(base: stack.base, bytes: Array(stack.bytes.prefix(200)))
    let cut = try Unwinder(images: images, memory: NoMemory()).unwind(registers, stack: [short])
    #expect(!cut.isComplete && cut.note?.contains("cannot be read") ?? false)
    #expect(cut.frames.count >= 2)

    let unwinder = try Unwinder(images: images, memory: subject.memory)
    var nowhere = registers
    nowhere.rip = 16
    let lost = unwinder.unwind(nowhere, stack: [stack])
    #expect(lost.frames.count == 1 && !lost.isComplete)
    #expect(lost.note?.contains("no unwind information") ?? false)

    let limited = unwinder.unwind(registers, stack: [stack], limit: 3)
    #expect(limited.frames.count == 3 && !limited.isComplete)
  }
}

func describe(_ frames: [Frame]) -> String {
  frames.map { frame in
    let place = frame.file.map { " \($0):\(frame.line ?? 0):\(frame.column ?? 0)" } ?? ""
    return (frame.runtime ? "  - " : "  * ") + (frame.inlined ? "[inlined] " : "")
      + "\(frame.symbol ?? "??")\(place) \(frame.image)"
  }.joined(separator: "\n")
}
