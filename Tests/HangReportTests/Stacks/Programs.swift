/// The programs that the tests watch. Each ends by itself after a minute.
enum Programs {
  static let swift = Source(
    file: "subject.swift",
    text: #"""
      import Dispatch
      import Foundation
      import Synchronization

      @_silgen_name("gettid") func tid() -> Int32
      let never = DispatchSemaphore(value: 0)
      let started = DispatchSemaphore(value: 0)
      nonisolated(unsafe) var sink = 0
      @inline(never) func announce(_ name: String) {
        print(name, tid())
        started.signal()
      }

      @inline(never) func blocked(_ value: Int) {
        never.wait()  // at wait
        sink += value
      }
      @inline(__always) func inlinedPart(_ value: Int) {
        blocked(value)  // at inlined
        sink += 1
      }
      @inline(never) func middle(_ value: Int) {
        inlinedPart(value + sink)  // at middle
        sink += 2
      }
      @inline(never) func outer() {
        announce("plain")
        middle(3)  // at outer
        sink += 3
      }

      struct Box<Value> {
        var value: Value
        @inline(never) func generic(_ other: Value) {
          announce("generic")
          blocked(sink)  // at generic
          sink += 5
        }
      }

      @inline(never) func recurse(_ depth: Int) {
        if depth == 0 { blocked(1) } else { recurse(depth - 1) }  // at recurse
        sink += depth
      }

      final class Account: Sendable {
        let balance = Mutex(0)
        @inline(never) func transfer() {
          balance.withLock { value in
            announce("locked")
            blocked(value)  // at locked
            value += 1
          }
        }
        func sync(on queue: DispatchQueue) {
          queue.sync {
            announce("queue")
            blocked(4)  // at queue
            sink += 1
          }
        }
      }

      func leafAsync() async {
        announce("async")
        blocked(6)  // at async
        sink += 1
      }

      setvbuf(stdout, nil, _IONBF, 0)
      // A test's thread may block signals, and children inherit that.
      var none = sigset_t()
      sigemptyset(&none)
      sigprocmask(SIG_SETMASK, &none, nil)
      alarm(60)
      func start(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread(body)
        started.wait()
      }
      start { outer() }
      start { Box(value: "a").generic("b") }
      start {
        announce("deep")
        recurse(100)
      }
      let account = Account()
      start { account.transfer() }
      start { account.sync(on: DispatchQueue(label: "test")) }
      signal(SIGUSR1) { _ in
        announce("signal")
        blocked(7)  // at signal
        sink += 1
      }
      start { raise(SIGUSR1) }
      Task.detached { await leafAsync() }
      started.wait()
      @inline(never) func waitInMain() {
        print("main", tid())
        print("ready")
        blocked(8)  // at main
        sink += 1
      }
      waitInMain()  // at top

      """#)

  /// A program that keeps of each acquisition what the agent keeps, and prints it in hexadecimal.
  static let site = Source(
    file: "site.c",
    text: #"""
      #define _GNU_SOURCE
      #include <signal.h>
      #include <stdint.h>
      #include <stdio.h>
      #include <string.h>
      #include <unistd.h>
      volatile int sink;
      __attribute__((noinline)) void record(const char *name) {
        uint64_t *frame = __builtin_frame_address(0);
        unsigned char *sp = (unsigned char *)(frame + 2);
        unsigned char bytes[96];
        memcpy(bytes, sp, sizeof bytes);
        printf("site-%s %lx %lx %lx ", name, frame[1], (uint64_t)sp, frame[0]);
        for (unsigned i = 0; i < sizeof bytes; i++) printf("%02x", bytes[i]);
        printf("\n");
      }
      __attribute__((noinline)) void hang(void) {
        printf("main %d\nready\n", getpid());
        for (;;) pause();
      }
      __attribute__((noinline)) void acquire(void) {
        record("wrapper");  // at wrapper
        sink++;
      }
      __attribute__((noinline)) void bigAcquire(void) {
        volatile char large[4000];
        large[sink] = 1;
        record("big");  // at big
        large[sink + 1] = 1;
      }
      __attribute__((noinline)) void second(void) {
        volatile char large[2000];
        large[sink] = 1;
        acquire();  // at second
        bigAcquire();
        record("direct");  // at direct
        hang();
        large[sink + 2] = 1;
      }
      __attribute__((noinline)) void first(void) {
        second();  // at first
        sink++;
      }
      int main(void) {
        setvbuf(stdout, NULL, _IONBF, 0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        alarm(60);
        first();  // at main
        sink++;
        return 0;
      }

      """#)

  /// A program that runs all the time: in the kernel's code, in a leaf, in deep calls.
  static let busy = Source(
    file: "busy.c",
    text: #"""
      #include <signal.h>
      #include <stdio.h>
      #include <time.h>
      #include <unistd.h>
      volatile long sink;
      __attribute__((noinline)) long leaf(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) sum += sink ^ i;
        return sum;
      }
      __attribute__((noinline)) long calls(long n) {
        return n == 0 ? leaf(10) : calls(n - 1) + (sink & 1);
      }
      __attribute__((noinline)) void spin(void) {
        struct timespec time;
        printf("main %d\nready\n", getpid());
        for (;;) {
          clock_gettime(CLOCK_MONOTONIC, &time);
          sink += time.tv_nsec + leaf(20) + calls(6);
        }
      }
      int main(void) {
        setvbuf(stdout, NULL, _IONBF, 0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        alarm(60);
        spin();
        sink++;
        return 0;
      }

      """#)
}
