internal import CHangcheck
internal import Glibc

/// What can be told of a program before it runs: whether it can be, and whether the agent gets in.
package struct ProgramImage: Sendable, Hashable {
  /// Why executing it fails, if it does. The kernel has the last word: emulators exist.
  package var obstacle: String?
  /// Why the agent will not be inside, with the remedy in parentheses.
  package var blindness: String?
  /// False where LD_PRELOAD would make its loader complain or refuse.
  package var toleratesPreload = true

  package init(path: String) { self.init(path: path, depth: 0) }

  // The kernel follows four `#!` lines.
  private init(path: String, depth: Int) {
    guard let file = try? OwnedDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK) else {
      // Executable but not readable: it runs, and so says nothing of itself.
      readPrivileges(path)
      return
    }
    if let header = ElfHeader(fd: file.rawValue) {
      read(header, path, file.rawValue)
      return
    }
    let head = Files.bytes(of: file.rawValue, at: 0, count: 256)
    guard head.starts(with: [0x23, 0x21]) else {
      obstacle = Self.describe(unknown: head, path: path)
      return
    }
    let line = head.dropFirst(2).prefix { $0 != 0x0a && $0 != 0 }
    let words = line.split { $0 == 0x20 || $0 == 0x09 }
    guard let word = words.first else {
      obstacle =
        "its first line is #! without an interpreter; write #!/bin/sh or run it as"
        + " `hangcheck sh \(path)`"
      return
    }
    let interpreter = String(decoding: word, as: UTF8.self)
    if interpreter.hasSuffix("\r") {
      obstacle =
        "its interpreter line ends in a carriage return; save it with Unix line ends"
        + " (sed -i 's/\\r$//' \(path))"
      return
    }
    switch Files.status(of: interpreter) {
    case .failure(let error):
      obstacle =
        "its interpreter \(interpreter) cannot be used: \(error); install it, or mend the"
        + " #! line"
    case .success(let status) where Files.isDirectory(status):
      obstacle = "its interpreter \(interpreter) is a directory; mend the #! line"
    case .success where !Files.mayExecute(interpreter):
      obstacle = "its interpreter \(interpreter) is not executable; mend the #! line"
    case .success where depth >= 4:
      obstacle = "its interpreters are scripts of scripts, more than the kernel follows"
    case .success:
      self = ProgramImage(path: interpreter, depth: depth + 1)
      if let inner = obstacle { obstacle = "its interpreter \(interpreter) cannot run: \(inner)" }
    }
  }

  private mutating func read(_ header: ElfHeader, _ path: String, _ descriptor: Int32) {
    if header.isDamaged {
      obstacle = "the file is damaged: its ELF headers point outside it; build or copy it again"
      toleratesPreload = false
      return
    }
    if header.machine != ElfHeader.hostMachine || !header.is64Bit {
      obstacle =
        "it is a program for \(header.machineName)\(header.is64Bit ? "" : ", 32 bits"), and"
        + " this machine is \(ElfHeader.hostName); build it for this machine"
      blindness =
        header.machine == ElfHeader.hostMachine || header.machine == 3
        ? "it is a 32-bit program (build it for 64 bits)"
        : "it is a program for \(header.machineName) (build it for this machine)"
      toleratesPreload = false
      return
    }
    let name = path.split(separator: "/").last.map(String.init) ?? path
    guard let loader = header.interpreter else {
      // The loader itself, run as a program, loads the agent like any other library.
      if header.isShared && Self.isGlibcLoader(name) { return }
      blindness =
        "it is linked statically, without a dynamic loader (link it dynamically; Swift's"
        + " -static-stdlib is fine, -static-executable is not)"
      return
    }
    if case .failure(let error) = Files.status(of: loader) {
      obstacle =
        "its dynamic loader \(loader) cannot be used: \(error); install the libraries that"
        + " it was built for"
    }
    if !Self.isGlibcLoader(loader.split(separator: "/").last.map(String.init) ?? loader) {
      blindness = "its loader \(loader) is not glibc's (build it against glibc)"
      toleratesPreload = false
      return
    }
    if hck_insists_on_first(descriptor) != 0 {
      blindness =
        "it loads AddressSanitizer as a shared library, which refuses to start behind a preloaded one (link it with"
        + " -static-libasan, or without it)"
      toleratesPreload = false
      return
    }
    readPrivileges(path)
  }

  private static func isGlibcLoader(_ name: String) -> Bool {
    name.hasPrefix("ld-linux") || name.hasPrefix("ld64.so") || name.hasPrefix("ld-2.")
  }

  /// The loader ignores preloaded libraries of a program that gains privileges.
  private mutating func readPrivileges(_ path: String) {
    guard case .success(let status) = Files.status(of: path) else { return }
    var system = statvfs()
    let ignored =
      hck_no_new_privileges()
      || (statvfs(path, &system) == 0 && system.f_flag & UInt(ST_NOSUID) != 0)
    if ignored { return }
    var gained: String?
    if status.st_mode & S_ISUID != 0, status.st_uid != getuid() {
      gained = "it is setuid to user \(status.st_uid)"
    } else if status.st_mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP, status.st_gid != getgid() {
      gained = "it is setgid to group \(status.st_gid)"
    } else if geteuid() != 0, hck_has_file_capabilities(path) {
      gained = "it has file capabilities"
    }
    if let gained {
      blindness =
        "\(gained), and its loader then ignores preloaded libraries (run a copy without"
        + " them, as the user that it needs)"
    }
  }

  private static func describe(unknown head: [UInt8], path: String) -> String {
    if head.isEmpty { return "the file is empty, or cannot be read" }
    if head.contains(where: { $0 == 0 }) {
      return "the file is neither an ELF program nor a script"
    }
    return "it has no interpreter line (#!…); run it as `hangcheck sh \(path)`"
  }
}
