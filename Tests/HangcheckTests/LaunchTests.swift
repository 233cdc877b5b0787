import Foundation
import ProcessInspector
import Testing

/// The launcher's parts that need no process.
@Suite struct LaunchTests {
  @Test func hostileElfFilesAreRefused() throws {
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "/bin/sh")).prefix(4096))
    func header(_ bytes: [UInt8]) -> ElfHeader? {
      ElfHeader { offset, count in
        guard offset < UInt64(bytes.count) else { return [] }
        return Array(bytes[Int(offset)...].prefix(count))
      }
    }
    let good = try #require(header(bytes))
    #expect(good.is64Bit && good.interpreter?.hasSuffix(".so.2") == true && !good.isDamaged)
    #expect(header([]) == nil)
    for length in 0..<200 { _ = header(Array(bytes.prefix(length))) }
    let seed = UInt64.random(in: 0 ... .max)
    var generator = Generator(state: seed)
    for _ in 0..<3000 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        // The two tables that everything else is found through.
        changed[Int.random(in: 4..<700, using: &generator)] =
          [0, 0xff, 0x7f, 0x80].randomElement(using: &generator) ?? 0
      }
      _ = header(changed)
    }
    #expect(seed == seed, "seed \(seed)")
  }

  struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ (state >> 31)
    }
  }

  @Test(arguments: [
    ([], ["LD_PRELOAD=/a.so", "HANGCHECK_LINK=s", "TSAN_OPTIONS=log_to_syslog=1"]),
    (
      ["A=1", "B=", "TSAN_OPTIONS="],
      ["A=1", "B=", "TSAN_OPTIONS=log_to_syslog=1", "LD_PRELOAD=/a.so", "HANGCHECK_LINK=s"]
    ),
    (
      ["LD_PRELOAD=/x.so", "TSAN_OPTIONS=exitcode=0 verbosity=1"],
      [
        "LD_PRELOAD=/x.so:/a.so", "TSAN_OPTIONS=exitcode=0 verbosity=1:log_to_syslog=1",
        "HANGCHECK_LINK=s",
      ]
    ),
    (
      ["LD_PRELOAD=", "TSAN_OPTIONS=a=1"],
      ["LD_PRELOAD=/a.so", "TSAN_OPTIONS=a=1:log_to_syslog=1", "HANGCHECK_LINK=s"]
    ),
    (
      ["LD_PRELOAD=/a.so /y.so", "TSAN_OPTIONS=a=1"],
      ["LD_PRELOAD=/a.so /y.so", "TSAN_OPTIONS=a=1:log_to_syslog=1", "HANGCHECK_LINK=s"]
    ),
    (
      ["HANGCHECK_LINK=old", "LD_PRELOADX=1", "TSAN_OPTIONSX=1"],
      [
        "HANGCHECK_LINK=s", "LD_PRELOADX=1", "TSAN_OPTIONSX=1", "LD_PRELOAD=/a.so",
        "TSAN_OPTIONS=log_to_syslog=1",
      ]
    ),
  ])
  func environment(_ before: [String], _ after: [String]) {
    var environment = LaunchEnvironment(before)
    environment.add(agent: "/a.so", link: "s")
    #expect(environment.strings == after)
  }

  @Test func linkSaysWhatTheAgentNeeds() {
    let link = AgentLink(socketName: "n", followsChildren: false, stacks: "site")
    #expect(link.description == "n;nofollow,stacks=site")
  }

  @Test func programsAreFoundAsExecvpFinds() throws {
    let folder = try Scratch()
    let here = folder.path
    try folder.write("tool", "#!/bin/sh\n", mode: 0o755)
    try folder.write("plain", "text", mode: 0o644)
    try folder.makeFolder("sub")
    try folder.makeFolder("sub/tool")
    #expect(try Program("tool", searchPath: "/nowhere:\(here)").path == "\(here)/tool")
    #expect(try Program("tool", searchPath: "\(here)/sub:\(here)").path == "\(here)/tool")
    #expect(try Program("sh", searchPath: nil).path == "/bin/sh")
    for (word, search, status) in [
      ("tool", "\(here)/sub", 126), ("plain", here, 126), ("none", here, 127), ("", here, 127),
      ("\(here)/none", nil, 127), ("\(here)/tool/x", nil, 127), (here, nil, 126),
      ("/dev/null", nil, 126),
    ] as [(String, String?, Int32)] {
      let error = #expect(throws: LaunchError.self) { try Program(word, searchPath: search) }
      #expect(error?.status == status, "\(word): \(error?.message ?? "")")
    }
  }

  @Test func agentIsLookedForAroundTheExecutable() throws {
    #expect(
      AgentLibrary.places(executable: "/opt/h/bin/hangcheck") == [
        "/opt/h/bin/libHangAgent.so", "/opt/h/lib/hangcheck/libHangAgent.so",
        "/opt/h/lib/libHangAgent.so",
      ])
    let folder = try Scratch()
    try folder.makeFolder("bin")
    try folder.makeFolder("lib")
    let executable = folder.path + "/bin/hangcheck"
    let missing = #expect(throws: LaunchError.self) {
      try AgentLibrary(named: nil, executable: executable)
    }
    #expect(missing?.status == 69)
    #expect(missing?.message.contains(folder.path + "/lib/hangcheck/libHangAgent.so") == true)
    try folder.write("bin/libHangAgent.so", "no library", mode: 0o644)
    let wrong = #expect(throws: LaunchError.self) {
      try AgentLibrary(named: nil, executable: executable)
    }
    #expect(wrong?.message.contains("it is no shared library") == true)
    try FileManager.default.copyItem(
      atPath: try Fixture.agent(), toPath: folder.path + "/lib/libHangAgent.so")
    let found = try AgentLibrary(named: nil, executable: executable)
    #expect(found.path.hasSuffix("/lib/libHangAgent.so"))
  }

  @Test func agentPathWithSpacesGoesThroughALink() throws {
    let folder = try Scratch()
    try folder.makeFolder("a b:c")
    let path = folder.path + "/a b:c/agent.so"
    try FileManager.default.copyItem(atPath: try Fixture.agent(), toPath: path)
    let agent = try AgentLibrary(named: path)
    #expect(!agent.path.contains(" ") && !agent.path.contains(":"))
    #expect(Files.resolved(agent.path) == Files.resolved(path))
    #expect(try AgentLibrary(named: path) == agent)
    unlink(agent.path)
    // Gone only when no other link is in it.
    rmdir("/tmp/hangcheck-\(geteuid())")
  }
}
