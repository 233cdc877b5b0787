internal import Glibc
package import HangReport

/// Why an input cannot be used, as one line that begins with its name and, where known, the line.
package struct InputError: Error, Hashable, Sendable, CustomStringConvertible {
  package var message: String
  package var description: String { message }
}

/// Files that somebody names to be read whole.
enum InputFile {
  private static func open(_ path: String) throws(InputError) -> OwnedDescriptor {
    do { return try OwnedDescriptor(opening: path, flags: O_RDONLY) } catch {
      throw InputError(message: "\(path): cannot be read: \(error)")
    }
  }

  /// A limit keeps what has no end, like /dev/zero, from taking all memory.
  static func bytes(of path: String, megabytes: Int) throws(InputError) -> [UInt8] {
    let file = try open(path)
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let size = buffer.withUnsafeMutableBytes { read(file.rawValue, $0.baseAddress, $0.count) }
      if size < 0 && errno == EINTR { continue }
      guard size >= 0 else {
        throw InputError(message: "\(path): cannot be read: \(SystemError(errno))")
      }
      if size == 0 { return result }
      result += buffer[..<size]
      guard result.count <= megabytes << 20 else {
        throw InputError(
          message: "\(path): it is larger than \(megabytes) MB; is it the right file?")
      }
    }
  }
}

/// Reports that were written earlier.
package enum SavedReports {
  /// A report, or each line of a log of reports; `-` is standard input.
  package static func read(_ path: String) throws(InputError) -> [HangReport] {
    // The name opens a second descriptor of standard input where that is open.
    let source = path == "-" ? "/dev/stdin" : path
    let bytes = try InputFile.bytes(of: source, megabytes: 1024)
    guard bytes.contains(where: { $0 > 0x20 }) else {
      throw InputError(message: "\(path): it is empty")
    }
    let lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
    let used = lines.enumerated().filter { $0.element.contains { $0 > 0x20 } }
    // A log holds one whole object in each line; a single report may be spread over many.
    guard used.count > 1, used[0].element.last == UInt8(ascii: "}") else {
      return [try decode(bytes, path, line: nil)]
    }
    var reports: [HangReport] = []
    for (number, line) in used { reports.append(try decode(Array(line), path, line: number + 1)) }
    return reports
  }

  private static func decode(
    _ bytes: [UInt8], _ path: String, line: Int?
  ) throws(InputError) -> HangReport {
    do { return try HangReport(json: bytes) } catch {
      let place = (line ?? error.line).map { "\(path):\($0)" } ?? path
      let key = error.path.isEmpty ? "" : "\(error.path): "
      throw InputError(message: "\(place): it is no report: \(key)\(error.reason)")
    }
  }
}

extension FindingScreen {
  /// What a suppression file and a baseline, an earlier report, say; both may be left out. One that
  /// cannot be used is `failure`'s matter, and left out where that returns.
  package init<Failure>(
    suppressions: String?, baseline: String?,
    failure: (InputError) throws(Failure) -> Void
  ) throws(Failure) {
    var rules: [SuppressionRule] = []
    var reports: [HangReport] = []
    do { rules = try suppressions.map(Self.rules) ?? [] } catch { try failure(error) }
    do { reports = try baseline.map(SavedReports.read) ?? [] } catch { try failure(error) }
    self.init(
      rules: rules, rulesFile: suppressions ?? "", baseline: reports, baselineFile: baseline ?? "")
  }

  private static func rules(in path: String) throws(InputError) -> [SuppressionRule] {
    let bytes = try InputFile.bytes(of: path, megabytes: 16)
    do { return try SuppressionRule.parse(bytes) } catch {
      throw InputError(message: "\(path):\(error.line): \(error.reason)")
    }
  }
}
