import Foundation
import Glibc

@testable import HangReport

/// Compiles the programs that the tests watch, once each, in a folder that is removed at exit.
final class Workshop: Sendable {
  static let shared = Workshop()
  let folder: String

  private init() {
    folder = DebugInfo.normalized(NSTemporaryDirectory() + "/hangcheck-stacks-\(getpid())")
    try? FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true)
    atexit { try? FileManager.default.removeItem(atPath: Workshop.shared.folder) }
  }

  struct Failure: Error, CustomStringConvertible { var description: String }

  /// Writes `source` and compiles it; returns the program's path.
  func build(_ name: String, _ source: Source, _ options: [String]) throws -> String {
    let output = folder + "/" + name
    if FileManager.default.fileExists(atPath: output) { return output }
    let file = folder + "/" + name + "-" + source.file
    try source.text.write(toFile: file, atomically: true, encoding: .utf8)
    let compiler = source.file.hasSuffix(".swift") ? "swiftc" : "clang"
    try run([compiler] + options + [file, "-o", output])
    return output
  }

  @discardableResult
  func run(_ command: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self)
    guard process.terminationStatus == 0 else {
      throw Failure(description: command.joined(separator: " ") + "\n" + text)
    }
    return text
  }
}

/// The text of a program, with lines marked `// at NAME`.
struct Source: Sendable {
  var file: String
  var text: String

  /// The number of the line with a mark.
  func line(_ mark: String) -> Int? {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .firstIndex { $0.hasSuffix("// at \(mark)") }.map { $0 + 1 }
  }
}
