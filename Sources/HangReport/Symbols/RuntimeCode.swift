/// Tells code that a reader wrote from code that came with the language and the system.
///
/// In doubt it is the reader's: a hidden frame costs more than a shown one.
struct RuntimeCode {
  private let isRuntimeImage: Bool
  /// The Swift runtime, libdispatch and Foundation lie in the image itself (-static-stdlib).
  private let holdsSwift: Bool
  /// The C library does too.
  private let holdsLibC: Bool

  init(image: String, symbols: SymbolTable) {
    isRuntimeImage = Self.isRuntime(image: image)
    if isRuntimeImage {
      holdsSwift = false
      holdsLibC = false
    } else {
      holdsSwift = symbols.defines(["swift_retain", "swift_once", "_dispatch_lane_invoke"])
      holdsLibC = symbols.defines(["__libc_start_main", "__libc_start_call_main"])
    }
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
    // Forwarders and reabstraction thunks with no line of their own.
    let tail = name.replacing(asyncSuffix: "")
    if tail.hasSuffix("TR") || tail.hasSuffix("TA") || tail.hasSuffix("To") { return true }
    guard let full = Demangler.fullName(name), let module = Self.module(of: full) else {
      return false
    }
    return Self.modules.contains(module) || module.hasPrefix("_")
  }

  /// The module in a long demangled name, past what says how the function was made.
  static func module(of full: String) -> String? {
    var text = Substring(full)
    // "closure #1 () -> () in main.f() -> ()": the last "in" names the outermost function.
    if text.hasPrefix("closure #") || text.hasPrefix("implicit closure #") || text.contains(" of ")
      || text.contains(" for ") || text.contains("closure #")
    {
      for word in [" of ", " for ", " in "] {
        if let range = text.ranges(of: word).last { text = text[range.upperBound...] }
      }
    }
    if let range = text.firstRange(of: "(extension in "),
      let end = text[range.upperBound...].firstIndex(of: ")")
    {
      return String(text[range.upperBound..<end])
    }
    for word in ["static ", "merged ", "@objc ", "dispatch thunk "] where text.hasPrefix(word) {
      text = text.dropFirst(word.count)
    }
    let module = text.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    guard !module.isEmpty, text.dropFirst(module.count).first == "." else { return nil }
    return String(module)
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
