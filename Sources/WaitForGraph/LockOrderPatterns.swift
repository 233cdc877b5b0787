/// The cycles found so far, one for each pattern, and no longer one that contains the pattern of
/// a shorter one.
///
/// A pattern is what a reader would mend: for each step the class of the lock it waits for, where
/// it asks, and where it took what the step before waits for. A thousand locks made at one place
/// give one pattern, as one abstract deadlock pattern stands for all its instances in SPDOffline
/// (Tunç et al., PLDI 2023).
struct LockOrderPatterns {
  struct Element: Hashable, Comparable {
    var lockClass: Int
    var requestSite: Int
    var heldSite: Int
    static func < (a: Element, b: Element) -> Bool {
      (a.lockClass, a.requestSite, a.heldSite) < (b.lockClass, b.requestSite, b.heldSite)
    }
  }

  private var ids: [Element: Int32] = [:]
  private var elements: [Element] = []
  /// The cycles as rotated sequences of elements, and as sorted ones, these also by element.
  private var known: Set<[Int32]> = []
  private var sorted: [[Int32]] = []
  private var patternsWith: [[Int]] = []
  private var found: [(pattern: [Element], deadlock: PotentialDeadlock)] = []

  mutating func id(of element: Element) -> Int32 {
    if let known = ids[element] { return known }
    let id = Int32(elements.count)
    ids[element] = id
    elements.append(element)
    patternsWith.append([])
    return id
  }

  /// Whether a known pattern no longer than `length` uses `newest`, and is contained in `pattern`
  /// whatever the order. Adds to `work` the patterns that it looked at.
  func isImplied(
    _ pattern: [Int32], newest: Int32, noLongerThan length: Int, work: inout Int
  ) -> Bool {
    let candidates = patternsWith[Int(newest)]
    if candidates.isEmpty { return false }
    let whole = pattern.sorted()
    for candidate in candidates where sorted[candidate].count <= length {
      work += length
      if isContained(sorted[candidate], in: whole) { return true }
    }
    return false
  }

  func isKnown(_ pattern: [Int32]) -> Bool { known.contains(leastRotation(pattern).sequence) }

  mutating func insert(_ pattern: [Int32], _ deadlock: PotentialDeadlock) {
    known.insert(leastRotation(pattern).sequence)
    for element in Set(pattern) { patternsWith[Int(element)].append(sorted.count) }
    sorted.append(pattern.sorted())
    let (sequence, shift) = leastRotation(pattern.map { elements[Int($0)] })
    var deadlock = deadlock
    deadlock.steps = Array(deadlock.steps[shift...] + deadlock.steps[..<shift])
    found.append((sequence, deadlock))
  }

  /// Those of several threads first, then the shorter, then by their patterns.
  func inOrder() -> [PotentialDeadlock] {
    found.sorted { a, b in
      if a.deadlock.isOfOneThread != b.deadlock.isOfOneThread { return b.deadlock.isOfOneThread }
      if a.pattern.count != b.pattern.count { return a.pattern.count < b.pattern.count }
      return a.pattern.lexicographicallyPrecedes(b.pattern)
    }.map(\.deadlock)
  }
}

/// Whether one sorted sequence contains another, repetitions counted.
private func isContained(_ part: [Int32], in whole: [Int32]) -> Bool {
  var place = 0
  for element in part {
    while place < whole.count, whole[place] < element { place += 1 }
    guard place < whole.count, whole[place] == element else { return false }
    place += 1
  }
  return true
}

private func leastRotation<T: Comparable>(_ sequence: [T]) -> (sequence: [T], shift: Int) {
  var best = sequence
  var shift = 0
  for next in sequence.indices.dropFirst() {
    let rotated = Array(sequence[next...] + sequence[..<next])
    if rotated.lexicographicallyPrecedes(best) { (best, shift) = (rotated, next) }
  }
  return (best, shift)
}
