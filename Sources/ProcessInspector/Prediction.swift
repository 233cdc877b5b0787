internal import CHangcheck
package import HangReport
internal import WaitForGraph

/// A deadlock that lock orders predict: how to make it happen, and how to know it when it does.
package struct Prediction: Sendable {
  package var fingerprint: String
  package var message: String
  /// Each different step once: what closes a cycle is what the threads hold and ask for.
  package var steps: [SteeringPlan.Step]
  /// Where each thread of the cycle asks.
  package var asks: [[Frame]]
  package init(
    fingerprint: String, message: String, steps: [SteeringPlan.Step], asks: [[Frame]]
  ) {
    self.fingerprint = fingerprint
    self.message = message
    self.steps = steps
    self.asks = asks
  }

  /// Whether that is the finding that tells of it. Two findings may have one fingerprint.
  package func isTold(by finding: Finding) -> Bool {
    finding.kind == .potentialDeadlock && finding.fingerprint == fingerprint
      && finding.message == message
  }

  /// Whether a certain deadlock of that report is this one: each of its sites is where a thread of
  /// the deadlock's cycle waits.
  package func happened(in report: HangReport) -> Bool {
    report.findings.contains { finding in
      guard finding.kind == .deadlock, finding.certainty == .certain else { return false }
      var waits = finding.cycle.compactMap { edge in
        report.threads.first { $0.id == edge.thread }?.waitsFor?.stack
      }
      return asks.allSatisfy { asked in
        guard let index = waits.firstIndex(where: { Self.isSame($0, asked) }) else { return false }
        waits.remove(at: index)
        return true
      }
    }
  }

  /// By the innermost frame that is the program's own. A lock order keeps little of a stack: where that
  /// is runtime's alone, its innermost frame is to be found.
  private static func isSame(_ wait: [Frame], _ asked: [Frame]) -> Bool {
    if let own = asked.first(where: { !$0.runtime }) {
      return wait.first { !$0.runtime }.map { isSame($0, own) } ?? false
    }
    return asked.first.map { inner in wait.contains { isSame($0, inner) } } ?? false
  }

  private static func isSame(_ a: Frame, _ b: Frame) -> Bool {
    guard a.image == b.image else { return false }
    if let offset = a.offset, offset == b.offset { return true }
    return a.symbol != nil && a.symbol == b.symbol && a.line == b.line
  }
}

extension OrderPage {
  /// nil where a place in the code is not known, or lies in what is no image.
  func prediction(of cycle: OrderWatch.Cycle, _ finding: Finding) -> Prediction? {
    var steps: [SteeringPlan.Step] = []
    for step in cycle.steps {
      guard let asks = callSite(step.wants.site) else { return nil }
      // A queue that runs a block was not taken anywhere.
      let took = step.holds.site == 0 ? [] : callSite(step.holds.site)
      guard let took else { return nil }
      let planned = SteeringPlan.Step(asks: asks, took: took)
      if !steps.contains(planned) { steps.append(planned) }
    }
    guard steps.count <= SteeringPlan.mostSteps else { return nil }
    return Prediction(
      fingerprint: finding.fingerprint, message: finding.message, steps: steps,
      asks: cycle.steps.map { stack($0.wants.site) })
  }

  private func callSite(_ number: UInt32) -> SteeringPlan.CallSite? {
    guard let site = assembler.arena.orderSite(number), let inner = place(site.returnAddress) else {
      return nil
    }
    var places: SteeringPlan.CallSite = [inner]
    // Those that tell a lock order's sites apart. What a frame pointer leads to may be no frame.
    for frame in site.chain.prefix(SteeringPlan.mostPlaces - 1) {
      places.append(place(frame.returnAddress))
    }
    while places.last == .some(nil) { places.removeLast() }
    return places
  }

  private func place(_ address: UInt64) -> SteeringPlan.Place? {
    let images = assembler.images
    guard images.mapping(at: address)?.isExecutable == true, let image = images.image(at: address)
    else { return nil }
    // The kernel maps the executable below the libraries.
    let executable = images.mappings.first { $0.path.hasPrefix("/") }
    let isExecutable = image.path == executable?.path
    let name = image.path.split(separator: "/").last ?? ""
    // That of another build has other offsets; its functions are in the way of nobody's own.
    if name == AgentLibrary.fileName { return nil }
    return SteeringPlan.Place(
      image: isExecutable ? "" : String(name), offset: address - image.start)
  }
}
