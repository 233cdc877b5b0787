import Foundation
import Testing

@testable import HangReport

@Suite(.serialized) struct ReplacedFileTests {
  private func subject(_ name: String) throws -> (Subject, String) {
    let path = try Workshop.shared.build(name, Programs.site, ["-O2", "-g"])
    return (try Subject(path), path)
  }

  @Test("a program whose file was replaced is not named by the new one", .timeLimit(.minutes(1)))
  func replaced() throws {
    let (subject, path) = try subject("replaced")
    let other = try Workshop.shared.build("replacement", Programs.site, ["-O0"])
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.copyItem(atPath: other, toPath: path)
    let (registers, stack) = try subject.capture(subject.tid("main"))
    let text = try contents("/proc/\(subject.pid)/maps")

    // Without a way to the old file: unwound from memory, not named, and told.
    let images = ImageMap(ImageMap.parse(maps: text), memory: subject.memory)
    let unwound = try Unwinder(images: images, memory: subject.memory)
      .unwind(registers, stack: [stack])
    #expect(unwound.isComplete)
    let own = Symbolizer(images: images).frames(for: unwound.frames)
      .filter { $0.image == path }
    #expect(own.count >= 4 && own.allSatisfy { $0.symbol == nil && !$0.runtime })
    #expect(images.notes == ["\(path): replaced on disk since it was loaded"])

    // The inode alone tells it as well.
    let byInode = ImageMap(ImageMap.parse(maps: text))
    _ = Symbolizer(images: byInode).frames(for: unwound.frames)
    #expect(byInode.notes == ["\(path): replaced on disk since it was loaded"])
  }

  @Test("the old file is found in map_files", .timeLimit(.minutes(1)), .enabled(if: geteuid() == 0))
  func deleted() throws {
    let (subject, path) = try subject("deleted")
    try FileManager.default.removeItem(atPath: path)
    let (registers, stack) = try subject.capture(subject.tid("main"))
    let images = ImageMap(
      ImageMap.parse(maps: try contents("/proc/\(subject.pid)/maps")), pid: subject.pid,
      memory: subject.memory)
    let unwound = try Unwinder(images: images, memory: subject.memory)
      .unwind(registers, stack: [stack])
    let frames = Symbolizer(images: images).frames(for: unwound.frames)
    #expect(frames.contains { $0.symbol == "second" && $0.line != nil && $0.image == path })
    #expect(images.notes.isEmpty)
  }

  @Test("files under another root", .timeLimit(.minutes(1)))
  func root() throws {
    let (subject, _) = try subject("rooted")
    let (registers, stack) = try subject.capture(subject.tid("main"))
    let images = ImageMap(
      ImageMap.parse(maps: try contents("/proc/\(subject.pid)/maps")),
      root: "/proc/\(subject.pid)/root", memory: subject.memory)
    let unwound = try Unwinder(images: images, memory: subject.memory)
      .unwind(registers, stack: [stack])
    let frames = Symbolizer(images: images).frames(for: unwound.frames)
    #expect(frames.contains { $0.symbol == "second" && $0.line != nil })
    #expect(frames.allSatisfy { !$0.image.hasPrefix("/proc") })
  }
}
