import Foundation

/// Runs a program in a process group of its own, with a limit, and leaves nothing behind.
enum Child {
  enum Status: Equatable, Sendable, CustomStringConvertible {
    case exited(Int32)
    case signalled(Int32)
    /// The limit of the test passed; it was killed.
    case overdue
    var description: String {
      switch self {
      case .exited(let status): "exited with \(status)"
      case .signalled(let signal): "ended by signal \(signal)"
      case .overdue: "did not end in time"
      }
    }
  }

  struct Outcome: Sendable {
    var status: Status
    var output: Data
    var errors: Data
    var seconds: Double
    /// Processes of its group that outlived it; they were killed.
    var leftOvers: Bool
    var outputText: String { String(decoding: output, as: UTF8.self) }
    var errorText: String { String(decoding: errors, as: UTF8.self) }
  }

  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  static func run(
    _ command: [String], input: String = "", limit: Double, adding variables: [String: String] = [:]
  ) throws -> Outcome {
    var ends: [Int32] = []
    defer { for end in ends where end >= 0 { close(end) } }
    for _ in 0..<3 {
      var pair: [Int32] = [-1, -1]
      guard pipe(&pair) == 0 else { throw Failure(description: "no pipe") }
      ends += pair
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
    posix_spawn_file_actions_adddup2(&actions, ends[3], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[5], 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var surroundings = ProcessInfo.processInfo.environment
    surroundings.merge(variables) { $1 }
    surroundings["SWIFT_BACKTRACE"] = "enable=no"
    let environment = surroundings.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    var pid = pid_t()
    let begun = now()
    keepDescriptorsToOurselves()
    let error = withStrings(command) { arguments in
      withStrings(environment) {
        posix_spawn(&pid, command[0], &actions, &attributes, arguments, $0)
      }
    }
    guard error == 0 else {
      throw Failure(description: "\(command[0]): \(String(cString: strerror(error)))")
    }
    for end in [0, 3, 5] {
      close(ends[end])
      ends[end] = -1
    }
    // Inputs are short: they fit into the pipe. A program that has ended already reads none of it.
    signal(SIGPIPE, SIG_IGN)
    var text = Array(input.utf8)
    _ = write(ends[1], &text, text.count)
    close(ends[1])
    ends[1] = -1
    return drain(pid, ends[2], ends[4], begun: begun, limit: limit)
  }

  /// Reads both streams to their ends while it waits for the program's own.
  private static func drain(
    _ pid: pid_t, _ output: Int32, _ errors: Int32, begun: Double, limit: Double
  ) -> Outcome {
    var outcome = Outcome(
      status: .overdue, output: Data(), errors: Data(), seconds: 0, leftOvers: false)
    var polled = [
      pollfd(fd: output, events: Int16(POLLIN), revents: 0),
      pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
    ]
    var buffer = [UInt8](repeating: 0, count: 65536)
    var ended: Double?
    // A process that outlives the program may keep a stream open: half a second, then it is killed.
    while polled.contains(where: { $0.fd >= 0 }) || ended == nil {
      if ended == nil {
        var raw: Int32 = 0
        if waitpid(pid, &raw, WNOHANG) == pid {
          ended = now()
          outcome.seconds = now() - begun
          outcome.status = raw & 0x7f == 0 ? .exited(raw >> 8 & 0xff) : .signalled(raw & 0x7f)
        } else if now() - begun > limit {
          kill(-pid, SIGKILL)
          waitpid(pid, &raw, 0)
          ended = now()
          outcome.seconds = now() - begun
        }
      }
      if let ended, now() - ended > 0.5 { break }
      poll(&polled, 2, 10)
      for i in 0..<2 where polled[i].fd >= 0 && polled[i].revents != 0 {
        let count = read(polled[i].fd, &buffer, buffer.count)
        if count <= 0 {
          polled[i].fd = -1
        } else if i == 0 {
          outcome.output.append(contentsOf: buffer[..<count])
        } else {
          outcome.errors.append(contentsOf: buffer[..<count])
        }
      }
      polled[0].revents = 0
      polled[1].revents = 0
    }
    for _ in 0..<50 where lives(group: pid) { usleep(10000) }
    outcome.leftOvers = lives(group: pid)
    kill(-pid, SIGKILL)
    return outcome
  }

  /// Whether a process of the group is there that has not ended; one that nobody has reaped has.
  private static func lives(group: pid_t) -> Bool {
    guard kill(-group, 0) == 0 else { return false }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.contains { name in
      guard Int32(name) != nil,
        let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
        let end = stat.lastIndex(of: ")")
      else { return false }
      // After the name: state, parent, group.
      let fields = stat[stat.index(after: end)...].split(separator: " ")
      return fields.count > 2 && fields[0] != "Z" && fields[0] != "X" && fields[2] == "\(group)"
    }
  }
}

/// Whatever this test process has open must not reach the program, which counts descriptors.
private func keepDescriptorsToOurselves() {
  let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
  for descriptor in names.compactMap({ Int32($0) }) where descriptor > 2 {
    let flags = fcntl(descriptor, F_GETFD)
    if flags >= 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
  }
}

private func now() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

private func withStrings<R>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
) -> R {
  let copies = strings.map { strdup($0) } + [nil]
  defer { for copy in copies { free(copy) } }
  return copies.withUnsafeBufferPointer { body($0.baseAddress!) }
}
