// The storage asks the settings before it takes its lock.
import Foundation

enum Storage {
  static let lock = NSLock()

  static func read() -> [String: Int] {
    lock.lock()
    defer { lock.unlock() }
    return ["indent": 2]
  }
  static func save() {
    let indent = Settings.values["indent", default: 4]
    lock.lock()
    defer { lock.unlock() }
    usleep(300_000)  // collects what has changed
    print("saved with \(indent)")
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
