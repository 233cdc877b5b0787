import Testing
import WaitForGraph

@Suite struct LargeLockOrderTests {
  struct Case: CustomStringConvertible, Sendable {
    var description: String
    var make: @Sendable () -> LockOrderRecord
    /// The lengths of the cycles.
    var expected: [Int]
  }

  static let cases = [
    Case(
      description: "a ring of a hundred", make: { LargeLockOrders.ring(of: 100) }, expected: [100]),
    Case(
      description: "4 096 held at once", make: { LargeLockOrders.tower(of: 4096) }, expected: [2]),
    Case(
      description: "100 000 orders without a cycle",
      make: { LargeLockOrders.orderly(edges: 100_000) }, expected: []),
    Case(
      description: "500 contexts, one after another",
      make: { LargeLockOrders.contexts(500, areOrdered: true) }, expected: []),
    Case(
      description: "2 000 contexts at the same time",
      make: { LargeLockOrders.contexts(2000, areOrdered: false) }, expected: [2]),
    Case(
      description: "1 000 orders of one class",
      make: { LargeLockOrders.wild(edges: 1000, locks: 100, threads: 8, ofOneClass: true) },
      expected: [2]),
  ]

  @Test("large records are searched to the end", arguments: cases)
  func large(_ test: Case) {
    let analysis = LockOrderAnalysis(test.make())
    #expect(analysis.potentialDeadlocks.map(\.steps.count) == test.expected)
    #expect(analysis.isComplete)
  }

  @Test("the search is bounded, and says so", arguments: [1, 8])
  func bounded(threads: Int) {
    let record = LargeLockOrders.wild(
      edges: 20_000, locks: 200, threads: threads, ofOneClass: false)
    let limit = 100_000
    let analysis = LockOrderAnalysis(record, workPerComponent: limit)
    #expect(!analysis.isComplete)
    #expect(!analysis.potentialDeadlocks.isEmpty)
    #expect(analysis.potentialDeadlocks.contains { $0.isOfOneThread == (threads == 1) })
    // A search notices that it is over its limit with the next path.
    #expect(analysis.work < 4 * limit)
    let again = LockOrderAnalysis(record, workPerComponent: limit)
    #expect(analysis.potentialDeadlocks == again.potentialDeadlocks)
  }
}
