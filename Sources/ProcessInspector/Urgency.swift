internal import Glibc

/// For moments in which threads of another process stand still.
enum Urgency {
  /// Lets this thread come before others meanwhile (SCHED_FIFO), where the kernel permits that.
  static func during<Result>(_ body: () -> Result) -> Result {
    guard sched_getscheduler(0) == SCHED_OTHER else { return body() }
    var parameter = sched_param()
    parameter.sched_priority = 1
    guard sched_setscheduler(0, SCHED_FIFO, &parameter) == 0 else {
      // At the beginning of its slice a thread is least likely to have to give way.
      usleep(1)
      return body()
    }
    defer {
      parameter.sched_priority = 0
      _ = sched_setscheduler(0, SCHED_OTHER, &parameter)
    }
    return body()
  }
}
