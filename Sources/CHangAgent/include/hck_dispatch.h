// libdispatch's functions and sem_t's that the agent stands in front of, and the way to the real
// ones. libdispatch may be absent, or be loaded later and privately (RTLD_LOCAL): a pointer looks
// for its function until it is found.
#ifndef HCK_DISPATCH_H
#define HCK_DISPATCH_H

#include "hck_real.h"
#include "hck_dispatch_memory.h"
#include <semaphore.h>

#define HCK_O void *_Nonnull
#define HCK_N void *_Nullable
#define HCK_F void (*_Nonnull f)(void *_Nullable)
#define HCK_A void (*_Nonnull f)(void *_Nullable, size_t)

// name, parameters, arguments
#define HCK_DISPATCH_VOID(X)                                               \
  X(dispatch_sync, (HCK_O q, HCK_O b), (q, b))                             \
  X(dispatch_barrier_sync, (HCK_O q, HCK_O b), (q, b))                     \
  X(dispatch_async_and_wait, (HCK_O q, HCK_O b), (q, b))                   \
  X(dispatch_barrier_async_and_wait, (HCK_O q, HCK_O b), (q, b))           \
  X(dispatch_sync_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))                 \
  X(dispatch_barrier_sync_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))         \
  X(dispatch_async_and_wait_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))       \
  X(dispatch_barrier_async_and_wait_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f)) \
  X(dispatch_async, (HCK_O q, HCK_O b), (q, b))                            \
  X(dispatch_async_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))                \
  X(dispatch_after, (uint64_t w, HCK_O q, HCK_O b), (w, q, b))             \
  X(dispatch_after_f, (uint64_t w, HCK_O q, HCK_N c, HCK_F), (w, q, c, f)) \
  X(dispatch_apply, (size_t n, HCK_N q, HCK_O b), (n, q, b))               \
  X(dispatch_apply_f, (size_t n, HCK_N q, HCK_N c, HCK_A), (n, q, c, f))   \
  X(dispatch_barrier_async, (HCK_O q, HCK_O b), (q, b))                    \
  X(dispatch_barrier_async_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))        \
  X(dispatch_group_enter, (HCK_O g), (g))                                  \
  X(dispatch_group_leave, (HCK_O g), (g))                                  \
  X(dispatch_group_notify, (HCK_O g, HCK_O q, HCK_O b), (g, q, b))         \
  X(dispatch_group_notify_f, (HCK_O g, HCK_O q, HCK_N c, HCK_F), (g, q, c, f)) \
  X(dispatch_group_async, (HCK_O g, HCK_O q, HCK_O b), (g, q, b))          \
  X(dispatch_group_async_f, (HCK_O g, HCK_O q, HCK_N c, HCK_F), (g, q, c, f)) \
  X(dispatch_suspend, (HCK_O o), (o))                                      \
  X(dispatch_resume, (HCK_O o), (o))                                       \
  X(dispatch_activate, (HCK_O o), (o))                                     \
  X(dispatch_release, (HCK_O o), (o))                                      \
  X(dispatch_set_target_queue, (HCK_O o, HCK_N q), (o, q))
// type, what stands for it where there is none, name, parameters, arguments
#define HCK_DISPATCH(X)                                                                             \
  X(HCK_N, 0, dispatch_group_create, (void), ())                                                    \
  X(intptr_t, 0, dispatch_group_wait, (HCK_O g, uint64_t t), (g, t))                                \
  X(HCK_N, 0, dispatch_semaphore_create, (intptr_t v), (v))                                         \
  X(intptr_t, 0, dispatch_semaphore_wait, (HCK_O s, uint64_t t), (s, t))                            \
  X(intptr_t, 0, dispatch_semaphore_signal, (HCK_O s), (s))                                         \
  X(intptr_t, 0, dispatch_block_wait, (HCK_O b, uint64_t t), (b, t))                                \
  X(HCK_N, 0, _dispatch_block_create, (unsigned long f, HCK_N v, unsigned long p, HCK_N b), (f, v, p, b)) \
  X(HCK_N, 0, dispatch_queue_create, (const char *_Nullable l, HCK_N a), (l, a))                    \
  X(HCK_N, 0, dispatch_queue_create_with_target, (const char *_Nullable l, HCK_N a, HCK_N q), (l, a, q))
#define HCK_POSIX_SEMAPHORES(X)                                                                     \
  X(int, -1, sem_init, (sem_t * _Nonnull s, int p, unsigned v), (s, p, v))                          \
  X(int, -1, sem_destroy, (sem_t * _Nonnull s), (s))                                                \
  X(int, -1, sem_wait, (sem_t * _Nonnull s), (s))                                                   \
  X(int, -1, sem_trywait, (sem_t * _Nonnull s), (s))                                                \
  X(int, -1, sem_timedwait, (sem_t * _Nonnull s, HCK_T t), (s, t))                                  \
  X(int, -1, sem_clockwait, (sem_t * _Nonnull s, clockid_t k, HCK_T t), (s, k, t))                  \
  X(int, -1, sem_post, (sem_t * _Nonnull s), (s))

