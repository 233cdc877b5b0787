import Foundation

/// Makes small core files, as the kernel lays them out.
struct CoreBuilder {
  struct Segment {
    var start: UInt64
    var bytes: [UInt8]
    /// In memory; what the file leaves out follows what it has.
    var size: UInt64
    /// 4 read, 2 write, 1 execute.
    var flags: UInt32 = 6
  }
  struct Thread {
    var tid: Int32
    /// rip, rsp, orig_rax, rax.
    var rip: UInt64 = 0
    var rsp: UInt64 = 0
    var call: Int64 = -1
    var result: Int64 = 0
    var signal: Int16 = 0
  }
  struct File {
    var range: Range<UInt64>
    var page: UInt64 = 0
    var path: String
  }

  var segments: [Segment] = []
  var threads = [Thread(tid: 700)]
  var files: [File] = []
  var auxiliary: [(UInt64, UInt64)] = []
  var pid: Int32 = 700
  var name = "sample"
  var arguments = "./sample --fast"
  var type: UInt16 = 4
  var machine: UInt16 = 62
  var elfClass: UInt8 = 2

  func bytes() -> [UInt8] {
    let notes = self.notes()
    let table = 64 + 56 * (segments.count + 1)
    var header: [UInt8] = [0x7f, 0x45, 0x4c, 0x46, elfClass, 1, 1] + Array(repeating: 0, count: 9)
    header += little(type) + little(machine) + little(UInt32(1)) + little(UInt64(0))
    header += little(UInt64(64)) + little(UInt64(0)) + little(UInt32(0))
    header += little(UInt16(64)) + little(UInt16(56)) + little(UInt16(segments.count + 1))
    header += little(UInt16(0)) + little(UInt16(0)) + little(UInt16(0))
    var body: [UInt8] = []
    func entry(_ type: UInt32, _ flags: UInt32, _ start: UInt64, _ bytes: [UInt8], _ size: UInt64) {
      header += little(type) + little(flags) + little(UInt64(table + body.count)) + little(start)
      header += little(UInt64(0)) + little(UInt64(bytes.count)) + little(size) + little(UInt64(1))
      body += bytes
    }
    entry(4, 0, 0, notes, 0)
    for segment in segments {
      entry(1, segment.flags, segment.start, segment.bytes, segment.size)
    }
    return header + body
  }

  private func notes() -> [UInt8] {
    var result: [UInt8] = []
    func add(_ type: UInt32, _ bytes: [UInt8]) {
      result += little(UInt32(5)) + little(UInt32(bytes.count)) + little(type)
      result += Array("CORE\0\0\0\0".utf8) + bytes
      result += Array(repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
    for (index, thread) in threads.enumerated() {
      var status = [UInt8](repeating: 0, count: 336)
      func put(_ value: [UInt8], at offset: Int) {
        status.replaceSubrange(offset..<(offset + value.count), with: value)
      }
      put(little(thread.signal), at: 12)
      put(little(thread.tid), at: 32)
      put(little(thread.result), at: 112 + 10 * 8)
      put(little(thread.call), at: 112 + 15 * 8)
      put(little(thread.rip), at: 112 + 16 * 8)
      put(little(thread.rsp), at: 112 + 19 * 8)
      add(1, status)
      guard index == 0 else { continue }
      var process = [UInt8](repeating: 0, count: 24) + little(pid)
      process += [UInt8](repeating: 0, count: 12)
      process += padded(name, 16) + padded(arguments, 80)
      add(3, process)
      add(
        6, auxiliary.flatMap { little($0.0) + little($0.1) } + little(UInt64(0)) + little(UInt64(0))
      )
      var mapped = little(UInt64(files.count)) + little(UInt64(4096))
      for file in files {
        mapped += little(file.range.lowerBound) + little(file.range.upperBound) + little(file.page)
      }
      for file in files { mapped += Array(file.path.utf8) + [0] }
      add(0x4649_4c45, mapped)
    }
    return result
  }

  private func padded(_ text: String, _ count: Int) -> [UInt8] {
    let bytes = Array(text.utf8.prefix(count - 1))
    return bytes + Array(repeating: 0, count: count - bytes.count)
  }
}

private func little<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
  withUnsafeBytes(of: value.littleEndian) { Array($0) }
}

/// A file with some bytes, gone with the value.
final class ScratchFile {
  let path: String
  init(_ bytes: [UInt8], name: String = "core") throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "scratch-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: name)
    try Data(bytes).write(to: file)
    path = file.path
  }
  deinit {
    try? FileManager.default.removeItem(at: URL(filePath: path).deletingLastPathComponent())
  }
}
