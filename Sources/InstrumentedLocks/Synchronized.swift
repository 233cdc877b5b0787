internal import CHangcheck

/// Runs `body` with the lock of an object held, which the same thread may take again; equals
/// `@synchronized(object) { }`, that is `objc_sync_enter` and `objc_sync_exit`.
///
/// The object is asked for twice, before `body` and after it: a variable that holds another one by
/// then guarded nothing, and that is reported. Its lock lives as long as somebody holds it or waits
/// for it. Where Objective-C locks nothing, for nil, this ends the program and says so.
///
/// Costs a look into a table and a recursive lock. Cannot see who locks the object otherwise, for
/// there is no Objective-C on Linux.
@inline(never)
public func synchronized<R, E: Error>(
  _ object: @autoclosure () -> AnyObject?, fileID: StaticString = #fileID, line: UInt = #line,
  _ body: () throws(E) -> R
) throws(E) -> R {
  let frame = hck_frame()
  guard let guarded = object() else {
    fatalError("synchronized(nil) { } would lock nothing: \(fileID):\(line)")
  }
  let address = UInt(bitPattern: Unmanaged.passUnretained(guarded).toOpaque())
  let node = MonitorTable.shared.enter(address, fileID, line)
  node.pointee.monitor.lock(frame)
  defer {
    if object() !== guarded { node.pointee.monitor.identityChanged(frame) }
    node.pointee.monitor.unlock(frame)
    MonitorTable.shared.leave(node)
    extendLifetime(guarded)
  }
  return try body()
}
