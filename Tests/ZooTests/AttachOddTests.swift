import Foundation
import HangReport
import Testing

/// Processes that `hangcheck attach` may not look at, or only in part: each gets its sentence.
@Suite("Attach to odd processes") struct AttachOddTests {
  private static func odd() async throws -> URL {
    try await Builder.shared.program(
      Fixture.folder.appending(path: "odd.c"), variant: "debug", libraries: [])
  }
  private static func deadlocked() async throws -> [String] {
    let fixture = try #require(Fixture.table.first { $0.name == "mutex-abba" })
    return Watched.command(fixture, try await Builder.shared.program(fixture))
  }
  private static let nobody = ["/usr/bin/env", "setpriv", "--reuid=65534", "--clear-groups"]
  private static let isRoot = geteuid() == 0

  /// Whether a command that changes who one is works here, and the tool can be run by it.
  private static func works(_ launcher: [String]) -> Bool {
    let outcome = try? Child.run(launcher + [Watched.tool, "--version"], limit: 10)
    return outcome?.status == .exited(0)
  }

  private func refused(_ pid: pid_t, _ words: String, through launcher: [String] = []) throws {
    let outcome = try Child.run(launcher + [Watched.tool, "attach", "\(pid)"], limit: 10)
    #expect(outcome.status == .exited(69), "\(words)")
    #expect(outcome.errorText.contains(words), "\(outcome.errorText)")
    #expect(outcome.errorText.split(separator: "\n").count == 1)
    #expect(outcome.output.isEmpty)
  }

  @Test("another user's process", .enabled(if: isRoot && works(nobody)))
  func otherUser() async throws {
    let program = try await Self.odd()
    try await Gate.shared.pass {
      let target = try Target([program.path, "pausing"])
      defer { target.end() }
      usleep(200_000)
      try refused(target.pid, "belongs to another user (uid 0", through: Self.nobody)
      let bounded = ["/usr/bin/env", "setpriv", "--bounding-set=-sys_ptrace"]
      let foreign = try Target(Self.nobody + ["/bin/sleep", "30"])
      defer { foreign.end() }
      usleep(300_000)
      try refused(foreign.pid, "CAP_SYS_PTRACE is missing", through: bounded)
      // Root itself may.
      let outcome = try Child.run([Watched.tool, "attach", "\(foreign.pid)"], limit: 10)
      #expect(outcome.status == .exited(0))
    }
  }

  @Test("a process that is protected", .enabled(if: isRoot && works(nobody)))
  func protected() async throws {
    let program = try await Self.odd()
    try await Gate.shared.pass {
      let copy = FileManager.default.temporaryDirectory.appending(path: "odd-\(UUID())")
      defer { try? FileManager.default.removeItem(at: copy) }
      try FileManager.default.copyItem(at: program, to: copy)
      let target = try Target(Self.nobody + [copy.path, "undumpable"])
      defer { target.end() }
      usleep(500_000)
      try refused(target.pid, "is protected", through: Self.nobody)
      let outcome = try Child.run([Watched.tool, "attach", "\(target.pid)"], limit: 10)
      #expect(outcome.status == .exited(0))
    }
  }

  private func lookInside(_ command: [String], _ words: String) throws {
    let target = try Target(command)
    defer { target.end() }
    usleep(1_500_000)
    let path = "/proc/\(target.pid)/task/\(target.pid)/children"
    let children = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    let pid = children.split(separator: " ").first.flatMap { Int32($0) } ?? target.pid
    defer { if pid != target.pid { kill(pid, SIGKILL) } }
    let result = try Attached.run(["\(pid)"])
    let found = try #require(result.loud.first { $0.kind == .deadlock })
    #expect(result.report?.names(ofCycle: found) == ["alice", "bob"])
    #expect(result.report?.limits?.contains { $0.contains(words) } == true)
  }

  private static let newIDs = ["/usr/bin/env", "unshare", "-pf", "--mount-proc"]
  @Test("another pid namespace", .enabled(if: works(newIDs)))
  func otherIDs() async throws {
    let command = try await Self.deadlocked()
    try await Gate.shared.pass {
      try lookInside(Self.newIDs + command, "another pid namespace")
    }
  }

