// What the originals do not have on Linux.
import Foundation

typealias NamedLock = NSLock
typealias NamedCondition = NSCondition
typealias NamedConditionLock = NSConditionLock

extension NSLock {
  convenience init(purpose: String) { self.init() }
}
