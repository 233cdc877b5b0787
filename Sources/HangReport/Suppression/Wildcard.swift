/// A text in which `*` stands for any characters, also none, and `?` for exactly one.
///
/// Matches whole texts, by Unicode scalars, upper and lower case told apart. Takes time in
/// proportion to both lengths at worst, and no memory.
struct Wildcard: Sendable, Hashable {
  enum Token: Sendable, Hashable {
    case any, one
    case scalar(Unicode.Scalar)
  }
  var tokens: [Token]

  /// Whether it stands for one text only.
  var isPlain: Bool {
    tokens.allSatisfy { if case .scalar = $0 { true } else { false } }
  }

  /// What it was written as, with its wildcards.
  var text: String {
    var result = String.UnicodeScalarView()
    for token in tokens {
      switch token {
      case .any: result.append("*")
      case .one: result.append("?")
      case .scalar(let scalar): result.append(scalar)
      }
    }
    return String(result)
  }

  /// The usual search that goes back to the last `*` only: one before it can never do better.
  func matches(_ text: some StringProtocol) -> Bool {
    let scalars = text.unicodeScalars
    var (at, place) = (0, scalars.startIndex)
    var retry: (at: Int, place: String.Index)?
    while place < scalars.endIndex {
      if at < tokens.count, tokens[at] == .any {
        retry = (at + 1, place)
        at += 1
      } else if at < tokens.count, tokens[at] == .one || tokens[at] == .scalar(scalars[place]) {
        at += 1
        place = scalars.index(after: place)
      } else if let again = retry {
        at = again.at
        place = scalars.index(after: again.place)
        retry = (at, place)
      } else {
        return false
      }
    }
    return tokens[at...].allSatisfy { $0 == .any }
  }

  /// A path, its end from any folder on, or its last component where no folder is named:
  /// `Net/*.swift` is `/src/Net/pool.swift`.
  func matches(path: String) -> Bool {
    guard !matches(path) else { return true }
    return path.indices.contains { path[$0] == "/" && matches(path[path.index(after: $0)...]) }
  }
}
