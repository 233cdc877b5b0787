internal import CHangcheck
internal import Glibc

/// Turns linker names into what a reader wrote.
///
/// The Swift runtime's own demanglers are linked rather than looked up: a statically linked program
/// exports neither.
enum Demangler {
  /// The short form: `DispatchQueue.sync(execute:)`, `closure #1 in main`.
  static func name(_ linkerName: String) -> String {
    if linkerName.hasPrefix("async_Main") { return "main" }
    guard let text = simplified(linkerName) else { return withoutSuffix(linkerName) }
    guard isSwift(linkerName) else { return text }
    // Identical functions share code, and the name is any one of theirs.
    return (linkerName.hasSuffix("Tm") ? "merged " : "") + tidied(text)
  }

  /// A global variable's: `counter`, `Cache.shared`, without the type.
  static func variable(_ linkerName: String) -> String {
    let text = name(linkerName)
    let stem = text.firstRange(of: " : ").map { text[..<$0.lowerBound] } ?? text[...]
    return String(stem.hasPrefix("static ") ? stem.dropFirst(7) : stem)
  }

  /// The long form, with modules; nil for what is no Swift name.
  static func fullName(_ linkerName: String) -> String? {
    guard isSwift(linkerName) else { return nil }
    return taken { swift_demangle(linkerName, linkerName.utf8.count, nil, nil, 0) }
      .flatMap { $0 == linkerName ? nil : $0 }
  }

  static func isSwift(_ name: String) -> Bool {
    name.hasPrefix("$s") || name.hasPrefix("_$s") || name.hasPrefix("$S") || name.hasPrefix("$e")
  }

  private static func simplified(_ name: String) -> String? {
    guard isSwift(name) || name.hasPrefix("_Z") else { return nil }
    return taken { _swift_backtrace_demangle(name, name.utf8.count, nil, nil) }
      .flatMap { $0 == name ? nil : $0 }
  }

  /// The text of a buffer from malloc, which is given back.
  private static func taken(_ make: () -> UnsafeMutablePointer<CChar>?) -> String? {
    // The demanglers return text that ends in 0 and belongs to their caller.
    guard let text = make() else { return nil }
    defer { free(text) }
    return String(cString: text)
  }

  /// Drops what the compiler did to a function and leaves what the function is.
  private static func tidied(_ text: String) -> String {
    var text = text
    for noise in ["specialized ", "partial apply for ", "generic not re-abstracted "] {
      while let range = text.firstRange(of: noise) { text.removeSubrange(range) }
    }
    // "@escaping @callee_guaranteed @Sendable () -> ()": conventions say nothing about a hang.
    while let at = text.firstIndex(of: "@"),
      let end = text[at...].firstIndex(where: { $0 == " " || $0 == ")" || $0 == "," })
    {
      let range = at..<(text[end] == " " ? text.index(after: end) : end)
      text.removeSubrange(range)
    }
    // Top-level code has no name of its own.
    return text.hasSuffix(" in ") ? text + "main" : text
  }

  /// "work.cold.3", "f.isra.0": parts of one C function; "mainTY0_": parts of one async function.
  private static func withoutSuffix(_ name: String) -> String {
    if let dot = name.firstIndex(of: "."), dot != name.startIndex {
      let tail = name[dot...].split(separator: ".").first
      if let tail, ["cold", "isra", "part", "constprop", "llvm", "lto_priv"].contains(tail) {
        return String(name[..<dot])
      }
    }
    return name
  }
}
