// What Swift cannot spell: thread-locals, frame addresses, atomics on foreign memory, compiler
// barriers.
#ifndef HCK_THREAD_H
#define HCK_THREAD_H

#include "hck_layout.h"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#define HCK_INLINE static inline __attribute__((always_inline))
#define HCK_HIDDEN __attribute__((visibility("hidden")))

// The thread's slot; initial-exec, so that reading it is one instruction. Swift has no
// thread-locals.
extern __thread hck_slot *_Nullable hck_tls_slot __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
// 1 while the slot is being made, 2 after the thread's last destructor: nothing is recorded.
extern __thread int hck_tls_closed __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
// The slot of a thread that is in fork.
extern __thread hck_slot *_Nullable hck_tls_forking __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
extern hck_arena *_Nullable hck_current_arena HCK_HIDDEN;
// 1 once the process lives under a seccomp filter of its own: it makes no system call that glibc
// would not make.
extern uint32_t hck_confined HCK_HIDDEN;
// Bytes of stack kept a site: HCK_WINDOW_BYTES, 16 for the return address alone, 0 for none. The
// reach is how much must be readable for the usual way: more than there is where less is kept.
extern uint32_t hck_window_bytes HCK_HIDDEN;
extern uint64_t hck_window_reach HCK_HIDDEN;
void hck_keep_windows(uint32_t bytes) HCK_HIDDEN;

// A drop-in's mutex and, behind it, where it was made.
typedef struct hck_marked_mutex {
  pthread_mutex_t mutex;
  hck_creation created;
} hck_marked_mutex;

// errno is a macro in C. pthread's calls leave it alone, so what is done around them must too.
HCK_INLINE int hck_errno(void) { return errno; }
HCK_INLINE void hck_set_errno(int value) { errno = value; }
HCK_INLINE hck_slot *_Nullable hck_slot_of_thread(void) { return hck_tls_slot; }
HCK_INLINE void hck_set_slot_of_thread(hck_slot *_Nullable slot) { hck_tls_slot = slot; }
HCK_INLINE int hck_closed(void) { return hck_tls_closed; }
HCK_INLINE void hck_set_closed(int value) { hck_tls_closed = value; }
HCK_INLINE hck_slot *_Nullable hck_forking_slot(void) { return hck_tls_forking; }
HCK_INLINE void hck_set_forking_slot(hck_slot *_Nullable slot) { hck_tls_forking = slot; }
// In the child of a fork: the forking thread, which was `tid`, is its first thread from here on.
void hck_inherit(uint32_t tid) HCK_HIDDEN;
HCK_INLINE hck_arena *_Nullable hck_arena_get(void) {
  return __atomic_load_n(&hck_current_arena, __ATOMIC_ACQUIRE);
}
HCK_INLINE void hck_arena_set(hck_arena *_Nullable arena) {
  __atomic_store_n(&hck_current_arena, arena, __ATOMIC_RELEASE);
}

// The frame of the function that this is inlined into.
HCK_INLINE void *_Nonnull hck_frame(void) { return __builtin_frame_address(0); }

// An address in the code that this is expanded in, whichever function and line that becomes a part
// of.
__attribute__((nodebug)) HCK_INLINE uint64_t hck_here(void) {
  uint64_t here;
#if defined(__x86_64__)
  __asm__ volatile("leaq 0(%%rip), %0" : "=r"(here));
#else
  __asm__ volatile("adr %0, ." : "=r"(here));
#endif
  return here;
}

// Stores in program order, as a signal handler on this thread and, on x86-64, any reader sees them.
HCK_INLINE void hck_order(void) { __asm__ volatile("" ::: "memory"); }

void hck_short_site(hck_entry *_Nonnull entry, const void *_Nonnull frame, uint64_t end) HCK_HIDDEN;

