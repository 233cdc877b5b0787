internal import WaitForGraph

extension TextPage {
  /// Where each thread takes what, in its order, and what to change.
  mutating func writeOrders(_ finding: Finding) {
    for evidence in finding.evidence {
      line()
      line(style.heading(sentenceCase(cleaned(evidence.label))))
      // The command that makes it happen has no stack.
      if !evidence.stack.isEmpty { write(evidence.stack, indent: "  ", start: "at ") }
    }
    line()
    line(style.heading("What to change"))
    let locks = finding.resources.map { names.resource($0) }
    guard locks.count > 1 else {
      line("  Read once and pass the value on: do not ask again while reading.")
      return
    }
    line("  Take them in one order everywhere, such as \(locks.joined(separator: " before ")):")
    let asks = finding.evidence.last { !$0.stack.isEmpty }.map { place($0.stack) } ?? "the last of these places"
    line("  let \(asks) give back what it holds first, or take both in that order.")
    if finding.cycle.contains(where: { names.resources[$0.waitsFor]?.kind == .queue }) {
      line("  Where nobody waits for the result, async in place of sync waits for nothing.")
    }
  }
}
