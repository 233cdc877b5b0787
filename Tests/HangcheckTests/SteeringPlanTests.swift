import HangReport
import ProcessInspector
import Testing
import WaitForGraph

@testable import hangcheck

@Suite struct SteeringPlanTests {
  @Test(arguments: [
    "1000@+6985:+50a5:+3fe1/+696a:+50a5",
    "1500.2@libswiftDispatch.so+21be2::+3fe1,+4d6a/libstdc++.so.6+1a",
    "0@+0",
  ])
  func isWrittenAsItIsRead(_ text: String) throws {
    let plan = try SteeringPlan(text)
    #expect(plan.description == text)
  }

  @Test func isReadInFull() throws {
    let plan = try SteeringPlan("1500.2@libc++.so.1+a::+b,+c/+d:+e")
    let expected = SteeringPlan(
      milliseconds: 1500, late: 2,
      steps: [
        .init(
          asks: [.init(image: "libc++.so.1", offset: 10), nil, .init(image: "", offset: 11)],
          took: []),
        .init(
          asks: [.init(image: "", offset: 12)],
          took: [.init(image: "", offset: 13), .init(image: "", offset: 14)]),
      ])
    #expect(plan == expected)
  }

  @Test func spellsWhatAShellWouldReadOtherwise() {
    let plan = SteeringPlan(
      milliseconds: 1, steps: [.init(asks: [.init(image: "a b;ü$/,:.so", offset: 1)], took: [])])
    #expect(plan.description == "1@a_b__{}_.so+1".replacing("{}", with: "___"))
  }

  @Test(arguments: [
    ("", "is no plan"), ("+1", "is no plan"), ("1@+1@+2", "is no plan"), ("x@+1", "no time"),
    ("-1@+1", "no time"), ("1.2.3@+1", "no time"), ("600001@+1", "no time"), ("1@", "''"),
    ("1@a", "'a' where image+offset"), ("1@+", "'+' where"), ("1@+xyz", "'+xyz' where"),
    ("1@+1 ", "'+1 ' where"), ("1@+1/+2/+3", "more than two sites"), ("1@+1,,+2", "''"),
    ("1@:+1", "''"), ("1@+1:+2:+3:+4", "4 addresses"), ("1.2@+1", "no step 2"),
    ("1.-1@+1", "no step -1"), ("1@+ffffffffffffffff", "where image+offset"),
    ("1@" + Array(repeating: "+1", count: 33).joined(separator: ","), "33 steps"),
    ("1@" + String(repeating: "a", count: 4000) + "+1", "too long"),
  ])
  func refuses(_ text: String, _ reason: String) {
    let fault = #expect(throws: SteeringPlan.Fault.self) { try SteeringPlan(text) }
    #expect(fault?.message.contains(reason) == true, "\(fault?.message ?? "")")
    #expect(fault?.message.contains("\n") == false)
  }

  @Test(arguments: [
    ("", "''"), ("./a", "./a"), ("1000@+1:lib.so+2/+3,+4", "1000@+1:lib.so+2/+3,+4"),
    ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("$x", "'$x'"), ("é", "'é'"), ("*", "'*'"),
  ])
  func quotesForAShell(_ word: String, _ expected: String) {
    #expect(Confirmation.quoted(word) == expected)
  }

  private static func frame(_ image: String, _ offset: UInt64, runtime: Bool = false) -> Frame {
    Frame(
      address: Address(offset), image: image, offset: Address(offset), symbol: nil, runtime: runtime
    )
  }

  private static func report(_ waits: [[Frame]], certainty: Finding.Certainty) -> HangReport {
    var report = HangReport(
      tool: .current, mode: .run,
      process: WatchedProcess(pid: 1, executable: "a", arguments: ["a"]))
    report.threads = waits.enumerated().map { index, stack in
      Thread(
        id: ThreadID(index + 1), tid: Int32(index + 1), name: "", state: .blocked,
        waitsFor: .init(
          resource: ResourceID(index + 1), mode: .exclusive, seconds: 1, stack: stack))
    }
    report.findings = [
      Finding(
        kind: .deadlock, severity: .error, certainty: certainty, message: "",
        cycle: waits.indices.map {
          .init(
            thread: ThreadID($0 + 1), waitsFor: ResourceID($0 + 1), mode: .exclusive, ownedBy: nil)
        })
    ]
    return report
  }

  @Test(
    arguments: [
      ([1, 2], [2, 1], true), ([1, 2], [1, 2, 3], true), ([1, 1], [1, 1], true),
      ([1, 1], [1, 2], false), ([1, 2], [1], false), ([1, 2], [3, 4], false),
    ] as [([UInt64], [UInt64], Bool)])
  func aDeadlockIsThePredictedOneByItsSites(_ asks: [UInt64], _ waits: [UInt64], _ same: Bool) {
    let prediction = Prediction(
      fingerprint: "", message: "", steps: [],
      asks: asks.map { [Self.frame("libc", 7, runtime: true), Self.frame("a", $0)] })
    let stacks = waits.map {
      [Self.frame("libc", 99, runtime: true), Self.frame("a", $0), Self.frame("a", 1000)]
    }
    #expect(prediction.happened(in: Self.report(stacks, certainty: .certain)) == same)
    #expect(!prediction.happened(in: Self.report(stacks, certainty: .possible)))
  }

  @Test func aSiteInTheRuntimeAloneIsLookedForInTheWholeStack() {
    let prediction = Prediction(
      fingerprint: "", message: "", steps: [], asks: [[Self.frame("libdispatch", 5, runtime: true)]]
    )
    func happened(_ offset: UInt64) -> Bool {
      let stack = [
        Self.frame("libc", 1, runtime: true), Self.frame("libdispatch", offset, runtime: true),
        Self.frame("a", 1),
      ]
      return prediction.happened(in: Self.report([stack], certainty: .certain))
    }
    #expect(happened(5))
    #expect(!happened(6))
  }
}
