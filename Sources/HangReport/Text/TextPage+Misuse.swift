internal import WaitForGraph

extension TextPage {
  /// The sites of a misuse, each with its source line, and what to change.
  mutating func writeMisuse(_ finding: Finding) {
    for evidence in finding.evidence {
      line()
      line(style.heading(cleaned(evidence.label)))
      write(evidence.stack, indent: "  ", start: "at ")
    }
    if finding.kind == .dataRace { return adviseRace(finding) }
    guard let rule = rule(of: finding) else { return }
    line()
    line(style.heading("What to change"))
    for words in advice(rule, finding) { line("  " + words) }
  }

  /// The label of the first site says which rule was broken.
  private func rule(of finding: Finding) -> Misuse.Rule? {
    guard let label = finding.evidence.first?.label else { return nil }
    let words = MisuseWords(names: names)
    return Misuse.Rule.allCases.first {
      words.label($0, finding.evidence[0].thread, finding.resources.first) == label
    }
  }

  private func advice(_ rule: Misuse.Rule, _ finding: Finding) -> [String] {
    let sites = finding.evidence.map(\.stack)
    let here = place(sites.first)
    let there: String? = sites.count > 1 ? place(sites[1]) : nil
    let other = finding.threads.count > 1 ? names.short(finding.threads[1]) : "its holder"
    switch rule {
    case .foreignUnlock:
      return [
        "Unlock it in the thread that locked it\(there.map { ", behind \($0)" } ?? "").",
        "To hand work or a signal to another thread, use a semaphore or a condition: a lock has an"
          + " owner.",
      ]
    case .unlockOfUnlocked:
      return [
        "Take out the unlock at \(here), or lock before it: every unlock needs a lock of its own.",
        "withLock { } cannot be unbalanced.",
      ]
    case .destroyHeld, .freedHeld:
      return [
        "Let \(other) unlock it before \(here) destroys it: wait for its end, or keep the lock alive",
        "as long as somebody can use it.",
      ]
    case .initHeld:
      return [
        "Initialise a lock once, before any thread can use it; \(here) does it while it is held."
      ]
    case .exitHeld:
      return ["Release it on every way out of the thread, for example with defer."]
    case .writeTwice:
      return [
        "The call at \(here) did not lock: release the lock first, or look at what the call returns.",
        "An unlock for it would unlock what the thread took before.",
      ]
    case .forkedHeld:
      return [
        "In a forked child call nothing but exec, or take the lock around fork (pthread_atfork)."
      ]
    case .identityChanged:
      return ["Synchronize over an object that does not change, such as a let of its own."]
    case .groupOverleft:
      return [
        "Pair each leave with one enter; \(here) runs once more than that.",
        "A callback that may come twice must leave the first time only; async(group:) pairs them.",
      ]
    case .groupAbandoned, .groupNeverLeft, .unbalancedAtExit:
      guard finding.kind == .unbalancedGroup else {
        return ["Signal once for every wait, on each way out, for example with defer."]
      }
      return [
        "Put leave() into a defer right behind enter(), or use async(group:), which pairs them."
      ]
    case .semaphoreLow:
      return [
        "Give back what was taken before the semaphore goes away: its memory must not be freed while",
        "it is in use, and libdispatch ends the program for it.",
        "A semaphore that only announces is made with the value 0.",
      ]
    case .semaphoreHigh:
      return ["Signal once for every wait: a signal too many lets one more in than the limit."]
    case .overresumed:
      return ["Pair each resume with one suspend, for example with defer."]
    case .releasedSuspended:
      return ["Resume or activate it before its last reference goes, even where it is cancelled."]
    case .waitedTwice:
      return ["A work item can be waited for once: keep its result, or use a group."]
    case .barrierOnGlobal:
      return ["Make a concurrent queue of your own and use the barrier there, at all places."]
    case .targetCycle:
      return ["Let target queues end at one that has none of these above it: a tree, not a circle."]
    case .conditionWithoutMutex:
      return [
        "Lock the condition's mutex before the wait at \(here), and test the state with it held.",
        "Else a signal between the test and the wait is lost.",
      ]
    case .conditionTwoMutexes:
      return ["Use one mutex with a condition, at every wait."]
    case .continuationLeaked:
      return [
        "Resume on every path, also where the owner of the callback goes away: a closure with [weak"
          + " self] must resume when self is nil."
      ]
    case .continuationResumedTwice:
      return ["Resume once: a callback that may come twice must forget the continuation at first."]
    }
  }
}
