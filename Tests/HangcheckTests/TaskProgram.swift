import Foundation
import Glibc
import HangReport
import Testing

@testable import ProcessInspector

/// Tests/Fixtures/taskmemory.swift, running, and what is read of it.
final class TaskProgram {
  enum Build: String, CaseIterable, Sendable { case debug, release, linked }

  let run: Run
  let memory: ConcurrencyMemory
  private let files: ProcessFiles

  /// `libraries`: a folder whose libraries come before the toolchain's.
  init(_ scenario: String, _ build: Build, libraries: String? = nil) throws {
    let environment = libraries.map { ["LD_LIBRARY_PATH": Optional($0)] } ?? [:]
    run = try Run(try Self.path(build), [scenario], environment: environment)
    try run.wait(for: "ready\n")
    let pid = ProcessID(run.pid)
    files = ProcessFiles(pid)
    memory = try #require(ConcurrencyMemory(files: files, memory: ProcessMemory(pid)))
  }

  static let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Fixtures/taskmemory.swift")

  /// The number of the line with this remark.
  static func line(_ remark: String) throws -> Int {
    let lines = try String(contentsOf: source, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
    return try #require(lines.firstIndex { $0.hasSuffix("// " + remark) }) + 1
  }

  private static let built = Build.allCases.map { build in
    (build, Result { try compile(build) })
  }

  private static func path(_ build: Build) throws -> String {
    try #require(built.first { $0.0 == build }).1.get()
  }

  private static func compile(_ build: Build) throws -> String {
    // In the folder that goes when the tests end.
    let program = try Fixture.program("taskmemory-" + build.rawValue)
    let flags: [String]
    switch build {
    case .debug: flags = ["-Onone", "-g"]
    case .release: flags = ["-O", "-g"]
    case .linked: flags = ["-O", "-static-stdlib"]
    }
    let arguments =
      ["swiftc", "-swift-version", "5", "-suppress-warnings", source.path, "-o", program] + flags
    let result = try Run("/usr/bin/env", arguments).wait(seconds: 300)
    #expect(result.status == 0, "\(result.errors)")
    return program
  }

  /// The handles of threads by the names that they gave themselves, main's id being the process's.
  var handles: [String: UInt64] {
    var result: [String: UInt64] = [:]
    for line in run.output.split(separator: "\n") {
      let words = line.split(separator: " ")
      if words.count == 3, words[0] == "thread" { result[String(words[1])] = UInt64(words[2]) }
    }
    return result
  }

  /// Numbers in place of threads' ids, which tests of memory do not need.
  static func number(_ name: String) -> KernelThreadID {
    KernelThreadID(Int32(truncatingIfNeeded: name.utf8.reduce(7) { $0 &* 31 &+ Int($1) }))
  }

  /// Looks until what is awaited is there, since 'ready' does not say that all stand still.
  func picture(
    until isReady: (ConcurrencyPicture) -> Bool, _ location: SourceLocation = #_sourceLocation
  ) throws -> ConcurrencyPicture {
    let limit = monotonicNow() + 30_000_000_000
    while true {
      run.read(milliseconds: 1)
      let threads = handles.map { (Self.number($0.key), $0.value) }
      let picture = memory.picture(pthreads: Dictionary(uniqueKeysWithValues: threads))
      if isReady(picture) { return picture }
      let seen = picture.tasks.prefix(40).map { "\($0.name ?? "-") \($0.wait)" }
      try #require(
        monotonicNow() < limit, "\(seen.joined(separator: "\n"))", sourceLocation: location)
      usleep(10_000)
    }
  }

  /// Where the program's Swift Concurrency lies.
  var runtime: String? {
    files.mappings().first { $0.path.hasSuffix("/libswift_Concurrency.so") }?.path
  }

  func symbolizer() -> Symbolizer {
    Symbolizer(
      images: ImageMap(
        files.mappings(), pid: run.pid, memory: ProcessMemory(ProcessID(run.pid))))
  }
}

extension ConcurrencyPicture {
  /// The only task of a name.
  func named(_ name: String) throws -> SwiftTask {
    let found = tasks.filter { $0.name == name }
    #expect(found.count == 1, "\(name)")
    return try #require(found.first, "\(name)")
  }

  /// Whether tasks of these names are all there and none of them runs.
  func stand(_ names: [String]) -> Bool {
    names.allSatisfy { name in
      tasks.contains { $0.name == name && !$0.isRunning && $0.wait != .none && !isOnItsWay($0) }
    }
  }

  private func isOnItsWay(_ task: SwiftTask) -> Bool {
    if case .executor(.pool) = task.wait { return true }
    return need(of: task) == .unknown
  }
}
