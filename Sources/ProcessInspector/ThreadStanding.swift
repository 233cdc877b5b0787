/// What a thread does, seen as: who could make it go on.
package struct ThreadStanding: Equatable, Sendable {
  package enum Kind: Equatable, Sendable {
    /// On a processor, about to be, or in the kernel for a moment.
    case running
    /// Sleeps, or waits with a time-out: it goes on by itself.
    case timed
    /// Waits without a time-out on a word of memory; where that is private, only threads of this
    /// process can wake it.
    case blocked(futex: UInt64, isPrivateMemory: Bool)
    /// Has nothing to do and goes on only when a thread of this process gives it something. The text
    /// says what it is.
    case idle(String)
    /// Waits for what may come from outside. The text says for what.
    case outside(String)
    /// Could not be found out.
    case unknown
  }
  package var kind: Kind

  package init(_ kind: Kind) { self.kind = kind }

  /// Whether anything but another thread of this process can make it go on; so it is where that is
  /// not known.
  package var canMove: Bool {
    switch kind {
    case .blocked(_, let isPrivate): !isPrivate
    case .idle: false
    case .running, .timed, .outside, .unknown: true
    }
  }
}

/// A system call that a thread is in: its number, its six arguments, and where its stack is.
struct SystemCall: Equatable {
  var number: Int
  var arguments: [UInt64]
  var stackPointer: UInt64

  /// Whether this is `call`, or what goes on in its place after a stop: a sleep comes back under
  /// another number.
  func goesOn(from call: SystemCall) -> Bool {
    self == call || number == SystemCalls.restart && stackPointer == call.stackPointer
  }
}

/// The calls whose arguments tell who can end them. Numbers of x86-64.
enum SystemCalls {
  static let poll = 7
  static let select = 23
  static let pause = 34
  static let nanosleep = 35
  static let wait4 = 61
  static let fcntl = 72, flock = 73
  static let semtimedop = 220
  static let restart = 219
  static let sigtimedwait = 128
  static let sigsuspend = 130
  static let futex = 202
  static let clockNanosleep = 230
  static let epollWait = 232
  static let waitid = 247
  static let pselect = 270
  static let ppoll = 271
  static let epollPwait = 281
  static let epollPwait2 = 441

  static func words(_ number: Int) -> String? {
    switch number {
    case 0, 17, 19, 295, 327: "read"
    case 1, 18, 20, 296, 328: "write"
    case 22: "pipe"
    case 42: "connect"
    case 43, 288: "accept"
    case 44, 46, 307: "send"
    case 45, 47, 299: "recv"
    case fcntl, flock: "a lock on a file"
    case poll, ppoll: "poll"
    case select, pselect: "select"
    case pause: "a signal (pause)"
    case sigsuspend: "a signal (sigsuspend)"
    case sigtimedwait: "a signal (sigwait)"
    case wait4, waitid: "a child process"
    case 65, semtimedop: "a System V semaphore"
    case 69, 70: "a System V message"
    case 242, 243: "a message queue"
    case epollWait, epollPwait, epollPwait2: "epoll_wait"
    case 208, 333: "asynchronous input or output"
    case 426: "io_uring"
    case 2, 257, 437: "open"
    case 449, 455: "several words of memory (futex_waitv)"
    default: nil
    }
  }
}

/// The futex calls that wait.
enum FutexCall {
  static let wait: UInt64 = 0, lockPI: UInt64 = 6, waitBits: UInt64 = 9, requeuePI: UInt64 = 11
  static let lockPI2: UInt64 = 13
  static let realtimeFlag: UInt64 = 256

  /// Without the flags for private memory and the wall clock.
  static func command(_ operation: UInt64) -> UInt64 { operation & 127 }
}
