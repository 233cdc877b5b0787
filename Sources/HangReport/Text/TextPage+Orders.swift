internal import WaitForGraph

extension TextPage {
  /// Lock orders: a letter for each lock, where each thread takes what, and what to change.
  mutating func writeOrders(_ finding: Finding) {
    let letters = CyclePage(finding: finding, names: names)
    func lettered(_ text: String) -> String {
      finding.resources.reduce(text) {
        $0.replacing(cleaned(names.resource($1)), with: letters.letter($1))
      }
    }
    let title = finding.certainty == .possible ? "POTENTIAL DEADLOCK" : "CONFIRMED DEADLOCK"
    let head = "hangcheck: \(title) in \(names.program(of: finding.threads)): "
    let words = head + lettered(cleaned(finding.message)) + "."
    line(finding.severity == .note ? style.plain(words) : style.bad(words))
    writeLegend(letters)
    for evidence in finding.evidence {
      line()
      line(style.heading(sentenceCase(lettered(cleaned(evidence.label)))))
      // The command that makes it happen has no stack.
      if !evidence.stack.isEmpty { write(evidence.stack, indent: "  ", start: "at ") }
    }
    line()
    line(style.heading("What to change"))
    let locks = finding.resources.map { letters.letter($0) }
    guard locks.count > 1, let last = finding.evidence.last(where: { !$0.stack.isEmpty })
    else {
      line("  Read once and pass the value on: do not ask again while reading.")
      return
    }
    line("  Take them in one order everywhere, such as \(locks.joined(separator: " before ")).")
    line(
      "  So at \(place(last.stack)) do not ask for \(locks[0]) while holding"
        + " \(locks[locks.count - 1]): take \(locks[0]) first, or give back"
        + " \(locks[locks.count - 1]) before.")
    if finding.cycle.contains(where: { names.resources[$0.waitsFor]?.kind == .queue }) {
      line("  Where nobody needs the result at once, async in place of sync waits for nothing.")
    }
  }
}
