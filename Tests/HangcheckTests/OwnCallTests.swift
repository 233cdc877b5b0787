import HangReport
import Testing

@testable import ProcessInspector

/// Synchronous calls that are found on a stack.
@Suite("Calls on a stack") struct OwnCallTests {
  /// `!name` is a frame of a library; innermost first.
  private static func stack(_ names: [String]) -> [Frame] {
    names.map { name in
      let isLibrary = name.hasPrefix("!")
      return Frame(
        address: Address(0), image: "", symbol: String(isLibrary ? name.dropFirst() : name[...]),
        runtime: isLibrary)
    }
  }

  @Test(
    "who made a call is behind the library's frames; what the thread waits in is no call that it holds",
    arguments: [
      (["work", "!invoke", "!dispatch_sync", "caller", "main"], ["caller"]),
      (["!wait", "!dispatch_sync", "caller", "main"], []),
      (["!wait", "!dispatch_sync", "work", "!dispatch_sync", "caller"], ["caller"]),
      (
        ["work", "!dispatch_sync", "middle", "!x", "!dispatch_sync", "caller"],
        ["middle", "caller"]
      ),
      (["work", "!thunk", "caller", "!main"], []),
      (["work", "!dispatch_sync"], []),
      (["!a", "!b"], []),
      ([], []),
    ])
  func callers(_ names: [String], _ expected: [String]) {
    let calls = ReportAssembler.calls(on: Self.stack(names)) { $0 == "dispatch_sync" }
    #expect(calls.map { $0.first?.symbol } == expected)
  }
}
