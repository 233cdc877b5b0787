import Glibc
import HangReport
import Testing
import WaitForGraph

@testable import ProcessInspector

/// What the kernel's words about locks on files and shared memory mean.
@Suite("Attach: families") struct AttachFamilyTests {
  private func lock(_ line: String) throws -> FileLock { try #require(FileLock(line: line[...])) }

  @Test("a line of /proc/locks, and of a descriptor's") func lines() throws {
    let posix = try lock("3: POSIX  ADVISORY  WRITE 4711 fe:00:16664124 5 14")
    #expect(posix.family == .process && posix.isWrite && posix.pid == 4711)
    #expect(posix.inode == 16_664_124 && posix.start == 5 && posix.end == 14)
    let own = try lock("lock:\t1: FLOCK  ADVISORY  READ 12 00:1f:55 0 EOF")
    #expect(own.family == .flock && !own.isWrite && own.inode == 55 && own.end == .max)
    #expect(try lock("9: OFDLCK ADVISORY  READ -1 08:01:7 0 EOF").family == .description)
  }

  @Test(
    "what is no lock that is held",
    arguments: [
      "", "lock:", "1: -> POSIX  ADVISORY  WRITE 4711 fe:00:16 0 EOF",
      "1: LEASE  ACTIVE    READ 4711 fe:00:16 0 EOF", "1: POSIX  ADVISORY  WRITE 4711 fe:00:16 0",
      "1: POSIX  ADVISORY  WRITE x fe:00:16 0 EOF", "1: POSIX  ADVISORY  WRITE 1 fe:00:x 0 EOF",
      "1: POSIX  ADVISORY  WRITE 4711 fe:00:16 0 x",
    ]) func noLocks(_ line: String)
  {
    #expect(FileLock(line: line[...]) == nil)
  }

  @Test(
    "which locks stand against each other",
    arguments: [
      ("POSIX A WRITE 1 0:0:5 0 9", "POSIX A READ 2 0:0:5 9 20", true),
      ("POSIX A WRITE 1 0:0:5 0 9", "POSIX A WRITE 2 0:0:5 10 20", false),
      ("POSIX A WRITE 1 0:0:5 0 9", "POSIX A WRITE 1 0:0:5 0 9", false),
      ("POSIX A READ 1 0:0:5 0 EOF", "POSIX A READ 2 0:0:5 0 EOF", false),
      ("POSIX A WRITE 1 0:0:5 0 EOF", "OFDLCK A READ -1 0:0:5 7 7", true),
      ("POSIX A WRITE 1 0:0:5 0 EOF", "FLOCK A WRITE 2 0:0:5 0 EOF", false),
      ("FLOCK A WRITE 1 0:0:5 0 EOF", "FLOCK A READ 1 0:0:5 0 EOF", true),
      ("FLOCK A WRITE 1 0:0:5 0 EOF", "FLOCK A WRITE 2 0:0:6 0 EOF", false),
      ("OFDLCK A WRITE -1 0:0:5 0 EOF", "OFDLCK A WRITE -1 0:0:5 3 4", true),
    ]) func conflicts(_ one: String, _ two: String, _ expected: Bool) throws
  {
    let (one, two) = (try lock("1: " + one), try lock("1: " + two))
    #expect(one.conflicts(with: two) == expected)
    #expect(two.conflicts(with: one) == expected)
  }

  @Test("a place in shared memory is one wherever it is mapped") func places() throws {
    let first = """
      00400000-00401000 r--p 00000000 fe:00 9 /bin/program
      7f0000000000-7f0000002000 rw-s 00001000 00:01 77 /dev/zero (deleted)
      7f0000002000-7f0000003000 rw-s 00000000 00:1c 78 /dev/shm/named
      """
    let second = "7fff00000000-7fff00004000 rw-s 00000000 00:01 77 /dev/zero (deleted)"
    let place = try #require(SharedPlace(0x7f00_0000_1010, maps: first))
    #expect(place == SharedPlace(0x7fff_0000_2010, maps: second))
    #expect(place != SharedPlace(0x7fff_0000_1010, maps: second))
    #expect(!place.isNamed)
    #expect(SharedPlace(0x7f00_0000_2000, maps: first)?.isNamed == true)
    #expect(SharedPlace(0x40_0010, maps: first) == nil)
    #expect(SharedPlace(0x7f00_0000_3000, maps: first) == nil)
  }

  @Test("what libdispatch has at hand for the item that a worker runs") func items() {
    func frames(_ places: String) -> (Set<UInt64>) {
      let frames = places.enumerated().map { index, _ in
        KeptFrame(pc: UInt64(index * 16 + 1), kept: [UInt64(0x1000 * (index + 1)), 7])
      }
      let letters = Array(places)
      return WorkerItems.registers(frames) { pc in
        switch letters[Int(pc / 16)] {
        case "d": .dispatch
        case "c": .libc
        default: .other
        }
      }
    }
    #expect(frames("cpddcc") == [0x3000, 0x4000])
    // Libdispatch inside of the program's own frames belongs to calls that it makes.
    #expect(frames("cdpddpddc") == [0x7000, 0x8000])
    #expect(frames("cpp") == [])
    #expect(frames("cddp") == [])
    #expect(frames("cpcc") == [])
    #expect(frames("cpdd") == [])
    #expect(frames("cpdcd") == [])
  }

  @Test("a condition that only some can signal is stuck when they are") func conditions() {
    func snapshot(isOpen: Bool) -> Snapshot {
      let (child, changed) = (ResourceID(1), ResourceID(2))
      return Snapshot(
        threads: [
          Snapshot.Thread(
            id: ThreadID(1), wait: Snapshot.Wait(resource: child, mode: .exclusive),
            holds: [Snapshot.Hold(resource: changed, mode: .exclusive)]),
          Snapshot.Thread(
            id: ThreadID(2), wait: Snapshot.Wait(resource: changed, mode: .exclusive),
            holds: [Snapshot.Hold(resource: child, mode: .exclusive)]),
        ],
        resources: [
          Snapshot.Resource(id: child, kind: .process, isOpen: false, needsOne: true),
          Snapshot.Resource(id: changed, kind: .condition, isOpen: isOpen, needsOne: true),
        ])
    }
    #expect(WaitForGraph(snapshot(isOpen: false)).deadlocks().map(\.edges.count) == [2])
    #expect(WaitForGraph(snapshot(isOpen: true)).deadlocks().isEmpty)
  }

  @Test("who cannot be looked at counts where it may be a descendant") func hidden() {
    typealias Process = HiddenProcesses.Process
    let own = Process(session: 7, began: 100)
    func counts(_ other: Process, given: Bool = false) -> Bool {
      HiddenProcesses([other]).mayShare(with: own, wasGiven: given)
    }
    #expect(counts(Process(session: 7, began: 101)))
    #expect(counts(Process(session: 7, began: 100)))
    // The shell, or the one that changed the user: it was there before.
    #expect(!counts(Process(session: 7, began: 99)))
    #expect(counts(Process(session: 7, began: 99), given: true))
    #expect(!counts(Process(session: 8, began: 101)))
    #expect(!counts(Process(session: 8, began: 101), given: true))
    #expect(!HiddenProcesses().mayShare(with: own, wasGiven: true))
  }

  @Test("a function that libc has in two versions is known in both") func versions() throws {
    let files = ProcessFiles(ProcessID(getpid()))
    let images = files.images(ProcessMemory(ProcessID(getpid())))
    let libc = try #require(images.loaded.first { $0.path.hasSuffix("/libc.so.6") })
    let name = "pthread_cond_timedwait"
    let found = try #require(ImageSymbols([name], in: libc, of: images))
    let first = try #require(found.symbols[name])
    let others = found.others.map(\.symbol.value)
    #expect(!others.isEmpty && !others.contains(first.value))
  }
}
