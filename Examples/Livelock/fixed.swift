// Both take the accounts in one order, by their numbers, and may wait with the first one in hand.
import Foundation

final class Account: @unchecked Sendable {
  let number: Int
  let lock = NSLock()
  var balance = 100
  init(_ number: Int) { self.number = number }
}

let savings = Account(1)
let checking = Account(2)

func transfer(_ amount: Int, from source: Account, to target: Account) {
  let (first, second) = source.number < target.number ? (source, target) : (target, source)
  first.lock.lock()
  second.lock.lock()
  Thread.sleep(forTimeInterval: 0.01)  // checks the balance
  source.balance -= amount
  target.balance += amount
  second.lock.unlock()
  first.lock.unlock()
}

let clerks = [(savings, checking), (checking, savings)].map { source, target in
  let thread = Thread { transfer(10, from: source, to: target) }
  thread.start()
  return thread
}
while !clerks.allSatisfy(\.isFinished) { Thread.sleep(forTimeInterval: 0.1) }
print("savings", savings.balance, "checking", checking.balance)
