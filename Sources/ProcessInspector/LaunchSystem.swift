internal import CHangcheck
package import Glibc

/// A system call failed with this errno.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  package let code: Int32
  package init(_ code: Int32) { self.code = code }
  package var description: String { String(cString: strerror(code)) }
}

/// An open descriptor, closed when it goes.
package struct OwnedDescriptor: ~Copyable {
  package let rawValue: Int32
  package init(_ rawValue: Int32) { self.rawValue = rawValue }
  deinit { close(rawValue) }

  /// Opens with close-on-exec, and never as the controlling terminal.
  package init(opening path: String, flags: Int32, mode: UInt32 = 0) throws(SystemError) {
    let fd = hck_open(path, flags, mode)
    guard fd >= 0 else { throw SystemError(-fd) }
    self.init(fd)
  }

  /// A second descriptor of what `fd` refers to, beyond the standard ones.
  package init(duplicating fd: Int32) throws(SystemError) {
    let copy = hck_duplicate(fd)
    guard copy >= 0 else { throw SystemError(-copy) }
    self.init(copy)
  }
}

/// The thin layer over the kernel's files that the launcher needs.
package enum Files {
  /// What `stat` says, or the errno.
  package static func status(of path: String) -> Result<stat, SystemError> {
    path.withCString(status(at:))
  }

  package static func status(at path: UnsafePointer<CChar>) -> Result<stat, SystemError> {
    var result = stat()
    return stat(path, &result) == 0 ? .success(result) : .failure(SystemError(errno))
  }

  package static func isDirectory(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFDIR }
  package static func isRegular(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFREG }

  /// With the effective ids, as execve judges.
  package static func mayExecute(_ path: String) -> Bool {
    path.withCString(mayExecute(at:))
  }

  package static func mayExecute(at path: UnsafePointer<CChar>) -> Bool {
    faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0
  }

  /// At most `count` bytes from `offset`; fewer where the file ends, none where it cannot be read.
  package static func bytes(of fd: Int32, at offset: UInt64, count: Int) -> [UInt8] {
    guard let start = Int(exactly: offset), start <= Int.max - count, count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count {
        let rest = buffer.baseAddress?.advanced(by: filled)
        let got = pread(fd, rest, count - filled, start + filled)
        if got < 0 && errno == EINTR { continue }
        guard got > 0 else { return }
        filled += got
      }
    }
  }

  /// The whole of a small file of /proc, whose size is not known before.
  package static func text(of path: String, limit: Int = 1 << 16) -> String? {
    guard let file = try? OwnedDescriptor(opening: path, flags: O_RDONLY) else { return nil }
    return String(decoding: bytes(of: file.rawValue, at: 0, count: limit), as: UTF8.self)
  }

  package static func link(at path: String) -> String? {
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, filled in
      let raw = UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
      filled = raw.map { max(0, readlink(path, $0, buffer.count)) } ?? 0
    }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }

  /// The absolute path without symbolic links.
  package static func resolved(_ path: String) -> String? {
    guard let buffer = realpath(path, nil) else { return nil }
    defer { free(buffer) }
    return String(cString: buffer)
  }
}

/// CLOCK_MONOTONIC in nanoseconds.
package func monotonicNow() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