  private static let newMounts = ["/usr/bin/env", "unshare", "-m"]
  @Test("other files than ours, and a static program", .enabled(if: isRoot && works(newMounts)))
  func otherFiles() async throws {
    let program = try await Builder.shared.program(
      Fixture.folder.appending(path: "mutexes.c"), variant: "static")
    try await Gate.shared.pass {
      let folder = FileManager.default.temporaryDirectory.appending(path: "root-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let script =
        "mount -t tmpfs none \"$1\" && cp \"$2\" \"$1/program\" && exec chroot \"$1\" /program abba"
      try lookInside(
        Self.newMounts + ["/bin/sh", "-c", script, "sh", folder.path, program.path],
        "another mount namespace")
    }
  }

  @Test("a process that is stopped, by a signal or a tracer")
  func stopped() async throws {
    let command = try await Self.deadlocked()
    let program = try await Self.odd()
    try await Gate.shared.pass {
      let target = try Target(command)
      defer { target.end() }
      usleep(500_000)
      kill(target.pid, SIGSTOP)
      usleep(100_000)
      let stopped = try Attached.run(["\(target.pid)"])
      let found = try #require(stopped.loud.first { $0.kind == .deadlock })
      #expect(stopped.report?.names(ofCycle: found) == ["alice", "bob"])
      #expect(stopped.report?.process.stopped == .signal)
      #expect(stopped.report?.limits?.contains { $0.contains("kill -CONT \(target.pid)") } == true)
      kill(target.pid, SIGCONT)
      usleep(100_000)

      let tracer = try Target([program.path, "tracing", "\(target.pid)"])
      defer { tracer.end() }
      for _ in 0..<100 where tracer.outputText.isEmpty { usleep(20_000) }
      try refused(target.pid, "is being traced by process \(tracer.pid)")
      let traced = try Attached.run(["--no-stop", "\(target.pid)"])
      #expect(traced.loud.contains { $0.kind == .deadlock })
      #expect(traced.report?.process.stopped == .tracer)

      // One that is well and stopped is not said to hang, nor to be well.
      let healthy = try Target([program.path, "pausing"])
      defer { healthy.end() }
      usleep(200_000)
      kill(healthy.pid, SIGSTOP)
      usleep(100_000)
      let outcome = try Child.run([Watched.tool, "attach", "\(healthy.pid)"], limit: 10)
      #expect(outcome.status == .exited(0))
      #expect(outcome.outputText.contains("which is stopped; `kill -CONT \(healthy.pid)`"))
    }
  }

  @Test(
    "where calls are refused to hangcheck, other ways are taken", arguments: ["untraced", "unread"])
  func filtered(_ scenario: String) async throws {
    let command = try await Self.deadlocked()
    let program = try await Self.odd()
    try await Gate.shared.pass {
      let target = try Target(command)
      defer { target.end() }
      usleep(500_000)
      let outcome = try Child.run(
        [program.path, scenario, Watched.tool, "attach", "--format", "json", "\(target.pid)"],
        limit: 20)
      #expect(outcome.status == .exited(66), "\(outcome.errorText)")
      let report = try JSONDecoder().decode(HangReport.self, from: outcome.output)
      let found = try #require(report.findings.first { $0.kind == .deadlock })
      #expect(report.names(ofCycle: found) == ["alice", "bob"])
    }
  }

  @Test("a process that becomes another program, or ends, while it is looked at")
  func fleeting() async throws {
    let program = try await Self.odd()
    let problems = try await Gate.shared.pass {
      var problems: [String] = []
      func look(_ pid: pid_t, _ sentences: [String]) throws {
        let result = try Attached.run(["\(pid)"])
        let outcome = result.outcome
        switch outcome.status {
        case .exited(0): if result.report == nil { problems.append("no report") }
        case .exited(69):
          let isKnown = sentences.contains { outcome.errorText.contains($0) }
          if !isKnown || outcome.errorText.split(separator: "\n").count != 1 {
            problems.append(outcome.errorText)
          }
        default: problems.append("\(outcome.status): \(outcome.errorText)")
        }
        if !result.loud.isEmpty { problems.append(result.loud[0].message) }
      }
      let executing = try Target([program.path, "executing"])
      for _ in 0..<20 {
        try look(executing.pid, ["executed another program while it was looked at", "ended while"])
      }
      if executing.status != nil { problems.append("it ended: \(executing.outputText)") }
      executing.end()
      for round in 0..<20 {
        let ending = try Target([program.path, "ending", "\(round * 4)"])
        try look(ending.pid, ["ended while it was looked at", "has ended and only waits"])
        if ending.wait(seconds: 5) != .exited(0) { problems.append("it was harmed") }
        ending.end()
      }
      return problems
    }
    #expect(problems.isEmpty)
  }

  /// An ELF file for i386 that calls pause() for ever.
  private static var small: Data {
    var bytes: [UInt8] = [0x7f, 0x45, 0x4c, 0x46, 1, 1, 1] + [UInt8](repeating: 0, count: 9)
    func half(_ value: UInt16) { bytes += [UInt8(value & 255), UInt8(value >> 8)] }
    func word(_ value: UInt32) {
      for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(value >> shift & 255)) }
    }
    let base: UInt32 = 0x0804_8000
    // ET_EXEC, EM_386, version; entry, headers, flags; sizes.
    half(2)
    half(3)
    word(1)
    word(base + 84)
    word(52)
    word(0)
    word(0)
    half(52)
    half(32)
    half(1)
    half(0)
    half(0)
    half(0)
    // PT_LOAD of all of it, readable and executable.
    for field: UInt32 in [1, 0, base, base, 96, 96, 5, 4096] { word(field) }
    // mov $29, %eax; int $0x80; jmp to the beginning
    bytes += [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7, 0x90, 0x90, 0x90]
    return Data(bytes)
  }

  @Test("a 32-bit program")
  func small() async throws {
    try await Gate.shared.pass {
      let file = FileManager.default.temporaryDirectory.appending(path: "small-\(UUID())")
      defer { try? FileManager.default.removeItem(at: file) }
      try Self.small.write(to: file)
      chmod(file.path, 0o755)
      // A kernel without 32-bit programs does not start it.
      guard let target = try? Target([file.path]) else { return }
      defer { target.end() }
      usleep(200_000)
      try #require(target.status == nil, "the program of this test is wrong")
      try refused(target.pid, "runs a 32-bit program")
    }
  }
}
