import Foundation
import HangReport
import Testing

@testable import Watchdog

/// A log's daemon, as the tests play it.
private final class Daemon {
  let path: String
  private let socket: Int32

  init() throws {
    path =
      FileManager.default.temporaryDirectory
      .appendingPathComponent("log-\(UUID().uuidString.prefix(8))").path
    socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let error = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(error == 0)
  }
  deinit {
    close(socket)
    unlink(path)
  }

  /// The next datagram, and a descriptor that came along; nil where there is none.
  func receive() -> (bytes: [UInt8], descriptor: Int32?)? {
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    var control = [UInt8](repeating: 0, count: 64)
    let (size, length) = bytes.withUnsafeMutableBytes { bytes in
      control.withUnsafeMutableBytes { control in
        var io = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &io) { io in
          var message = msghdr()
          message.msg_iov = io
          message.msg_iovlen = 1
          message.msg_control = control.baseAddress
          message.msg_controllen = control.count
          let size = recvmsg(socket, &message, Int32(MSG_DONTWAIT))
          return (size, message.msg_controllen)
        }
      }
    }
    guard size >= 0 else { return nil }
    // Behind the header of 16 bytes.
    let descriptor =
      length >= 20 ? control.withUnsafeBytes { $0.load(fromByteOffset: 16, as: Int32.self) } : nil
    return (Array(bytes.prefix(size)), descriptor)
  }
}

@Suite struct LogSocketTests {
  private func report(
    _ messages: [String] = ["\"a\" waits\nfor \"b\""], arguments: [String] = []
  ) -> HangReport {
    HangReport(
      tool: .current, mode: .inProcess,
      process: WatchedProcess(pid: 4711, executable: "/usr/bin/server", arguments: arguments),
      findings: messages.enumerated().map { index, message in
        Finding(
          kind: index == 0 ? .deadlock : .longWait, severity: index == 0 ? .error : .note,
          certainty: .certain, message: message, fingerprint: "f\(index)", time: "")
      })
  }

  @Test func aLineForEachFinding() throws {
    let daemon = try Daemon()
    try SystemLog(path: daemon.path).take(report(["\"a\" waits\nfor \"b\"", "long"]))
    let first = String(decoding: try #require(daemon.receive()).bytes, as: UTF8.self)
    // <11>Nov 30 12:19:20 server[4711]: …
    let pattern =
      /<11>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d server\[4711\]: deadlock: "a" waits for "b" \[f0\]/
    #expect(first.wholeMatch(of: pattern) != nil, "\(first)")
    let second = String(decoding: try #require(daemon.receive()).bytes, as: UTF8.self)
    #expect(second.hasPrefix("<13>") && second.hasSuffix(": longWait: long [f1]"))
    #expect(daemon.receive() == nil)
  }

  @Test func aLongLineIsCutBetweenCharacters() {
    for shift in 0..<4 {
      let long = String(repeating: "a", count: shift) + String(repeating: "é", count: 4000)
      let bytes = SystemLog.message(
        of: report([long]).findings[0], in: report(), time: "Nov 30 12:19:20")
      #expect(bytes.count <= SystemLog.longest && bytes.count > SystemLog.longest - 8)
      #expect(String(validating: bytes, as: UTF8.self)?.hasSuffix("é…") == true)
    }
  }

  /// The fields of an entry of the journal.
  private func fields(_ bytes: [UInt8]) -> [String: String] {
    var (rest, fields) = (bytes[...], [String: String]())
    while let end = rest.firstIndex(where: { $0 == 10 || $0 == 61 }) {
      let name = String(decoding: rest[..<end], as: UTF8.self)
      let isPlain = rest[end] == 61
      rest = rest[(end + 1)...]
      var size = rest.firstIndex(of: 10).map { $0 - rest.startIndex } ?? 0
      if !isPlain {
        size = rest.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(8)
      }
      fields[name] = String(decoding: rest.prefix(size), as: UTF8.self)
      rest = rest.dropFirst(size + 1)
    }
    return fields
  }

  @Test func anEntryForEachFinding() throws {
    let daemon = try Daemon()
    let report = report(["\"a\" waits\nfor \"b\"", "long"])
    try Journal(path: daemon.path).take(report)
    let first = fields(try #require(daemon.receive()).bytes)
    #expect(first["MESSAGE"] == "deadlock: \"a\" waits\nfor \"b\"")
    #expect(first["PRIORITY"] == "3")
    #expect(first["SYSLOG_IDENTIFIER"] == "server")
    #expect(first["HANGCHECK_KIND"] == "deadlock")
    #expect(first["HANGCHECK_SEVERITY"] == "error")
    #expect(first["HANGCHECK_CERTAINTY"] == "certain")
    #expect(first["HANGCHECK_FINGERPRINT"] == "f0")
    let json = Array(try #require(first["HANGCHECK_REPORT"]).utf8)
    #expect(try HangReport(json: json).findings == [report.findings[0]])
    #expect(first.count == 8)
    #expect(fields(try #require(daemon.receive()).bytes)["HANGCHECK_KIND"] == "longWait")
    #expect(daemon.receive() == nil)
  }

  @Test func aLargeEntryIsASealedFile() throws {
    let daemon = try Daemon()
    let argument = String(repeating: "x", count: 3_000_000)
    try Journal(path: daemon.path).take(report(arguments: [argument]))
    let (bytes, descriptor) = try #require(daemon.receive())
    #expect(bytes.isEmpty)
    let file = try #require(descriptor)
    let all: Int32 = 0xf  // F_SEAL_SEAL, SHRINK, GROW and WRITE
    let getSeals: Int32 = 1034  // F_GET_SEALS
    #expect(fcntl(file, getSeals) & all == all)
    lseek(file, 0, SEEK_SET)
    let data = FileHandle(fileDescriptor: file, closeOnDealloc: true).readDataToEndOfFile()
    let json = try #require(fields([UInt8](data))["HANGCHECK_REPORT"])
    #expect(try HangReport(json: Array(json.utf8)).process.arguments == [argument])
  }

  @Test func aDaemonThatIsNotThereIsSaidOnce() throws {
    let (log, journal) = (SystemLog(path: "/nowhere/log"), Journal(path: "/nowhere/socket"))
    let error = #expect(throws: LogSocketError.self) { try log.take(report()) }
    #expect(error?.description.hasPrefix("/nowhere/log: No such file or directory") == true)
    #expect(throws: LogSocketError.self) { try journal.take(report()) }
    try log.take(report())
    try journal.take(report())
  }

  /// Nobody reads, and nobody waits for that.
  @Test func aFullQueueIsNotWaitedFor() throws {
    let daemon = try Daemon()
    let log = SystemLog(path: daemon.path)
    var errors = 0
    for _ in 0..<5000 {
      do { try log.take(report()) } catch { errors += 1 }
    }
    #expect(errors == 1)
    #expect(daemon.receive() != nil)
  }
}
