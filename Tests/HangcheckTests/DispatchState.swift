import Foundation
import Testing

@testable import ProcessInspector

/// `dispatch-state.swift` as it runs: what it says of itself, and a reader of its memory.
final class DispatchState {
  enum Build: String, CaseIterable, Sendable { case debug, optimised, statically }

  let run: Run
  let reader: DispatchMemory
  let files: ProcessFiles
  private var facts: [String: UInt64] = [:]

  init(_ build: Build, _ arguments: String...) throws {
    run = try Run(Self.programs.get(build), arguments)
    try run.wait(for: "\nready 1\n", seconds: 30)
    files = ProcessFiles(ProcessID(run.pid))
    reader = try #require(DispatchMemory(files: files, memory: ProcessMemory(files.pid)))
    for line in run.output.split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count == 2 { facts[String(words[0])] = UInt64(words[1]) }
    }
  }

  subscript(_ name: String) -> UInt64 {
    get throws { try #require(facts[name], "\(name) in \(facts)") }
  }

  func thread(_ name: String) throws -> KernelThreadID {
    KernelThreadID(Int32(truncatingIfNeeded: try self["thread." + name]))
  }

  /// The word that a thread sleeps on.
  func futex(_ name: String) throws -> UInt64 {
    let limit = monotonicNow() + 10_000_000_000
    while monotonicNow() < limit {
      if case .call(202, let address) = files.state(try thread(name)) { return address }
      usleep(2000)
    }
    Issue.record("\(name) does not sleep: \(files.state(try thread(name)))")
    return 0
  }

  func queues(_ name: String) throws -> [UInt64] {
    reader.queuesOfThread(pthread: try #require(reader.pthreads()[thread(name)]))
  }

  private static let programs = Programs()

  /// Each is compiled once.
  private final class Programs: @unchecked Sendable {
    // The lock guards the dictionary; the folder never changes.
    private let lock = NSLock()
    private var built: [Build: String] = [:]
    private let folder = Result { try Scratch() }

    func get(_ build: Build) throws -> String {
      lock.lock()
      defer { lock.unlock() }
      if let known = built[build] { return known }
      let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/dispatch-state.swift").path
      let program = try folder.get().path + "/dispatch-" + build.rawValue
      let flags =
        switch build {
        case .debug: ["-g", "-Onone"]
        case .optimised: ["-O"]
        case .statically: ["-O", "-static-stdlib"]
        }
      let result = try Run(
        "/usr/bin/env",
        ["swiftc", "-swift-version", "5", "-suppress-warnings", source, "-o", program] + flags
      ).wait(seconds: 300)
      try #require(result.status == 0, "\(result.errors)")
      built[build] = program
      return program
    }
  }
}
