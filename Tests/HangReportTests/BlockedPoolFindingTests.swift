import HangReport
import Testing
import WaitForGraph

/// Threads of the cooperative pool that block while others are left.
@Suite struct BlockedPoolFindingTests {
  private func frame(_ symbol: String, line: Int) -> Frame {
    Frame(
      address: Address(UInt64(line)), image: "app", symbol: symbol, file: "app.swift", line: line,
      inlined: false, runtime: false)
  }

  private func finding(_ blocked: Int, of width: Int, fresh: Int? = nil) -> Finding {
    let ids = (1...blocked).map { ThreadID($0) }
    let threads = ids.map { id in
      let stack = [frame("load()", line: 10 + id.rawValue % 2)]
      return Thread(
        id: id, tid: Int32(100 + id.rawValue), name: "w\(id.rawValue)", state: .blocked,
        waitsFor: .init(resource: ResourceID(1), mode: .exclusive, seconds: 11, stack: stack),
        stack: stack)
    }
    let resource = Resource(id: ResourceID(1), kind: .semaphore, address: Address(0x50))
    return PoolFinding(threads: threads, resources: [resource]).finding(
      for: BlockedPoolFacts(
        workers: ids, fresh: Array(ids.suffix(fresh ?? blocked)), width: width, seconds: 10.04))
  }

  @Test(arguments: [
    (1, 8, Finding.Severity.note), (6, 8, .note), (7, 8, .warning), (8, 8, .warning), (1, 2, .note),
    (2, 2, .warning), (1, 1, .note), (2, 3, .warning), (1, 3, .note),
  ])
  func severity(_ blocked: Int, _ width: Int, _ severity: Finding.Severity) {
    #expect(finding(blocked, of: width).severity == severity)
  }

  @Test func message() {
    #expect(
      finding(1, of: 8).message
        == "1 of 8 threads of the cooperative pool has been blocked in a task for 10.0 s: \"w1\" waits"
        + " for semaphore 0x50; it never gets more threads")
    let many = finding(7, of: 8, fresh: 3)
    #expect(
      many.message.hasPrefix("7 of 8 threads of the cooperative pool have been blocked in tasks"))
    #expect(many.threads == [ThreadID(5), ThreadID(6), ThreadID(7)])
    #expect(many.evidence.count == 2)
    #expect(many.evidence.first?.label == "\"w5\" and 1 other wait for semaphore 0x50 here")
  }

  /// By the place in the code.
  @Test func fingerprint() {
    #expect(finding(1, of: 8).fingerprint == finding(1, of: 4).fingerprint)
  }
}
