#if Detection
  internal import Foundation

  /// Operations that depend on themselves through others, which therefore never run.
  enum OperationCircles {
    // A check costs locks of every operation that it looks at, and there is one for each dependency
    // that is added: a circle larger than this is left to whoever reads the waits.
    private static let mostSeen = 512

    /// The operations of a circle that begins at `first` with the dependency `next`, none of which
    /// can become ready; nil when there is none, or none that was found within bounds.
    static func circle(
      from first: Foundation.Operation, through next: [Foundation.Operation]
    ) -> [Foundation.Operation]? {
      guard isStuck(first) else { return nil }
      var (path, left): ([Foundation.Operation], [[Foundation.Operation]]) = ([first], [next])
      var seen: Set<ObjectIdentifier> = []
      while !left.isEmpty {
        guard let operation = left[left.count - 1].popLast() else {
          left.removeLast()
          path.removeLast()
          continue
        }
        if operation === first { return path }
        guard isStuck(operation), seen.insert(ObjectIdentifier(operation)).inserted else {
          continue
        }
        if seen.count > mostSeen { return nil }
        path.append(operation)
        left.append(operation.dependencies)
      }
      return nil
    }

    // A cancelled operation does not wait for its dependencies, and a subclass may say that it is
    // ready for reasons of its own.
    private static func isStuck(_ operation: Foundation.Operation) -> Bool {
      !operation.isFinished && !operation.isCancelled && !operation.isReady
    }
  }
#endif
