internal import Glibc

/// The library that is preloaded, under a path that LD_PRELOAD can carry.
package struct AgentLibrary: Sendable, Hashable {
  package static let fileName = "libHangAgent.so"
  /// Absolute, without spaces and colons.
  package var path: String

  /// Looks where `named` (HANGCHECK_AGENT) says, or else around the executable.
  package init(
    named: String?, executable: String? = Files.resolved("/proc/self/exe")
  ) throws(LaunchError) {
    if let named, !named.isEmpty {
      if let fault = AgentLibrary.fault(named) {
        throw LaunchError(
          status: 69,
          message: "HANGCHECK_AGENT names \(named): \(fault); let it name \(AgentLibrary.fileName),"
            + " or unset it")
      }
      path = try AgentLibrary.carried(Files.resolved(named) ?? named)
      return
    }
    let places = AgentLibrary.places(executable: executable)
    var faults: [String] = []
    for place in places {
      guard let fault = AgentLibrary.fault(place) else {
        path = try AgentLibrary.carried(Files.resolved(place) ?? place)
        return
      }
      // A file that is there and is no agent tells more than a list of places.
      faults.append(fault == SystemError(ENOENT).description ? place : "\(place) (\(fault))")
    }
    throw LaunchError(
      status: 69,
      message: "the agent \(AgentLibrary.fileName) is missing, nothing was started; looked for "
        + faults.joined(separator: ", ") + "; install it there or name it in HANGCHECK_AGENT")
  }

  package static func places(executable: String?) -> [String] {
    guard let executable, let slash = executable.lastIndex(of: "/") else { return [] }
    let folder = executable[..<slash]
    let parent = folder.lastIndex(of: "/").map { folder[..<$0] } ?? ""
    return [
      "\(folder)/\(fileName)", "\(parent)/lib/hangcheck/\(fileName)", "\(parent)/lib/\(fileName)",
    ]
  }

  /// Why the loader would not take the file.
  private static func fault(_ path: String) -> String? {
    switch Files.status(of: path) {
    case .failure(let error): return error.description
    case .success(let status) where !Files.isRegular(status): return "it is no regular file"
    case .success: break
    }
    let file: OwnedDescriptor
    do { file = try OwnedDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK) } catch {
      return error.description
    }
    guard let header = ElfHeader(fd: file.rawValue) else { return "it is no shared library" }
    guard header.isShared, !header.isDamaged else { return "it is no shared library" }
    guard header.is64Bit, header.machine == ElfHeader.hostMachine else {
      return "it is built for another machine"
    }
    return nil
  }

  /// LD_PRELOAD is split at spaces and colons. A path with either goes through a symbolic link
  /// whose name depends on the path alone: it stays, because children that start after hangcheck's
  /// end would print an error if it were gone.
  private static func carried(_ path: String) throws(LaunchError) -> String {
    guard path.contains(where: { $0 == " " || $0 == ":" || $0 == "\t" || $0 == "\n" || $0 == "$" })
    else { return path }
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325  // FNV-1a
    for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    for root in ["/tmp", "/var/tmp", "/dev/shm"] {
      let folder = "\(root)/hangcheck-\(geteuid())"
      mkdir(folder, 0o755)
      // Somebody else's folder could be made to load somebody else's library.
      var status = stat()
      guard lstat(folder, &status) == 0, Files.isDirectory(status), status.st_uid == geteuid(),
        status.st_mode & (S_IWGRP | S_IWOTH) == 0
      else { continue }
      let link = "\(folder)/\(String(hash, radix: 16)).so"
      if symlink(path, link) == 0 || Files.link(at: link) == path { return link }
      unlink(link)
      if symlink(path, link) == 0 { return link }
    }
    throw LaunchError(
      status: 69,
      message: "the agent's path \(path) has a space or a colon, which LD_PRELOAD cannot carry, and"
        + " no link to it could be made in /tmp; move it, or name a copy in HANGCHECK_AGENT")
  }
}
