public import WaitForGraph

/// A rule that a thread broke, as it was seen the moment it did: what its finding is made from.
public struct Misuse: Sendable {
  /// Which rule.
  public enum Rule: Sendable, CaseIterable {
    case foreignUnlock, unlockOfUnlocked, destroyHeld, initHeld, freedHeld, exitHeld, writeTwice
    case forkedHeld, identityChanged
    case groupOverleft, groupAbandoned, groupNeverLeft
    case semaphoreLow, semaphoreHigh
    case overresumed, releasedSuspended, waitedTwice, barrierOnGlobal, targetCycle
    case conditionWithoutMutex, conditionTwoMutexes
    case continuationLeaked, continuationResumedTwice
    case unbalancedAtExit
  }

  /// What a thread did to the resource at one place: a semaphore, group or queue has no holder who
  /// could be asked.
  public struct Use: Sendable {
    public enum Operation: Int, Sendable {
      case entered, enteredByBlock, waited, suspended, left, signalled, resumed, notified, made
    }
    public var operation: Operation
    /// nil for several that have ended.
    public var thread: ThreadID?
    /// How often; what it was made with.
    public var count: UInt64
    public var stack: [Frame]
    public init(operation: Operation, thread: ThreadID?, count: UInt64, stack: [Frame]) {
      self.operation = operation
      self.thread = thread
      self.count = count
      self.stack = stack
    }
  }

  public var rule: Rule
  /// Who broke it.
  public var thread: ThreadID?
  public var resource: ResourceID?
  /// Who holds or held the resource, where that is another one.
  public var owner: ThreadID?
  /// A condition's mutex.
  public var mutex: ResourceID?
  /// Enters outstanding, permits missing; 0 where not known.
  public var count: UInt64
  /// Where the rule was broken.
  public var site: [Frame]
  /// Where the owner took the resource.
  public var otherSite: [Frame]
  /// What else was done to the resource, and where.
  public var uses: [Use]
  /// What the Swift runtime says.
  public var text: String

  public init(
    rule: Rule, thread: ThreadID?, resource: ResourceID?, owner: ThreadID? = nil,
    mutex: ResourceID? = nil, count: UInt64 = 0, site: [Frame], otherSite: [Frame] = [],
    uses: [Use] = [], text: String = ""
  ) {
    self.rule = rule
    self.thread = thread
    self.resource = resource
    self.owner = owner
    self.mutex = mutex
    self.count = count
    self.site = site
    self.otherSite = otherSite
    self.uses = uses
    self.text = text
  }
}

extension Misuse.Rule {
  /// The finding's kind; at the program's end the resource decides.
  func kind(of resource: ResourceKind?) -> Finding.Kind {
    switch self {
    case .foreignUnlock, .unlockOfUnlocked, .destroyHeld, .initHeld, .freedHeld, .exitHeld,
      .writeTwice, .forkedHeld, .identityChanged:
      .lockMisuse
    case .groupOverleft, .groupAbandoned, .groupNeverLeft: .unbalancedGroup
    case .semaphoreLow, .semaphoreHigh: .semaphoreMisuse
    case .overresumed, .releasedSuspended, .waitedTwice, .barrierOnGlobal, .targetCycle:
      .queueMisuse
    case .conditionWithoutMutex, .conditionTwoMutexes: .conditionMisuse
    case .continuationLeaked, .continuationResumedTwice: .continuationMisuse
    case .unbalancedAtExit: resource == .group ? .unbalancedGroup : .semaphoreMisuse
    }
  }

  /// A limit that is exceeded may be meant, and what is outstanding at the end may be no loss; all
  /// else breaks a rule whatever was meant.
  var certainty: Finding.Certainty {
    switch self {
    case .semaphoreHigh, .unbalancedAtExit: .possible
    default: .certain
    }
  }
}
