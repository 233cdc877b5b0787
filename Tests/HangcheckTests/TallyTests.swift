import CHangcheck
import Foundation
import Recorder
import Testing

@testable import ProcessInspector

/// What threads count at semaphores and groups, written by the recorder and read as from another
/// process. One arena a process: the tests take turns.
@Suite(.serialized)
struct TallyTests {
  // Made once, and given to the recorder for the rest of the process.
  nonisolated(unsafe) private static let made: UnsafeMutablePointer<hck_arena>? = {
    // The one of the drop-ins, which other tests of this process use as well.
    InProcess.begin()
    return hck_arena_get()
  }()

  /// Runs a body in a thread that has a slot and knows its stack, and waits for the thread's end.
  private func inThread(
    _ name: String, _ body: @escaping @Sendable (Slot, UnsafeMutablePointer<hck_arena>) -> Void
  ) {
    let done = DispatchSemaphore(value: 0)
    // Foundation forgets a name that is set before `start` has returned.
    let started = DispatchSemaphore(value: 0)
    let used = Used()
    let thread = Thread {
      started.wait()
      if let arena = TallyTests.made, let slot = takeSlot(arena) {
        used.slot = slot
        used.generation = slot.pointee.generation
        openSlot(slot, arena, stackBytes: 256 << 10)
        Thread.current.name = name
        body(slot, arena)
      }
      done.signal()
    }
    thread.start()
    started.signal()
    done.wait()
    // The key's destructor runs behind the signal.
    while !thread.isFinished || !used.isGone { usleep(1000) }
  }

  /// A thread's slot; read once the thread has signalled.
  private final class Used: @unchecked Sendable {
    var slot: Slot?
    var generation: UInt32 = 0
    /// Free, or another thread's.
    var isGone: Bool {
      guard let slot else { return true }
      return hck_load32(&slot.pointee.state) == HCK_SLOT_FREE.rawValue
        || slot.pointee.generation != generation
    }
  }

  private func read() throws -> Arena { Arena(own: try #require(TallyTests.made)) }

  private func key(_ address: UInt64) -> ResourceKey {
    ResourceKey(address: address, kind: HCK_POSIX_SEMAPHORE.rawValue)
  }

  @Test func callersOfOneWrapperAreToldApart() throws {
    inThread("counter") { slot, arena in
      setClock(arena, 100)
      create(slot, 0x10000, 7)
      for _ in 0..<5 { takeThrough(slot, 0x10000) }
      for _ in 0..<3 { takeThrough(slot, 0x10000) }
      give(slot, 0x10000)
    }
    let tallies = try read().tallies(of: key(0x10000))
    #expect(tallies.filter { $0.operation == .create }.map(\.count) == [7])
    #expect(tallies.filter { $0.operation == .take }.map(\.count).sorted() == [3, 5])
    #expect(tallies.filter { $0.operation == .give }.map(\.count) == [1])
    #expect(tallies.allSatisfy { $0.operation == .create || $0.threadName == "counter" })
    #expect(tallies.allSatisfy { $0.site != nil && !$0.mayIncludeEarlier })
  }

  @Test func nothingIsLostByManyResources() throws {
    inThread("many") { slot, arena in
      setClock(arena, 200)
      for round in 0..<3 {
        for index in 0..<500 {
          let address = 0x100_0000 + UInt64(index) * 96
          if round == 0 { create(slot, address, 0) }
          take(slot, address)
        }
      }
    }
    let arena = try read()
    for index in 0..<500 {
      let tallies = arena.tallies(of: key(0x100_0000 + UInt64(index) * 96))
      #expect(tallies.filter { $0.operation == .take }.reduce(0) { $0 + $1.count } == 3)
    }
    #expect(arena.unrecorded == 0)
  }

  @Test func whatLayThereBeforeIsForgotten() throws {
    inThread("first") { slot, arena in
      setClock(arena, 300)
      create(slot, 0x20000, 1)
      take(slot, 0x20000)
    }
    inThread("second") { slot, arena in
      setClock(arena, 310)
      take(slot, 0x20000)
      setClock(arena, 320)
      create(slot, 0x20000, 2)
    }
    var tallies = try read().tallies(of: key(0x20000))
    #expect(tallies.map(\.operation) == [.create])
    #expect(tallies.first?.count == 2)
    // A thread's own record from before the creation, and another one that goes on.
    inThread("third") { slot, arena in
      take(slot, 0x30000)
      give(slot, 0x30000)
      setClock(arena, 330)
      let other = takeSlot(arena)
      if let other { create(other, 0x30000, 0) }
      give(slot, 0x30000)
      let seen = Arena(own: arena).tallies(of: ResourceKey(address: 0x30000, kind: 11))
      Attempts.seen = seen.map { ($0.operation.rawValue, $0.mayIncludeEarlier) }
      if let other { giveSlot(other, arena) }
    }
    #expect(Attempts.seen.contains { $0 == (HCK_CREATE.rawValue, false) })
    #expect(!Attempts.seen.contains { $0.0 == HCK_TAKE.rawValue })
    tallies = try read().allTallies()
    #expect(tallies.contains { $0.key == key(0x20000) })
  }

  @Test func threadsThatEndedShareWhereTheTableIsFull() throws {
    inThread("maker") { slot, _ in create(slot, 0x40000, 0) }
    for _ in 0..<100 { inThread("short") { slot, _ in take(slot, 0x40000) } }
    let tallies = try read().tallies(of: key(0x40000)).filter { $0.operation == .take }
    #expect(tallies.reduce(0) { $0 + $1.count } == 100)
    #expect(tallies.contains { $0.tid == nil })
  }

  @Test func offsetsAreNotBelieved() throws {
    // One of its own: other tests of this process count in the first one meanwhile.
    let arena = try #require(hck_arena_make(nil))
    defer { hck_arena_unmap(arena) }
    for wrong in [3, arena.pointee.size - 8, arena.pointee.size + 4096, UInt64.max & ~7] {
      arena.pointee.shared_tallies = wrong
      #expect(Arena(own: arena).allTallies().isEmpty)
    }
  }
}

private enum Attempts {
  // Written by a thread that has ended when it is read.
  nonisolated(unsafe) static var seen: [(UInt32, Bool)] = []
}

private func setClock(_ arena: UnsafeMutablePointer<hck_arena>, _ clock: UInt32) {
  hck_store32(&arena.pointee.clock, clock)
}
private func word(_ address: UInt64) -> ResourceWord {
  address | UInt64(HCK_POSIX_SEMAPHORE.rawValue) << 56
}
@inline(never) private func create(_ slot: Slot, _ address: UInt64, _ value: UInt64) {
  tallyCreation(slot, word(address), value: value, hck_frame())
}
@inline(never) private func take(_ slot: Slot, _ address: UInt64) {
  tally(slot, word(address), HCK_TAKE, hck_frame())
}
@inline(never) private func give(_ slot: Slot, _ address: UInt64) {
  tally(slot, word(address), HCK_GIVE, hck_frame())
}
@inline(never) private func takeThrough(_ slot: Slot, _ address: UInt64) { take(slot, address) }
