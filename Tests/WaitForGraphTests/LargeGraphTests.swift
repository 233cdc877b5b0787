import Testing
import WaitForGraph

/// Thread `i` holds lock `i` and waits for the next; the last one waits for what `closing` says.
private func chain(_ count: Int, closing: Int?) -> Snapshot {
  let threads = (0..<count).map { id in
    let next = id + 1 < count ? id + 1 : closing
    return Snapshot.Thread(
      id: ThreadID(id), wait: next.map { .init(resource: ResourceID($0), mode: .exclusive) },
      holds: [.init(resource: ResourceID(id), mode: .exclusive)])
  }
  let resources = (0..<count).map { Snapshot.Resource(id: ResourceID($0), kind: .mutex) }
  return Snapshot(threads: threads, resources: resources)
}

@Suite struct LargeGraphTests {
  @Test("rings of any length", arguments: [1, 2, 3, 100, 100_000])
  func ring(_ count: Int) {
    let deadlocks = WaitForGraph(chain(count, closing: 0)).deadlocks()
    #expect(deadlocks.count == 1)
    #expect(deadlocks.first?.edges.map(\.thread.rawValue) == Array(0..<count))
    #expect(deadlocks.first?.victims == [])
  }

  @Test("a chain of 100 000 threads that moves, and one that ends in a ring")
  func chains() {
    #expect(WaitForGraph(chain(100_000, closing: nil)).deadlocks().isEmpty)
    let deadlocks = WaitForGraph(chain(100_000, closing: 99_998)).deadlocks()
    #expect(deadlocks.first?.edges.map(\.thread.rawValue) == [99_998, 99_999])
    #expect(deadlocks.first?.victims.count == 99_998)
  }

  @Test("5 000 readers that hold a lock, and 5 000 writers that wait for it")
  func crowd() {
    let lock = ResourceID(0)
    var threads = (0..<5000).map { id in
      Snapshot.Thread(id: ThreadID(id), holds: [.init(resource: lock, mode: .shared)])
    }
    threads += (5000..<10_000).map { id in
      Snapshot.Thread(id: ThreadID(id), wait: .init(resource: lock, mode: .exclusive))
    }
    // One reader waits for something that a writer holds.
    threads[77].wait = .init(resource: ResourceID(1), mode: .exclusive)
    threads[6000].holds = [.init(resource: ResourceID(1), mode: .exclusive)]
    let snapshot = Snapshot(
      threads: threads,
      resources: [.init(id: lock, kind: .rwlock), .init(id: ResourceID(1), kind: .mutex)])
    let deadlocks = WaitForGraph(snapshot).deadlocks()
    #expect(deadlocks.map { $0.edges.map(\.thread.rawValue) } == [[77, 6000]])
    #expect(deadlocks.first?.victims.count == 4999)
  }

  @Test("3 000 upgraders of one lock: the circle of one is found at once")
  func upgraders() {
    let lock = ResourceID(0)
    let threads = (0..<3000).map { id in
      Snapshot.Thread(
        id: ThreadID(id), wait: .init(resource: lock, mode: .exclusive),
        holds: [.init(resource: lock, mode: .shared)])
    }
    let deadlocks = WaitForGraph(
      Snapshot(threads: threads, resources: [.init(id: lock, kind: .rwlock)])
    ).deadlocks()
    #expect(deadlocks.first?.edges.count == 1)
    #expect(deadlocks.first?.victims.count == 2999)
  }
}
