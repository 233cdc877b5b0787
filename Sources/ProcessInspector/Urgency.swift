internal import Glibc

/// For moments in which threads of another process stand still.
enum Urgency {
  /// Lets this thread come before others meanwhile (SCHED_FIFO), where the kernel permits that. `body`
  /// gets to know whether it does.
  static func during<Result>(_ body: (_ isPermitted: Bool) -> Result) -> Result {
    var parameter = sched_param()
    parameter.sched_priority = 1
    guard sched_getscheduler(0) == SCHED_OTHER, sched_setscheduler(0, SCHED_FIFO, &parameter) == 0
    else { return body(false) }
    defer {
      parameter.sched_priority = 0
      _ = sched_setscheduler(0, SCHED_OTHER, &parameter)
    }
    return body(true)
  }
}
