internal import Glibc

/// What an epoll watches, from its fdinfo: a descriptor, the events that are armed, and the word
/// that comes with them.
struct WatchedDescriptor: Equatable {
  var descriptor: Int32
  var events: UInt32
  var data: UInt64

  /// A one-shot that has fired keeps its flags alone, and fires no more until it is armed again.
  var isArmed: Bool { events & 0x0fff_ffff != 0 }

  /// Whether it still asks for data or room. libdispatch stays told of errors and hang-ups alone while
  /// its handlers for the descriptor wait to be run: it would only merge one into those.
  var asksForData: Bool { events & 0x2007 != 0 }
}

/// A timerfd, from its fdinfo.
struct TimerDescriptor: Equatable {
  /// Nanoseconds until it is due; 0 where it is not armed.
  var left: UInt64
  /// It was due, and nobody has read it.
  var hasExpired: Bool
}

extension OutsideWorld {
  /// A thread in epoll_wait without a time-out.
  func epoll(_ call: SystemCall, _ tid: KernelThreadID) -> ThreadStanding.Kind {
    if files.core != nil { return epollInCore(call, tid) }
    let descriptor = Int32(truncatingIfNeeded: call.arguments[0])
    guard let watched = watched(by: descriptor) else {
      return .outside("it waits in epoll_wait on \(describe(descriptor))")
    }
    let isManagers = caller(of: call) == .dispatch || isManager(tid)
    if let all = watched.first(where: {
      !isOwn(ofDispatch: $0) && (isManagers ? $0.asksForData : $0.isArmed)
    }) {
      return .outside("\(describe(all.descriptor)) is watched")
    }
    guard isManagers else {
      return .outside("it waits in epoll_wait on \(describe(descriptor))")
    }
    if let wake = watched.first(where: { $0.data == 1 }), count(of: wake.descriptor) != 0 {
      return .running
    }
    // Nobody reads a timer that has fired; it is watched again when it is set again.
    let clocks = watched.filter { isTimer($0.data) && $0.isArmed }
    let armed = clocks.compactMap { timer($0.descriptor) }
    guard armed.count == clocks.count else {
      return .outside("a timer of libdispatch cannot be read")
    }
    if armed.contains(where: \.hasExpired) { return .outside("a timer is due") }
    if let next = armed.map(\.left).filter({ $0 != 0 }).min() {
      switch timers {
      case .unknown: return .outside(Self.due(next))
      case .known(let timers):
        if let first = timers.first { return .outside(first) }
      }
    }
    return .idle("libdispatch's manager, which watches nothing")
  }

  /// Which descriptors an epoll watches is not in a core; what libdispatch asked for is.
  private func epollInCore(_ call: SystemCall, _ tid: KernelThreadID) -> ThreadStanding.Kind {
    guard caller(of: call) == .dispatch || isManager(tid),
      let watched = dispatch?.watchedDescriptors()
    else { return .outside("it waits in epoll_wait") }
    if let first = watched.first { return .outside("descriptor \(first) is watched") }
    switch timers {
    case .unknown: return .outside("a timer of libdispatch cannot be read")
    case .known(let timers):
      if let first = timers.first { return .outside(first) }
    }
    return .idle("libdispatch's manager, which watches nothing")
  }

  /// libdispatch watches an eventfd by which its threads wake the manager, and a timerfd a clock.
  private func isOwn(ofDispatch watched: WatchedDescriptor) -> Bool {
    guard let link = link(watched.descriptor) else { return false }
    return link == "anon_inode:[eventfd]" && watched.data == 1
      || link == "anon_inode:[timerfd]" && isTimer(watched.data)
  }

  private func isTimer(_ data: UInt64) -> Bool { data >= 2 && data <= 7 }

  /// A thread in ppoll without a time-out: a run loop, where it is Foundation that polls a set of
  /// eventfds, by which threads wake it, and timers.
  func poll(_ call: SystemCall) -> ThreadStanding.Kind {
    guard call.arguments[1] == 1, let word = words(at: call.arguments[0], 1)?.first else {
      return .outside("it polls \(call.arguments[1]) descriptors")
    }
    let descriptor = Int32(truncatingIfNeeded: word)
    let ports: [Int32]
    switch link(descriptor) {
    case "anon_inode:[eventpoll]":
      guard let watched = watched(by: descriptor) else {
        return .outside("it polls \(describe(descriptor))")
      }
      ports = watched.map(\.descriptor)
      guard watched.allSatisfy({ UInt64($0.descriptor) == $0.data }) else {
        return .outside("it polls \(describe(descriptor))")
      }
    case "anon_inode:[eventfd]": ports = [descriptor]
    default: return .outside("it polls \(describe(descriptor))")
    }
    // The agent's frame may lie between. With a static standard library the code is the program's:
    // what it polls has to do.
    guard caller(of: call, within: 48) == .foundation || (hasStaticSwift && ports.count > 1) else {
      return .outside("it polls \(describe(descriptor))")
    }
    for port in ports {
      switch link(port) {
      case "anon_inode:[eventfd]":
        if count(of: port) != 0 { return .running }
      case "anon_inode:[timerfd]":
        guard let timer = timer(port), !timer.hasExpired else {
          return .outside("a timer of its run loop is due")
        }
        if timer.left != 0 { return .outside("its run loop has \(Self.due(timer.left))") }
      default: return .outside("its run loop watches \(describe(port))")
      }
    }
    return .idle("a run loop with nothing armed")
  }

