extension LockOrderRecord {
  /// Whether occurrence `a` was over, in every run that makes the same hand-overs, before `b` came.
  ///
  /// Hand-overs are creation, join, semaphore, group, and the submission of a block; never a lock:
  /// who comes first there is an accident of the run. A context need not advance its epoch but when
  /// it hands something over (the scalar half of FastTrack's clocks; Flanagan & Freund, PLDI 2009),
  /// so within a context equal epochs count as ordered. Earlier contexts on the same component are
  /// ordered only if `b`'s clock says so. Constant time.
  ///
  /// An epoch stands for all that its component did before. Who learns of a component's new owner
  /// therefore seems to know all of the old one, which hides deadlocks, unless a component is given
  /// only to contexts whose clocks have the old owner's last epoch.
  public func happensBefore(_ a: Int, _ b: Int) -> Bool {
    let (a, b) = (occurrences[a], occurrences[b])
    if a.component == b.component, a.start == b.start { return a.epoch <= b.epoch }
    return a.epoch <= knowledge(of: a.component, at: b)
  }

  /// Neither happens before the other: some run may have both at the same time.
  public func areConcurrent(_ a: Int, _ b: Int) -> Bool {
    !happensBefore(a, b) && !happensBefore(b, a)
  }

  func knowledge(of component: Int, at occurrence: Occurrence) -> UInt32 {
    guard let clock = occurrence.clock, component < clocks[clock].count else { return 0 }
    return clocks[clock][component]
  }
}
