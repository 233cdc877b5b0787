import Testing

@testable import HangReport

@Suite struct NameTests {
  @Test(
    "what a reader wrote",
    arguments: [
      ("$s8Dispatch0A5QueueC4sync7executeyyyXE_tF", "DispatchQueue.sync(execute:)"),
      ("$s4main13requestCancelyyF", "requestCancel()"),
      ("$s4main1fyyFyycfU_", "closure #1 in f()"),
      ("$s7nodebugyyYbcfU_", "closure #1 in main"),
      ("$s7nodebug3BoxV7genericyyxFSS_Ttt0g5", "Box.generic(_:)"),
      ("$s7nodebug9leafAsyncyyYaFTY0_", "leafAsync()"),
      ("$s7nodebug9leafAsyncyyYaFTQ1_", "leafAsync()"),
      ("$s7nodebugyyYacfU6_TA", "closure #8 in main"),
      ("$sIegh_IeyBh_TR", "thunk for () -> ()"),
      ("async_MainTY0_", "main"),
      (
        "_ZN5swift34runJobInEstablishedExecutorContextEPNS_3JobE",
        "swift::runJobInEstablishedExecutorContext(swift::Job*)"
      ),
      ("_dispatch_worker_thread.cold.5", "_dispatch_worker_thread"),
      ("pthread_mutex_lock", "pthread_mutex_lock"),
      ("$snonsense", "$snonsense"), ("", ""), ("_Z", "_Z"), (".cold", ".cold"),
    ])
  func shortNames(_ linkerName: String, _ expected: String) {
    #expect(Demangler.name(linkerName) == expected)
  }

  @Test("merged functions are told")
  func merged() {
    #expect(Demangler.name("$s4main5outeryyFTm") == "merged outer()")
  }

  @Test(
    "whose code, by the name alone",
    arguments: [
      ("$s8Dispatch0A5QueueC4sync7executeyyyXE_tF", true),
      ("$s10Foundation6ThreadC4mainyyF", true),
      ("$sScG4next9isolationxSgScA_pSgYi_tYaFTY0_", true),
      ("$sSlsE5countSivgSS17UnicodeScalarViewV_Tg5Tm", true),
      ("$ss12__SwiftValueC4null_WZ", true),
      ("$sIegh_IeyBh_TR", true),
      ("swift_retain", true), ("_dispatch_lane_invoke", true), ("CFRunLoopRun", true),
      ("_ZNSt6vectorIiSaIiEE9push_backERKi", true), ("_start", true),
      ("$s4main13requestCancelyyF", false),
      ("$s7nodebugys5Int32VcfU4_To", false),
      ("$s7nodebug3BoxV7genericyyxFSS_Ttt0g5", false),
      // An extension of Array in the reader's module; his closure; his conformance.
      ("$sSa4mainE3fooyyF", false),
      ("$sSa4mainE3fooyyFyycfU_", false),
      ("main", false), ("Cfg", false), ("CFX", false), ("work", false),
      ("pthread_helper", false), ("_ZN4mine4workEv", false),
    ])
  func owners(_ linkerName: String, _ isRuntime: Bool) {
    let code = RuntimeCode(isRuntimeImage: false, holdsSwift: true, holdsLibC: false)
    #expect(code.isRuntime(linkerName: linkerName, place: DebugInfo.Place()) == isRuntime)
  }

  @Test("a line in a reader's file makes code his")
  func placed() {
    let code = RuntimeCode(isRuntimeImage: false, holdsSwift: true, holdsLibC: true)
    let place = DebugInfo.Place(file: "/home/me/a.swift", line: 3, column: 1)
    for name in ["swift_retain", "pthread_create", "$sSlsE5countSivgSS17UnicodeScalarViewV_Tg5"] {
      #expect(!code.isRuntime(linkerName: name, place: place))
    }
  }

  @Test(
    "images of the language and the system",
    arguments: [
      ("/usr/lib/x86_64-linux-gnu/libc.so.6", true), ("/lib64/ld-linux-x86-64.so.2", true),
      ("/opt/swift/usr/lib/swift/linux/libFoundation.so", true), ("[vdso]", true),
      ("/lib/libc-2.31.so", true), ("/usr/lib/libstdc++.so.6.0.30", true),
      ("/x/libHangAgent.so", true), ("/usr/bin/app", false), ("/app/libswiftly.so", false),
      ("/app/libc-tools.so", false), ("", false),
    ])
  func images(_ path: String, _ isRuntime: Bool) {
    #expect(RuntimeCode.isRuntime(image: path) == isRuntime)
  }

  @Test("maps as the kernel writes them")
  func maps() {
    let mappings = ImageMap.parse(
      maps: """
        55d0-55d9 r-xp 00002000 08:01 1234                       /a path/with  spaces (deleted)
        7ffc0000-7ffd0000 rw-p 00000000 00:00 0                          [stack]
        7ffd0000-7ffd2000 r-xp 00000000 00:00 0                  [vdso]
        1000-2000 ---p 00000000 00:00 0\u{20}
        2000-1000 r--p 00000000 00:00 0
        zz-2000 r--p 00000000 00:00 0
        3000-4000 r--p 00000000 fe:00 7                          /a\\012b

        """)
    #expect(mappings.count == 5)
    #expect(mappings[0].path == "/a path/with  spaces")
    #expect(mappings[0].start == 0x55d0 && mappings[0].offset == 0x2000)
    #expect(mappings[0].isExecutable && !mappings[0].isWritable && mappings[0].inode == 1234)
    #expect(mappings[1].path == "[stack]" && mappings[1].isWritable)
    #expect(mappings[3].path.isEmpty)
    #expect(mappings[4].path == "/a\nb")
  }
}