#define HCK_DECLARE_VOID(name, parameters, arguments)             \
  extern void(*_Nonnull hck_pointer_##name) parameters HCK_HIDDEN; \
  HCK_INLINE void hck_real_##name parameters { hck_pointer_##name arguments; }
#define HCK_DECLARE_TYPED(type, missing, name, parameters, arguments) \
  extern type(*_Nonnull hck_pointer_##name) parameters HCK_HIDDEN;     \
  HCK_INLINE type hck_real_##name parameters { return hck_pointer_##name arguments; }
HCK_DISPATCH_VOID(HCK_DECLARE_VOID)
HCK_DISPATCH(HCK_DECLARE_TYPED)
HCK_POSIX_SEMAPHORES(HCK_DECLARE_TYPED)

// What a block object of libdispatch has for its invoke function; NULL where not known.
extern void *_Nullable hck_dispatch_block_invoke HCK_HIDDEN;
// The blocks runtime's, which libdispatch brings.
extern void *_Nullable (*_Nullable hck_block_copy)(const void *_Nonnull) HCK_HIDDEN;
extern void (*_Nullable hck_block_release)(const void *_Nonnull) HCK_HIDDEN;
extern void *_Nullable hck_stack_block_class HCK_HIDDEN;
// Whether work is followed from its submission to its run.
HCK_INLINE int hck_records_jobs(void) {
  const hck_arena *arena = hck_arena_get();
  return arena && arena->flags & HCK_FLAG_ORDERS;
}
HCK_INLINE void *_Nullable hck_copied_block(const void *_Nonnull block) {
  return hck_block_copy && hck_block_release && hck_dispatch_block_invoke ? hck_block_copy(block) : NULL;
}
HCK_INLINE void hck_release_block(const void *_Nonnull block) {
  if (hck_block_release) { hck_block_release(block); }
}
// A block's code. One that libdispatch made an object of carries more than its code: 0.
HCK_INLINE uint64_t hck_plain_invoke(const void *_Nonnull block) {
  uint64_t invoke = HCK_DO(uint64_t, block, 16);
  return invoke == (uint64_t)hck_dispatch_block_invoke ? 0 : invoke;
}
HCK_INLINE void hck_run_function(uint64_t function, uint64_t context) {
  ((void (*)(void *))function)((void *)context);
}
HCK_INLINE void hck_run_apply(uint64_t function, uint64_t context, size_t index) {
  ((void (*)(void *, size_t))function)((void *)context, index);
}
// The Concurrency runtime's code: what it submits are jobs of tasks.
extern uint64_t hck_concurrency_low HCK_HIDDEN, hck_concurrency_bytes HCK_HIDDEN;
// A task by its job's address and its number: it is one context, whichever threads its jobs run on, and
// the next task may lie where it lay.
HCK_INLINE uint64_t hck_task_word(uint64_t job) {
  if (job == 0 || job % 16 != 0) { return 0; }
  uint64_t number = *(const uint32_t *)(job + 0x24);
  return (job ^ number * 0x9e3779b97f4a7c15ull) >> 8 | 1;
}
// Foundation's, whose run loops poll.
extern uint64_t hck_foundation_low HCK_HIDDEN, hck_foundation_bytes HCK_HIDDEN;
HCK_INLINE int hck_in_foundation(uint64_t address) { return address - hck_foundation_low < hck_foundation_bytes; }
HCK_INLINE int hck_in_concurrency(uint64_t address) { return address - hck_concurrency_low < hck_concurrency_bytes; }

// Finds those that are there by now; called when the agent begins.
void hck_resolve_dispatch(void) HCK_HIDDEN;

// Where libdispatch lies: code and data; size 0 while it was not found. And its Swift part.
extern uint64_t hck_dispatch_low HCK_HIDDEN, hck_dispatch_bytes HCK_HIDDEN;
extern uint64_t hck_swift_dispatch_low HCK_HIDDEN, hck_swift_dispatch_bytes HCK_HIDDEN;
// The members that are read here lie where they are expected.
extern int hck_dispatch_queues_known HCK_HIDDEN;
extern int hck_dispatch_semaphores_known HCK_HIDDEN; // 0 not yet, 1 yes, 2 no
extern int hck_dispatch_groups_known HCK_HIDDEN;     // the same
extern int hck_dispatch_permits_known HCK_HIDDEN;    // the same of what the real calls make of them

HCK_INLINE int hck_in_dispatch(uint64_t address) { return address - hck_dispatch_low < hck_dispatch_bytes; }
HCK_INLINE int hck_in_swift_dispatch(uint64_t address) {
  return address - hck_swift_dispatch_low < hck_swift_dispatch_bytes;
}
// The agent's own code: one of its functions has tail-called another through libdispatch.
extern const char __ehdr_start HCK_HIDDEN;
extern const char hck_text_end __asm__("etext") HCK_HIDDEN;
HCK_INLINE int hck_in_agent(uint64_t address) {
  return address - (uint64_t)&__ehdr_start < (uint64_t)&hck_text_end - (uint64_t)&__ehdr_start;
}
// Called by libdispatch itself, not by the program.
HCK_INLINE int hck_is_inner(const void *_Nonnull frame) {
  uint64_t caller = ((const uint64_t *)frame)[1];
  return hck_in_dispatch(caller) || hck_in_agent(caller);
}

// The type of an object: kinds in the low byte, subtypes in the next; 0 for what is none.
HCK_INLINE uint32_t hck_do_type(const void *_Nonnull object) {
  uint64_t vtable = HCK_DO(uint64_t, object, 0);
  return hck_in_dispatch(vtable) ? HCK_DO(uint32_t, vtable, 16) : 0;
}
#define HCK_DO_SEMAPHORE 0x101u
#define HCK_DO_GROUP 0x201u
HCK_INLINE int hck_do_is_queue(uint32_t type) { return (type & 0xf0) == 0x10; } // or a source
HCK_INLINE int hck_do_is_source(uint32_t type) { return (type & 0xff) == 0x13; }
HCK_INLINE int hck_do_is_root(uint32_t type) { return (type & 0x100ff) == 0x10011; }
// Neither a root queue nor one that cannot be suspended.
HCK_INLINE int hck_do_suspends(uint32_t type) { return (type & 0x300f0) == 0x10; }
// What dispatch_semaphore_wait does where there is a permit: the value is the number of permits, less
// those who wait. 0 when there is none, or somebody came between.
HCK_INLINE int hck_semaphore_take(void *_Nonnull s) {
  int64_t *value = (int64_t *)((char *)s + 48), permits = __atomic_load_n(value, __ATOMIC_RELAXED);
  return permits > 0 && __atomic_compare_exchange_n(value, &permits, permits - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
HCK_INLINE int hck_is_block_object(const void *_Nonnull block) {
  return hck_dispatch_block_invoke && HCK_DO(uint64_t, block, 16) == (uint64_t)hck_dispatch_block_invoke &&
         HCK_DO(uint64_t, block, 32) == 0xD159B10Cull;
}
HCK_INLINE uint32_t hck_block_flags(const void *_Nonnull block) { return HCK_DO(uint32_t, block, 48); }

// Swift would have these variables be safe from races; they are words that only ever get better.
HCK_INLINE int hck_has_dispatch(void) { return hck_dispatch_bytes != 0; }
HCK_INLINE int hck_knows_queues(void) { return hck_dispatch_queues_known; }
HCK_INLINE int hck_knows_semaphores(void) { return hck_dispatch_semaphores_known == 1; }
HCK_INLINE int hck_knows_permits(void) { return hck_dispatch_permits_known == 1; }
HCK_INLINE int hck_knows_groups(void) { return hck_dispatch_groups_known == 1; }
// Each object that was just made shows whether its members lie where they are expected; the first
// semaphore with permits, which nobody else has yet, also that the real calls take one and give one
// back by counting there.
HCK_INLINE void hck_saw_semaphore(void *_Nonnull s, int64_t value) {
  if (hck_do_type(s) != HCK_DO_SEMAPHORE || hck_semaphore_value(s) != value || hck_semaphore_first(s) != value) {
    hck_dispatch_semaphores_known = hck_dispatch_permits_known = 2;
    return;
  }
  if (hck_dispatch_semaphores_known == 0) { hck_dispatch_semaphores_known = 1; }
  if (hck_dispatch_permits_known == 0 && value > 0) {
    int is_right = hck_real_dispatch_semaphore_wait(s, 0) == 0;
    if (is_right) {
      int64_t left = hck_semaphore_value(s);
      is_right = hck_real_dispatch_semaphore_signal(s) == 0 && left == value - 1 && hck_semaphore_value(s) == value;
    }
    hck_dispatch_permits_known = is_right && hck_dispatch_semaphores_known == 1 ? 1 : 2;
  }
}
HCK_INLINE void hck_saw_group(const void *_Nonnull g) {
  if (hck_do_type(g) != HCK_DO_GROUP || hck_group_state(g) != 0) {
    hck_dispatch_groups_known = 2;
  } else if (hck_dispatch_groups_known == 0) {
    hck_dispatch_groups_known = 1;
  }
}

#endif
