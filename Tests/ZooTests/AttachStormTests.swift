import Foundation
import HangReport
import Testing

/// What many attaches do to a process that is well.
@Suite("Attach storms") struct AttachStormTests {
  @Test("killed at random moments, again and again, it leaves threads of all kinds as they were")
  func killed() async throws {
    let fixture = try #require(Fixture.table.first { $0.name == "near-attach-kinds" })
    let program = try await Builder.shared.program(fixture)
    let (problems, kills, status, text) = try await Gate.shared.pass {
      let target = try Target(Watched.command(fixture, program))
      defer { target.end() }
      usleep(300_000)
      var problems: [String] = []
      var kills = 0
      while kills < 40, target.status == nil {
        let tool = try Target([Watched.tool, "attach", "\(target.pid)"])
        if kills % 2 == 0 {
          usleep(UInt32.random(in: 0..<200_000))
        } else {
          // As soon as its first thread is traced: in the midst of the stop.
          for _ in 0..<2000 where target.tracer == "0" && tool.status == nil { usleep(50) }
          usleep(UInt32.random(in: 0..<1_000))
        }
        tool.end()
        kills += 1
        for _ in 0..<50 where target.isHeld { usleep(10_000) }
        if target.isHeld { problems.append("after \(kills): \(target.states), \(target.tracer)") }
      }
      return (problems, kills, target.wait(seconds: 30), target.outputText)
    }
    #expect(problems.isEmpty)
    #expect(kills > 0)
    #expect(status == .exited(0))
    #expect(text == "DONE\n")
  }

  @Test("a build that is looked at all the time, and all that it starts, ends as it ends alone")
  func build() async throws {
    let package = FileManager.default.temporaryDirectory.appending(path: "storm-\(UUID())")
    defer { try? FileManager.default.removeItem(at: package) }
    let sources = package.appending(path: "Sources/small")
    try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
    try """
    // swift-tools-version:6.0
    import PackageDescription
    let package = Package(name: "small", targets: [.executableTarget(name: "small")])
    """.write(to: package.appending(path: "Package.swift"), atomically: true, encoding: .utf8)
    try "print((1...10).reduce(0, +))\n".write(
      to: sources.appending(path: "main.swift"), atomically: true, encoding: .utf8)
    let (found, looks, status) = try await Gate.shared.pass {
      let target = try Target(
        ["/bin/bash", "-c", "exec swift build --package-path \"$0\"", package.path])
      defer { target.end() }
      var found: [String] = []
      var looks = 0
      while looks < 100, target.status == nil {
        for pid in Self.family(of: target.pid) where target.status == nil {
          let result = try Attached.run(["\(pid)"])
          if result.report != nil { looks += 1 }
          found += result.loud.map(\.message)
          let status = result.outcome.status
          if status != .exited(0), status != .exited(69) { found.append("\(status)") }
        }
      }
      return (found, looks, target.wait(seconds: 120))
    }
    #expect(found.isEmpty)
    #expect(looks > 0)
    #expect(status == .exited(0))
    let program = try Child.run([package.path + "/.build/debug/small"], limit: 10)
    #expect(program.outputText == "55\n")
  }

  /// A process and all that it has started.
  private static func family(of pid: pid_t) -> [pid_t] {
    var all = [pid]
    var next = 0
    while next < all.count {
      let folder = "/proc/\(all[next])/task"
      next += 1
      let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      for thread in threads {
        let file = "\(folder)/\(thread)/children"
        let children = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        all += children.split(separator: " ").compactMap { pid_t($0) }
      }
    }
    return all
  }
}

extension Target {
  /// Whether a thread of it is stopped, or it is traced.
  fileprivate var isHeld: Bool { !states.isDisjoint(with: ["t", "T"]) || tracer != "0" }
}
