internal import Glibc

/// Why a line is not in a log, or the log not put aside.
struct LineFileError: Error, CustomStringConvertible {
  var path: String
  var code: Int32
  var description: String { "\(path): \(String(cString: strerror(code)))" }
}

/// A file that grows by whole lines, perhaps by those of several threads and processes at once.
///
/// It is opened for each line, so that anybody may move it away. Those who write through this type
/// exclude each other by `flock`; who holds that lock for long is not waited for, and the line is
/// appended without it. What is no regular file (a FIFO, a device) gets each line by one call, which
/// may not take a long one whole. A value without state: any thread may use it.
///
/// Invariants:
/// 1. A line goes to the file that bears the name while it is locked: whoever has waited for the
///    lock looks whether it still does.
/// 2. Only who holds the lock of the file that bears the name gives it another one.
/// 3. Half a line is taken back under the lock, and only from the end of the file.
/// 4. What a writer that was killed has left of a line is ended before the next one.
struct LineFile {
  /// When a file is put aside, and how many of these there are.
  struct Rotation {
    /// Bytes that the file does not grow beyond, but for a single line that is longer.
    var size: Int
    /// How many older files stay, as `log.1` (the youngest) to `log.n`.
    var kept: Int
  }
  var path: String
  var rotation: Rotation?

  func append(_ line: [UInt8]) throws(LineFileError) {
    var mayRotate = rotation != nil
    var obstacle: LineFileError?
    while true {
      let fd = try open()
      defer { close(fd) }
      guard Self.regularSize(fd) != nil else { return try write(line, to: fd, isRegular: false) }
      let isLocked = Self.lock(fd)
      // Explicitly: a child that was forked meanwhile shares the descriptor, and with it the lock.
      defer { if isLocked { flock(fd, LOCK_UN) } }
      if isLocked && !bearsName(fd) { continue }  // 1
      let size = Self.regularSize(fd) ?? 0
      if isLocked, mayRotate, let rotation, size > 0, line.count > rotation.size - size {
        mayRotate = false
        do throws(LineFileError) {
          if try putAside(fd, keeping: rotation.kept) { continue }
        } catch {
          // Better too long a log than a report too few.
          obstacle = error
        }
      }
      let start = isLocked && endsInLine(size) ? [UInt8(ascii: "\n")] : []  // 4
      try write(start + line, to: fd, isRegular: true)
      if let obstacle { throw obstacle }
      return
    }
  }

  private func open() throws(LineFileError) -> Int32 {
    let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    let fd = Glibc.open(path, flags, 0o666)
    guard fd >= 0 else { throw LineFileError(path: path, code: errno) }
    return fd
  }

  private func write(
    _ line: [UInt8], to fd: Int32, isRegular: Bool
  ) throws(LineFileError) {
    var size: Int
    repeat {
      size = line.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
    } while size < 0 && errno == EINTR
    if size < 0 { throw LineFileError(path: path, code: errno) }
    guard size < line.count else { return }
    guard isRegular else { throw LineFileError(path: path, code: EAGAIN) }
    // The disk is full: half a line goes away again, unless somebody has written behind it. (3)
    let end = lseek(fd, 0, SEEK_CUR)
    if end >= size, lseek(fd, 0, SEEK_END) == end { ftruncate(fd, end - off_t(size)) }
    throw LineFileError(path: path, code: ENOSPC)
  }

  private static func regularSize(_ fd: Int32) -> Int? {
    var status = stat()
    guard fstat(fd, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(status.st_size)
  }

  /// Waits a second at most: somebody else's lock is no reason to lose a report.
  private static func lock(_ fd: Int32) -> Bool {
    for _ in 0..<500 {
      if flock(fd, LOCK_EX | LOCK_NB) == 0 { return true }
      guard errno == EWOULDBLOCK || errno == EINTR else { return false }
      usleep(2000)
    }
    return false
  }

  private func endsInLine(_ size: Int) -> Bool {
    let fd = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard fd >= 0 else { return false }
    defer { close(fd) }
    var last = UInt8(ascii: "\n")
    return size > 0 && pread(fd, &last, 1, off_t(size - 1)) == 1 && last != UInt8(ascii: "\n")
  }

  private func bearsName(_ fd: Int32) -> Bool {
    var (ours, named) = (stat(), stat())
    guard fstat(fd, &ours) == 0, stat(path, &named) == 0 else { return false }
    return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino
  }

  /// Renames the file and its elders, the oldest of which goes; false where the name is a link's,
  /// which is left alone.
  private func putAside(_ fd: Int32, keeping kept: Int) throws(LineFileError) -> Bool {
    var named = stat()
    guard lstat(path, &named) == 0, named.st_mode & S_IFMT == S_IFREG, bearsName(fd) else {
      return false
    }
    guard kept > 0 else {
      if unlink(path) != 0 { throw LineFileError(path: path, code: errno) }
      return true
    }
    // Up to the first that is not there.
    var last = 0
    while last < kept - 1, access("\(path).\(last + 1)", F_OK) == 0 { last += 1 }
    for number in stride(from: last, to: 0, by: -1) {
      if rename("\(path).\(number)", "\(path).\(number + 1)") != 0, errno != ENOENT {
        throw LineFileError(path: "\(path).\(number)", code: errno)
      }
    }
    if rename(path, "\(path).1") != 0 { throw LineFileError(path: "\(path).1", code: errno) }
    return true
  }
}
