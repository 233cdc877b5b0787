import HangReport
import Testing
import WaitForGraph

/// Two threads that take two locks crosswise, with everything that may differ between two runs as a parameter.
private func fingerprint(
  ids: [Int] = [1, 2], base: UInt64 = 0x5000, line: Int = 4, tid: Int32 = 100,
  functions: [String] = ["first()", "second()"], kind: ResourceKind = .mutex
) -> String {
  var made = Fixture(pid: tid, base: base)
  made.resource(ids[0], kind)
  made.resource(ids[1] + 10)
  let (a, b) = (ids[0], ids[1] + 10)
  made.thread(
    ids[0], "a", holds: [(a, .exclusive, made.stack(functions[0], line))],
    waits: (b, .exclusive, made.stack(functions[0], line + 1)), seconds: Double(line))
  made.thread(
    ids[1], "b", holds: [(b, .exclusive, made.stack(functions[1], line + 7))],
    waits: (a, .exclusive, made.stack(functions[1], line + 8)))
  return made.findings[0].fingerprint
}

@Suite struct FingerprintTests {
  @Test("ids, order, addresses, thread ids and lines do not matter")
  func stable() {
    let one = fingerprint()
    #expect(one.count == 16)
    #expect(one == fingerprint(ids: [9, 3]))
    #expect(one == fingerprint(base: 0x7f00_0000))
    #expect(one == fingerprint(line: 900, tid: 7))
    #expect(one == fingerprint(functions: ["specialized first()", "second()"]))
  }

  @Test("functions and kinds matter")
  func different() {
    let all = [
      fingerprint(), fingerprint(functions: ["second()", "first()"], kind: .spinlock),
      fingerprint(functions: ["first()", "third()"]), fingerprint(kind: .rwlock),
      fingerprint(functions: ["first()", "first()"]),
    ]
    #expect(Set(all).count == all.count)
  }

  @Test("every rotation of a cycle is the same, another order is not")
  func rotations() {
    func print(_ names: [String]) -> String {
      Fingerprint.cycle(
        .deadlock,
        names.map {
          .init(
            resource: .mutex, mode: .exclusive, wait: [Fixture().frame($0, 1)], acquisition: [])
        })
    }
    for names in [["a", "b", "c"], ["a", "a", "b"], ["b", "a", "b", "a"], ["x"], ["a", "a"]] {
      for start in names.indices {
        #expect(print(names) == print(Array(names[start...] + names[..<start])))
      }
    }
    #expect(print(["a", "b", "c"]) != print(["a", "c", "b"]))
    #expect(print(["a"]) != print(["a", "a"]))
    #expect(Fingerprint.cycle(.deadlock, []) != Fingerprint.cycle(.livelock, []))
  }

  @Test("without symbols the image's name stands in")
  func stripped() {
    func print(_ address: UInt64, _ image: String) -> String {
      let frame = Frame(address: Address(address), image: image)
      return Fingerprint.sites(.lockMisuse, stacks: [[frame]])
    }
    #expect(print(1, "/a/app") == print(2, "/b/app"))
    #expect(print(1, "/a/app") != print(1, "/a/tool"))
  }

  @Test("pinned: a change here breaks everybody's baselines")
  func pinned() {
    #expect(fingerprint() == "c5caf35e2a40745c")
  }
}
