// libdispatch's own functions, which its Swift module hides or wraps.

@_silgen_name("dispatch_once_f")
func dispatchOnce(
  _ token: UnsafeMutablePointer<Int>, _ context: UnsafeMutableRawPointer?,
  _ function: @convention(c) (UnsafeMutableRawPointer?) -> Void)

@_silgen_name("dispatch_semaphore_wait")
func dispatchWait(_ semaphore: UnsafeRawPointer, _ time: UInt64) -> Int

@_silgen_name("dispatch_semaphore_signal")
func dispatchSignal(_ semaphore: UnsafeRawPointer) -> Int
