// Two transfers in opposite directions, and neither wants to wait with an account in hand: each gives
// back what it has, and tries again. Both do so in the same rhythm.
import Foundation

final class Account: @unchecked Sendable {
  let lock = NSLock()
  var balance = 100
}

let savings = Account()
let checking = Account()

func transfer(_ amount: Int, from source: Account, to target: Account) {
  while true {
    source.lock.lock()
    Thread.sleep(forTimeInterval: 0.01)  // checks the balance
    if target.lock.try() { break }
    source.lock.unlock()
  }
  source.balance -= amount
  target.balance += amount
  target.lock.unlock()
  source.lock.unlock()
}

let clerks = [(savings, checking), (checking, savings)].map { source, target in
  let thread = Thread { transfer(10, from: source, to: target) }
  thread.start()
  return thread
}
while !clerks.allSatisfy(\.isFinished) { Thread.sleep(forTimeInterval: 0.1) }
print("savings", savings.balance, "checking", checking.balance)
