#if canImport(Glibc)
  internal import Glibc
#else
  internal import Musl
#endif

/// Reads the source files that a report names.
public protocol SourceReader: Sendable {
  /// The file's text, or nil where it cannot be read.
  func source(of path: String) -> String?
}

/// Reads source files from the disk, up to 8 MB each.
public struct FileSourceReader: SourceReader {
  public init() {}

  public func source(of path: String) -> String? {
    // A report may name a pipe or a terminal: neither open nor read may wait for it.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_size <= 8 << 20
    else { return nil }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return nil }
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer[..<count]
    }
  }

  /// The folder that this process works in.
  public static var currentFolder: String? {
    guard let path = getcwd(nil, 0) else { return nil }
    defer { free(path) }
    return String(cString: path)
  }
}

/// Single lines of source files, each file read once.
struct SourceLines {
  let reader: (any SourceReader)?
  private var files: [String: [Substring]] = [:]

  init(reader: (any SourceReader)?) { self.reader = reader }

  /// The line without its indentation, and where in it the column (in bytes, from 1) falls.
  mutating func line(of frame: Frame) -> (text: String, mark: Int)? {
    guard let reader, let file = frame.file, let number = frame.line, number > 0 else { return nil }
    if files[file] == nil {
      files[file] =
        reader.source(of: file)?.split(
          omittingEmptySubsequences: false, whereSeparator: \.isNewline) ?? []
    }
    guard let lines = files[file], number <= lines.count else { return nil }
    let whole = lines[number - 1]
    let code = whole.drop(while: \.isWhitespace)
    guard !code.isEmpty else { return nil }
    var mark = 0
    if let column = frame.column, column > 1,
      let index = whole.utf8.index(
        whole.startIndex, offsetBy: column - 1, limitedBy: whole.endIndex),
      index > code.startIndex, index < code.endIndex
    {
      mark = code.distance(from: code.startIndex, to: index)
    }
    // One column for each tab, so that the mark stands where it should.
    return (cleaned(String(code.map { $0 == "\t" ? " " : $0 })), mark)
  }
}
