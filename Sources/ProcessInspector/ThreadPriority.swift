internal import CHangcheck
internal import Glibc
internal import WaitForGraph

/// How urgent a thread's work is: what the kernel goes by, and the quality of service of the global
/// queue that it works for, which on Linux no kernel knows of.
struct ThreadPriority: Equatable, Sendable {
  /// sched(7): 0 other, 1 FIFO, 2 round robin, 3 batch, 5 idle, 6 deadline.
  var policy: Int
  /// What `proc_pid_stat(5)` calls priority, an inherited one included: the lower, the more urgent.
  var effective: Int
  var nice: Int
  var realtime: Int
  /// Of libdispatch's global queue.
  var qos: QoS?

  enum QoS: Int, Comparable, Sendable, CaseIterable {
    case maintenance = 1
    case background, utility, `default`, userInitiated, userInteractive
    static func < (a: QoS, b: QoS) -> Bool { a.rawValue < b.rawValue }

    /// By the label of a global queue.
    init?(label: String) {
      guard let name = label.split(separator: ".").dropFirst(3).first else { return nil }
      switch name {
      case "maintenance-qos": self = .maintenance
      case "background-qos": self = .background
      case "utility-qos": self = .utility
      case "default-qos": self = .default
      case "user-initiated-qos": self = .userInitiated
      case "user-interactive-qos": self = .userInteractive
      default: return nil
      }
    }
  }

  /// Whether the other one's work is less urgent: by the kernel's order, and where that makes no
  /// difference by the quality of service.
  func outranks(_ other: ThreadPriority) -> Bool {
    if effective != other.effective { return effective < other.effective }
    guard let qos, let lower = other.qos else { return false }
    return lower < qos
  }

  /// In what it differs from the other: `SCHED_FIFO 30`, `nice 10`, `QoS background, nice 10`.
  /// libdispatch for Linux gives its workers a nice value by their quality of service.
  func words(against other: ThreadPriority) -> String {
    var words = qos.map { ["QoS \($0)"] } ?? []
    if effective != other.effective { words.append(kernelWords) }
    return words.joined(separator: ", ")
  }
  private var kernelWords: String {
    switch policy {
    case 1: "SCHED_FIFO \(realtime)"
    case 2: "SCHED_RR \(realtime)"
    case 5: "SCHED_IDLE"
    case 6: "SCHED_DEADLINE"
    default: "nice \(nice)"
    }
  }
}

/// What the scheduler did for a thread so far, in nanoseconds.
struct ThreadTimes: Equatable, Sendable {
  /// On a processor.
  var ran: UInt64
  /// Ready to run, without a processor.
  var ready: UInt64
}

extension ProcessFiles {
  func priority(_ tid: KernelThreadID) -> ThreadPriority? {
    guard let bytes = bytes("task/\(tid.rawValue)/stat"),
      // The name before may hold anything.
      let end = bytes.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let words = String(decoding: bytes[(end + 1)...], as: UTF8.self).split(separator: " ")
    guard words.count > 38, let effective = Int(words[15]), let nice = Int(words[16]),
      let realtime = Int(words[37]), let policy = Int(words[38])
    else { return nil }
    return ThreadPriority(policy: policy, effective: effective, nice: nice, realtime: realtime)
  }

  func times(_ tid: KernelThreadID) -> ThreadTimes? {
    guard let bytes = bytes("task/\(tid.rawValue)/schedstat") else { return nil }
    let words = String(decoding: bytes, as: UTF8.self)
      .split { $0 == " " || $0 == "\n" }.compactMap { UInt64($0) }
    return words.count == 3 ? ThreadTimes(ran: words[0], ready: words[1]) : nil
  }
}

extension DispatchMemory {
  /// The quality of service of the global queue that a thread's outermost work comes from.
  func qos(pthread: UInt64) -> ThreadPriority.QoS? {
    guard let outermost = queuesOfThread(pthread: pthread).last(where: { !isManagerQueue($0) })
    else { return nil }
    let root = targetChain(outermost).last.flatMap(queue)
    guard let root, root.isRoot, let label = root.label else { return nil }
    return ThreadPriority.QoS(label: label)
  }

  private func isManagerQueue(_ address: UInt64) -> Bool { queue(address)?.isManager ?? true }
}
