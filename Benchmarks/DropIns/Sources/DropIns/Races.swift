// Checked values: what an access costs over that of a plain property, and what a drop-in costs once
// there is one.
import Foundation
import InstrumentedLocks

final class Plain: @unchecked Sendable { var value = 0 }
final class Checked: @unchecked Sendable { @RaceChecked var value = 0 }

@inline(never) func reads(_ plain: Plain) -> Double {
  nanoseconds(count) { for _ in 0..<count { blackHole(plain.value) } }
}
@inline(never) func reads(_ checked: Checked) -> Double {
  nanoseconds(count) { for _ in 0..<count { blackHole(checked.value) } }
}
@inline(never) func writes(_ plain: Plain) -> Double {
  nanoseconds(count) {
    for index in 0..<count {
      plain.value = index
      blackHole(index)
    }
  }
}
@inline(never) func writes(_ checked: Checked) -> Double {
  nanoseconds(count) {
    for index in 0..<count {
      checked.value = index
      blackHole(index)
    }
  }
}
@inline(never) func adds(_ plain: Plain) -> Double {
  nanoseconds(count) {
    for index in 0..<count {
      plain.value &+= 1
      blackHole(index)
    }
  }
}
@inline(never) func adds(_ checked: Checked) -> Double {
  nanoseconds(count) {
    for index in 0..<count {
      checked.value &+= 1
      blackHole(index)
    }
  }
}
@inline(never) func locked(_ plain: Plain, _ lock: NSLock) -> Double {
  nanoseconds(count) { for _ in 0..<count { lock.withLock { plain.value &+= 1 } } }
}
@inline(never) func locked(_ checked: Checked, _ lock: InstrumentedLock) -> Double {
  nanoseconds(count) { for _ in 0..<count { lock.withLock { checked.value &+= 1 } } }
}

/// Last, for from the first checked value on all drop-ins keep clocks. The difference is what the
/// budgets speak of: 5 ns a read, 8 ns a write.
func compareRaces() {
  let (plain, checked) = (Plain(), Checked())
  compare("read of a checked value", { reads(plain) }, { reads(checked) })
  compare("write of a checked value", { writes(plain) }, { writes(checked) })
  compare("+= of a checked value", { adds(plain) }, { adds(checked) })
  let (lock, ours) = (NSLock(), InstrumentedLock())
  compare("lock, +=, unlock", { locked(plain, lock) }, { locked(checked, ours) })
  compare("lock + unlock, clocks kept", { pair(lock) }, { ourPair(ours) })
  compareQueues(", clocks kept")
}
