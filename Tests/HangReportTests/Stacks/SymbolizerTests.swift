import Foundation
import Testing

@testable import HangReport

@Suite(.serialized) struct SymbolizerTests {
  /// A map of one file as if it were loaded at address 0.
  static func alone(_ path: String) -> ImageMap {
    ImageMap([
      Mapping(
        start: 0, end: 1 << 32, offset: 0, isWritable: false, isExecutable: true, inode: 0,
        path: path)
    ])
  }

  /// Addresses spread over the code that has DWARF, always the same ones.
  static func addresses(in path: String, _ count: Int) throws -> [UInt64] {
    let image = try #require(ElfImage(path: path))
    let info = try #require(DebugInfo(image))
    let ranges = info.codeRanges
    var state: UInt64 = 88_172_645_463_325_252
    return (0..<count).map { _ in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      let range = ranges[Int(state >> 8) % ranges.count]
      return range.lowerBound + (state >> 20) % (range.upperBound - range.lowerBound)
    }
  }

  struct Answer: Decodable {
    struct Symbol: Decodable {
      var function: String
      var file: String
      var line: Int
      enum CodingKeys: String, CodingKey {
        case function = "FunctionName"
        case file = "FileName"
        case line = "Line"
      }
    }
    var symbols: [Symbol]
    enum CodingKeys: String, CodingKey { case symbols = "Symbol" }
  }

  @Test(
    "the same as llvm-symbolizer", .timeLimit(.minutes(1)),
    .enabled(if: (try? Workshop.shared.run(["llvm-symbolizer", "--version"])) != nil),
    arguments: [["-O", "-g"], ["-Onone", "-g"]])
  func oracle(_ options: [String]) throws {
    let path = try Workshop.shared.build("oracle\(options[0])", Programs.swift, options)
    let addresses = try Self.addresses(in: path, 300)
    let text = try Workshop.shared.run(
      ["llvm-symbolizer", "--output-style=JSON", "--no-demangle", "-e", path]
        + addresses.map { "0x" + String($0, radix: 16) })
    let symbolizer = Symbolizer(images: Self.alone(path))
    var answers: [Answer] = []
    for line in text.split(separator: "\n") {
      let data = Data(line.utf8)
      if let all = try? JSONDecoder().decode([Answer].self, from: data) {
        answers += all
      } else {
        answers.append(try JSONDecoder().decode(Answer.self, from: data))
      }
    }
    try #require(answers.count == addresses.count)
    var differences: [String] = []
    for (address, answer) in zip(addresses, answers) {
      let frames = symbolizer.frames(for: RawFrame(pc: address, cfa: 0, isExact: true))
      let mine = frames.map { "\($0.symbol ?? "") \($0.line ?? 0)" }
      let theirs = answer.symbols.map {
        let line =
          $0.file.hasSuffix("<compiler-generated>") ? 0 : $0.line
        return "\($0.function.isEmpty ? "" : Demangler.name($0.function)) \(line)"
      }
      if mine != theirs { differences.append("\(String(address, radix: 16)) \(mine) \(theirs)") }
    }
    #expect(differences.count <= 3, Comment(rawValue: differences.joined(separator: "\n")))
  }

  @Test("a stripped program: with its debug file and without", .timeLimit(.minutes(1)))
  func stripped() throws {
    let shop = Workshop.shared
    let source = Programs.site
    let full = try shop.build("strip-me", source, ["-O2", "-g", "-Wl,--build-id=none"])
    let folder = shop.folder
    try shop.run(["objcopy", "--only-keep-debug", full, folder + "/linked.debug"])
    try shop.run([
      "objcopy", "--strip-all", "--add-gnu-debuglink=\(folder)/linked.debug", full,
      folder + "/linked",
    ])
    try shop.run(["objcopy", "--strip-all", full, folder + "/bare"])
    for (name, isNamed) in [("linked", true), ("bare", false)] {
      let subject = try Subject(folder + "/" + name)
      let (unwound, frames) = try subject.unwind("main")
      #expect(unwound.isComplete)
      let own = frames.filter { $0.image.hasSuffix(name) && $0.symbol != "_start" }
      #expect(own.contains { $0.symbol == "second" && $0.line != nil } == isNamed)
      #expect(own.count >= 4)
      let symbolizer = Symbolizer(images: try subject.images())
      #expect(symbolizer.debugInformation(for: folder + "/" + name) == isNamed)
    }
    // A debug file of another build is not taken.
    try "x".write(toFile: folder + "/linked.debug", atomically: true, encoding: .utf8)
    let other = try shop.build("other", Programs.site, ["-O0", "-g", "-Wl,--build-id=none"])
    try shop.run(["objcopy", "--only-keep-debug", other, folder + "/linked.debug"])
    #expect(
      !Symbolizer(images: Self.alone(folder + "/linked"))
        .debugInformation(for: folder + "/linked"))
  }

  @Test("many addresses of a large program take less than a second", .timeLimit(.minutes(1)))
  func large() throws {
    let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let addresses = try Self.addresses(in: path, 500)
    let clock = ContinuousClock()
    var named = 0
    let time = clock.measure {
      let symbolizer = Symbolizer(images: Self.alone(path))
      for address in addresses {
        let frames = symbolizer.frames(for: RawFrame(pc: address, cfa: 0, isExact: true))
        if frames.contains(where: { $0.symbol != nil }) { named += 1 }
      }
    }
    print("500 addresses of \(path): \(time), \(named) named")
    #expect(named > 450)
    // Three times what is asked of an optimised build.
    #expect(time < .seconds(3))
  }

  @Test("damaged files give no names and no trap", .timeLimit(.minutes(1)))
  func damaged() throws {
    let path = try Workshop.shared.build("damage", Programs.site, ["-O1", "-g"])
    let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
    let addresses = try Self.addresses(in: path, 20)
    var state: UInt64 = 1
    func random(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
    let file = Workshop.shared.folder + "/damaged"
    for round in 0..<150 {
      var copy = bytes
      switch round % 3 {
      case 0: copy.removeLast(random(copy.count))
      case 1: for _ in 0..<8 { copy[random(1024)] = UInt8(random(256)) }
      default: for _ in 0..<200 { copy[64 + random(copy.count - 64)] = UInt8(random(256)) }
      }
      try Data(copy).write(to: URL(fileURLWithPath: file))
      let images = Self.alone(file)
      let symbolizer = Symbolizer(images: images)
      let unwinder = try Unwinder(images: images, memory: NoMemory())
      for address in addresses {
        let raw = RawFrame(pc: address, cfa: 0, isExact: false)
        #expect(!symbolizer.frames(for: raw).isEmpty)
        let stack = StackCopy(base: 0x7000_0000, bytes: copy.suffix(512))
        let unwound = unwinder.unwind(
          Registers(rip: address, rsp: 0x7000_0000, rbp: 0x7000_0080), stack: [stack], limit: 64)
        #expect(!unwound.frames.isEmpty)
      }
    }
  }
}
