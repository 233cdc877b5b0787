// Who meets lock orders: a thread, or one block that a queue runs; and the records that go with work
// on its way to a queue.
public import CHangcheck

@inline(__always) func hasNews(_ orders: UnsafeMutablePointer<hck_thread_orders>) -> Bool {
  orders.pointee.context != 0 || orders.pointee.known != 0
}

/// What a thread knows, as a clock for whom it starts; 0 for nothing.
public func knowledge(of slot: Slot) -> UInt32 {
  slot.pointee.segment &+= 1
  guard let orders = slot.pointee.orders, hasNews(orders),
    let arena = hck_arena_get(), let shared = ordersOf(arena), orders.pointee.busy == 0
  else { return 0 }
  orders.pointee.busy = 1
  hck_order()
  var clock: UInt32 = 0
  _ = growClock(&clock, by: orders, shared, arena)
  hck_order()
  orders.pointee.busy = 0
  return clock
}

/// A record for work on its way to another thread, with what the calling one knows; nil where there
/// is no room, or nobody asks for it. `isMain`: it goes to the main queue.
public func makeJob(
  _ slot: Slot, _ function: UInt64, _ context: UInt64, isMain: Bool = false
) -> UnsafeMutablePointer<hck_job>? {
  guard let arena = hck_arena_get(), isMain || learnsOrders(arena), let job = hck_job_take() else {
    return nil
  }
  job.pointee.function = function
  job.pointee.context = context
  job.pointee.entered = 0
  job.pointee.notifies = 0
  job.pointee.pid = arena.pointee.pid
  job.pointee.is_main = isMain ? 1 : 0
  job.pointee.known = knowledge(of: slot)
  return job
}

/// Of whose arena numbers are: 0 without one. A forked child's is another one at the same place.
public func arenaOwner() -> UInt32 { hck_arena_get()?.pointee.pid ?? 0 }

/// What a clock says, once more.
public func copyOfKnowledge(_ clock: UInt32) -> UInt32 {
  guard clock != 0, let arena = hck_arena_get(), let shared = ordersOf(arena) else { return 0 }
  return copyClock(clock, shared, arena)
}

/// Gives back what nobody took up.
public func dropKnowledge(_ clock: UInt32) {
  guard clock != 0, let arena = hck_arena_get(), let shared = ordersOf(arena) else { return }
  freeClock(clock, shared, arena)
}

/// A thread begins in the slot, knowing what its creator did.
func beginContext(_ slot: Slot, _ arena: UnsafeMutablePointer<hck_arena>) {
  let inherited = slot.pointee.inherited
  slot.pointee.inherited = 0
  if slot.pointee.orders == nil, inherited == 0 { return }
  guard let orders = slot.pointee.orders ?? makeThreadOrders(slot, arena),
    let shared = ordersOf(arena)
  else { return }
  freeClock(orders.pointee.known, shared, arena)
  orders.pointee.known = inherited
  orders.pointee.start = orders.pointee.epoch &+ 1
  slot.pointee.knows = inherited == 0 ? 0 : 1
  slot.pointee.given = 0
  slot.pointee.taken_from = 0
  orders.pointee.context = 0
  orders.pointee.is_block = 0
  orders.pointee.busy = 0
  hck_forget_orders(orders)
  slot.pointee.segment &+= 1
}

/// What a thread was before it began to run somebody else's block.
public struct OuterContext {
  var context: UInt64 = 0
  var component: UInt32 = 0
  var start: UInt32 = 0
  var known: UInt32 = 0
  var isBlock: UInt32 = 0
  var hadOrders = false
}

/// Whether the thread is one of libdispatch's and runs no block that is known, nor holds anything.
public func isAtItsBase(_ slot: Slot) -> Bool {
  slot.pointee.order_base == onAnyQueue && slot.pointee.count == 0
    && slot.pointee.orders?.pointee.is_block ?? 0 == 0
}

