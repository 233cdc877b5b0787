#define _GNU_SOURCE
#include "include/hck_futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void hck_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

int hck_futex_lock(uint32_t *word, uint32_t tid) {
  // Most locks are held for less than a sleep takes.
  for (int tries = 0; tries < 100; tries++) {
    uint32_t held = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (held == 0 && hck_cas32(word, 0, tid)) { return 0; }
    // Others sleep already: the kernel hands it to them first. One's own never becomes free.
    if (held & FUTEX_WAITERS || (held & FUTEX_TID_MASK) == tid) { break; }
    hck_pause();
  }
  for (;;) {
    if (syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL) == 0) {
      // What the kernel orders, a sanitizer does not see.
      (void)__atomic_load_n(word, __ATOMIC_ACQUIRE);
      return 0;
    }
    // EAGAIN: its owner is about to exit.
    if (errno != EINTR && errno != EAGAIN) { return errno; }
  }
}

int hck_lives_here(uint32_t tid) {
  int before = errno;
  int lives = tid != 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0;
  errno = before;
  return lives;
}
