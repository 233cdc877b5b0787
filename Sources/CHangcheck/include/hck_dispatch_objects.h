// What libdispatch keeps in its queues and groups, as far as a thread may look at it before it
// calls: whether what comes next is a trap. Reads memory that the caller keeps alive and nothing
// else. In C since the agent, Embedded Swift, and the drop-ins both look. Async-signal-safe.
#ifndef HCK_DISPATCH_OBJECTS_H
#define HCK_DISPATCH_OBJECTS_H

#include "hck_thread.h"

// Offsets in a queue; `known` is 0 until hck_dispatch_layout_begin has verified them.
typedef struct hck_dispatch_layout {
  uint32_t known, target, state, width, label;
} hck_dispatch_layout;
extern hck_dispatch_layout hck_dispatch HCK_HIDDEN;

// `offsets` is libdispatch's exported dispatch_queue_offsets, `main_queue` its _dispatch_main_q.
// 1 when what is there looks like the libdispatch that this was written for.
int hck_dispatch_layout_begin(const void *_Nullable offsets, const void *_Nullable main_queue) HCK_HIDDEN;

#define HCK_LANE_OWNER 0x3fffffffull           // tid of who drains or holds it
#define HCK_LANE_INACTIVE 0x0180000000000000ull // never activated
#define HCK_LANE_SUSPENDED 0xff80000000000000ull // any reason not to run
#define HCK_LANE_SUSPENSIONS 0xfe00000000000000ull // suspends that were not undone
#define HCK_LANE_WIDTH_ROOT 4095
#define HCK_GROUP_STATE 0x30
#define HCK_OBJECT_COUNT 0x08      // all references; INT32_MAX where they are not counted
#define HCK_OBJECT_REFERENCES 0x0c // external ones, less one
#define HCK_LANE_DEPTH 64

HCK_INLINE uint64_t hck_lane_state(const void *_Nonnull queue) {
  return __atomic_load_n((const uint64_t *)((const char *)queue + hck_dispatch.state), __ATOMIC_RELAXED);
}
HCK_INLINE const void *_Nullable hck_lane_target(const void *_Nonnull queue) {
  return *(const void *const *)((const char *)queue + hck_dispatch.target);
}
HCK_INLINE uint16_t hck_lane_width(const void *_Nonnull queue) {
  return *(const uint16_t *)((const char *)queue + hck_dispatch.width);
}
// A global queue, which ignores barriers and never makes anybody wait.
HCK_INLINE int hck_lane_is_root(const void *_Nonnull queue) {
  return hck_lane_target(queue) == NULL || hck_lane_width(queue) == HCK_LANE_WIDTH_ROOT;
}
// The main queue or a global one: suspend and resume do nothing.
HCK_INLINE int hck_lane_is_global(const void *_Nonnull queue) {
  return __atomic_load_n((const int32_t *)((const char *)queue + HCK_OBJECT_COUNT), __ATOMIC_RELAXED) == INT32_MAX;
}
// The first queue of the chain of targets that thread `tid` owns: a sync onto `queue` traps there,
// or waits for ever for what is queued before it. NULL when there is none.
HCK_INLINE const void *_Nullable hck_lane_owned(const void *_Nonnull queue, uint32_t tid) {
  const void *q = queue;
  for (int depth = 0; q && depth < HCK_LANE_DEPTH; depth++) {
    if ((hck_lane_state(q) & HCK_LANE_OWNER) == tid) { return q; }
    q = hck_lane_target(q);
  }
  return NULL;
}
// Whether resume has no suspend to undo. That of a queue that is yet to be activated is one too many.
HCK_INLINE int hck_lane_overresumes(const void *_Nonnull queue) {
  return (hck_lane_state(queue) & HCK_LANE_SUSPENSIONS) == 0;
}
// What releasing the last reference traps at: 1 suspended, 2 never activated, 0 neither.
HCK_INLINE int hck_lane_unreleasable(const void *_Nonnull queue) {
  uint64_t state = hck_lane_state(queue);
  if (state & HCK_LANE_INACTIVE) { return 2; }
  return (state & HCK_LANE_SUSPENDED) != 0;
}
// Whether `queue` is in the chain of targets that begins with `target`.
HCK_INLINE int hck_lane_would_circle(const void *_Nonnull queue, const void *_Nullable target) {
  for (int depth = 0; target && depth < HCK_LANE_DEPTH; depth++) {
    if (target == queue) { return 1; }
    target = hck_lane_target(target);
  }
  return 0;
}
// Enters that nobody has left yet.
HCK_INLINE uint32_t hck_group_entered(const void *_Nonnull group) {
  uint32_t state = __atomic_load_n((const uint32_t *)((const char *)group + HCK_GROUP_STATE), __ATOMIC_RELAXED);
  return (0u - (state & ~3u)) >> 2;
}
// The caller's reference is the last one from outside libdispatch.
HCK_INLINE int hck_object_is_last(const void *_Nonnull object) {
  return __atomic_load_n((const int32_t *)((const char *)object + HCK_OBJECT_REFERENCES), __ATOMIC_RELAXED) == 0;
}

// libdispatch's own, under names that no other header declares: the drop-ins call them without the
// way through the overlay's classes. Only who calls them needs the library.
extern void hck_dispatch_group_enter(void *_Nonnull group) __asm__("dispatch_group_enter");
extern void hck_dispatch_group_leave(void *_Nonnull group) __asm__("dispatch_group_leave");
extern const uint16_t hck_dispatch_offsets __asm__("dispatch_queue_offsets");
extern char hck_dispatch_main_queue __asm__("_dispatch_main_q");
HCK_INLINE const void *_Nonnull hck_main_queue(void) { return &hck_dispatch_main_queue; }
HCK_INLINE int hck_dispatch_linked_begin(void) {
  return hck_dispatch_layout_begin(&hck_dispatch_offsets, &hck_dispatch_main_queue);
}
extern void *_Nullable hck_dispatch_get_context(void *_Nonnull object) __asm__("dispatch_get_context");
extern void hck_dispatch_set_context(void *_Nonnull object, void *_Nullable context)
  __asm__("dispatch_set_context");

#endif
