internal import WaitForGraph

/// Says in words what rule a thread broke.
struct MisuseWords {
  let names: Names

  /// One sentence: who did what to which resource, and what is wrong with it.
  func message(_ misuse: Misuse) -> String {
    let (who, what) = (names.short(misuse.thread), resource(misuse.resource))
    let owner = misuse.owner == misuse.thread ? "itself" : names.short(misuse.owner)
    let hasOwner = misuse.owner != nil
    let holder =
      !hasOwner ? "it is in use" : owner == "itself" ? "it holds it itself" : "\(owner) holds it"
    return switch misuse.rule {
    case .foreignUnlock:
      "\(who) unlocks \(what), which \(hasOwner ? owner : "another thread") locked: only the thread"
        + " that locked it may unlock it"
    case .unlockOfUnlocked: "\(who) unlocks \(what), which nobody holds"
    case .destroyHeld: "\(who) destroys \(what) while \(holder)"
    case .initHeld: "\(who) initialises \(what) anew while \(holder)"
    case .freedHeld: "\(who) frees the memory of \(what) while \(holder)"
    case .exitHeld: "\(who) ended while it held \(what), which nobody else may unlock"
    case .writeTwice:
      "\(who) locked \(what) again while it held it, was refused (EDEADLK), and went on as if it had"
        + " it"
    case .forkedHeld:
      "\(who) locks \(what), which another thread held when the process was forked: that thread does"
        + " not exist in the child"
    case .identityChanged:
      "\(who) leaves a synchronized section by another object than it entered it by, so \(what) stays"
        + " locked"
    case .groupOverleft: "\(who) leaves \(what) more often than it was entered"
    case .groupAbandoned:
      "\(who) gives up \(what) with \(number(misuse.count, "enter")) that nothing can leave any more"
    case .groupNeverLeft:
      "\(what) has \(number(misuse.count, "enter")) outstanding that nothing alive can leave, so the"
        + " notification that \(who) asked for never comes"
    case .semaphoreLow:
      "\(who) destroys \(what) \(below(misuse.count)) its first value, while it is still in use"
    case .semaphoreHigh:
      "\(who) signals \(what) above the value that it was made with, so that it limits no longer"
    case .overresumed: "\(who) resumes \(what), which is not suspended"
    case .releasedSuspended:
      misuse.count == 1
        ? "\(who) releases \(what), which was never activated"
        : "\(who) releases \(what) while it is suspended"
    case .waitedTwice: "\(who) waits for \(what) a second time"
    case .barrierOnGlobal:
      "\(who) uses a barrier on \(what), a global queue, where it excludes nothing"
    case .targetCycle: "\(who) gives \(what) a target queue that leads back to it"
    case .conditionWithoutMutex:
      "\(who) waits on \(what) with \(resource(misuse.mutex)), which it does not hold"
    case .conditionTwoMutexes:
      "\(who) waits on \(what) with \(resource(misuse.mutex)) while others wait on it with another"
        + " mutex"
    case .continuationLeaked:
      continuation(misuse) + " is gone without having been resumed, so its task waits for ever"
    case .continuationResumedTwice: continuation(misuse) + " is resumed a second time by \(who)"
    case .unbalancedAtExit:
      names.resources[misuse.resource ?? ResourceID(0)]?.kind == .group
        ? "the program ends while \(what) has \(number(misuse.count, "enter")) outstanding that"
          + " nothing alive can leave"
        : "the program ends while \(what) is waited for and nothing alive can signal it"
    }
  }

