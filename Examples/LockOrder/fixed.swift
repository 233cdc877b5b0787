// Whoever needs two accounts locks them in one order, whichever way the money goes.
import Foundation

final class Account: @unchecked Sendable {
  let name: String
  let lock = NSLock()
  var balance: Int

  init(_ name: String, balance: Int) {
    self.name = name
    self.balance = balance
  }
}

func transfer(_ amount: Int, from: Account, to: Account) {
  let (first, second) = from.name < to.name ? (from, to) : (to, from)
  first.lock.lock()
  defer { first.lock.unlock() }
  Thread.sleep(forTimeInterval: 0.4)  // reads the balance from somewhere slow
  second.lock.lock()
  defer { second.lock.unlock() }
  from.balance -= amount
  to.balance += amount
}

let savings = Account("savings", balance: 100)
let wages = Account("wages", balance: 100)

let saver = Thread { transfer(30, from: wages, to: savings) }
let spender = Thread { transfer(20, from: savings, to: wages) }
saver.start()
spender.start()
usleep(50_000)  // Foundation forgets a name that comes too early
saver.name = "saver"
spender.name = "spender"

while !saver.isFinished || !spender.isFinished { Thread.sleep(forTimeInterval: 0.01) }
print("savings \(savings.balance), wages \(wages.balance)")
