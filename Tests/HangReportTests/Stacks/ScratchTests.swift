import Foundation
import Testing
@testable import HangReport
@Suite(.serialized) struct Scratch {
  @Test func dump() throws {
    for b in UnwinderTests.builds {
      let s = try Subject(Workshop.shared.build(b.name, Programs.swift, b.options))
      for t in ["plain", "locked", "queue", "signal", "async", "main"] {
        let (u, f) = try s.unwind(t)
        print("== \(b.name) \(t) \(u.isComplete)\n" + describe(f))
      }
    }
    let site = try Subject(Workshop.shared.build("site", Programs.site, ["-O2", "-g"]))
    let (u, f) = try site.unwind("main")
    print(u, describe(f), site.lines)
  }
}
