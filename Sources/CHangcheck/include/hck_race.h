// Epochs, clocks and accesses of checked values, and what is said of a race. Swift has neither
// thread-locals nor structs that the preloaded agent and the drop-ins could share.
#ifndef HCK_RACE_H
#define HCK_RACE_H

#include "hck_thread.h"

// An epoch: a thread's index in the upper bits, its clock in the others. 0 is before everything.
#define HCK_CLOCK_BITS 48
#define HCK_CLOCK_MASK 0x0000ffffffffffffull
// Threads that live at a time and keep clocks; one more is not checked.
#define HCK_RACE_THREADS 8192
#define HCK_RACE_HELD 16
#define HCK_RACE_KEPT 6 // of those, with an access
#define HCK_RACE_READS 4 // reads of a value that are kept with their sites

// What one thread knows of the others. Written by that thread, but for `epoch` and `settled`.
typedef struct hck_race_thread {
  uint64_t epoch;   // atomic: another thread that waits for all adds to the clock
  uint64_t settled; // atomic: up to this clock it is ordered before all that comes
  uint64_t *_Nullable clocks; // by index of a thread; its own is in `epoch`
  uint64_t changes; // of `clocks`, and of who has this record
  uint32_t count;
  uint32_t index;
  uint32_t lives;   // threads that had this record
  uint32_t tid;
  uint32_t is_live;  // atomic
  uint32_t origin;   // enum hck_race_origin
  uint32_t depth;    // of blocks that a drop-in began
  uint32_t unseen;   // of work items, whose end somebody may wait for unseen
  uint32_t skipped;  // accesses, for sampling
  uint32_t held_count;
  uint32_t settles; // somebody may wait for its end unseen
  uint32_t unused;
  uint64_t held[HCK_RACE_HELD]; // resource words
  uint64_t stack_low, stack_high;
  char name[16]; // as it ended
} hck_race_thread;

enum hck_race_origin {
  HCK_RACE_THREAD = 0,
  HCK_RACE_WORKER = 1, // of libdispatch: between blocks that a drop-in began it runs others'
  HCK_RACE_MAIN = 2,
};

// One access.
typedef struct hck_race_access {
  uint64_t epoch;
  uint32_t tid;
  uint32_t held_count;
  uint64_t held[HCK_RACE_KEPT];
  uint64_t version; // reads: writes to the value until then
  hck_entry site;   // its `resource` and `since` are not used
} hck_race_access;

// Beside each checked value: FastTrack's W and R, and with them what a report needs.
typedef struct hck_shadow {
  uint64_t write, read; // atomic epochs; `read` is HCK_READ_SHARED where several threads read
  uint64_t modifier; // who changes it in place just now, by its thread pointer; 0 for nobody
  uint64_t *_Nullable readers; // two words of header (room, the block before), clocks by index
  uint32_t lock;
  uint32_t races;
  uint64_t version; // writes that began an epoch
  uint64_t raced, raced_with; // epochs of the last race
  uint64_t accesses; // that began an epoch
  uint64_t locks[HCK_RACE_READS]; // held most at these, by Misra and Gries
  uint64_t lock_uses[HCK_RACE_READS];
  uint32_t next_read;
  uint32_t line;
  const uint8_t *_Nullable file; // UTF-8, a constant of the program
  uint64_t file_bytes;
  char *_Nullable name;
  hck_race_access last_write;
  hck_race_access reads[HCK_RACE_READS];
} hck_shadow;
#define HCK_READ_SHARED 0xffffffffffffffffull

// What is said of a race, copied into the arena: the process may be gone when it is read.
typedef struct hck_race_side {
  hck_race_access access;
  uint32_t is_write;
  uint32_t is_known;
  char name[16]; // of the thread; empty where it lives, or is not known
} hck_race_side;
typedef struct hck_race {
  hck_race_side now, before;
  hck_race_side between; // of a stale write: the write that it undoes
  uint64_t value;     // its address
  uint64_t protector; // the lock that was held most, 0 for none
  uint64_t protected_uses, accesses;
  char text[96]; // what the value is called, or where it was made
} hck_race;

extern __thread hck_race_thread *_Nullable hck_tls_race __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
// Who asks for the order that the drop-ins make: HCK_ORDER_…, 0 for nobody. Not hidden: clients' code, in which a drop-in's fast path is
// expanded, may lie in another library.
extern uint32_t hck_racing;
// 1 once a thread has tried for a Mutex in vain; not hidden either.
extern uint32_t hck_tried;
// One access of so many is looked at; whether stale writes are told.
extern uint32_t hck_race_period HCK_HIDDEN;
extern uint32_t hck_race_stale HCK_HIDDEN;
// 1 once a Swift task has used a drop-in or a checked value.
extern uint32_t hck_race_tasks HCK_HIDDEN;
extern hck_race_thread *_Nullable hck_race_table[HCK_RACE_THREADS] HCK_HIDDEN;

