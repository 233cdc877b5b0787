/// Tells code that a reader wrote from code that came with the language and the system.
///
/// In doubt it is the reader's: a hidden frame costs more than a shown one.
struct RuntimeCode {
  let isRuntimeImage: Bool
  /// The Swift runtime, libdispatch and Foundation lie in the image itself (-static-stdlib).
  private let holdsSwift: Bool
  /// Code without a line is then the compiler's own.
  private let hasLines: Bool
  /// The C library does too.
  private let holdsLibC: Bool

  init(image: String, symbols: SymbolTable, hasLines: Bool) {
    self.hasLines = hasLines
    isRuntimeImage = Self.isRuntime(image: image)
    if isRuntimeImage {
      holdsSwift = false
      holdsLibC = false
    } else {
      holdsSwift = symbols.defines(["swift_retain", "swift_once", "_dispatch_lane_invoke"])
      holdsLibC = symbols.defines(["__libc_start_main", "__libc_start_call_main"])
    }
  }

  /// For code whose image is not at hand.
  init(isRuntimeImage: Bool, holdsSwift: Bool, holdsLibC: Bool, hasLines: Bool = false) {
    self.isRuntimeImage = isRuntimeImage
    self.holdsSwift = holdsSwift
    self.holdsLibC = holdsLibC
    self.hasLines = hasLines
  }

  /// Whether an image as a whole came with the language or the system.
  static func isRuntime(image: String) -> Bool {
    if image == "[vdso]" { return true }
    guard let slash = image.lastIndex(of: "/") else { return false }
    var name = image[image.index(after: slash)...]
    // libc.so.6, libstdc++.so.6.0.30, libc-2.31.so
    if let range = name.firstRange(of: ".so") { name = name[..<range.lowerBound] }
    return images.contains(String(name)) || name.hasPrefix("ld-linux")
      || ["libc-", "libpthread-", "ld-2", "libm-", "libdl-", "librt-"].contains {
        name.hasPrefix($0) && image.contains("-2.")
      }
  }

  func isRuntime(linkerName: String?, place: DebugInfo.Place) -> Bool {
    if isRuntimeImage { return true }
    // The compiler's way to a lazy global: who asks for it is the caller.
    if let linkerName, linkerName.hasPrefix("$s"), linkerName.hasSuffix("vau") { return true }
    if let linkerName, Self.isOwn(linkerName) { return true }
    if let file = place.file {
      if Self.isToolchain(file: file) { return true }
      if place.line != nil { return false }
    }
    guard let linkerName else { return false }
    if Demangler.isSwift(linkerName) { return isRuntime(swift: linkerName) }
    if Self.startFunctions.contains(linkerName) { return true }
    if holdsSwift, Self.isSwiftRuntime(c: linkerName) { return true }
    return holdsLibC && Self.isLibC(linkerName)
  }

  private func isRuntime(swift name: String) -> Bool {
    let stem = name.replacing(asyncSuffix: "")
    if stem.hasSuffix("TR") || stem.hasSuffix("TRTA") { return true }
    // Forwarders may hold inlined code of a reader, which would have a line.
    if hasLines, stem.hasSuffix("TA") || stem.hasSuffix("To") { return true }
    let modules = Self.modules(in: Demangler.fullName(name) ?? "")
    if !modules.isEmpty { return modules.allSatisfy(Self.modules.contains) }
    return Self.leadingModule(of: name).map(Self.modules.contains) ?? false
  }

  /// The modules that a long demangled name speaks of, types it was specialised for left out.
  ///
  /// `static (extension in Swift):Swift.Task.detached(name: Swift.String) -> main.Box<A.Element>`:
  /// what stands before the first dot of a path, but for generic parameters.
  static func modules(in full: String) -> Set<String> {
    let text = Array(withoutSpecialisation(full).utf8)
    var modules: Set<String> = []
    var at = 0
    while at < text.count {
      guard isIdentifier(text[at]) else {
        at += 1
        continue
      }
      let start = at
      while at < text.count, isIdentifier(text[at]) { at += 1 }
      let word = String(decoding: text[start..<at], as: UTF8.self)
      let follows = start > 0 && text[start - 1] == UInt8(ascii: ".")
      let leads = at < text.count && text[at] == UInt8(ascii: ".")
      // "closure #1 () -> () in main", "(extension in Swift):"
      let isContext =
        start >= 4 && text[(start - 4)..<start].elementsEqual(" in ".utf8)
        && (at == text.count
          || text[at] == UInt8(ascii: ")") && at + 1 < text.count
            && text[at + 1] == UInt8(ascii: ":"))
      if !follows && leads && !isGenericParameter(word) || isContext { modules.insert(word) }
    }
    return modules
  }

  /// "generic specialization <main.Box> of Swift.Array.append(A) -> ()" without its first part.
  private static func withoutSpecialisation(_ full: String) -> String {
    var text = Substring(full)
    while let opening = text.firstRange(of: "specialization <") {
      var depth = 1
      var previous: Character = "<"
      var rest = text[opening.upperBound...]
      while depth > 0, let next = rest.popFirst() {
        if next == "<" { depth += 1 }
        if next == ">", previous != "-" { depth -= 1 }
        previous = next
      }
      guard depth == 0, rest.hasPrefix(" of ") else { break }
      text = rest.dropFirst(4)
    }
    return String(text)
  }

  private static func isIdentifier(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
      true
    default: false
    }
  }

  /// A, B1: parameters of generic functions are written before a dot too.
  private static func isGenericParameter(_ word: String) -> Bool {
    guard let first = word.utf8.first, (0x41...0x5a).contains(first) else { return false }
    return word.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
  }

  /// The module at the front of a mangled name: $s4main..., $ss... for Swift itself.
  static func leadingModule(of name: String) -> String? {
    guard let range = name.firstRange(of: "$s") else { return nil }
    let text = name[range.upperBound...]
    if text.hasPrefix("s") { return "Swift" }
    let digits = text.prefix { $0.isNumber }
    guard let count = Int(digits), count > 0, count < 200 else { return nil }
    let module = text.dropFirst(digits.count).prefix(count)
    return module.utf8.count == count ? String(module) : nil
  }
}

extension String {
  /// Without the suffix that numbers the parts of an async function (TY0_, TQ1_).
  func replacing(asyncSuffix replacement: String) -> String {
    guard hasSuffix("_") else { return self }
    let digits = dropLast().reversed().prefix { $0.isNumber }.count
    let stem = dropLast(digits + 1)
    guard digits > 0, stem.hasSuffix("TY") || stem.hasSuffix("TQ") else { return self }
    return stem.dropLast(2) + replacement
  }
}
