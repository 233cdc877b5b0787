import Foundation
import Testing

/// What a release build would drop unseen: the agent's functions are called by name alone.
@Suite("Exports") struct ExportTests {
  @Test("the agent exports every function that it stands in front of")
  func everyFunction() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let sources = root.appending(path: "Sources/HangAgent")
    var names: Set<String> = []
    for file in try FileManager.default.contentsOfDirectory(atPath: sources.path)
    where file.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
      for match in text.matches(of: /@c\((\w+)\)/) { names.insert(String(match.1)) }
    }
    let map = try String(contentsOf: sources.appending(path: "exports.map"), encoding: .utf8)
    names = names.filter { !$0.hasPrefix("hck_") || map.contains($0 + ";") }
    #expect(names.count > 40)
    let agent = URL(filePath: Watched.tool).deletingLastPathComponent()
      .appending(path: "libHangAgent.so")
    let listed = try Child.run(["/usr/bin/nm", "-D", "--defined-only", agent.path], limit: 20)
    let exported = Set(
      listed.outputText.split(separator: "\n").compactMap {
        $0.split(separator: " ").last.map(String.init)
      })
    #expect(names.subtracting(exported).isEmpty)
  }
}
