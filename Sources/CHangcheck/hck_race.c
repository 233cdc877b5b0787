#define _GNU_SOURCE
#include "include/hck_race.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

__thread hck_race_thread *hck_tls_race;
uint32_t hck_racing;
uint32_t hck_tried;
uint32_t hck_race_period = 1;
uint32_t hck_race_stale;
uint32_t hck_race_tasks;
hck_race_thread *hck_race_table[HCK_RACE_THREADS];

void hck_spin_lock(uint32_t *word) {
  for (unsigned spins = 0;; spins++) {
    uint32_t open = 0;
    if (__atomic_compare_exchange_n(word, &open, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) { return; }
    // Its holder may have lost its processor.
    if (spins > 64) { sched_yield(); }
  }
}

void hck_race_site(const hck_race_thread *thread, hck_entry *entry, const void *frame) {
  uint64_t at = (uint64_t)frame;
  uint64_t end = at >= thread->stack_low && at < thread->stack_high ? thread->stack_high : (at | 4095) + 1;
  uint64_t length = end - at < HCK_WINDOW_BYTES ? (end - at) & ~7ull : HCK_WINDOW_BYTES;
  entry->frame = at;
  entry->since = 0;
  entry->length = (uint16_t)length;
  for (uint64_t i = 0; i < length / 8; i++) { entry->window[i] = ((const uint64_t *)frame)[i]; }
  uint64_t next = entry->window[0];
  uint16_t level = 0;
  for (; level < HCK_CHAIN_LEVELS; level++) {
    if (next <= at || next > end - 16 || next & 7) { break; }
    at = next;
    entry->chain[level * 2] = next = ((const uint64_t *)at)[0];
    entry->chain[level * 2 + 1] = ((const uint64_t *)at)[1];
  }
  entry->levels = level;
}

void hck_race_stack(hck_race_thread *thread) {
  pthread_attr_t attributes;
  thread->stack_low = thread->stack_high = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) { return; }
  void *low = NULL;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    thread->stack_low = (uint64_t)low;
    thread->stack_high = (uint64_t)low + bytes;
  }
  pthread_attr_destroy(&attributes);
}

int hck_at_thread_return(void (*function)(void *)) {
  // What runs C++'s destructors of thread_local variables.
  extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
  extern void *__dso_handle;
  return __cxa_thread_atexit_impl(function, NULL, &__dso_handle);
}

int hck_is_worker_name(const char *name) { return strstr(name, "-qos") != NULL; }

// libdispatch's own record behind the five words of a block: a magic, then the flags.
#define BLOCK_MAGIC 0xD159B10Cull
#define BLOCK_BARRIER 1ull
int hck_block_is_barrier(const void *block) {
  if (!block) { return 0; }
  const uint64_t *words = block;
  return words[4] == BLOCK_MAGIC && (words[5] & BLOCK_BARRIER) != 0;
}
