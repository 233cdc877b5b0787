internal import CHangcheck
internal import Glibc

extension OutsideWorld {
  /// Who could make a thread go on.
  package func standing(_ tid: KernelThreadID) -> ThreadStanding {
    guard program.isSupported, let seen = proc.systemCall(tid) else {
      // The first thread stays listed when it has ended; its system call may then not be read.
      return ThreadStanding(
        proc.state(tid) == UInt8(ascii: "Z") ? .idle("a thread that ended") : .unknown)
    }
    switch proc.state(tid) {
    case UInt8(ascii: "S"): break
    case UInt8(ascii: "Z"): return ThreadStanding(.idle("a thread that ended"))
    case UInt8(ascii: "X"): return ThreadStanding(.idle("a thread that ended"))
    case UInt8(ascii: "T") where isStopped, UInt8(ascii: "t") where isStopped: break
    case UInt8(ascii: "T"): return ThreadStanding(.outside("it is stopped, and may be continued"))
    case UInt8(ascii: "t"): return ThreadStanding(.outside("a debugger has stopped it"))
    case UInt8(ascii: "R"), UInt8(ascii: "D"): return ThreadStanding(.running)
    default: return ThreadStanding(.unknown)
    }
    if seen.isRunning { return ThreadStanding(.running) }
    guard let call = seen.call else { return ThreadStanding(.unknown) }
    return ThreadStanding(kind(of: call, tid))
  }

  private func kind(of call: SystemCall, _ tid: KernelThreadID) -> ThreadStanding.Kind {
    let arguments = call.arguments
    switch call.number {
    case SystemCalls.futex: return futex(arguments)
    case SystemCalls.restart:
      // What is restarted had a time-out, or polled; the registers still hold its arguments.
      if isIdleWorker(arguments) { return .idle("an idle worker of libdispatch") }
      return .timed
    case SystemCalls.nanosleep, SystemCalls.clockNanosleep: return .timed
    case SystemCalls.epollWait, SystemCalls.epollPwait:
      // Its time-out is an int.
      return UInt32(truncatingIfNeeded: arguments[3]) == .max ? epoll(call, tid) : .timed
    case SystemCalls.epollPwait2: return arguments[3] == 0 ? epoll(call, tid) : .timed
    case SystemCalls.ppoll: return arguments[2] == 0 ? poll(call) : .timed
    case SystemCalls.poll where UInt32(truncatingIfNeeded: arguments[2]) != .max: return .timed
    case SystemCalls.select where arguments[4] != 0, SystemCalls.pselect where arguments[4] != 0:
      return .timed
    case SystemCalls.select, SystemCalls.pselect:
      if isIdleSocketManager(call) {
        return .idle("Foundation's thread for sockets, which watches none")
      }
    case SystemCalls.sigtimedwait where arguments[2] != 0: return .timed
    case SystemCalls.semtimedop where arguments[3] != 0: return .timed
    case SystemCalls.sigsuspend where isParkedMain(call, tid):
      return .idle("the main thread after dispatchMain()")
    default: break
    }
    let what = SystemCalls.words(call.number) ?? "system call \(call.number)"
    return .outside(words(what, call))
  }

  /// With the descriptor that a call reads or writes, where its first argument is one.
  private func words(_ what: String, _ call: SystemCall) -> String {
    switch call.number {
    case 0, 1, 17, 18, 19, 20, 42...47, 72, 73, 288, 299, 307, 295, 296, 327, 328:
      let descriptor = Int32(truncatingIfNeeded: call.arguments[0])
      return "it waits in \(what) on \(describe(descriptor))"
    default: return "it waits for \(what)"
    }
  }

  private func futex(_ arguments: [UInt64]) -> ThreadStanding.Kind {
    let command = FutexCall.command(arguments[1])
    switch command {
    case FutexCall.wait, FutexCall.waitBits, FutexCall.lockPI, FutexCall.lockPI2,
      FutexCall.requeuePI:
      break
    default: return .unknown
    }
    if isIdleWorker(arguments) { return .idle("an idle worker of libdispatch") }
    if arguments[3] != 0, !isForever(arguments[3], command: command, operation: arguments[1]) {
      return .timed
    }
    return .blocked(
      futex: arguments[0],
      isPrivateMemory: !ranges.mayBeShared(arguments[0])
        && (command != FutexCall.requeuePI || !ranges.mayBeShared(arguments[4])))
  }

  /// A worker waits for five seconds on a semaphore among libdispatch's variables, then ends.
  private func isIdleWorker(_ arguments: [UInt64]) -> Bool {
    let command = FutexCall.command(arguments[1])
    return arguments[3] != 0 && (command == FutexCall.waitBits || command == FutexCall.wait)
      && (ranges.isDispatch(arguments[0]) || dispatch?.isIdleWorker(futex: arguments[0]) == true)
  }

  /// A time-out years ahead, as a 'distant future' becomes: nobody will see it.
  private func isForever(_ address: UInt64, command: UInt64, operation: UInt64) -> Bool {
    guard let words = words(at: address, 2) else { return false }
    let tenYears: Int64 = 10 * 366 * 86_400
    var until = Int64(bitPattern: words[0])
    if command != FutexCall.wait {
      var now = timespec()
      let isWall = operation & FutexCall.realtimeFlag != 0 || command == FutexCall.lockPI
      guard clock_gettime(isWall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now) == 0 else {
        return false
      }
      let left = until.subtractingReportingOverflow(Int64(now.tv_sec))
      guard !left.overflow else { return false }
      until = left.partialValue
    }
    return until > tenYears
  }

  private func isParkedMain(_ call: SystemCall, _ tid: KernelThreadID) -> Bool {
    guard tid.rawValue == files.pid.rawValue else { return false }
    if ranges.isDispatch(call.arguments[0]) && caller(of: call) == .dispatch { return true }
    // With a static standard library the code is the program's. The main queue is bound to the first
    // thread until dispatchMain(), which never comes back.
    return hasStaticSwift && dispatch?.isMainQueueUnbound == true
  }

  /// Whose code made the system call: the first return address on the stack that is not libc's own.
  func caller(of call: SystemCall, within depth: Int = 12) -> MemoryRanges.Library? {
    guard ranges.isKnown, let stack = words(at: call.stackPointer, depth) else { return nil }
    for word in stack {
      if let library = ranges.library(ofCode: word), library != .libc { return library }
    }
    return nil
  }

  func words(at address: UInt64, _ count: Int) -> [UInt64]? {
    var words = [UInt64](repeating: 0, count: count)
    let got = words.withUnsafeMutableBytes { memory.read(address, into: $0) }
    return got == count * 8 ? words : nil
  }
}
