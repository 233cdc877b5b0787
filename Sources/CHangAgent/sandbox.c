// A program that confines itself by a seccomp filter may do from then on only what the filter
// allows, and dies of the rest. So what needs system calls is done just before, and nothing is
// begun later: neither in this process nor in those that it forks or starts, which inherit the
// filter.
#include "include/hck_misuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

// <sys/prctl.h> declares what follows with an ellipsis.
#define SET_SECCOMP 22

static long (*real_syscall)(long, long, long, long, long, long, long);
static int (*real_prctl)(int, long, long, long, long);

__attribute__((constructor, noinline)) static void find_real(void) {
  real_prctl = (__typeof__(real_prctl))dlsym(RTLD_NEXT, "prctl");
  __atomic_store_n(&real_syscall, (__typeof__(real_syscall))dlsym(RTLD_NEXT, "syscall"), __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void confine(void) {
  // In a child of vfork this memory is the parent's.
  hck_arena *arena = hck_arena_get();
  if (!hck_socket_name || (arena && arena->pid != (uint32_t)getpid())) { return; }
  int error = errno;
  (void)hck_agent_arena();
  hck_confined = 1;
  errno = error;
}

int prctl(int option, long a, long b, long c, long d) {
  if (!real_prctl) { find_real(); }
  if (option == SET_SECCOMP) { confine(); }
  return real_prctl(option, a, b, c, d);
}

// A contended Synchronization.Mutex and Swift's once lock so; glibc's own mutexes do not come here.
static __attribute__((noinline)) long lock_futex(long a, long b, long c, long d, long e, long f, const void *frame) {
  uint64_t before = hck_futex_begin((const void *)a);
  long result = real_syscall(SYS_futex, a, b, c, d, e, f);
  int error = errno;
  hck_futex_end((const void *)a, before, result == -1 ? error : 0, frame);
  errno = error;
  return result;
}

// With all its arguments in place it is a jump: whatever the call does to the stack, it does not do
// to a frame of ours.
long syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (!real_syscall) { find_real(); }
  if (number == SYS_futex && ((int)b & FUTEX_CMD_MASK) == FUTEX_LOCK_PI && d == 0) {
    return lock_futex(a, b, c, d, e, f, __builtin_frame_address(0));
  }
  if (number == SYS_seccomp && (a == 0 || a == 1)) { confine(); } // SET_MODE_STRICT, SET_MODE_FILTER
  __attribute__((musttail)) return real_syscall(number, a, b, c, d, e, f);
}
