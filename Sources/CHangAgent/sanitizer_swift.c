// Where Swift's libraries order things unseen by ThreadSanitizer, which then calls correct programs
// racy: contended Mutexes, and continuations that were resumed before their task came to wait.
//
// In a program without ThreadSanitizer each of these is a jump to the real function.
#include "include/hck_sanitizer.h"

#include <dlfcn.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self
#define JUMP __attribute__((musttail)) return

#define REAL(pointer, name)                                              \
  __typeof__(pointer) real = __atomic_load_n(&pointer, __ATOMIC_ACQUIRE); \
  if (!real) {                                                           \
    real = (__typeof__(pointer))dlsym(RTLD_NEXT, name);                  \
    if (!real) { __builtin_trap(); }                                     \
    __atomic_store_n(&pointer, real, __ATOMIC_RELEASE);                  \
  }

// A Synchronization.Mutex that is free is taken by code inside the program, which ThreadSanitizer
// sees. One that is not is taken in a library that it does not see, and the kernel.
#define HANDLE "$s15Synchronization12_MutexHandleV"

static SWIFT void (*real_lock_slow)(uint32_t, SELF);
SWIFT void hck_mutex_lock_slow(uint32_t tid, SELF) __asm__(HANDLE "9_lockSlowyys6UInt32VF");
SWIFT void hck_mutex_lock_slow(uint32_t tid, SELF) {
  REAL(real_lock_slow, HANDLE "9_lockSlowyys6UInt32VF")
  if (!hck_tsan_acquire) { JUMP real(tid, self); }
  real(tid, self);
  hck_hb_acquire(self);
}

static SWIFT _Bool (*real_trylock_slow)(SELF);
SWIFT _Bool hck_mutex_trylock_slow(SELF) __asm__(HANDLE "12_tryLockSlowSbyF");
SWIFT _Bool hck_mutex_trylock_slow(SELF) {
  REAL(real_trylock_slow, HANDLE "12_tryLockSlowSbyF")
  if (!hck_tsan_acquire) { JUMP real(self); }
  _Bool taken = real(self);
  if (taken) { hck_hb_acquire(self); }
  return taken;
}

static SWIFT void (*real_unlock_slow)(SELF);
SWIFT void hck_mutex_unlock_slow(SELF) __asm__(HANDLE "11_unlockSlowyyF");
SWIFT void hck_mutex_unlock_slow(SELF) {
  REAL(real_unlock_slow, HANDLE "11_unlockSlowyyF")
  hck_hb_release(self);
  JUMP real(self);
}

// The runtime releases the task when its continuation is resumed, and acquires it when the task is
// run again; but a task that finds its continuation resumed goes on at once, without. It does so in
// the await itself, in a way out of it that enters the thread's context anew, or inside the library,
// after which the caller gives back the callee's frame.
static SWIFT void *(*get_current)(void);

static __attribute__((noinline)) void acquire_task(void) {
  SWIFT void *(*get)(void) = __atomic_load_n(&get_current, __ATOMIC_ACQUIRE);
  if (!get) {
    get = (__typeof__(get))dlsym(RTLD_DEFAULT, "swift_task_getCurrent");
    if (!get) { return; }
    __atomic_store_n(&get_current, get, __ATOMIC_RELEASE);
  }
  void *task = get();
  if (task) { hck_hb_acquire(task); }
}

// The word of a continuation's context that says whether it was awaited or resumed.
#define STATE 0x18
#define RESUMED 2

static __attribute__((swiftasynccall)) void (*real_await)(void *);
__attribute__((swiftasynccall)) void swift_continuation_await(void *context) {
  REAL(real_await, "swift_continuation_await")
  if (__builtin_expect(hck_tsan_acquire != 0, 0) &&
      __atomic_load_n((uint64_t *)((char *)context + STATE), __ATOMIC_ACQUIRE) == RESUMED) {
    acquire_task();
  }
  JUMP real(context);
}

static void (*real_enter)(char *);
void swift_task_enterThreadLocalContext(char *context) {
  REAL(real_enter, "swift_task_enterThreadLocalContext")
  if (__builtin_expect(hck_tsan_acquire != 0, 0)) { acquire_task(); }
  JUMP real(context);
}

static SWIFT void (*real_dealloc)(void *);
SWIFT void swift_task_dealloc(void *frame) {
  REAL(real_dealloc, "swift_task_dealloc")
  if (__builtin_expect(hck_tsan_acquire != 0, 0)) { acquire_task(); }
  JUMP real(frame);
}
