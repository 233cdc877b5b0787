/// Where threads are held back so that a predicted deadlock happens: what `--steer` takes and the agent
/// is told.
///
/// As text: `<milliseconds>[.<late>]@<step>,…`. A step is the call site where a thread asks for what the
/// next one holds and, behind a slash, the one where it took what it holds itself; a call site is up to
/// three return addresses from the inside out, joined by colons; an address is `<image>+<hex offset>`,
/// with no image for the executable, and empty where it is not known. Addresses so survive another run
/// of the same binaries, and no other.
package struct SteeringPlan: Sendable, Hashable {
  /// A return address, from the first mapped byte of its image.
  package struct Place: Sendable, Hashable {
    /// File name; empty for the executable. An underscore stands for a character that a command line
    /// would have to quote as well.
    package var image: String
    package var offset: UInt64
    package init(image: String, offset: UInt64) {
      self.image = image
      self.offset = offset
    }
  }
  package typealias CallSite = [Place?]
  package struct Step: Sendable, Hashable {
    package var asks: CallSite
    /// Empty for the queue that runs the thread's block.
    package var took: CallSite
    package init(asks: CallSite, took: CallSite) {
      self.asks = asks
      self.took = took
    }
  }

  /// How long the first thread is held back where no cycle closes; each further one half as long.
  package var milliseconds: UInt32
  /// The number of the step, from 1, whose threads do not take what they hold before a thread of
  /// another step is held back; 0 for none.
  package var late: Int
  package var steps: [Step]

  package init(milliseconds: UInt32, late: Int = 0, steps: [Step]) {
    self.milliseconds = milliseconds
    self.late = late
    self.steps = steps
  }

  /// As the agent keeps it.
  static let mostBytes = 3071
  static let mostSteps = 32
  static let mostPlaces = 3
}

extension SteeringPlan: CustomStringConvertible {
  package var description: String {
    "\(milliseconds)" + (late == 0 ? "" : ".\(late)") + "@"
      + steps.map { step in
        Self.text(step.asks) + (step.took.isEmpty ? "" : "/" + Self.text(step.took))
      }.joined(separator: ",")
  }

  private static func text(_ site: CallSite) -> String {
    site.map { $0.map { spelled($0.image) + "+" + String($0.offset, radix: 16) } ?? "" }
      .joined(separator: ":")
  }

  private static func spelled(_ image: String) -> String {
    String(image.map { isPlain($0) ? $0 : "_" })
  }

  private static func isPlain(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || "._+-".contains(character))
  }
}

extension SteeringPlan {
  /// What is wrong with a plan's text.
  package struct Fault: Error, Hashable, Sendable {
    package var message: String
  }

  package init(_ text: String) throws(Fault) {
    guard text.utf8.count <= Self.mostBytes else { throw Fault(message: "is too long") }
    let halves = text.split(separator: "@", omittingEmptySubsequences: false)
    guard halves.count == 2 else {
      throw Fault(message: "is no plan; paste the one that --confirm has shown")
    }
    let head = halves[0].split(separator: ".", omittingEmptySubsequences: false)
    guard head.count <= 2, let milliseconds = UInt32(head[0]), milliseconds <= 600_000,
      let late = head.count == 2 ? Int(head[1]) : 0
    else { throw Fault(message: "begins with '\(halves[0])', which is no time in milliseconds") }
    var steps: [Step] = []
    for part in halves[1].split(separator: ",", omittingEmptySubsequences: false) {
      let sites = part.split(separator: "/", omittingEmptySubsequences: false)
      guard sites.count <= 2 else {
        throw Fault(message: "has a step '\(part)' of more than two sites")
      }
      steps.append(
        Step(
          asks: try Self.site(sites[0]), took: sites.count == 2 ? try Self.site(sites[1]) : []))
    }
    guard steps.count <= Self.mostSteps else {
      throw Fault(message: "has \(steps.count) steps; \(Self.mostSteps) are the most")
    }
    guard 0...steps.count ~= late else { throw Fault(message: "has no step \(late)") }
    self.init(milliseconds: milliseconds, late: late, steps: steps)
  }

  private static func site(_ text: Substring) throws(Fault) -> CallSite {
    var places: CallSite = []
    for part in text.split(separator: ":", omittingEmptySubsequences: false) {
      if part.isEmpty, !places.isEmpty {
        places.append(nil)
        continue
      }
      guard let plus = part.lastIndex(of: "+"), part.allSatisfy(isPlain),
        let offset = UInt64(part[part.index(after: plus)...], radix: 16), offset < .max
      else { throw Fault(message: "has '\(part)' where image+offset is expected") }
      places.append(Place(image: String(part[..<plus]), offset: offset))
    }
    guard places.count <= mostPlaces else {
      throw Fault(message: "has a site of \(places.count) addresses; \(mostPlaces) are the most")
    }
    return places
  }
}
