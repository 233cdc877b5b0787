// Two accounts, two transfers in opposite directions, each taking its own account's lock first.
import Foundation
import Watchdog

final class Account: @unchecked Sendable {
  let lock: NSLock
  private var balance: Int

  init(_ name: String, balance: Int) {
    lock = NSLock(name: name)
    self.balance = balance
  }

  func transfer(_ amount: Int, to other: Account) {
    lock.lock()
    defer { lock.unlock() }
    usleep(100_000)  // asks the fraud department
    other.lock.lock()
    defer { other.lock.unlock() }
    balance -= amount
    other.balance += amount
  }
}

var configuration = Watchdog.Configuration()
configuration.onDeadlock = .terminate
Watchdog.shared.start(configuration)

let (savings, checking) = (Account("savings", balance: 100), Account("checking", balance: 100))
for (from, to) in [(savings, checking), (checking, savings)] {
  Thread { from.transfer(10, to: to) }.start()
}
sleep(10)
print("never printed")
