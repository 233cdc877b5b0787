/// Many stacks of one thread, folded: in which function it was in most of them.
///
/// From the outermost call inwards it follows the function that at least half of all samples are
/// in; where they part, that is the place. Of calls the functions count, not the lines.
public struct StackFold: Sendable, Equatable {
  /// Samples that share a function of the program's own.
  public struct Group: Sendable, Equatable {
    public var count: Int
    /// Nil where the stack has no frame of the program's own, or a binary no names.
    public var function: String?
    /// The most frequent stack among them, from the function outwards; what it calls in libraries
    /// stands before it where that is all that it calls.
    public var stack: [Frame]
  }

  public var total: Int
  /// The heaviest first: the place, then whatever else was seen. Empty without samples.
  public var groups: [Group]

  public var heaviest: Group? { groups.first }

  public init(_ stacks: [[Frame]]) {
    let stacks = stacks.filter { !$0.isEmpty }
    total = stacks.count
    groups = []
    guard !stacks.isEmpty else { return }
    // The program's own frames, the outermost first.
    let paths = stacks.map { stack in stack.indices.reversed().filter { !stack[$0].runtime } }
    var members = Array(stacks.indices)
    var depth = 0
    var place: String?
    while let (name, inside) = Self.most(members, stacks, paths, depth), inside.count * 2 >= total,
      // How deep a function has called itself makes no other place.
      name != place || inside.count == members.count
    {
      (members, place) = (inside, name)
      depth += 1
    }
    groups.append(Self.group(members, stacks, paths, depth))
    var rest: [String?: [Int]] = [:]
    for index in stacks.indices where !members.contains(index) {
      rest[paths[index].last.flatMap { stacks[index][$0].symbol }, default: []].append(index)
    }
    groups += rest.values.map { Self.group($0, stacks, paths, .max) }
      .sorted { ($1.count, $0.function ?? "") < ($0.count, $1.function ?? "") }
  }

  /// The function that most of the members are in at a depth, and those.
  private static func most(
    _ members: [Int], _ stacks: [[Frame]], _ paths: [[Int]], _ depth: Int
  ) -> (String, [Int])? {
    var byName: [String: [Int]] = [:]
    for index in members where depth < paths[index].count {
      if let name = stacks[index][paths[index][depth]].symbol {
        byName[name, default: []].append(index)
      }
    }
    return byName.max { ($0.value.count, $1.key) < ($1.value.count, $0.key) }
      .map { ($0.key, $0.value) }
  }

  private static func group(
    _ members: [Int], _ stacks: [[Frame]], _ paths: [[Int]], _ depth: Int
  ) -> Group {
    var counts: [[Frame]: (count: Int, first: Int)] = [:]
    for (position, index) in members.enumerated() {
      counts[cut(stacks[index], paths[index], depth), default: (0, position)].count += 1
    }
    // The compiler gives some code no line. Of two that are as frequent the first that was seen.
    func rank(_ entry: (key: [Frame], value: (count: Int, first: Int))) -> (Int, Int, Int) {
      let line = entry.key.first { !$0.runtime }?.line ?? 0
      return (line > 0 ? 1 : 0, entry.value.count, -entry.value.first)
    }
    let stack = counts.max { rank($0) < rank($1) }?.key ?? []
    return Group(
      count: members.count, function: stack.first { !$0.runtime }?.symbol, stack: stack)
  }

  /// Without what is called by the frame at a depth, where that is the program's own.
  private static func cut(_ stack: [Frame], _ path: [Int], _ depth: Int) -> [Frame] {
    guard depth > 0, depth < path.count else { return stack }
    return Array(stack[path[depth - 1]...])
  }
}
