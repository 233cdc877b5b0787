// Small programs for SwapTests, chosen by the first argument. They are written for NSLock.
import Foundation
import HangReport
import Watchdog

let scenario = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : ""
guard let body = scenarios[scenario] else {
  say("unknown scenario; one of \(scenarios.keys.sorted().joined(separator: " "))")
  exit(64)
}
if !["closure", "throwing", "stop", "unwatched", "restart"].contains(scenario) { Watchdog.shared.start() }
body()
say("DONE")
