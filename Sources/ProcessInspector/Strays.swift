internal import Synchronization

/// Threads of other processes that were asked to stop and had not when nobody was left to let them go:
/// the next capture does. For any thread; only the one that asked can let go.
enum Strays {
  private static let left = Mutex<[KernelThreadID]>([])

  static var areLeft: Bool { left.withLock { !$0.isEmpty } }

  static func leave(_ threads: [KernelThreadID]) { left.withLock { $0 += threads } }

  static func take() -> [KernelThreadID] {
    left.withLock { left in
      defer { left = [] }
      return left
    }
  }
}
