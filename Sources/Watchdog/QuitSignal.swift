internal import CHangcheck
internal import Glibc

/// SIGQUIT, which asks for a picture of all threads. Its handler sets a flag, which the watchdog's
/// thread looks at each time it looks at all.
enum QuitSignal {
  /// Takes the signal, or gives it back. Called under the watchdog's lock.
  static func watch(_ isWanted: Bool) {
    guard isWanted else { return hck_quit_end() }
    switch hck_quit_begin() {
    case 0: return
    case EBUSY:
      StandardError.say("dump-on-quit: the program handles SIGQUIT itself, and keeps it")
    case let error: StandardError.say("dump-on-quit: \(String(cString: strerror(error)))")
    }
  }

  /// Whether it has come since the last time that this was asked; several count as one.
  static func hasCome() -> Bool { hck_quit_has_come() != 0 }
}