/// The thread begins a block that knows what `clock` says, which it takes over, and nothing of what
/// the thread did before. A thread that always runs on one queue goes on: its blocks never meet.
public func beginBlock(_ slot: Slot, knowing clock: UInt32) -> OuterContext {
  var outer = OuterContext()
  guard let arena = hck_arena_get(),
    let orders = slot.pointee.orders
      ?? (clock == 0 ? nil : makeThreadOrders(slot, arena))
  else { return outer }
  if slot.pointee.order_base != onAnyQueue {
    if clock != 0, let shared = ordersOf(arena) {
      if joinClock(&orders.pointee.known, with: clock, shared, arena) {
        slot.pointee.knows &+= 1
      }
      freeClock(clock, shared, arena)
    }
    return outer
  }
  outer.hadOrders = true
  outer.context = orders.pointee.context
  outer.component = orders.pointee.component
  outer.start = orders.pointee.start
  outer.known = orders.pointee.known
  outer.isBlock = orders.pointee.is_block
  enter(slot, orders, context: 0, start: orders.pointee.epoch &+ 1, known: clock, isBlock: 1)
  return outer
}

/// The block has ended: the thread is what it was.
public func endBlock(_ slot: Slot, _ outer: OuterContext) {
  guard slot.pointee.order_base == onAnyQueue, let orders = slot.pointee.orders,
    let arena = hck_arena_get(), let shared = ordersOf(arena)
  else { return }
  let known = orders.pointee.known
  if outer.hadOrders, outer.context != 0 {
    orders.pointee.busy = 1
    hck_order()
    takeComponent(orders, outer.component)
    enter(
      slot, orders, context: outer.context, start: outer.start, known: outer.known,
      isBlock: outer.isBlock)
  } else {
    // It had met no order before the block did.
    enter(
      slot, orders, context: 0, start: orders.pointee.epoch &+ 1, known: outer.known,
      isBlock: outer.isBlock)
  }
  freeClock(known, shared, arena)
}

@inline(__always)
private func enter(
  _ slot: Slot, _ orders: UnsafeMutablePointer<hck_thread_orders>, context: UInt64, start: UInt32,
  known: UInt32, isBlock: UInt32
) {
  orders.pointee.busy = 1
  hck_order()
  orders.pointee.context = context
  orders.pointee.start = start
  orders.pointee.known = known
  orders.pointee.is_block = isBlock
  slot.pointee.knows &+= 1
  slot.pointee.taken_from = 0
  // What is known of this context is not known of the other.
  slot.pointee.segment &+= 1
  hck_order()
  orders.pointee.busy = 0
}

/// A context meets its first order: its epochs are those of one of the thread's components of which
/// it knows all that was, or of a new one; where the thread has too many, of one that others will
/// seem to know more of than they do.
func chooseComponent(
  _ orders: UnsafeMutablePointer<hck_thread_orders>, _ shared: UnsafeMutablePointer<hck_orders>,
  _ arena: UnsafeMutablePointer<hck_arena>
) {
  leaveComponent(orders)
  var index: UInt32 = 0
  while index < UInt32(HCK_COMPONENTS) {
    let known = hck_component_at(orders, index)
    if known.pointee.number == 0 { known.pointee.number = hck_next32(&shared.pointee.components) }
    if known.pointee.epoch == 0
      || epochIn(orders.pointee.known, known.pointee.number, shared, arena) >= known.pointee.epoch
    {
      break
    }
    index &+= 1
  }
  if index == UInt32(HCK_COMPONENTS) {
    index = orders.pointee.next_component
    orders.pointee.next_component = (index &+ 1) % UInt32(HCK_COMPONENTS)
  }
  takeComponent(orders, hck_component_at(orders, index).pointee.number)
  orders.pointee.start = orders.pointee.epoch &+ 1
}

private func leaveComponent(_ orders: UnsafeMutablePointer<hck_thread_orders>) {
  var index: UInt32 = 0
  while index < UInt32(HCK_COMPONENTS) {
    let known = hck_component_at(orders, index)
    if known.pointee.number == orders.pointee.component {
      known.pointee.epoch = orders.pointee.epoch
    }
    index &+= 1
  }
}

/// Goes on with one of the thread's components.
private func takeComponent(
  _ orders: UnsafeMutablePointer<hck_thread_orders>, _ number: UInt32
) {
  leaveComponent(orders)
  var index: UInt32 = 0
  while index < UInt32(HCK_COMPONENTS) {
    let known = hck_component_at(orders, index)
    if known.pointee.number == number {
      orders.pointee.component = number
      orders.pointee.epoch = known.pointee.epoch
      return
    }
    index &+= 1
  }
}
