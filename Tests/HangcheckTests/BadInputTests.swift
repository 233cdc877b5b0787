import Foundation
import Glibc
import Testing

/// What is wrong is said in one line: what, where, and how to mend it.
@Suite struct BadInputTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var arguments: [String]
    var status: Int32
    var says: String
    var usage = false
    var testDescription: String { arguments.joined(separator: " ") }
  }

  private func check(_ one: Case, environment: [String: String?] = [:]) throws {
    let result = try Run.hangcheck(one.arguments, environment: environment).wait()
    #expect(result.status == one.status)
    #expect(result.output == "")
    #expect(result.errors.contains(one.says), "\(result.errors)")
    let lines = result.errors.split(separator: "\n")
    #expect(lines.first?.hasPrefix("hangcheck: ") == true)
    if one.usage {
      #expect(lines.count > 1 && lines[1].hasPrefix("usage: "))
    } else {
      #expect(lines.count == 1)
    }
  }

  @Test(arguments: [
    Case(arguments: [], status: 64, says: "the program to run is missing", usage: true),
    Case(arguments: ["--tmeout", "1s", "true"], status: 64, says: "--timeout?", usage: true),
    Case(arguments: ["--timeout", "1", "true"], status: 64, says: "no unit", usage: true),
    Case(arguments: ["--format", "html", "true"], status: 64, says: "not available"),
    Case(arguments: ["--confirm", "--predict", "off", "true"], status: 64, says: "--predict"),
    Case(arguments: ["attach", "2147483647"], status: 69, says: "no process"),
    Case(arguments: ["core", "x"], status: 65, says: "x: cannot be read"),
    Case(arguments: ["core", "/etc/passwd"], status: 65, says: "/etc/passwd: it is no core file"),
    Case(arguments: ["core"], status: 64, says: "core file", usage: true),
    Case(arguments: ["--output", "/nowhere/x", "true"], status: 64, says: "/nowhere/x"),
    Case(arguments: ["--output", "/", "true"], status: 64, says: "nothing was started"),
    Case(arguments: ["--log", "/nowhere/x", "true"], status: 64, says: "--log /nowhere/x"),
    Case(arguments: ["no-such-program"], status: 127, says: "no such program in PATH"),
    Case(arguments: ["atach", "1"], status: 127, says: "did you mean attach?"),
    Case(arguments: ["./none"], status: 127, says: "./none: No such file"),
    Case(arguments: ["/etc"], status: 126, says: "it is a directory"),
    Case(arguments: ["/etc/passwd"], status: 126, says: "it is not executable"),
    Case(arguments: ["report", "/nowhere/x"], status: 65, says: "/nowhere/x: cannot be read"),
    Case(arguments: ["report", "/etc/passwd"], status: 65, says: "/etc/passwd:1: it is no report"),
    Case(arguments: ["report", "/dev/null"], status: 65, says: "it is empty"),
    Case(arguments: ["report", "/"], status: 65, says: "Is a directory"),
  ])
  func refused(_ one: Case) throws { try check(one) }

  @Test func environmentIsNamed() throws {
    try check(
      Case(arguments: ["true"], status: 64, says: "HANGCHECK_OPTIONS: unknown", usage: true),
      environment: ["HANGCHECK_OPTIONS": "tmeout=1s"])
    try check(
      Case(arguments: ["true"], status: 69, says: "HANGCHECK_AGENT names /nowhere/a.so"),
      environment: ["HANGCHECK_AGENT": "/nowhere/a.so"])
    try check(
      Case(arguments: ["true"], status: 69, says: "it is no shared library"),
      environment: ["HANGCHECK_AGENT": "/etc/passwd"])
  }

  @Test func unusableProgramsSayWhy() throws {
    let scratch = try Scratch()
    let sh = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "/bin/sh")))
    var otherMachine = sh
    otherMachine[18] = 8
    var noLoader = sh
    if let place = Data(sh).range(of: Data("/lib64/ld-linux".utf8))?.lowerBound {
      noLoader[place + 1] = UInt8(ascii: "L")
    }
    let cases: [(String, [UInt8], String)] = [
      ("text", Array("echo hi\n".utf8), "no interpreter line (#!…); run it as `hangcheck sh "),
      ("missing", Array("#!/nowhere/x -y\n".utf8), "its interpreter /nowhere/x cannot be used"),
      ("folder", Array("#!/etc\n".utf8), "its interpreter /etc is a directory"),
      ("plain", Array("#!/etc/passwd\n".utf8), "/etc/passwd is not executable"),
      ("dos", Array("#!/bin/sh\r\n".utf8), "carriage return"),
      ("bare", Array("#!\n".utf8), "#! without an interpreter"),
      ("empty", [], "is empty"),
      ("short", Array(sh.prefix(100)), "the file is damaged"),
      ("binary", [0, 1, 2, 3, 255], "neither an ELF program nor a script"),
      ("other", otherMachine, "it is a program for MIPS"),
      ("loader", noLoader, "its dynamic loader /Lib64/"),
    ]
    for (name, bytes, says) in cases {
      try scratch.write(name, bytes: bytes, mode: 0o755)
      try check(Case(arguments: [scratch.path + "/" + name], status: 126, says: says))
    }
  }

  @Test func unwatchableProgramsRunAllTheSame() throws {
    let program = try Fixture.program("static")
    let result = try Run.hangcheck([program]).wait()
    #expect(result.status == 9)
    #expect(result.errors.hasPrefix("hangcheck: \(program) cannot be watched: it is linked static"))
    #expect(result.errors.split(separator: "\n").count == 1)
    #expect(try Run.hangcheck(["--quiet", program]).wait().errors == "")
    let scratch = try Scratch()
    try scratch.write("script", "#!\(program)\n", mode: 0o755)
    #expect(try Run.hangcheck([scratch.path + "/script"]).wait().errors.contains("linked static"))
  }

  @Test func setuidProgramsRunAllTheSame() throws {
    guard geteuid() == 0 else { return }
    let scratch = try Scratch()
    let path = scratch.path + "/setuid"
    #expect(try Run.program("/bin/cp", ["/bin/true", path]).status == 0)
    #expect(chown(path, 12345, 12345) == 0)
    #expect(chmod(path, 0o4755) == 0)
    let result = try Run.hangcheck([path]).wait()
    #expect(result.status == 0)
    #expect(result.errors.contains("cannot be watched: it is setuid to user 12345"))
  }

  @Test func failingOutputsEndNothing() throws {
    let result = try Run.hangcheck(
      ["--format", "json", "--output", "/dev/full", "sh", "-c", "echo on; exit 5"]
    ).wait()
    #expect(result.status == 5)
    #expect(result.output == "on\n")
    #expect(
      result.errors
        == "hangcheck: the report cannot be written to /dev/full: No space left on device\n")
  }
}

