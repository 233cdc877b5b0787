internal import Foundation
internal import Glibc

/// Opens core files, compressed ones by the tool that unpacks their kind.
enum CoreCompression {
  private struct Kind {
    var name: String
    var magic: [UInt8]
    /// The tool, and the Debian package that has it.
    var tool: String, package: String
  }
  private static let kinds = [
    Kind(name: "zstd", magic: [0x28, 0xb5, 0x2f, 0xfd], tool: "zstd", package: "zstd"),
    Kind(name: "xz", magic: [0xfd, 0x37, 0x7a, 0x58], tool: "xz", package: "xz-utils"),
    Kind(name: "lz4", magic: [0x04, 0x22, 0x4d, 0x18], tool: "lz4", package: "lz4"),
    Kind(name: "gzip", magic: [0x1f, 0x8b], tool: "gzip", package: "gzip"),
  ]

  /// The core, unpacked into a file without a name where it is compressed.
  static func opened(_ path: String) throws(InputError) -> OwnedDescriptor {
    func refuse(_ why: some CustomStringConvertible) -> InputError {
      InputError(message: "\(path): \(why)")
    }
    let file: OwnedDescriptor
    do { file = try OwnedDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK) } catch {
      throw refuse("cannot be read: \(error)")
    }
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { throw refuse(SystemError(errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw refuse(
        status.st_mode & S_IFMT == S_IFDIR
          ? "it is a folder; give the core file in it"
          : "it is no regular file; write the core into one first")
    }
    let head = CoreBytes(descriptor: file.rawValue, size: 6).read(0, 6)
    guard let kind = kinds.first(where: { head.starts(with: $0.magic) }) else { return file }
    return try unpacked(file, kind, path)
  }

  private static func unpacked(
    _ file: borrowing OwnedDescriptor, _ kind: Kind, _ path: String
  ) throws(InputError) -> OwnedDescriptor {
    func refuse(_ why: String) -> InputError { InputError(message: "\(path): \(why)") }
    guard let tool = tool(kind.tool) else {
      throw refuse(
        "it is compressed with \(kind.name), and the tool is missing: `apt-get install"
          + " \(kind.package)`")
    }
    let folder = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    var name = Array((folder + "/hangcheck-XXXXXX").utf8CString)
    let target = OwnedDescriptor(mkstemp(&name))
    guard target.rawValue >= 0 else {
      throw refuse(
        "there is no place in \(folder) to unpack it: \(SystemError(errno)); set TMPDIR to another"
          + " folder")
    }
    unlink(name)
    _ = fcntl(target.rawValue, F_SETFD, FD_CLOEXEC)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: tool)
    process.arguments = ["-dc"]
    process.standardInput = FileHandle(fileDescriptor: file.rawValue, closeOnDealloc: false)
    process.standardOutput = FileHandle(fileDescriptor: target.rawValue, closeOnDealloc: false)
    let errors = Pipe()
    process.standardError = errors
    do { try process.run() } catch { throw refuse("\(tool) cannot be run: \(error)") }
    let said = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationReason == .exit, process.terminationStatus == 0 else {
      let line = String(decoding: said, as: UTF8.self).split(separator: "\n").first ?? "it failed"
      throw refuse("\(kind.tool) cannot unpack it: \(line)")
    }
    return target
  }

  private static func tool(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }
}
