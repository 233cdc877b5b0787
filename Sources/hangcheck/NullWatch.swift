import Glibc
import HangReport
import ProcessInspector

/// A watch that sees nothing: it takes what the agents send and reports that the program ran.
final class NullWatch: RunWatch {
  private let setup: RunSetup
  private(set) var connections: [Int32] = []
  private var buffer = [UInt8](repeating: 0, count: 4096)

  init(_ setup: RunSetup) { self.setup = setup }

  deinit { for connection in connections { close(connection) } }

  func accept(_ connection: Int32, peer: Peer) { connections.append(connection) }

  func readable(_ connection: Int32) -> [RunEvent] {
    let size = buffer.withUnsafeMutableBytes { recv(connection, $0.baseAddress, $0.count, 0) }
    if size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR) {
      close(connection)
      connections.removeAll { $0 == connection }
    }
    return []
  }

  func tick(now: UInt64) -> [RunEvent] { [] }
  func timeoutReport(now: UInt64) -> RunEvent? { nil }

  func finish(exit: RunEnd) -> HangReport {
    var process = WatchedProcess(
      pid: setup.pid, executable: setup.executable, arguments: setup.arguments)
    switch exit {
    case .status(let status): process.exit = .init(status: status)
    case .signal(let signal): process.exit = .init(signal: signal)
    }
    return HangReport(
      tool: setup.tool, mode: .run, process: process,
      limits: setup.limits.isEmpty ? nil : setup.limits)
  }
}

/// The only place that knows which watch is the real one.
func makeRunWatch(_ setup: RunSetup) -> any RunWatch { NullWatch(setup) }
