// What libdispatch keeps in its objects, on 64-bit Linux since version 5 of Swift, as far as a thread
// may look at it before it calls: whether what comes next is a trap. Reads memory that the caller
// keeps alive and nothing else. In C since the agent, Embedded Swift, and the drop-ins both look.
// Async-signal-safe.
#ifndef HCK_DISPATCH_MEMORY_H
#define HCK_DISPATCH_MEMORY_H

#include "hck_thread.h"

#define HCK_DO(type, object, offset) __atomic_load_n((const type *)((const char *)(object) + (offset)), __ATOMIC_RELAXED)

// Whether libdispatch's own table, dispatch_queue_offsets, says what is read here. Version, label,
// its size, flags, flags' size, serial number, size, width, size, running, size, suspend count,
// size, target queue. The state, which is not in it, lies before the serial number.
HCK_INLINE int hck_queue_offsets_known(const uint16_t *_Nullable offsets) {
  return offsets && offsets[1] == 72 && offsets[5] == 64 && offsets[7] == 80 && offsets[8] == 2 && offsets[13] == 24;
}

// All references; INT32_MAX where they are not counted: the main queue and the global ones, for
// which suspend and resume do nothing.
HCK_INLINE int32_t hck_do_references(const void *_Nonnull o) { return HCK_DO(int32_t, o, 8); }
// Those from outside libdispatch, less one.
HCK_INLINE int32_t hck_do_outer_references(const void *_Nonnull o) { return HCK_DO(int32_t, o, 12); }
HCK_INLINE void *_Nullable hck_queue_target(const void *_Nonnull q) { return (void *)HCK_DO(uint64_t, q, 24); }
HCK_INLINE uint64_t hck_queue_state(const void *_Nonnull q) { return HCK_DO(uint64_t, q, 56); }
HCK_INLINE const char *_Nullable hck_queue_label(const void *_Nonnull q) { return (const char *)HCK_DO(uint64_t, q, 72); }
HCK_INLINE uint16_t hck_queue_width(const void *_Nonnull q) { return HCK_DO(uint16_t, q, 80); }
HCK_INLINE int64_t hck_semaphore_value(const void *_Nonnull s) { return HCK_DO(int64_t, s, 48); }
HCK_INLINE int64_t hck_semaphore_first(const void *_Nonnull s) { return HCK_DO(int64_t, s, 56); }
HCK_INLINE uint64_t hck_group_state(const void *_Nonnull g) { return HCK_DO(uint64_t, g, 48); }
// Enters that nobody has left yet.
HCK_INLINE uint32_t hck_group_count(const void *_Nonnull g) { return (0u - (HCK_DO(uint32_t, g, 48) & ~3u)) >> 2; }

// dq_state.
#define HCK_DQ_OWNER 0x3fffffffull // tid of who drains or holds it
#define HCK_DQ_SUSPENSION 0xff80000000000000ull // any reason not to run
#define HCK_DQ_IN_BARRIER 0x0040000000000000ull // what runs, runs alone
#define HCK_DQ_INTERVAL 0x0400000000000000ull
#define HCK_DQ_SIDE 0x0200000000000000ull
#define HCK_DQ_INACTIVE 0x0100000000000000ull
#define HCK_DQ_NEEDS_ACTIVATION 0x0080000000000000ull

HCK_INLINE int hck_queue_runs_barrier(const void *_Nonnull q) { return (hck_queue_state(q) & HCK_DQ_IN_BARRIER) != 0; }
// A global queue, which ignores barriers and never makes anybody wait.
HCK_INLINE int hck_queue_is_root(const void *_Nonnull queue) {
  return hck_queue_target(queue) == NULL || hck_queue_width(queue) == 4095;
}
// libdispatch's own condition for its trap: the queue, or one that it leads to, is locked by this
// very thread.
HCK_INLINE int hck_queue_runs_on(const void *_Nonnull queue, uint32_t tid) {
  const void *q = queue;
  for (int depth = 0; depth < 64; depth++) {
    const void *target = hck_queue_target(q);
    if (!target) { return 0; } // a root queue has no owner
    if (((hck_queue_state(q) ^ tid) & HCK_DQ_OWNER) == 0) { return 1; }
    q = target;
  }
  return 0;
}
// Whether resume has no suspend to undo. That of a queue that is yet to be activated is one too many.
HCK_INLINE int hck_queue_is_overresumed(const void *_Nonnull queue, int source) {
  uint64_t state = hck_queue_state(queue);
  if (state >= HCK_DQ_INTERVAL || state & HCK_DQ_SIDE) { return 0; }
  return !(source && (state & HCK_DQ_SUSPENSION) == (HCK_DQ_INACTIVE | HCK_DQ_NEEDS_ACTIVATION));
}
HCK_INLINE int hck_queue_is_suspended(const void *_Nonnull queue) {
  return (hck_queue_state(queue) & HCK_DQ_SUSPENSION) != 0;
}
HCK_INLINE int hck_queue_is_inactive(const void *_Nonnull queue) {
  return (hck_queue_state(queue) & HCK_DQ_INACTIVE) != 0;
}
HCK_INLINE int hck_queue_leads_to(const void *_Nonnull from, const void *_Nonnull to) {
  const void *q = from;
  for (int depth = 0; q && depth < 64; depth++) {
    if (q == to) { return 1; }
    q = hck_queue_target(q);
  }
  return 0;
}
// A limiter that is signalled has all its permits already: with one of its own outstanding a thread
// never sees as many as there were at first.
HCK_INLINE int hck_semaphore_is_full(const void *_Nonnull s) {
  int64_t first = hck_semaphore_first(s);
  return first > 0 && hck_semaphore_value(s) >= first;
}

#endif
