internal import Glibc

extension RuntimeCode {
  /// Where the toolchain's own sources and interfaces lie, on the machine that built them or here.
  static func isToolchain(file: String) -> Bool {
    if file.hasSuffix(".swiftinterface") || file.contains("/usr/lib/swift/") { return true }
    let system = ["/usr/include/", "/usr/lib/gcc/", "/usr/lib/llvm"]
    if system.contains(where: { file.hasPrefix($0) }) || isSanitizer(file: file) { return true }
    // The toolchain's builder; a reader of that name has his files at hand.
    return file.hasPrefix("/home/build-user/") && access(file, F_OK) != 0
  }

  /// A sanitizer's runtime, which is linked into the program; wherever it was built.
  static func isSanitizer(file: String) -> Bool {
    file.contains("/compiler-rt/lib/") || file.contains("/libsanitizer/")
  }

  /// Of the drop-in types, which are built from source with the program, and of what calls a
  /// handler's closure. Other modules of ours have names that a program may use as well.
  static func isOwn(_ linkerName: String) -> Bool {
    ownPrefixes.contains(where: linkerName.hasPrefix)
  }
  private static let ownPrefixes = [
    "$s17InstrumentedLocks", "$s8Recorder9InProcessO", "$s8Watchdog11HandlerLaneC",
    "$s8WatchdogAAC7HandlerV",
  ]

  static let startFunctions: Set<String> = [
    "_start", "__libc_start_main", "__libc_start_call_main", "call_init", "start_thread",
    "__clone3", "clone3", "__clone", "clone", "__restore_rt", "_dl_start_user",
  ]

  static func isSwiftRuntime(c name: String) -> Bool {
    let prefixes = [
      "swift_", "_swift_", "__swift_", "_dispatch_", "dispatch_", "__dispatch_", "___dispatch_",
      "libdispatch_", "_libdispatch_", "_Block_", "_CF", "__CF", "_Unwind_", "__cxa_", "_os_",
      "os_retain", "os_release",
    ]
    return prefixes.contains { name.hasPrefix($0) } || isCoreFoundation(name)
      || isRuntime(cxx: name)
  }

  /// _ZN5swift…, _ZNKSt…, _ZL49swift_…: what the name's first part belongs to.
  private static func isRuntime(cxx name: String) -> Bool {
    guard name.hasPrefix("_Z") else { return false }
    let text = name.dropFirst(2).drop { "ZNKRL".contains($0) }
    let named = text.drop { $0.isNumber }
    return ["5swift", "7__swift", "6icu_", "St", "9__gnu_cxx", "10__cxxabiv"].contains {
      text.hasPrefix($0)
    } || named.hasPrefix("swift_") || named.hasPrefix("_swift_")
  }

  /// CFRunLoopRun, not Cfg or CFX.
  private static func isCoreFoundation(_ name: String) -> Bool {
    let text = Array(name.utf8.prefix(4))
    guard text.count == 4, text[0] == 0x43, text[1] == 0x46 else { return false }
    return (0x41...0x5a).contains(text[2]) && (0x61...0x7a).contains(text[3])
  }

  static func isLibC(_ name: String) -> Bool {
    let prefixes = [
      "pthread_", "__pthread_", "___pthread_", "__libc_", "__lll_", "__futex_", "__nptl_",
      "__GI_", "_IO_", "__new_sem_", "sem_", "_dl_", "__nanosleep", "__clock_",
    ]
    let names: Set<String> = [
      "syscall", "nanosleep", "clock_nanosleep", "usleep", "sleep", "poll", "__poll", "read",
      "__read", "write", "__write", "select", "__select", "epoll_wait", "recv", "__recv",
    ]
    return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
  }

  static let modules: Set<String> = [
    "Swift", "Foundation", "FoundationEssentials", "FoundationInternationalization",
    "FoundationNetworking", "FoundationXML", "Dispatch", "Synchronization", "Distributed",
    "Observation", "Glibc", "Musl", "CoreFoundation", "RegexBuilder", "Runtime", "Cxx", "CxxStdlib",
    "SwiftShims", "SwiftOnoneSupport", "XCTest", "Testing", "_Concurrency", "_StringProcessing",
    "_RegexParser", "_Differentiation", "_Builtin_float", "_Volatile", "_FoundationCShims",
    "_FoundationCollections", "_FoundationICU", "_SwiftConcurrencyShims", "_Testing_Foundation",
    "__C", "__C_Synthesized", "Builtin",
  ]

  /// Names of libraries, without ".so" and version.
  static let images: Set<String> = [
    "libswiftCore", "libswift_Concurrency", "libswift_StringProcessing", "libswift_RegexParser",
    "libswift_Differentiation", "libswift_Builtin_float", "libswift_Volatile", "libswiftDispatch",
    "libswiftGlibc", "libswiftMusl", "libswiftSynchronization", "libswiftDistributed",
    "libswiftObservation", "libswiftRegexBuilder", "libswiftRuntime", "libswiftRemoteMirror",
    "libswiftCxx", "libswiftCxxStdlib", "libswiftSwiftOnoneSupport", "libswiftRemoteInspection",
    "libFoundation", "libFoundationEssentials", "libFoundationInternationalization",
    "libFoundationNetworking", "libFoundationXML", "lib_FoundationICU", "libdispatch",
    "libBlocksRuntime", "libXCTest", "libTesting", "lib_TestingInterop", "lib_Testing_Foundation",
    "libc", "libm", "libdl", "librt", "libpthread", "libutil", "libanl", "libresolv", "libgcc_s",
    "libstdc++", "libc++", "libc++abi", "libatomic", "libunwind", "libunwind-x86_64",
    "libHangAgent",
    "libtsan", "libclang_rt",
  ]
}
