// What Swift cannot spell: thread-locals, frame addresses, atomics on foreign memory, compiler barriers.
#ifndef HCK_THREAD_H
#define HCK_THREAD_H

#include "hck_layout.h"
#include <pthread.h>
#include <stddef.h>

#define HCK_INLINE static inline __attribute__((always_inline))
#define HCK_HIDDEN __attribute__((visibility("hidden")))

// The thread's slot; initial-exec, so that reading it is one instruction. Swift has no thread-locals.
extern __thread hck_slot *_Nullable hck_tls_slot __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
// 1 while the slot is being made, 2 after the thread's last destructor: nothing is recorded.
extern __thread int hck_tls_closed __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
extern hck_arena *_Nullable hck_current_arena HCK_HIDDEN;
// Bytes of window kept a site: HCK_WINDOW_BYTES, 16 for the return address alone, 0 for none.
extern uint32_t hck_window_bytes HCK_HIDDEN;
void hck_keep_windows(uint32_t bytes) HCK_HIDDEN;

// A drop-in's mutex and, behind it, where it was made.
typedef struct hck_marked_mutex {
  pthread_mutex_t mutex;
  hck_creation created;
} hck_marked_mutex;

HCK_INLINE hck_slot *_Nullable hck_slot_of_thread(void) { return hck_tls_slot; }
HCK_INLINE void hck_set_slot_of_thread(hck_slot *_Nullable slot) { hck_tls_slot = slot; }
HCK_INLINE int hck_closed(void) { return hck_tls_closed; }
HCK_INLINE void hck_set_closed(int value) { hck_tls_closed = value; }
HCK_INLINE hck_arena *_Nullable hck_arena_get(void) {
  return __atomic_load_n(&hck_current_arena, __ATOMIC_ACQUIRE);
}
HCK_INLINE void hck_arena_set(hck_arena *_Nullable arena) {
  __atomic_store_n(&hck_current_arena, arena, __ATOMIC_RELEASE);
}

// The frame of the function that this is inlined into.
HCK_INLINE void *_Nonnull hck_frame(void) { return __builtin_frame_address(0); }

// Stores in program order, as a signal handler on this thread and, on x86-64, any reader sees them.
HCK_INLINE void hck_order(void) { __asm__ volatile("" ::: "memory"); }

// The offset in its page up to which a frame's whole window is copied without a further look; a window never reaches into
// the next page, which need not exist. -1 where less than the whole is kept.
extern int64_t hck_window_limit HCK_HIDDEN;
void hck_short_site(hck_entry *_Nonnull entry, const void *_Nonnull frame) HCK_HIDDEN;

// Keeps the site of an acquisition. Expanded where it is used: a call would cost as much as the copy.
HCK_INLINE void hck_site(hck_entry *_Nonnull entry, const void *_Nonnull frame) {
  entry->since = __atomic_load_n(&hck_current_arena->clock, __ATOMIC_RELAXED);
  entry->length = HCK_WINDOW_BYTES;
  entry->frame = (uint64_t)frame;
  if (__builtin_expect((int64_t)((uint64_t)frame & 4095) <= hck_window_limit, 1)) {
    __builtin_memcpy(entry->window, frame, HCK_WINDOW_BYTES);
  } else {
    hck_short_site(entry, frame);
  }
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
HCK_INLINE void hck_count64(uint64_t *_Nonnull p) { __atomic_fetch_add(p, 1, __ATOMIC_RELAXED); }

#endif
