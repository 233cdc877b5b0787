/// libdispatch's own function, which its Swift module hides.
@_silgen_name("dispatch_once_f")
func dispatchOnce(
  _ token: UnsafeMutablePointer<Int>, _ context: UnsafeMutableRawPointer?,
  _ function: @convention(c) (UnsafeMutableRawPointer?) -> Void)
