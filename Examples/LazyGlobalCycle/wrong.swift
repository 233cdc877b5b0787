// Settings are read when they are first asked for, under the lock of the storage. The storage is saved
// under the same lock, and asks the settings how.
import Foundation

enum Storage {
  static let lock = NSLock()

  static func read() -> [String: Int] {
    lock.lock()
    defer { lock.unlock() }
    return ["indent": 2]
  }
  static func save() {
    lock.lock()
    defer { lock.unlock() }
    usleep(300_000)  // collects what has changed
    print("saved with \(Settings.values["indent", default: 4])")
  }
}

enum Settings {
  static let values: [String: Int] = {
    usleep(100_000)  // looks for the folder
    return Storage.read()
  }()
}

let saving = Thread { Storage.save() }
let starting = Thread { print("\(Settings.values.count) settings") }
saving.start()
starting.start()
usleep(50_000)  // Foundation forgets a name that comes too early
saving.name = "saving"
starting.name = "starting"
while !saving.isFinished || !starting.isFinished { usleep(10_000) }
print("ready")
