// The drop-ins may be subclassed, as Foundation's locks may be on Apple's platforms: on Linux these
// have members that another module cannot see.
import Foundation

#if Detection
  class NamedLock: NSLock, @unchecked Sendable {
    let purpose: String
    init(purpose: String) {
      self.purpose = purpose
      super.init()
    }
    override init() {
      purpose = ""
      super.init()
    }
    override func lock() { super.lock() }
    override func unlock() { super.unlock() }
    override func `try`() -> Bool { super.try() }
    override func lock(before limit: Date) -> Bool { super.lock(before: limit) }
    override var name: String? {
      get { super.name }
      set { super.name = newValue }
    }
  }

  class NamedCondition: NSCondition, @unchecked Sendable {
    override init() { super.init() }
    override func lock() { super.lock() }
    override func unlock() { super.unlock() }
    override func wait() { super.wait() }
    override func wait(until limit: Date) -> Bool { super.wait(until: limit) }
    override func signal() { super.signal() }
    override func broadcast() { super.broadcast() }
    override var name: String? {
      get { super.name }
      set { super.name = newValue }
    }
  }

  class NamedConditionLock: NSConditionLock, @unchecked Sendable {
    override init(condition: Int) { super.init(condition: condition) }
    override func lock() { super.lock() }
    override func unlock() { super.unlock() }
    override var condition: Int { super.condition }
    override func lock(whenCondition condition: Int) { super.lock(whenCondition: condition) }
    override func `try`() -> Bool { super.try() }
    override func tryLock(whenCondition condition: Int) -> Bool {
      super.tryLock(whenCondition: condition)
    }
    override func unlock(withCondition condition: Int) { super.unlock(withCondition: condition) }
    override func lock(before limit: Date) -> Bool { super.lock(before: limit) }
    override func lock(whenCondition condition: Int, before limit: Date) -> Bool {
      super.lock(whenCondition: condition, before: limit)
    }
    override var name: String? {
      get { super.name }
      set { super.name = newValue }
    }
  }
#else
  // The drop-ins are Foundation's own.
  typealias NamedLock = NSLock
  typealias NamedCondition = NSCondition
  typealias NamedConditionLock = NSConditionLock

  extension Foundation.NSLock {
    convenience init(purpose: String) { self.init() }
  }
#endif
