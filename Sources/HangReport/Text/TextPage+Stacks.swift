extension TextPage {
  /// The first frame of the user's own code, or what stands in for it, and where it is in the
  /// stack.
  func userFrame(_ stack: [Frame]) -> (index: Int, frame: Frame)? {
    guard let index = stack.firstIndex(where: { !$0.runtime }) ?? stack.indices.first else {
      return nil
    }
    return (index, stack[index])
  }

  /// `main.swift:17`, or the function where no line is known.
  func place(_ stack: [Frame]?) -> String {
    guard let frame = stack.flatMap(userFrame)?.frame else { return "an unknown place" }
    return fileAndLine(frame) ?? function(frame)
  }

  /// Two places that a sentence compares: with columns where they share a line.
  func places(_ first: [Frame]?, _ second: [Frame]?) -> (String, String) {
    let (one, other) = (place(first), place(second))
    // Behind a wrapper that takes every lock, the lines to change are its callers'.
    if one == other, let first, let second {
      let (firsts, seconds) = (first.filter { !$0.runtime }, second.filter { !$0.runtime })
      for (a, b) in zip(firsts, seconds) where fileAndLine(a) != fileAndLine(b) {
        guard let one = fileAndLine(a), let other = fileAndLine(b), a.symbol == b.symbol else {
          break
        }
        return (one, other)
      }
    }
    guard one == other, let a = first.flatMap(userFrame)?.frame.column,
      let b = second.flatMap(userFrame)?.frame.column, a != b
    else { return (one, other) }
    return ("\(one):\(a)", "\(other):\(b)")
  }

  /// `main.swift:17 in cancel()`.
  func site(_ stack: [Frame]) -> String {
    guard let frame = userFrame(stack)?.frame else { return "an unknown place (no stack was kept)" }
    if frame.runtime { return "\(function(frame)) (no frame of your own code in this stack)" }
    return describe(frame)
  }

  private func describe(_ frame: Frame) -> String {
    let inlined = frame.inlined ? style.faint(" (inlined)") : ""
    if let place = fileAndLine(frame) {
      return style.heading(place) + (frame.symbol.map { " in \(cleaned($0))" } ?? "") + inlined
    }
    // What a core's program is missing stands at the report's end.
    let isElsewhere = report.mode == .core && frame.symbol == nil
    guard !frame.image.isEmpty, !frame.runtime, !isElsewhere else {
      return function(frame) + inlined
    }
    let isMerged = frame.symbol?.hasPrefix("merged ") ?? false
    return function(frame) + inlined
      + style.faint(
        isMerged
          ? " (the optimiser made one function of several alike, so there is no line: build with -Onone)"
          : " (no debug information: build with -g)")
  }

  private func function(_ frame: Frame) -> String {
    let image = frame.image.isEmpty ? "unmapped memory" : cleaned(fileName(frame.image))
    if let symbol = frame.symbol { return cleaned(symbol) + " of \(image)" }
    // The same in every run, and what addr2line wants.
    if let offset = frame.offset { return "\(image)+\(offset)" }
    return "\(frame.address) of \(image)"
  }

  private func fileAndLine(_ frame: Frame) -> String? {
    guard let file = frame.file else { return nil }
    var path = file
    if let folder = options.folder, folder != "/", file.hasPrefix(folder + "/") {
      path = String(file.dropFirst(folder.count + 1))
    }
    // DWARF's line 0 is code that the compiler made up.
    return cleaned(path) + (frame.line.map { $0 > 0 ? ":\($0)" : "" } ?? "")
  }

  /// The site with its source line, and who called it.
  mutating func write(_ stack: [Frame], indent: String, start: String, callers: Bool = true) {
    line(indent + start + site(stack))
    guard let (index, frame) = userFrame(stack) else { return }
    writeSource(frame, indent: indent + "  ")
    guard !options.verbose else { return writeFrames(stack, indent: indent + "  ") }
    guard callers else { return }
    writeCallers(Array(stack[(index + 1)...]), indent: indent + "  ")
    // A whole stack begins in the runtime: the program's start, or a thread's.
    if stack.last?.runtime == false, !stack.contains(where: { $0.symbol == "main" }) {
      line("\(indent)  \(style.faint("(who called that was not kept)"))")
    }
  }

  private mutating func writeSource(_ frame: Frame, indent: String) {
    guard let number = frame.line, let source = sources.line(of: frame) else { return }
    let gutter = "\(number)"
    let room = max(20, options.width - indent.count - gutter.count - 3)
    let code = source.text.count > room ? source.text.prefix(room - 1) + "…" : source.text[...]
    line("\(indent)\(style.faint(gutter + " |")) \(code)")
    guard source.mark < room else { return }
    let blank = String(repeating: " ", count: gutter.count)
    let before = String(repeating: " ", count: source.mark)
    line("\(indent)\(style.faint(blank + " |")) \(before)\(style.mark("^"))")
  }

  /// The user's own callers one by one; those of the runtime are only counted.
  private mutating func writeCallers(_ frames: [Frame], indent: String) {
    let most = 10
    var shown = 0
    var rest = frames[...]
    while let frame = rest.first {
      if frame.runtime {
        let run = rest.prefix { $0.runtime }
        line(indent + style.faint("… \(counted(run.count, "runtime frame"))"))
        rest = rest.dropFirst(run.count)
        continue
      }
      if shown == most {
        return line(indent + style.faint("… \(counted(rest.count, "more frame"))"))
      }
      line("\(indent)called from \(describe(frame))")
      shown += 1
      rest = rest.dropFirst()
    }
  }

  mutating func writeFrames(_ stack: [Frame], indent: String) {
    for (number, frame) in stack.enumerated() {
      let words = "\(indent)#\(number) \(describe(frame))"
      line(frame.runtime ? style.faint(words) : words)
    }
  }

  /// `35 ms`, `2.5 s`, `3 min 20 s`, `2 h 5 min`.
  static func duration(_ seconds: Double) -> String {
    guard seconds.isFinite, seconds < 1e9 else { return "an unknown time" }
    if seconds < 1 { return "\(Int((max(0, seconds) * 1000).rounded())) ms" }
    if seconds < 60 {
      let tenths = Int((seconds * 10).rounded(.down))
      return "\(tenths / 10).\(tenths % 10) s"
    }
    let whole = Int(seconds)
    if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole / 60 % 60) min"
  }
}