/// Programs that the agent cannot enter, and that LD_PRELOAD would disturb.
@Suite struct ForeignProgramTests {
  @Test func foreignLoaderGetsNoPreload() throws {
    let scratch = try Scratch()
    let loader = scratch.path + "/ld-musl.so.1"
    #expect(symlink("/lib64/ld-linux-x86-64.so.2", loader) == 0)
    try scratch.write(
      "m.c", "#include <stdlib.h>\nint main(void) { return getenv(\"LD_PRELOAD\") ? 1 : 8; }",
      mode: 0o644)
    let program = scratch.path + "/m"
    let built = try Run.program(
      "/usr/bin/env",
      ["clang", "-Wl,--dynamic-linker=" + loader, "-o", program, scratch.path + "/m.c"])
    try #require(built.status == 0, "\(built.errors)")
    let result = try Run.hangcheck([program]).wait()
    #expect(result.status == 8)
    #expect(result.errors.contains("its loader \(loader) is not glibc's"))
  }

  @Test func programOf32BitsRuns() throws {
    let scratch = try Scratch()
    try scratch.write(
      "e.c",
      "void _start(void) { __asm__ volatile(\"movl $1,%eax; movl $7,%ebx; int $0x80\"); }",
      mode: 0o644)
    let program = scratch.path + "/e"
    let built = try Run.program(
      "/usr/bin/env",
      ["clang", "-m32", "-nostdlib", "-static", "-o", program, scratch.path + "/e.c"])
    // Neither every compiler nor every kernel knows such programs.
    guard built.status == 0, try Run.program(program, []).status == 7 else { return }
    let result = try Run.hangcheck([program]).wait()
    #expect(result.status == 7)
    #expect(result.errors.contains("it is a 32-bit program"))
  }
}
