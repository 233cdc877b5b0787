internal import CHangcheck
internal import Glibc
internal import HangReport
internal import Synchronization

/// Why a log's daemon has not been told.
struct LogSocketError: Error, CustomStringConvertible {
  var path: String
  var code: Int32
  var description: String {
    "\(path): \(String(cString: strerror(code))); this is not said again"
  }
}

/// The socket of a log's daemon, which takes datagrams. That it fails is thrown once; any thread may
/// use it, and nothing waits.
final class LogSocket: Sendable {
  let path: String
  private let hasFailed = Atomic<Bool>(false)

  init(_ path: String) { self.path = path }

  func send(_ bytes: [UInt8]) throws(LogSocketError) {
    try note(bytes.withUnsafeBytes { hck_send_datagram(path, $0.baseAddress, $0.count, -1) })
  }

  /// Of any length: what no datagram can hold goes as a sealed file.
  func sendOfAnyLength(_ bytes: [UInt8]) throws(LogSocketError) {
    let error = bytes.withUnsafeBytes { hck_send_datagram(path, $0.baseAddress, $0.count, -1) }
    guard error == EMSGSIZE || error == ENOBUFS else { return try note(error) }
    var code: Int32 = 0
    let file = bytes.withUnsafeBytes { bytes in
      bytes.baseAddress.map { hck_sealed_file($0, bytes.count, &code) } ?? -1
    }
    guard file >= 0 else { return try note(code) }
    defer { close(file) }
    try note(hck_send_datagram(path, nil, 0, file))
  }

  private func note(_ error: Int32) throws(LogSocketError) {
    if error != 0, !hasFailed.exchange(true, ordering: .relaxed) {
      throw LogSocketError(path: path, code: error)
    }
  }
}

extension Finding.Severity {
  /// syslog's: 3 is an error, 4 a warning, 5 a notice.
  fileprivate var priority: Int {
    switch self {
    case .error: 3
    case .warning: 4
    case .note: 5
    }
  }
}

extension HangReport {
  /// What syslog calls the identifier: the program's file.
  fileprivate var programName: String {
    let path = process.executable
    let name = path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
    return name.isEmpty ? "hangcheck" : String(name)
  }
}

/// syslog's protocol as libc speaks it. Not by libc: its `syslog` takes a lock that a deadlocked
/// thread may hold, and waits for the daemon.
struct SystemLog: Sendable {
  private let socket: LogSocket
  /// Bytes of a datagram; RFC 5424 asks every daemon to take as many.
  static let longest = 2048

  init(path: String = "/dev/log") { socket = LogSocket(path) }

  func take(_ report: HangReport) throws(LogSocketError) {
    for finding in report.findings {
      try socket.send(Self.message(of: finding, in: report, time: Self.localTime()))
    }
  }

  /// `<11>Nov 30 12:19:20 server[4711]: deadlock: …`.
  static func message(of finding: Finding, in report: HangReport, time: String) -> [UInt8] {
    let facility = 1  // user
    let head = "<\(facility << 3 | finding.severity.priority)>\(time) "
    let text =
      head + "\(report.programName)[\(report.process.pid)]: \(finding.kind.rawValue): "
      + "\(finding.message) [\(finding.fingerprint)]"
    let line = String(text.map { $0.unicodeScalars.allSatisfy { $0.value < 32 } ? " " : $0 })
    guard line.utf8.count > longest else { return Array(line.utf8) }
    var end = line.utf8.index(line.utf8.startIndex, offsetBy: longest - 3)
    while end.samePosition(in: line.unicodeScalars) == nil { end = line.utf8.index(before: end) }
    return Array((line[..<end] + "…").utf8)
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Not by strftime, whose words are the locale's.
  private static func localTime() -> String {
    var (now, parts) = (time(nil), tm())
    localtime_r(&now, &parts)
    func two(_ number: Int32, _ fill: String) -> String {
      (number < 10 ? fill : "") + String(number)
    }
    let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { two($0, "0") }
    return months[Int(parts.tm_mon) % 12] + " " + two(parts.tm_mday, " ") + " "
      + clock.joined(separator: ":")
  }
}

/// The journal's own protocol: fields of any length and content.
struct Journal: Sendable {
  private let socket: LogSocket

  init(path: String = "/run/systemd/journal/socket") { socket = LogSocket(path) }

  func take(_ report: HangReport) throws {
    for finding in report.findings {
      try socket.sendOfAnyLength(try Self.entry(of: finding, in: report))
    }
  }

  static func entry(of finding: Finding, in report: HangReport) throws -> [UInt8] {
    var alone = report
    alone.findings = [finding]
    var entry: [UInt8] = []
    func add(_ name: String, _ value: [UInt8]) {
      entry += Array(name.utf8)
      if value.contains(UInt8(ascii: "\n")) {
        entry.append(UInt8(ascii: "\n"))
        withUnsafeBytes(of: UInt64(value.count).littleEndian) { entry += $0 }
      } else {
        entry.append(UInt8(ascii: "="))
      }
      entry += value + [UInt8(ascii: "\n")]
    }
    add("MESSAGE", Array("\(finding.kind.rawValue): \(finding.message)".utf8))
    add("PRIORITY", Array("\(finding.severity.priority)".utf8))
    add("SYSLOG_IDENTIFIER", Array(report.programName.utf8))
    add("HANGCHECK_KIND", Array(finding.kind.rawValue.utf8))
    add("HANGCHECK_SEVERITY", Array(finding.severity.rawValue.utf8))
    add("HANGCHECK_CERTAINTY", Array(finding.certainty.rawValue.utf8))
    add("HANGCHECK_FINGERPRINT", Array(finding.fingerprint.utf8))
    add("HANGCHECK_REPORT", try alone.json())
    return entry
  }
}
