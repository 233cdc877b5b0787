// Small programs for SwapTests, chosen by the first argument. They are written for NSLock.
import Foundation
import Watchdog

let scenario = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : ""
let watched = [
  scenarios, primitiveScenarios, misuseScenarios, nearMisses, queueMisuses, races, ordered,
  hangs, measures, restful,
  predicted,
]
if let body = watched.lazy.compactMap({ $0[scenario] }).first {
  Watchdog.shared.start()
  body()
} else if let body = watching[scenario] ?? handling[scenario] ?? quitting[scenario] {
  body()
} else {
  let names = (watched + [watching, handling, quitting]).flatMap(\.keys).sorted()
  say("unknown scenario; one of \(names.joined(separator: " "))")
  exit(64)
}
say("DONE")
