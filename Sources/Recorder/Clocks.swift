// Vector clocks, in parts that never move: see `hck_clock`. They grow word by word, so that nobody
// needs a lock to join one.
internal import CHangcheck

/// Adds what a context knows, and its own epoch, where it has met an order. Whether that was news.
func growClock(
  _ root: UnsafeMutablePointer<UInt32>, by orders: UnsafeMutablePointer<hck_thread_orders>,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  var isNews = joinClock(root, with: orders.pointee.known, shared, arena)
  if orders.pointee.context != 0 {
    isNews =
      raiseClock(root, orders.pointee.component, orders.pointee.epoch, shared, arena) || isNews
  }
  return isNews
}

func joinClock(
  _ root: UnsafeMutablePointer<UInt32>, with other: UInt32,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  var from = other
  var to = root
  var isNews = false
  while from != 0 {
    let source = clockAt(from, shared, arena)
    guard let target = part(at: to, shared, arena) else { break }
    var index: UInt32 = 0
    while index < UInt32(HCK_CLOCK_EPOCHS) {
      let epoch = hck_load32(hck_clock_epoch(source, index))
      if epoch != 0, hck_clock_raise(hck_clock_epoch(target, index), epoch) != 0 { isNews = true }
      index &+= 1
    }
    from = hck_load32(&source.pointee.next)
    to = hck_clock_next(target)
  }
  if isNews, root.pointee != 0 {
    hck_add32(&clockAt(root.pointee, shared, arena).pointee.version, 1)
  }
  return isNews
}

private func raiseClock(
  _ root: UnsafeMutablePointer<UInt32>, _ component: UInt32, _ epoch: UInt32,
  _ shared: UnsafeMutablePointer<hck_orders>, _ arena: UnsafeMutablePointer<hck_arena>
) -> Bool {
  var to = root
  var left = component &- 1
  while true {
    guard let target = part(at: to, shared, arena) else { return false }
    if left < UInt32(HCK_CLOCK_EPOCHS) {
      guard hck_clock_raise(hck_clock_epoch(target, left), epoch) != 0 else { return false }
      hck_add32(&clockAt(root.pointee, shared, arena).pointee.version, 1)
      return true
    }
    left &-= UInt32(HCK_CLOCK_EPOCHS)
    to = hck_clock_next(target)
  }
}

/// The part of a clock that a link leads to, made where there is none yet.
private func part(
  at link: UnsafeMutablePointer<UInt32>, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UnsafeMutablePointer<hck_clock>? {
  let there = hck_load32(link)
  if there != 0 { return clockAt(there, shared, arena) }
  guard
    let fresh = takeRecord(
      HCK_PAGES_CLOCKS, hck_clock.self, { hck_load32(&$0.pointee.next) }, shared, arena)
  else { return nil }
  let clock = clockAt(fresh, shared, arena)
  hck_clear_clock(clock)
  if hck_cas32(link, 0, fresh) != 0 { return clock }
  freeClock(fresh, shared, arena)
  return clockAt(hck_load32(link), shared, arena)
}

/// What a clock says of one component.
func epochIn(
  _ clock: UInt32, _ component: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32 {
  var part = clock
  var left = component &- 1
  while part != 0 {
    let words = clockAt(part, shared, arena)
    if left < UInt32(HCK_CLOCK_EPOCHS) { return hck_load32(hck_clock_epoch(words, left)) }
    left &-= UInt32(HCK_CLOCK_EPOCHS)
    part = hck_load32(&words.pointee.next)
  }
  return 0
}

func copyClock(
  _ clock: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) -> UInt32 {
  var copy: UInt32 = 0
  _ = joinClock(&copy, with: clock, shared, arena)
  return copy
}

func freeClock(
  _ clock: UInt32, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) {
  var number = clock
  while number != 0 {
    let record = clockAt(number, shared, arena)
    let next = hck_load32(&record.pointee.next)
    giveRecord(HCK_PAGES_CLOCKS, number, { hck_store32(&record.pointee.next, $0) }, shared)
    number = next
  }
}
