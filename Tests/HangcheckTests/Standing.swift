import Foundation
import Glibc
import Testing

@testable import ProcessInspector

/// A program that stands still, with a pipe for its input, and what the world can do to it.
final class Standing {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  let files: ProcessFiles

  init(_ path: String, _ arguments: [String], saysReady: Bool = true) throws {
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    Run.starting.lock()
    defer { Run.starting.unlock() }
    try process.run()
    files = ProcessFiles(ProcessID(process.processIdentifier))
    if saysReady {
      #expect(output.fileHandleForReading.availableData.starts(with: Data("ready".utf8)))
    }
  }

  deinit {
    for child in files.threads().flatMap({ childrenOf($0) }) { kill(child, SIGKILL) }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  private func childrenOf(_ tid: KernelThreadID) -> [Int32] {
    let path = "/proc/\(files.pid.rawValue)/task/\(tid.rawValue)/children"
    return (readFile(path) ?? []).split(separator: 32).compactMap {
      Int32(String(decoding: $0, as: UTF8.self))
    }
  }

  func world(timers: OutsideWorld.DispatchTimers = .unknown) -> OutsideWorld {
    OutsideWorld(files: files, memory: ProcessMemory(files.pid), timers: { timers })
  }

  func openings(
    timers: OutsideWorld.DispatchTimers = .unknown,
    ignoring exceptions: OutsideWorld.Exceptions = .init()
  ) -> [String] { world(timers: timers).openings(ignoring: exceptions) }

  /// Waits until nothing can wake it, in three looks in a row; what could, where that never comes.
  func becomesClosed(
    timers: OutsideWorld.DispatchTimers = .unknown,
    ignoring exceptions: OutsideWorld.Exceptions = .init()
  ) -> [String] {
    var closed = 0
    for _ in 0..<1000 {
      closed = openings(timers: timers, ignoring: exceptions).isEmpty ? closed + 1 : 0
      if closed == 3 { return [] }
      usleep(20_000)
    }
    return openings(timers: timers, ignoring: exceptions)
  }

  /// Whether no look, while it settles and after, finds it closed.
  func staysOpen(timers: OutsideWorld.DispatchTimers = .unknown) -> Bool {
    for _ in 0..<40 {
      if openings(timers: timers).isEmpty { return false }
      usleep(20_000)
    }
    return true
  }

  /// Whether it comes to be said.
  func says(_ words: String) -> Bool {
    for _ in 0..<500 {
      if openings().contains(where: { $0.contains(words) }) { return true }
      usleep(20_000)
    }
    return false
  }

  private static let built = Builds()

  static func program(_ source: String) throws -> String { try built.program(source) }

  /// Compiles each source once.
  private final class Builds: Sendable {
    private let folder = Result { try Scratch() }
    private let programs = Locked<[String: String]>([:])

    func program(_ source: String) throws -> String {
      try programs.with { programs in
        if let path = programs[source] { return path }
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
          .deletingLastPathComponent().appending(path: "Fixtures/\(source)").path
        let path = try folder.get().path + "/" + source.replacing(".", with: "-")
        let compiler =
          source.hasSuffix(".c")
          ? ["clang", "-O1", "-w", "-pthread"] : ["swiftc", "-swift-version", "5", "-O"]
        let result = try Run.program(
          "/usr/bin/env",
          compiler
            + ["-suppress-warnings", file, "-o", path].filter {
              $0 != "-suppress-warnings" || compiler[0] == "swiftc"
            })
        #expect(result.status == 0, "\(result.errors)")
        programs[source] = path
        return path
      }
    }
  }
}

/// A value behind a lock.
private final class Locked<Value>: @unchecked Sendable {
  // Guarded by the lock.
  private var value: Value
  private let lock = NSLock()
  init(_ value: Value) { self.value = value }
  func with<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
