import Foundation
import Testing

/// Compiles programs, once for each content and variant; what was built before is used again.
actor Builder {
  static let shared = Builder()
  private var tasks: [String: Task<URL, any Error>] = [:]
  private let cache = Fixture.root.appending(path: ".build/fixtures")

  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  func program(_ fixture: Fixture) async throws -> URL {
    try await program(
      Fixture.folder.appending(path: fixture.source), variant: fixture.variant,
      libraries: Fixture.libraries(of: fixture.source),
      companions: Fixture.companions(of: fixture.source))
  }

  func program(
    _ source: URL, variant: String, libraries: [String] = [], companions: [String] = []
  ) async throws -> URL {
    var hash = Hash()
    for file in [source] + (libraries + companions).map({ Fixture.folder.appending(path: $0) })
      + [Fixture.folder.appending(path: "fixture.h")]
    {
      hash.add(try Data(contentsOf: file))
    }
    // A path is part of what debug information says.
    hash.add(Data((source.path + variant).utf8))
    let key = hash.text
    if let task = tasks[key] { return try await task.value }
    let folder = cache.appending(path: key)
    let task = Task {
      try await Gate.shared.pass {
        try build(
          source, variant: variant, libraries: libraries, companions: companions, into: folder)
      }
    }
    tasks[key] = task
    return try await task.value
  }
}

private func build(
  _ source: URL, variant: String, libraries: [String], companions: [String], into folder: URL
) throws -> URL {
  let stem = source.deletingPathExtension().lastPathComponent
  let result = folder.appending(path: stem)
  let files = FileManager.default
  if files.fileExists(atPath: result.path) { return result }
  let fresh = folder.deletingLastPathComponent()
    .appending(path: folder.lastPathComponent + ".new\(getpid())")
  try? files.removeItem(at: fresh)
  try files.createDirectory(at: fresh, withIntermediateDirectories: true)
  let program = fresh.appending(path: stem).path
  let isSwift = source.pathExtension == "swift"

  var command: [String]
  if isSwift {
    command = ["swiftc", "-swift-version", "5", "-suppress-warnings", source.path, "-o", program]
    if !companions.isEmpty {
      command += ["-parse-as-library"]
      command += companions.map { Fixture.folder.appending(path: $0).path }
    }
    switch variant {
    case "debug": command += ["-g", "-Onone"]
    case "nodebug": command += ["-O"]
    case "static": command += ["-g", "-Onone", "-static-stdlib"]
    case "tsan": command += ["-g", "-Onone", "-sanitize=thread"]
    case "tsan-static": command += ["-g", "-Onone", "-sanitize=thread", "-static-stdlib"]
    case "tsan-release": command += ["-g", "-O", "-sanitize=thread"]
    default: command += ["-g", "-O"]
    }
  } else {
    command = source.pathExtension == "cpp" ? ["clang++", "-std=c++17"] : ["clang", "-std=gnu11"]
    command += ["-pthread", "-w", "-Wl,-rpath,$ORIGIN", source.path, "-o", program, "-ldl"]
    switch variant {
    case "debug": command += ["-g"]
    case "nodebug": command += ["-O2"]
    case "static": command += ["-g", "-static"]
    default: command += ["-g", "-O2"]
    }
  }
  try run(command)
  for library in libraries {
    let path = Fixture.folder.appending(path: library)
    let name = path.deletingPathExtension().lastPathComponent + ".so"
    try run([
      "clang", "-std=gnu11", "-g", "-w", "-shared", "-fPIC", "-pthread", path.path, "-o",
      fresh.appending(path: name).path,
    ])
  }
  if variant == "debuglink" {
    try run(["objcopy", "--only-keep-debug", program, program + ".debug"])
    try run(["strip", program])
    try run(["objcopy", "--add-gnu-debuglink=\(program).debug", program])
  } else if variant == "stripped" {
    try run(["strip", program])
  }
  if rename(fresh.path, folder.path) != 0 { try? files.removeItem(at: fresh) }
  return result
}

private func run(_ command: [String]) throws {
  let outcome = try Child.run(["/usr/bin/env"] + command, limit: 300)
  guard outcome.status == .exited(0) else {
    throw Builder.Failure(
      description: "\(command.joined(separator: " "))\n\(outcome.errorText)\(outcome.outputText)")
  }
}

/// FNV-1a over 128 bits' worth of two seeds: names of cached builds, nothing more.
private struct Hash {
  private var low: UInt64 = 0xcbf2_9ce4_8422_2325
  private var high: UInt64 = 0x8422_2325_cbf2_9ce4
  mutating func add(_ data: Data) {
    for byte in data {
      low = (low ^ UInt64(byte)) &* 0x100_0000_01b3
      high = (high ^ UInt64(byte) &+ 0x5b) &* 0x100_0000_01b3
    }
  }
  var text: String { String(low, radix: 16) + String(high, radix: 16) }
}

/// Lets two jobs run at a time, each on a thread of its own: they block, and tests share a small pool.
actor Gate {
  static let shared = Gate(2)
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []
  init(_ free: Int) { self.free = free }

  func pass<T: Sendable>(_ job: @escaping @Sendable () throws -> T) async throws -> T {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
    defer { leave() }
    return try await withCheckedThrowingContinuation { continuation in
      Thread { continuation.resume(with: Result { try job() }) }.start()
    }
  }
  private func leave() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
  }
}
