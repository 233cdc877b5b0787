import Glibc
import Testing

@testable import ProcessInspector

/// The sentence that each reason not to look at a process gets.
@Suite("Attach: refusals") struct AttachFactsTests {
  private func make(_ change: (inout AttachFacts) -> Void) -> AttachFacts {
    var facts = AttachFacts(pid: 4711, ownPID: 99)
    facts.group = 4711
    facts.uid = 1000
    facts.uids = [1000]
    facts.ownUID = 1000
    facts.elfClass = 2
    facts.machine = 62
    change(&facts)
    return facts
  }

  @Test("nothing stands against an ordinary process") func ordinary() {
    #expect(make { _ in }.refusal == nil)
  }

  @Test(
    "each reason and its remedy",
    arguments: [
      ("itself", "hangcheck itself"), ("none", "no process 4711; find"),
      ("thread", "a thread of process 4700: attach to 4700"), ("kernel", "thread of the kernel"),
      ("zombie", "look at its parent, process 12"), ("32", "32-bit"), ("arm", "another machine"),
      ("traced", "traced by process 50"), ("user", "another user (uid 0, this is 1000): run `sudo"),
      ("root", "CAP_SYS_PTRACE is missing"), ("yama3", "start the program under hangcheck"),
      ("yama2", "ptrace_scope is 2): run `sudo"), ("yama1", "sysctl kernel.yama.ptrace_scope=0"),
      ("protected", "is protected"), ("seccomp", "seccomp"), ("io", "Input/output error"),
    ]) func reason(_ name: String, _ words: String) throws
  {
    let facts = make { facts in
      switch name {
      case "itself": facts.ownPID = 4711
      case "none": facts.group = nil
      case "thread": facts.group = 4700
      case "kernel": facts.isKernelThread = true
      case "zombie": (facts.isZombie, facts.parent) = (true, 12)
      case "32": (facts.elfClass, facts.machine) = (1, 3)
      case "arm": facts.machine = 183
      case "traced": facts.tracer = 50
      case "user": (facts.error, facts.uid, facts.uids) = (EACCES, 0, [0])
      case "root": (facts.error, facts.ownUID) = (EPERM, 0)
      case "yama3": (facts.error, facts.ptraceScope, facts.isCapable) = (EPERM, 3, true)
      case "yama2": (facts.error, facts.ptraceScope) = (EPERM, 2)
      case "yama1": (facts.error, facts.ptraceScope) = (EPERM, 1)
      case "protected": (facts.error, facts.isProtected) = (EACCES, true)
      case "seccomp": facts.error = EPERM
      default: facts.error = EIO
      }
    }
    let message = try #require(facts.refusal?.message)
    #expect(message.contains(words), "\(message)")
    #expect(!message.contains("\n"))
  }

  @Test("who is traced can be looked at without a stop") func traced() {
    let facts = make {
      $0.tracer = 50
      $0.stops = false
    }
    #expect(facts.refusal == nil)
  }

  @Test("when a thread last ran is read from its scheduler's file") func lastRun() {
    let text =
      "a (1, #threads: 1)\n---\nse.exec_start      :      47425934.730905\nse.vruntime : 1.0\n"
    let value = Array(text.utf8).withUnsafeBufferPointer { ThreadRest.lastRun($0) }
    #expect(value == 47_425_934.730905)
    let none = Array("nothing".utf8).withUnsafeBufferPointer { ThreadRest.lastRun($0) }
    #expect(none == nil)
  }
}
