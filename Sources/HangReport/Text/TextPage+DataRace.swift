internal import WaitForGraph

extension TextPage {
  /// Both accesses, each with its source line and what was held, and what to change.
  mutating func writeRace(_ finding: Finding) {
    for evidence in finding.evidence {
      line()
      line(style.heading(cleaned(evidence.label)))
      write(evidence.stack, indent: "  ", start: "at ")
    }
    line()
    line(style.heading("What to change"))
    for words in raceAdvice(finding) { line("  " + words) }
  }

  private func raceAdvice(_ finding: Finding) -> [String] {
    let sites = finding.evidence.map(\.stack)
    if finding.severity == .note {
      return [
        "If what \(place(sites.first)) writes was made from what \(place(sites.last)) read, hold the"
          + " lock from the read to",
        "the write: a property that locks in its getter and in its setter protects neither += nor"
          + " append.",
      ]
    }
    let (one, other) = places(sites.first, sites.count > 1 ? sites[1] : nil)
    let both = sites.count > 1 ? "\(one) and at \(other)" : one
    // The sentence names no lock but the one that is held elsewhere.
    if let lock = finding.resources.dropFirst().first,
      finding.message.contains(names.resource(lock))
    {
      return ["Hold \(names.resource(lock)) at \(both), as elsewhere."]
    }
    return [
      "Hold one lock at \(both), at both for as long as the value is used, or make the value an actor's.",
      "Swift 6 finds most of these at compile time, where nothing is @unchecked or unsafe.",
    ]
  }
}
