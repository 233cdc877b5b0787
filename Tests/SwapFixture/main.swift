// Small programs for SwapTests, chosen by the first argument. They are written for NSLock.
import Foundation
import Watchdog

let scenario = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : ""
let watched = [
  scenarios, primitiveScenarios, misuseScenarios, nearMisses, queueMisuses, races, ordered,
  predicted,
]
if let body = watched.lazy.compactMap({ $0[scenario] }).first {
  Watchdog.shared.start()
  body()
} else if let body = watching[scenario] {
  body()
} else {
  let names = watched.flatMap(\.keys).sorted() + watching.keys.sorted()
  say("unknown scenario; one of \(names.joined(separator: " "))")
  exit(64)
}
say("DONE")