// Where a site's frames end: at the thread's stack's end, or, on a stack that is not known (a
// coroutine's, a signal's), at that of the frame's page.
HCK_INLINE uint64_t hck_site_end(const hck_slot *_Nonnull slot, const void *_Nonnull frame) {
  uint64_t at = (uint64_t)frame;
  return at >= slot->stack_low && at < slot->stack_high ? slot->stack_high : (at | 4095) + 1;
}
// Whether less is to be kept, or is there, than usual.
HCK_INLINE int hck_site_is_short(const void *_Nonnull frame, uint64_t end) {
  return __builtin_expect((uint64_t)frame + hck_window_reach > end, 0);
}
// One word that was stored just now: read alone, it need not wait until that store is done, as a
// read of two would.
HCK_INLINE uint64_t hck_fresh(uint64_t at) { return *(const volatile uint64_t *)at; }
HCK_INLINE void hck_keep(uint64_t *_Nonnull to, uint64_t first, uint64_t second) {
  *(volatile uint64_t *)to = first;
  *(volatile uint64_t *)(to + 1) = second;
}

// Keeps the site of an acquisition, where it is not short. Expanded where it is used: a call would
// cost as much as the copy.
HCK_INLINE void hck_whole_site(hck_entry *_Nonnull entry, const void *_Nonnull frame, uint64_t end) {
  uint64_t at = (uint64_t)frame, next = hck_fresh(at), level = 0;
  entry->frame = at;
  hck_keep(entry->window, next, hck_fresh(at + 8));
  __builtin_memcpy(entry->window + 2, (const uint64_t *)frame + 2, HCK_WINDOW_BYTES - 16);
#pragma clang loop unroll(full)
  for (; level < HCK_CHAIN_LEVELS; level++) {
    // rbp is any value at all in code that keeps no frame pointers.
    if (next <= at || next > end - 16) { break; }
    at = next;
    next = hck_fresh(at);
    hck_keep(&entry->chain[level * 2], next, hck_fresh(at + 8));
  }
  // since, length and levels in one store.
  uint64_t facts = __atomic_load_n(&hck_current_arena->clock, __ATOMIC_RELAXED) |
                   (uint64_t)HCK_WINDOW_BYTES << 32 | level << 48;
  __builtin_memcpy(&entry->since, &facts, sizeof facts);
}
// Where no more of the stack is kept than whom a call returns to.
HCK_INLINE int hck_keeps_callers(void) { return hck_window_bytes == 16; }
HCK_INLINE void hck_callers_site(hck_entry *_Nonnull entry, const void *_Nonnull frame) {
  uint64_t at = (uint64_t)frame;
  entry->frame = at;
  hck_keep(entry->window, hck_fresh(at), hck_fresh(at + 8));
  uint64_t facts = __atomic_load_n(&hck_current_arena->clock, __ATOMIC_RELAXED) | (uint64_t)16 << 32;
  __builtin_memcpy(&entry->since, &facts, sizeof facts);
}
HCK_INLINE void hck_site(
  hck_slot *_Nonnull slot, hck_entry *_Nonnull entry, const void *_Nonnull frame) {
  uint64_t end = hck_site_end(slot, frame);
  if (hck_site_is_short(frame, end)) {
    entry->frame = (uint64_t)frame;
    hck_short_site(entry, frame, end);
    return;
  }
  hck_whole_site(entry, frame, end);
}

HCK_INLINE uint64_t hck_load64(const uint64_t *_Nonnull p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
HCK_INLINE uint32_t hck_load32(const uint32_t *_Nonnull p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
HCK_INLINE void hck_store64(uint64_t *_Nonnull p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
HCK_INLINE void hck_store32(uint32_t *_Nonnull p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
HCK_INLINE int hck_cas64(uint64_t *_Nonnull p, uint64_t old, uint64_t new_) {
  return __atomic_compare_exchange_n(p, &old, new_, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
HCK_INLINE int hck_cas32(uint32_t *_Nonnull p, uint32_t old, uint32_t new_) {
  return __atomic_compare_exchange_n(p, &old, new_, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
HCK_INLINE void hck_add32(uint32_t *_Nonnull p, uint32_t n) { __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL); }
// The number behind the last one, from 1.
HCK_INLINE uint32_t hck_next32(uint32_t *_Nonnull p) { return __atomic_add_fetch(p, 1, __ATOMIC_ACQ_REL); }
HCK_INLINE uint64_t hck_next64(uint64_t *_Nonnull p) { return __atomic_add_fetch(p, 1, __ATOMIC_ACQ_REL); }
HCK_INLINE void hck_count64(uint64_t *_Nonnull p) { __atomic_fetch_add(p, 1, __ATOMIC_RELAXED); }

#endif
