import Foundation
import Glibc
import Testing

/// `hangcheck run` from the outside: what the program gets, and what comes back.
@Suite struct RunProcessTests {
  @Test(
    arguments: [
      (["true"], 0), (["false"], 1), (["sh", "-c", "exit 66"], 66),
      (["sh", "-c", "exit 255"], 255),
      (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -KILL $$"], 137),
      (["sh", "-c", "kill -ABRT $$"], 134), (["run", "--", "sh", "-c", "exit 3"], 3),
      (["--timeout", "200ms", "sleep", "30"], 124),
      (["--timeout", "200ms", "sh", "-c", "trap '' TERM; sleep 30 & wait; sleep 30"], 124),
      (["--timeout", "30s", "true"], 0),
    ] as [([String], Int32)])
  func status(_ arguments: [String], _ expected: Int32) throws {
    let result = try Run.hangcheck(arguments).wait()
    #expect(result.status == expected)
    #expect(!result.isTimedOut)
    #expect(result.output == "")
  }

  @Test func healthyProgramsLeaveNoTrace() throws {
    let result = try Run.hangcheck(
      ["sh", "-c", "cat; echo out; echo err >&2; exit 4"], input: "in\n"
    ).wait()
    #expect(result.output == "in\nout\n")
    #expect(result.errors == "err\n")
    #expect(result.status == 4)
  }

  @Test func bigOutputsPass() throws {
    let input = String(repeating: "0123456789abcde\n", count: 1 << 18)
    let result = try Run.hangcheck(["sh", "-c", "tee /dev/stderr"], input: input).wait()
    #expect(result.output == input)
    #expect(result.errors == input)
    #expect(result.status == 0)
  }

  @Test func environmentIsTheSameButForTheAgent() throws {
    let options = [
      "A": "b c", "HANGCHECK_AGENT": try Fixture.agent(), "LD_PRELOAD": nil, "TSAN_OPTIONS": nil,
    ]
    let plain = try Run("/usr/bin/env", ["-0"], environment: options).wait().output
    let watched = try Run.hangcheck(["env", "-0"], environment: options).wait().output
    #expect(watched.hasPrefix(plain))
    let added = watched.dropFirst(plain.count).split(separator: "\0")
    try #require(added.count == 3)
    #expect(added[0] == "LD_PRELOAD=\(try Fixture.agent())")
    #expect(added[1].hasPrefix("HANGCHECK_LINK=hangcheck-"))
    #expect(added[1].hasSuffix(";follow,stacks=full,orders"))
    #expect(added[2] == "TSAN_OPTIONS=log_to_syslog=1")
  }

  @Test(arguments: [[], [0], [1], [2], [0, 1, 2]] as [[Int32]])
  func inheritanceIsExact(_ closed: [Int32]) throws {
    let scratch = try Scratch()
    let program = try Fixture.program("inherits")
    let script = """
      umask 027; ulimit -n 333; exec 7</dev/null; trap '' INT CHLD USR2
      exec nice -n 3 "$@"
      """
    func facts(_ name: String, _ prefix: [String]) throws -> String {
      let file = scratch.path + "/" + name
      let result = try Run(
        "/usr/bin/python3",
        [
          "-c",
          """
          import os, signal, sys
          os.chdir("\(scratch.path)")
          signal.signal(signal.SIGCHLD, signal.SIG_IGN)
          signal.signal(signal.SIGPIPE, signal.SIG_DFL)
          signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
          for fd in [\(closed.map(String.init).joined(separator: ","))]: os.close(fd)
          os.execvp("sh", ["sh", "-c", sys.argv[1], "sh"] + sys.argv[2:])
          """,
          script,
        ] + prefix + [program, file], environment: ["HANGCHECK_AGENT": try Fixture.agent()]
      ).wait()
      #expect(result.status == 0, "\(result.errors)")
      return try scratch.text(name)
    }
    let plain = try facts("plain", [])
    let watched = try facts("watched", [Fixture.hangcheck])
    // Whether it leads its group is the one thing that must differ: hangcheck does.
    func rest(_ text: String) -> String {
      text.replacingOccurrences(of: "\n1 0 ", with: "\n").replacingOccurrences(
        of: "\n0 0 ", with: "\n")
    }
    #expect(rest(watched) == rest(plain))
    for fd in closed { #expect(Array(watched)[Int(fd)] == "-") }
  }

  @Test func argumentsAreBytes() throws {
    let script = """
      printf '%s\\n' "$(printf 'a\\377b')" > /dev/null
      exec \(Fixture.hangcheck) sh -c 'printf %s "$1" | od -An -tx1' x "$(printf 'a\\377b')"
      """
    let result = try Run(
      "/bin/sh", ["-c", script], environment: ["HANGCHECK_AGENT": try Fixture.agent()]
    ).wait()
    #expect(result.output.split(separator: " ").joined() == "61ff62\n")
    // The program's own name too.
    let scratch = try Scratch()
    let named = try Run(
      "/bin/sh",
      [
        "-c",
        """
        cd "$0" && mkdir "$(printf 'x\\377')" && ln -s /bin/echo "$(printf 'x\\377/p\\376')" &&
        PATH="$(printf 'x\\377'):$PATH" && "$1" "$(printf 'p\\376')" found
        """, scratch.path, Fixture.hangcheck,
      ], environment: ["HANGCHECK_AGENT": try Fixture.agent()]
    ).wait()
    #expect(named.output == "found\n", "\(named.errors)")
  }

  @Test func stoppedDescendantsAreEndedAtTheTimeout() throws {
    let result = try Run.hangcheck([
      "--timeout", "300ms", "sh", "-c",
      "sleep 47 & echo $!; kill -STOP $!; sleep 48 & echo $!; wait",
    ]).wait()
    #expect(result.status == 124)
    let pids = result.output.split(separator: "\n").compactMap { Int32($0) }
    #expect(pids.count == 2)
    for pid in pids { #expect(isGone(pid)) }
  }
}

/// Whether no such process is there, or only what its parent has not yet asked for.
func isGone(_ pid: Int32) -> Bool {
  for _ in 0..<200 {
    guard let status = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else {
      return true
    }
    if status.contains(") Z ") { return true }
    usleep(10_000)
  }
  return false
}
