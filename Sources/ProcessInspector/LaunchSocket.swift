internal import CHangcheck
internal import Glibc

/// The abstract socket on which the agents of the watched processes report: it leaves no file
/// behind and ends with hangcheck. Its name is not to be guessed.
package struct ListeningSocket: ~Copyable {
  package let name: String
  private let socket: OwnedDescriptor
  package var descriptor: Int32 { socket.rawValue }

  package init() throws(SystemError) {
    var random: UInt64 = 0
    guard getentropy(&random, 8) == 0 else { throw SystemError(errno) }
    let name = "hangcheck-\(getpid())-\(String(random, radix: 16))"
    socket = try ListeningSocket.listen(to: name)
    self.name = name
  }

  private static func listen(to name: String) throws(SystemError) -> OwnedDescriptor {
    let kind = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let fd = Glibc.socket(AF_UNIX, kind, 0)
    guard fd >= 0 else { throw SystemError(errno) }
    let socket = OwnedDescriptor(fd)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      // The first byte stays 0: that is what makes the name abstract.
      for (index, byte) in name.utf8.enumerated() where index + 1 < path.count {
        path[index + 1] = byte
      }
    }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + 1 + name.utf8.count)
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, length) }
    }
    guard bound == 0, Glibc.listen(fd, 4096) == 0 else { throw SystemError(errno) }
    return socket
  }

  /// The next connection, with close-on-exec and not blocking; nil when there is none.
  package func accept() -> (connection: Int32, peer: Peer)? {
    var pid: pid_t = 0
    var uid: uid_t = 0
    let fd = hck_accept(descriptor, &pid, &uid)
    return fd < 0 ? nil : (fd, Peer(pid: pid, uid: uid))
  }
}
