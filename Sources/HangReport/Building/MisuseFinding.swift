internal import WaitForGraph

/// Makes the finding of a misuse: message, evidence, fingerprint.
public struct MisuseFinding: Sendable {
  private let threads: [Thread]
  private let resources: [Resource]
  private let process: WatchedProcess?

  /// The lists of the report that the finding is for.
  public init(threads: [Thread], resources: [Resource], process: WatchedProcess? = nil) {
    self.threads = threads
    self.resources = resources
    self.process = process
  }

  public func finding(for misuse: Misuse, time: String = UTCTime.now()) -> Finding {
    let names = Names(threads: threads, resources: resources, process: process)
    let words = MisuseWords(names: names)
    let resource = misuse.resource.flatMap { names.resources[$0] }
    let kind = misuse.rule.kind(of: resource?.kind)
    var evidence: [Finding.Evidence] = []
    if !misuse.site.isEmpty {
      evidence.append(
        .init(
          label: words.label(misuse.rule, misuse.thread, misuse.resource), thread: misuse.thread,
          stack: misuse.site))
    }
    if !misuse.otherSite.isEmpty {
      evidence.append(
        .init(label: words.otherLabel(misuse), thread: misuse.owner, stack: misuse.otherSite))
    }
    for use in misuse.uses where !use.stack.isEmpty {
      evidence.append(
        .init(label: words.useLabel(use, misuse.resource), thread: use.thread, stack: use.stack))
    }
    var involved: [ThreadID] = []
    for thread in [misuse.thread, misuse.owner] + misuse.uses.map(\.thread) {
      if let thread, !involved.contains(thread) { involved.append(thread) }
    }
    // What may be meant is no reason to fail a run.
    let isWarning =
      kind == .queueMisuse || kind == .conditionMisuse || misuse.rule.certainty == .possible
    return Finding(
      kind: kind, severity: isWarning ? .warning : .error, certainty: misuse.rule.certainty,
      message: words.message(misuse), threads: involved,
      resources: [misuse.resource, misuse.mutex].compactMap { $0 }, evidence: evidence,
      fingerprint: Fingerprint.sites(
        kind, ["\(misuse.rule)", resource?.kind.rawValue ?? ""],
        stacks: [misuse.site, misuse.otherSite]),
      time: time)
  }
}
