// WITH(support.swift)
// Values that are made once and need themselves, or each other, or what another thread holds; the
// first argument says which.
import Foundation

@main enum Onces {
  static func main() {
    play([
      "self": itself, "global": global, "two": two, "three": three,
      "lock": lock, "lock-main": lockMain, "queue": queue, "main-queue": mainQueue,
      "async": async, "group": group, "token": token, "token-lock": tokenLock,
      "perform": perform, "join": join, "victims": victims,
    ])
  }
}

// MARK: needs itself

/// A registry that registers its plug-ins while it is made; each asks for the registry.
final class Registry {
  static let shared = Registry()  // HOLDS(boot)
  var names: [String] = []
  init() { for name in ["a", "b"] { Plugin(name).register() } }
}
final class Plugin {
  let name: String
  init(_ name: String) { self.name = name }
  func register() {
    Registry.shared.names.append(name)  // WAITS(boot)
  }
}
func itself() { watch(start("boot") { print(Registry.shared.names) }) }

let defaults: [String: Int] = makeDefaults()
func makeDefaults() -> [String: Int] {
  ["size": 1, "twice": 2 * (defaults["size"] ?? 0)]  // WAITS(global:main)
}
func global() { print(defaults) }

// MARK: need each other

enum Left {
  static let value: Int = {  // HOLDS(left)
    meet(2)
    return Right.value + 1  // WAITS(left)
  }()
}
enum Right {
  static let value: Int = {  // HOLDS(right)
    meet(2)
    return Left.value + 1  // WAITS(right)
  }()
}
func two() {
  watch(start("left") { print(Left.value) }, start("right") { print(Right.value) })
}

enum Third {
  static let first: Int = {
    meet(3)
    return Third.second  // WAITS(first)
  }()
  static let second: Int = {
    meet(3)
    return Third.last  // WAITS(second)
  }()
  static let last: Int = {
    meet(3)
    return Third.first  // WAITS(last)
  }()
}
func three() {
  watch(
    start("first") { print(Third.first) }, start("second") { print(Third.second) },
    start("last") { print(Third.last) })
}

// MARK: a lock, a queue, a group

let configurationLock = NSLock()
enum Configuration {
  static let values: [Int] = {  // HOLDS(reader)
    meet(2)
    configurationLock.lock()  // WAITS(reader)
    defer { configurationLock.unlock() }
    return [1]
  }()
}
func lock() {
  watch(
    start("reader") { print(Configuration.values) },
    start("writer") {
      configurationLock.lock()  // HOLDS(writer)
      meet(2)
      print(Configuration.values)  // WAITS(writer)
      configurationLock.unlock()
    })
}

func lockMain() {
  start("reader") { print(Configuration.values) }
  configurationLock.lock()  // HOLDS(lock-main:main)
  meet(2)
  print(Configuration.values)  // WAITS(lock-main:main)
  configurationLock.unlock()
}

let logQueue = DispatchQueue(label: "log")
enum Log {
  static let path: String = {  // HOLDS(opener)
    meet(2)
    return logQueue.sync { "file" }  // WAITS(opener)
  }()
}
func queue() {
  logQueue.async {
    call("logger")
    meet(2)
    print(Log.path)  // WAITS(logger)
  }
  watch(start("opener") { print(Log.path) })
}

/// A singleton that wants the main queue is first used by the main thread and a worker at once.
enum Screen {
  static let width: Int = {  // HOLDS(measurer)
    meet(2)
    return DispatchQueue.main.sync { 80 }  // WAITS(measurer)
  }()
}
func mainQueue() {
  start("measurer") { print(Screen.width) }
  meet(2)
  print(Screen.width)  // WAITS(main-queue:main)
}

/// Made on a queue of its own, which needs it as well.
enum Catalogue {
  static let items: [Int] = {
    let loaded = DispatchSemaphore(value: 0)
    DispatchQueue(label: "catalogue").async {
      call("cataloguer")
      _ = Catalogue.items  // WAITS(cataloguer)
      loaded.signal()
    }
    loaded.wait()  // WAITS(async:main)
    return [1]
  }()
}
func async() { print(Catalogue.items) }

let workers = DispatchGroup()
enum Schema {
  static let version: Int = {
    workers.wait()  // WAITS(group:main)
    return 1
  }()
}
func group() {
  for i in 0..<3 {
    DispatchQueue.global().async(group: workers) {
      call("migrator-\(i)")
      pause(80)
      print(Schema.version)  // WAITS(migrator-*)
    }
  }
  print(Schema.version)
}

/// Each iteration needs what is being made of them.
enum Table {
  static let squares: [Int] = {
    DispatchQueue.concurrentPerform(iterations: 8) { i in
      if i > 0 { _ = Table.squares.count }  // WAITS(perform:main)
    }
    return [1]
  }()
}
func perform() { print(Table.squares) }

// MARK: dispatch_once, as C uses it

@_silgen_name("dispatch_once_f")
private func dispatchOnce(
  _ token: UnsafeMutablePointer<Int>, _ context: UnsafeMutableRawPointer?,
  _ function: @convention(c) (UnsafeMutableRawPointer?) -> Void)

private let tokens: UnsafeMutablePointer<Int> = {
  let tokens = UnsafeMutablePointer<Int>.allocate(capacity: 2)
  tokens.initialize(repeating: 0, count: 2)
  return tokens
}()
private let tokenMutex = NSLock()

func token() {
  watch(
    start("starter") {
      dispatchOnce(tokens, nil) { _ in  // HOLDS(starter)
        dispatchOnce(tokens, nil) { _ in print("again") }  // WAITS(starter)
      }
    })
}

func tokenLock() {
  watch(
    start("maker") {
      dispatchOnce(tokens, nil) { _ in  // HOLDS(maker)
        meet(2)
        tokenMutex.lock()  // WAITS(maker)
        tokenMutex.unlock()
      }
    },
    start("user") {
      tokenMutex.lock()  // HOLDS(user)
      meet(2)
      dispatchOnce(tokens, nil) { _ in print("never") }  // WAITS(user)
      tokenMutex.unlock()
    })
}

// MARK: a thread that is joined

/// The making joins a thread that needs what is made.
enum Fonts {
  static let names: [String] = {  // HOLDS(join:main)
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { _ in
        call("scanner")
        _ = Fonts.names  // WAITS(scanner)
        return nil
      }, nil)
    pthread_join(thread, nil)  // WAITS(join:main)
    return []
  }()
}
func join() { print(Fonts.names) }

func victims() {
  let threads = [
    start("left") { print(Left.value) }, start("right") { print(Right.value) },
  ]
  pause(100)
  for i in 0..<4 { start("victim-\(i)") { print(i < 2 ? Left.value : Right.value) } }
  watch(threads[0], threads[1])
}
