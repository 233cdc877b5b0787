// Small programs for SwapTests, chosen by the first argument. They are written for NSLock.
import Foundation
import Watchdog

let scenario = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : ""
if let body = scenarios[scenario] ?? queueMisuses[scenario] {
  Watchdog.shared.start()
  body()
} else if let body = watching[scenario] {
  body()
} else {
  let names = scenarios.keys.sorted() + queueMisuses.keys.sorted() + watching.keys.sorted()
  say("unknown scenario; one of \(names.joined(separator: " "))")
  exit(64)
}
say("DONE")
