#include "include/hck_alarm.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

static long futex(const uint32_t *word, long operation, long value, const struct timespec *time) {
  long result;
  register const struct timespec *r10 __asm__("r10") = time;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"((long)SYS_futex), "D"(word), "S"(operation), "d"(value), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

void hck_alarm_sleep(const uint32_t *word, uint32_t expected, uint32_t milliseconds) {
  const struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  futex(word, FUTEX_WAIT, expected, &time);
}

void hck_alarm_wake(const uint32_t *word) { futex(word, FUTEX_WAKE, 0x7fffffff, NULL); }
