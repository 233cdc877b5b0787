extension TextPage {
  /// What to do about two accesses that nothing orders.
  mutating func adviseRace(_ finding: Finding) {
    guard finding.evidence.count > 1 else { return }
    let (first, second) = places(finding.evidence[0].stack, finding.evidence[1].stack)
    line()
    line(style.heading("What to change"))
    line(
      first == second
        ? "  Let \(first) run under one lock, the same for every thread that comes there;"
        : "  Let \(first) and \(second) run under one lock, the same at both;")
    line("  or make the value an actor's, or let one thread have it and send the others copies.")
  }
}
