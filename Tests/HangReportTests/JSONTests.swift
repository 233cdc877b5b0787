import HangReport
import Testing
import WaitForGraph

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

private func failure(_ json: String) -> ReportError? {
  do {
    _ = try HangReport(json: Array(json.utf8))
    return nil
  } catch {
    return error
  }
}

/// As REPORT.md promises it, with every optional key absent.
private let minimal = """
  {
    "schema": "hangcheck/1",
    "tool": { "name": "hangcheck", "version": "1.0" },
    "mode": "attach",
    "process": { "pid": 7, "executable": "/bin/app", "arguments": ["app", "-x"], "exit": null },
    "findings": [
      { "kind": "deadlock", "severity": "error", "certainty": "certain", "message": "m",
        "cycle": [ { "thread": 1, "waitsFor": 2, "mode": "exclusive", "ownedBy": null } ],
        "threads": [1], "resources": [2],
        "evidence": [ { "label": "here", "stack": [] } ],
        "fingerprint": "f", "time": "2026-01-02T03:04:05.678Z" }
    ],
    "threads": [
      { "id": 1, "tid": 7, "name": "app", "state": "blocked",
        "waitsFor": { "resource": 2, "mode": "shared", "seconds": 1.5, "stack": [
          { "address": "0xff", "image": "/bin/app", "inlined": false, "runtime": true } ] },
        "holds": [], "stack": [] }
    ],
    "resources": [
      { "id": 2, "kind": "rwlock", "address": "0x10", "owners": [], "waiters": [1] }
    ]
  }
  """

@Suite struct JSONTests {
  @Test("a report survives being written and read", arguments: [true, false])
  func roundTrip(_ pretty: Bool) throws {
    var report = Fixture.crosswise.report
    report.limits = ["a/b \"c\" \u{1F512}"]
    report.process.exit = .init(signal: 9)
    report.threads[0].queue = "com.example"
    report.threads[0].pid = 12
    report.resources[0].created = [Fixture().frame("f()", 3)]
    report.resources[0].value = 1
    #expect(try HangReport(json: report.json(pretty: pretty)) == report)
  }

  @Test("one line, sorted keys, plain slashes")
  func oneLine() throws {
    let json = text(try Fixture.crosswise.report.json())
    #expect(!json.contains("\n"))
    #expect(!json.contains("\\/"))
    #expect(json.hasPrefix(#"{"findings":[{"certainty":"certain","cycle":[{"mode":"exclusive","#))
  }

  @Test("what is not known is absent or null, as the contract says")
  func nulls() throws {
    var report = Fixture.crosswise.report
    report.findings[0].cycle[0].ownedBy = nil
    report.findings[0].evidence[0].thread = nil
    let json = text(try report.json())
    #expect(json.contains(#""exit":null"#))
    #expect(json.contains(#""waitsFor":null"#))
    #expect(json.contains(#""ownedBy":null"#))
    for key in ["queue", "qos", "limits", "created", "value", "column\":null", "name\":null"] {
      #expect(!json.contains("\"\(key)"), "\(key)")
    }
    #expect(json.contains(#""address":"0x55d0c0de1040""#))
  }

  @Test("the contract's own shape can be read")
  func contract() throws {
    let report = try HangReport(json: Array(minimal.utf8))
    #expect(report.threads[0].waitsFor?.seconds == 1.5)
    #expect(report.findings[0].cycle[0].ownedBy == nil)
    #expect(report.findings[0].evidence[0].thread == nil)
    #expect(report.resources[0].address == Address(16))
  }

  @Test(
    "an error says what and where",
    arguments: [
      ("", "", "it is empty"),
      (" \n", "", "it is empty"),
      ("hello", "", "line 1: a value is expected here"),
      ("[ ]", "", "line 1: a list stands where an object belongs"),
      (
        #""kind": "deadlock""#, #""kind": "dedlock""#,
        #"line 7: findings[0].kind: "dedlock" is not a word that this version knows"#
      ),
      (
        #""state": "blocked""#, #""state": 3"#,
        "line 14: threads[0].state: 3 stands where a string belongs"
      ),
      (#""tid": 7, "#, "", #"line 14: threads[0]: "tid" is missing"#),
      (
        #""address": "0x10""#, #""address": "16""#,
        "line 20: resources[0].address: an address is written as 0x… in hexadecimal"
      ),
      (
        #""hangcheck/1""#, #""hangcheck/2""#,
        #"line 2: schema: this version reads hangcheck/1, not "hangcheck/2""#
      ),
      (#""threads": [1], "#, #""threads": [1] "#, "line 9: a comma is missing here"),
      (
        #""threads": [1], "#, #""threads": 1, "#,
        "line 9: findings[0].threads: 1 stands where a list belongs"
      ),
      ("\n  ]\n}", "", "line 20: the text ends too early"),
      (#""message": "m","#, #""message": "m""#, "line 7: a comma is missing here"),
      (#""seconds": 1.5"#, #""seconds": nan"#, "line 15: a value is expected here"),
    ])
  func errors(_ find: String, _ replacement: String, _ expected: String) {
    var json = minimal
    if let range = find.isEmpty ? nil : json.range(of: find) {
      json.replaceSubrange(range, with: replacement)
    } else {
      json = find
    }
    #expect(failure(json)?.description == expected)
  }

  @Test("a text cut anywhere is an error and never a crash")
  func truncated() {
    let bytes = Array(minimal.utf8)
    for count in stride(from: 0, to: bytes.count - 1, by: 3) {
      #expect(throws: ReportError.self) { try HangReport(json: Array(bytes[..<count])) }
    }
    let deep = String(repeating: "[", count: 200_000)
    #expect(failure(deep) != nil)
  }

  @Test(
    "times",
    arguments: [
      (0, 0, "1970-01-01T00:00:00.000Z"), (951_827_696, 999_999_999, "2000-02-29T12:34:56.999Z"),
      (4_107_542_399, 5_000_000, "2100-02-28T23:59:59.005Z"),
      (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"), (-1, 0, "1969-12-31T23:59:59.000Z"),
    ])
  func times(_ seconds: Int64, _ nanoseconds: Int64, _ expected: String) {
    #expect(UTCTime.string(seconds: seconds, nanoseconds: nanoseconds) == expected)
    #expect(UTCTime.now().count == expected.count)
  }
}

extension String {
  fileprivate func range(of text: String) -> Range<Index>? {
    firstRange(of: text)
  }
}