#define HCK_ORDER_RACES 1u // checked values, from the first one on
#define HCK_ORDER_LOCKS 2u // lock orders
#define HCK_ORDER_AGENT 4u // the agent, which learns them as well, but does not see a Mutex that is free
HCK_INLINE uint32_t hck_is_asked(void) { return __atomic_load_n(&hck_racing, __ATOMIC_RELAXED); }
HCK_INLINE uint32_t hck_has_tried(void) { return __atomic_load_n(&hck_tried, __ATOMIC_RELAXED); }
HCK_INLINE void hck_set_tried(void) {
  if (!hck_has_tried()) { __atomic_store_n(&hck_tried, 1, __ATOMIC_RELAXED); }
}
HCK_INLINE uint32_t hck_is_ordering(void) { return hck_is_asked() & (HCK_ORDER_RACES | HCK_ORDER_LOCKS); }
HCK_INLINE uint32_t hck_tells_agent(void) { return hck_is_asked() & HCK_ORDER_AGENT; }
HCK_INLINE uint32_t hck_is_racing(void) { return hck_is_ordering() & HCK_ORDER_RACES; }
HCK_INLINE uint32_t hck_learns_lock_orders(void) { return hck_is_ordering() & HCK_ORDER_LOCKS; }
HCK_INLINE void hck_begin_ordering(uint32_t who) { __atomic_fetch_or(&hck_racing, who, __ATOMIC_RELEASE); }
HCK_INLINE void hck_end_ordering(uint32_t who) { __atomic_fetch_and(&hck_racing, ~who, __ATOMIC_RELEASE); }
HCK_INLINE uint32_t hck_race_period_get(void) { return __atomic_load_n(&hck_race_period, __ATOMIC_RELAXED); }
HCK_INLINE void hck_race_period_set(uint32_t n) { __atomic_store_n(&hck_race_period, n, __ATOMIC_RELAXED); }
HCK_INLINE uint32_t hck_race_stale_get(void) { return __atomic_load_n(&hck_race_stale, __ATOMIC_RELAXED); }
HCK_INLINE void hck_race_stale_set(uint32_t on) { __atomic_store_n(&hck_race_stale, on, __ATOMIC_RELAXED); }
HCK_INLINE uint32_t hck_race_tasks_seen(void) { return __atomic_load_n(&hck_race_tasks, __ATOMIC_ACQUIRE); }
HCK_INLINE void hck_race_see_tasks(void) {
  if (!hck_race_tasks_seen()) { __atomic_store_n(&hck_race_tasks, 1, __ATOMIC_RELEASE); }
}
HCK_INLINE hck_race_thread *_Nullable hck_race_thread_get(void) { return hck_tls_race; }
HCK_INLINE void hck_race_thread_set(hck_race_thread *_Nullable thread) { hck_tls_race = thread; }
HCK_INLINE uint64_t hck_relaxed64(const uint64_t *_Nonnull p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
HCK_INLINE uint64_t hck_bump64(uint64_t *_Nonnull p) { return __atomic_fetch_add(p, 1, __ATOMIC_ACQ_REL); }
// The greater of both stays.
HCK_INLINE void hck_raise64(uint64_t *_Nonnull p, uint64_t value) {
  uint64_t there = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (there < value &&
         !__atomic_compare_exchange_n(p, &there, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
}

// The fast paths: an access that the thread has made in this epoch already tells nothing new.
HCK_INLINE int hck_reads_again(const hck_shadow *_Nonnull s) {
  const hck_race_thread *t = hck_tls_race;
  if (!t || hck_relaxed64(&s->modifier)) { return 0; }
  uint64_t epoch = hck_relaxed64(&t->epoch);
  if (hck_relaxed64(&s->write) == epoch || hck_relaxed64(&s->read) == epoch) { return 1; }
  const uint64_t *readers = __atomic_load_n(&s->readers, __ATOMIC_ACQUIRE);
  return readers && t->index < readers[0] &&
         hck_relaxed64(readers + 2 + t->index) == (epoch & HCK_CLOCK_MASK);
}
HCK_INLINE int hck_writes_again(const hck_shadow *_Nonnull s) {
  const hck_race_thread *t = hck_tls_race;
  return t && !hck_relaxed64(&s->modifier) && hck_relaxed64(&s->write) == hck_relaxed64(&t->epoch);
}
// What Swift's exclusivity checks do for a plain property: the same thread must not use a value
// that it is changing. Only this thread writes its own pointer there.
HCK_INLINE int hck_modifies(const hck_shadow *_Nonnull s) {
  uint64_t there = hck_relaxed64(&s->modifier);
  return there && there == (uint64_t)__builtin_thread_pointer();
}
HCK_INLINE void hck_begin_modifying(hck_shadow *_Nonnull s) {
  __atomic_store_n(&s->modifier, (uint64_t)__builtin_thread_pointer(), __ATOMIC_RELAXED);
}
HCK_INLINE void hck_end_modifying(hck_shadow *_Nonnull s) {
  __atomic_store_n(&s->modifier, 0, __ATOMIC_RELAXED);
}

HCK_INLINE void hck_publish_readers(hck_shadow *_Nonnull s, uint64_t *_Nonnull readers) {
  __atomic_store_n(&s->readers, readers, __ATOMIC_RELEASE);
}

// The task that runs on this thread, by the Swift runtime's own function: the language's
// withUnsafeCurrentTask asks for types first, at ten times the cost. Only who calls it needs the
// library.
extern void *_Nullable hck_current_task(void) __attribute__((swiftcall)) __asm__("swift_task_getCurrent");

// A lock that is held for moments, and under which nothing of the program runs.
void hck_spin_lock(uint32_t *_Nonnull word) HCK_HIDDEN;
HCK_INLINE void hck_spin_unlock(uint32_t *_Nonnull word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }

// The site that `frame`, of the checked value's own entry point, stands for.
void hck_race_site(
  const hck_race_thread *_Nonnull thread, hck_entry *_Nonnull entry, const void *_Nonnull frame) HCK_HIDDEN;
// Fills in where the calling thread's stack lies.
void hck_race_stack(hck_race_thread *_Nonnull thread) HCK_HIDDEN;
// Runs `function` in the calling thread once its own has returned, before the destructors of
// thread-specific keys; 0, or not where there is no memory.
int hck_at_thread_return(void (*_Nonnull function)(void *_Nullable)) HCK_HIDDEN;
// Whether a thread of that name is one of libdispatch's.
int hck_is_worker_name(const char *_Nonnull name) HCK_HIDDEN;
// Whether a block that libdispatch made of a work item is a barrier; 0 where that is not known.
int hck_block_is_barrier(const void *_Nullable block) HCK_HIDDEN;

// C's arrays are tuples in Swift.
HCK_INLINE hck_race_thread *_Nullable *_Nonnull hck_race_threads(void) { return hck_race_table; }
HCK_INLINE uint64_t *_Nonnull hck_race_held(hck_race_thread *_Nonnull t) { return t->held; }
HCK_INLINE char *_Nonnull hck_race_name(hck_race_thread *_Nonnull t) { return t->name; }
HCK_INLINE uint64_t *_Nonnull hck_access_held(hck_race_access *_Nonnull a) { return a->held; }
HCK_INLINE hck_race_access *_Nonnull hck_shadow_reads(hck_shadow *_Nonnull s) { return s->reads; }
HCK_INLINE hck_race_access *_Nonnull hck_shadow_last_write(hck_shadow *_Nonnull s) { return &s->last_write; }
HCK_INLINE uint64_t *_Nonnull hck_shadow_locks(hck_shadow *_Nonnull s) { return s->locks; }
HCK_INLINE uint64_t *_Nonnull hck_shadow_lock_uses(hck_shadow *_Nonnull s) { return s->lock_uses; }
HCK_INLINE char *_Nonnull hck_race_text(hck_race *_Nonnull r) { return r->text; }
HCK_INLINE hck_race_side *_Nonnull hck_race_now(hck_race *_Nonnull r) { return &r->now; }
HCK_INLINE hck_race_side *_Nonnull hck_race_before(hck_race *_Nonnull r) { return &r->before; }
HCK_INLINE hck_race_side *_Nonnull hck_race_between(hck_race *_Nonnull r) { return &r->between; }
HCK_INLINE char *_Nonnull hck_side_name(hck_race_side *_Nonnull s) { return s->name; }
HCK_INLINE hck_race_access *_Nonnull hck_side_access(hck_race_side *_Nonnull s) { return &s->access; }
HCK_INLINE hck_entry *_Nonnull hck_access_site(hck_race_access *_Nonnull a) { return &a->site; }

#endif