  /// The label of the misuse's own site. They differ by rule: the text finds the rule again by it.
  func label(_ rule: Misuse.Rule, _ thread: ThreadID?, _ id: ResourceID?) -> String {
    let (who, what) = (names.short(thread), resource(id))
    return switch rule {
    case .foreignUnlock: "\(who) unlocked \(what) here"
    case .unlockOfUnlocked: "\(who) unlocked \(what) once too often here"
    case .destroyHeld: "\(who) destroyed \(what) here"
    case .initHeld: "\(who) initialised \(what) here"
    case .freedHeld: "\(who) freed \(what) here"
    case .exitHeld: "\(who) took \(what) here and ended with it"
    case .writeTwice: "\(who) was refused \(what) here"
    case .forkedHeld: "\(who) locks \(what) in the forked child here"
    case .identityChanged: "\(who) left the section over \(what) here"
    case .groupOverleft: "\(who) left \(what) once too often here"
    case .groupAbandoned: "\(who) gave up \(what) here"
    case .groupNeverLeft: "\(who) asked to be notified by \(what) here"
    case .semaphoreLow: "\(who) destroyed \(what) below its first value here"
    case .semaphoreHigh: "\(who) signalled \(what) above its first value here"
    case .overresumed: "\(who) resumed \(what) once too often here"
    case .releasedSuspended: "\(who) released \(what) here"
    case .waitedTwice: "\(who) waited for \(what) again here"
    case .barrierOnGlobal: "\(who) used a barrier on \(what) here"
    case .targetCycle: "\(who) set the target of \(what) here"
    case .conditionWithoutMutex: "\(who) waited on \(what) without its mutex here"
    case .conditionTwoMutexes: "\(who) waited on \(what) with a second mutex here"
    case .continuationLeaked: "the continuation went away here"
    case .continuationResumedTwice: "\(who) resumed the continuation again here"
    case .unbalancedAtExit: "the program ended here with \(what) unbalanced"
    }
  }

  /// The label of the other side.
  func otherLabel(_ misuse: Misuse) -> String {
    switch misuse.rule {
    case .conditionTwoMutexes:
      "\(names.short(misuse.owner)) waits on it with another mutex here"
    default: "\(names.short(misuse.owner)) took \(resource(misuse.resource)) here"
    }
  }

  /// `"loader" left group 0x1 here, 3 times`.
  func useLabel(_ use: Misuse.Use, _ id: ResourceID?) -> String {
    let who = use.thread.map { names.short($0) } ?? "threads that have ended"
    let times = use.count > 1 ? ", \(use.count) times" : ""
    let what = resource(id)
    return switch use.operation {
    case .entered: "\(who) entered \(what) here\(times)"
    case .enteredByBlock: "\(who) put a block into \(what) here\(times)"
    case .left: "\(who) left \(what) here\(times)"
    case .waited: "\(who) took from \(what) here\(times)"
    case .signalled: "\(who) signalled \(what) here\(times)"
    case .suspended: "\(who) suspended \(what) here\(times)"
    case .resumed: "\(who) resumed \(what) here\(times)"
    case .notified: "\(who) asked to be notified by \(what) here"
    case .made:
      names.resources[id ?? ResourceID(0)]?.kind == .semaphore
        ? "\(who) made \(what) with the value \(use.count) here" : "\(who) made \(what) here"
    }
  }

  private func resource(_ id: ResourceID?) -> String {
    id.map { names.resource($0) } ?? "an unknown resource"
  }

  private func number(_ count: UInt64, _ noun: String) -> String {
    count == 0 ? "\(noun)s" : counted(Int(clamping: count), noun)
  }

  private func below(_ count: UInt64) -> String { count == 0 ? "below" : "\(count) below" }

  /// `the continuation of chk()`: the runtime's sentence names the function before its verb.
  private func continuation(_ misuse: Misuse) -> String {
    let start = "SWIFT TASK CONTINUATION MISUSE: "
    guard let range = find(start, in: misuse.text) else { return "a continuation" }
    let rest = misuse.text[range.upperBound...]
    let verbs = [" leaked its continuation", " tried to resume its continuation"]
    for verb in verbs {
      if let end = find(verb, in: String(rest)) {
        let name = String(rest)[..<end.lowerBound]
        return "the continuation of \(cleaned(String(name)))"
      }
    }
    return "a continuation"
  }

  private func find(_ part: String, in text: String) -> Range<String.Index>? {
    var start = text.startIndex
    while start < text.endIndex {
      if text[start...].hasPrefix(part) {
        return start..<text.index(start, offsetBy: part.count)
      }
      start = text.index(after: start)
    }
    return nil
  }
}
