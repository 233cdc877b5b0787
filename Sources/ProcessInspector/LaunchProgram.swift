internal import CHangcheck
internal import Glibc

/// Why nothing was started: one line for the user and the exit status.
package struct LaunchError: Error, Hashable, Sendable {
  package var status: Int32
  package var message: String
  package init(status: Int32, message: String) {
    self.status = status
    self.message = message
  }
}

/// A program that was found the way execvp finds it. File names are bytes: those that are no valid
/// text are executed as they are, and shown repaired.
package struct Program: Sendable, Hashable {
  /// What is executed, to be read: the word itself where it has a slash.
  package var path: String { Program.text(bytes) }
  private var bytes: [UInt8]

  /// Looks `word` up in `searchPath`, the value of PATH or nil where it is not set.
  package init(_ word: String, searchPath: String?) throws(LaunchError) {
    try self.init(bytes: Array(word.utf8), searchPath: searchPath.map { Array($0.utf8) })
  }

  package init(bytes word: [UInt8], searchPath: [UInt8]?) throws(LaunchError) {
    let slash = UInt8(ascii: "/")
    guard !word.isEmpty else {
      throw LaunchError(status: 127, message: "the program's name is empty")
    }
    if word.contains(slash) {
      if let obstacle = Program.obstacle(word) { throw obstacle }
      bytes = word
      return
    }
    // What glibc uses where PATH is unset.
    let folders = (searchPath ?? Array("/bin:/usr/bin".utf8)).split(
      separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    var found: LaunchError?
    for folder in folders {
      let candidate = (folder.isEmpty ? Array(".".utf8) : Array(folder)) + [slash] + word
      guard let obstacle = Program.obstacle(candidate) else {
        bytes = candidate
        return
      }
      if obstacle.status == 126, found == nil { found = obstacle }
    }
    if let found { throw found }
    let name = Program.text(word)
    let isHere = Program.obstacle(Array("./".utf8) + word) == nil
    throw LaunchError(
      status: 127,
      message: "\(name): no such program in PATH"
        + (isHere ? "; there is one here: `hangcheck ./\(name)`" : ""))
  }

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  /// Why the file cannot be executed, as far as its directory entry tells.
  private static func obstacle(_ bytes: [UInt8]) -> LaunchError? {
    let path = text(bytes)
    switch withCString(bytes, Files.status(at:)) {
    case .failure(let error) where error.code == ENOENT || error.code == ENOTDIR:
      return LaunchError(status: 127, message: "\(path): \(error)")
    case .failure(let error):
      return LaunchError(status: 126, message: "\(path): \(error)")
    case .success(let status) where Files.isDirectory(status):
      return LaunchError(status: 126, message: "\(path): it is a directory, not a program")
    case .success(let status) where !Files.isRegular(status):
      return LaunchError(status: 126, message: "\(path): it is no regular file")
    case .success where withCString(bytes, Files.mayExecute(at:)):
      return nil
    case .success(let status):
      let hint =
        status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH) == 0
        ? "chmod +x \(path)" : "you have no permission to execute it"
      return LaunchError(status: 126, message: "\(path): it is not executable (\(hint))")
    }
  }

  private static func withCString<R>(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
    (bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { buffer in
      // Never empty, because of the terminator.
      buffer.baseAddress.map(body) ?? "".withCString(body)
    }
  }

  /// Starts it with `mask` as its signal mask; returns its pid once it has been executed. With
  /// `apart`, an open descriptor, it has that for its streams, and a session that ends with this
  /// process.
  package func start(
    arguments: borrowing CStringArray, environment: borrowing CStringArray, mask: SignalMask,
    ignoresChildSignal: Bool, image: ProgramImage, apart: Int32? = nil
  ) throws(LaunchError) -> Int32 {
    var mask = mask.value
    let pid = Program.withCString(bytes) { path in
      hck_spawn(
        path, arguments.pointer, environment.pointer, &mask, ignoresChildSignal, apart ?? -1)
    }
    if pid > 0 { return pid }
    let reason: String
    switch -pid {
    case ENOEXEC, ENOENT, EACCES, ELIBBAD, EINVAL, ELOOP, EIO, ENOTDIR:
      reason = image.obstacle ?? SystemError(-pid).description
    case E2BIG:
      reason = "its arguments and environment are too large: \(SystemError(-pid))"
    default:
      reason = SystemError(-pid).description
    }
    throw LaunchError(status: 126, message: "\(path): cannot be executed: \(reason)")
  }
}

/// A null-terminated array of C strings. Those it was made from are borrowed for the process's
/// life, so that bytes which are no valid text stay what they are.
package struct CStringArray: ~Copyable {
  package let pointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  package let count: Int

  package init(_ strings: [UnsafeMutablePointer<CChar>]) {
    count = strings.count
    pointer = .allocate(capacity: count + 1)
    for (index, string) in strings.enumerated() {
      (pointer + index).initialize(to: string)
    }
    (pointer + count).initialize(to: nil)
  }

  deinit { pointer.deallocate() }
}
