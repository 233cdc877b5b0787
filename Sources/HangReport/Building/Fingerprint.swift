public import WaitForGraph

/// A short name for a finding that stays the same over runs, addresses, thread ids, line numbers
/// and the thread that the circle is told from.
///
/// It is made of functions' names alone. Where a binary has none, the image's file name stands in,
/// so two deadlocks of one stripped binary may share a fingerprint.
public struct Fingerprint: Sendable {
  /// One wait of a cycle, as far as it identifies the code.
  public struct Step: Sendable {
    var text: String
    /// `wait` is the waiter's stack, `acquisition` the owner's when it took the resource.
    public init(resource: ResourceKind, mode: Mode, wait: [Frame], acquisition: [Frame]) {
      text =
        "\(resource.rawValue) \(mode.rawValue)\n" + Fingerprint.site(wait) + "\n"
        + Fingerprint.site(acquisition)
    }
  }

  /// For a cycle; which step comes first does not matter, their order does.
  public static func cycle(_ kind: Finding.Kind, _ steps: [Step]) -> String {
    let start = leastRotation(steps.map(\.text))
    return hash([kind.rawValue] + (steps[start...] + steps[..<start]).map(\.text))
  }

  /// For a finding without a cycle: what else tells it from others, and the stacks of its evidence.
  public static func sites(_ kind: Finding.Kind, _ words: [String] = [], stacks: [[Frame]])
    -> String
  {
    hash([kind.rawValue] + words + stacks.map(site))
  }

  /// The first frame of the user's own code, by name.
  static func site(_ stack: [Frame]) -> String {
    guard let frame = stack.first(where: { !$0.runtime }) ?? stack.first else { return "?" }
    return frame.symbol.map(plain) ?? "in " + fileName(frame.image)
  }

  /// The name as written, whether or not the optimiser specialised or merged the function.
  private static func plain(_ symbol: String) -> String {
    var name = Substring(symbol)
    while let prefix = ["specialized ", "merged ", "outlined "].first(where: name.hasPrefix) {
      name = name.dropFirst(prefix.count)
    }
    return String(name)
  }

  /// FNV-1a, 64 bits, of the parts and their ends.
  private static func hash(_ parts: [String]) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for part in parts {
      for byte in Array(part.utf8) + [0] {
        hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
      }
    }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// The start of the smallest rotation, in linear time.
  private static func leastRotation(_ parts: [String]) -> Int {
    let count = parts.count
    var (a, b, matched) = (0, 1, 0)
    while a < count, b < count, matched < count {
      let (left, right) = (parts[(a + matched) % count], parts[(b + matched) % count])
      if left == right {
        matched += 1
        continue
      }
      if left > right { a += matched + 1 } else { b += matched + 1 }
      if a == b { b += 1 }
      matched = 0
    }
    return min(a, b)
  }
}

/// The last component of a path.
func fileName(_ path: String) -> String {
  path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
}