  /// Foundation's thread for sockets, which stays once a `Process` was run, always selects the end of a
  /// pair by which the program's other threads wake it; alone, that is nothing from outside.
  func isIdleSocketManager(_ call: SystemCall) -> Bool {
    // glibc's select has a larger frame than its other calls.
    guard caller(of: call, within: 24) == .foundation, call.arguments[0] > 0,
      call.arguments[0] <= 65_536,
      call.arguments[3] == 0
    else { return false }
    let count = Int(call.arguments[0] + 63) / 64
    func selected(_ address: UInt64) -> [Int32]? {
      guard address != 0 else { return [] }
      return words(at: address, count)?.enumerated().flatMap { index, word in
        (0..<64).filter { word & 1 << $0 != 0 }.map { Int32(index * 64 + $0) }
      }
    }
    guard let read = selected(call.arguments[1]), selected(call.arguments[2]) == [],
      read.count == 1
    else { return false }
    return link(read[0])?.hasPrefix("socket:") == true
  }

  static func due(_ nanoseconds: UInt64) -> String {
    let seconds = Double(nanoseconds) / 1e9
    return seconds < 10
      ? "a timer due in \((seconds * 10).rounded() / 10) s" : "a timer due in \(Int(seconds)) s"
  }

  /// "descriptor 7, a socket"
  func describe(_ descriptor: Int32) -> String {
    let what: String
    switch link(descriptor) {
    case .some(let link) where link.hasPrefix("socket:"): what = "a socket"
    case .some(let link) where link.hasPrefix("pipe:"): what = "a pipe"
    case .some(let link) where link.hasPrefix("anon_inode:"):
      what = "of kind " + link.dropFirst("anon_inode:".count).filter { $0 != "[" && $0 != "]" }
    case .some(let link): what = link
    case nil: return "descriptor \(descriptor)"
    }
    return "descriptor \(descriptor), \(what)"
  }

  /// What an epoll watches; nil where that cannot be read.
  func watched(by descriptor: Int32) -> [WatchedDescriptor]? {
    guard link(descriptor) == "anon_inode:[eventpoll]",
      let text = info(descriptor)
    else { return nil }
    var result: [WatchedDescriptor] = []
    for line in text.split(separator: "\n") where line.hasPrefix("tfd:") {
      let words = line.split(separator: " ")
      guard words.count >= 6, let descriptor = Int32(words[1]), words[2] == "events:",
        let events = UInt32(words[3], radix: 16), words[4] == "data:",
        let data = UInt64(words[5], radix: 16)
      else { return nil }
      result.append(WatchedDescriptor(descriptor: descriptor, events: events, data: data))
    }
    return result
  }

  func link(_ descriptor: Int32) -> String? { proc.link("\(descriptors)/\(descriptor)") }

  private func info(_ descriptor: Int32) -> String? {
    proc.text("\(descriptors)info/\(descriptor)")
  }

  private func timer(_ descriptor: Int32) -> TimerDescriptor? {
    guard let text = info(descriptor) else { return nil }
    var left: UInt64?
    var ticks: UInt64?
    for line in text.split(separator: "\n") {
      if line.hasPrefix("ticks:") { ticks = UInt64(line.dropFirst(6).drop { $0 == " " }) }
      guard line.hasPrefix("it_value: (") else { continue }
      let words = line.dropFirst(11).dropLast().split(separator: ",")
      guard words.count == 2, let seconds = UInt64(words[0]),
        let nanoseconds = UInt64(words[1].drop { $0 == " " })
      else { return nil }
      left = seconds.multipliedReportingOverflow(by: 1_000_000_000).partialValue &+ nanoseconds
    }
    guard let left, let ticks else { return nil }
    return TimerDescriptor(left: left, hasExpired: ticks != 0)
  }

  /// What an eventfd holds; nil where it cannot be read, which is no zero.
  private func count(of descriptor: Int32) -> UInt64? {
    guard let text = info(descriptor),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix("eventfd-count:") }),
      let word = line.split(separator: " ").last
    else { return nil }
    return UInt64(word, radix: 16)
  }
}
