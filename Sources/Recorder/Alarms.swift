// What is said while it happens: misuse, and traps to come.
public import CHangcheck

/// Says that something is wrong, once for each kind and call site. With `waits` the thread stands
/// still until whoever watches has told it, within seconds at most, for what comes next ends the
/// program. Async-signal-safe; never called on a path that is hot.
@inline(never)
public func raise(
  _ kind: hck_alarm_kind, _ word: ResourceWord, other: UInt64 = 0, waits: Bool = false,
  text: UnsafePointer<CChar>? = nil, _ frame: UnsafeRawPointer
) {
}
