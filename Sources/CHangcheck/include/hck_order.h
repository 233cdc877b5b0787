// What was locked while what was held, and what was known of other threads then: the recorder's
// log of lock orders.
//
// One table a process, shared by its threads and read by whoever analyses it. Records are numbered
// from 1 and lie in pages that never move. They are found through chains that only grow: a record
// whose lock is gone is used again in the chain that it is in.
//   I4  a record's `generation` is odd while it is written; who names a record keeps its generation
//   I5  a clock only grows, word by word, so that whoever joins one needs no lock
#ifndef HCK_ORDER_H
#define HCK_ORDER_H

#include "hck_thread.h"

// A lock that takes part in an order.
typedef struct hck_order_lock {
  uint64_t word; // resource word without flags; 0 once it is gone
  uint32_t next; // in its chain
  uint32_t generation;
  uint32_t died;  // arena clock
  uint32_t flags; // HCK_LOCK_…
  char name[40];  // of a queue, or that the program gave it
} hck_order_lock;
#define HCK_LOCK_WRITERS_FIRST 1u // a reader may have to wait for another one, behind a writer

// A lock taken while others were held: the ancestors, the outermost at the root.
typedef struct hck_order_node {
  uint64_t word; // with HCK_SHARED; HCK_TIMED: held, but never waited for
  uint32_t next;
  uint32_t generation;
  uint32_t lock, lock_generation;
  uint32_t parent, parent_generation; // 0, 0 at the root
  uint32_t site;
  uint32_t occurrences; // the first of its records
  uint32_t met;         // how many were written
  uint32_t first;       // arena clock
} hck_order_node;

// A node as one context met it: a thread, or one block that a queue ran.
typedef struct hck_occurrence {
  uint32_t next;
  uint32_t generation;
  uint32_t component, start, epoch;
  uint32_t tid;
  uint64_t context; // those with the same one never wait at the same time
  uint32_t known;   // clock: what was known of others
  uint32_t clock;   // arena clock
  uint32_t segment; // of the thread
  uint32_t unused;
  char name[16];    // of the thread
} hck_occurrence;
#define HCK_OCCURRENCES 8 // a node; the first half stay, the others are written over

// Where something was taken, in the code.
#define HCK_ORDER_WORDS 96
typedef struct hck_order_site {
  uint64_t key;
  uint32_t next;
  uint32_t more_words;
  hck_entry site; // its `resource` is not used
  uint64_t more[HCK_ORDER_WORDS]; // of the stack, above the site's window
} hck_order_site;

// Part of a vector clock: the epochs of some components.
#define HCK_CLOCK_EPOCHS 30
typedef struct hck_clock {
  uint32_t next; // for the components behind these
  uint32_t version; // of the whole clock, in its first part: counts what it learned
  uint32_t epochs[HCK_CLOCK_EPOCHS];
} hck_clock;

// Something by which one thread hands over to another, and what they knew who did.
typedef struct hck_handover {
  uint64_t word;
  uint32_t next;
  uint32_t clock;
  uint32_t generation; // of what lies at that address
  uint32_t unused;
} hck_handover;

// A block or function on its way to a queue.
typedef struct hck_job {
  uint64_t function;
  uint64_t context;
  uint64_t entered;  // the group that it leaves; 0
  uint64_t notifies; // the group whose end it tells of; 0
  uint32_t known;    // clock of whoever submitted it, in the arena of
  uint32_t pid;      // this process: a child that was forked has another
  uint32_t number;
  uint32_t is_block; // the context is a block that was copied for it
  uint32_t next;     // while it is free
  uint32_t is_main;  // it goes to the main queue
} hck_job;
// Not in the arena: a forked child has what is queued, but not its parent's arena. From pages of their
// own, never given back. Async-signal-safe; NULL where there is no memory.
hck_job *_Nullable hck_job_take(void) HCK_HIDDEN;
void hck_job_give(hck_job *_Nonnull job) HCK_HIDDEN;

enum hck_pages {
  HCK_PAGES_LOCKS,
  HCK_PAGES_NODES,
  HCK_PAGES_OCCURRENCES,
  HCK_PAGES_SITES,
  HCK_PAGES_CLOCKS,
  HCK_PAGES_HANDOVERS,
};
#define HCK_PAGES_KINDS 6
#define HCK_PAGE_BYTES 65536u
#define HCK_PAGES 1024
typedef struct hck_page_table {
  uint32_t used;
  uint32_t unused;
  uint64_t free; // number in the low half, a tag against ABA in the high half
  uint64_t pages[HCK_PAGES]; // offsets
} hck_page_table;

#define HCK_ERAS 1024
#define HCK_LOCK_CHAINS 16384
#define HCK_NODE_CHAINS 65536
#define HCK_SITE_CHAINS 4096
#define HCK_HANDOVER_CHAINS 4096
typedef struct hck_orders {
  uint32_t components; // numbers given to threads that met an order
  uint32_t unused;
  uint64_t contexts;   // numbers given to contexts
  uint64_t changes;    // counts what was written
  // By a lock's address: what threads remember of orders goes by it, so that a lock that is gone
  // is forgotten.
  uint32_t eras[HCK_ERAS];
  uint32_t lock_chains[HCK_LOCK_CHAINS];
  uint32_t node_chains[HCK_NODE_CHAINS];
  uint32_t site_chains[HCK_SITE_CHAINS];
  uint32_t handover_chains[HCK_HANDOVER_CHAINS];
  hck_page_table tables[HCK_PAGES_KINDS];
} hck_orders;

// What one thread remembers, in a chunk of its own that its slot keeps.
typedef struct hck_known_order {
  uint64_t key;
  uint32_t segment; // HCK_SETTLED: nothing is to be learned any more
  uint32_t node;
} hck_known_order;
typedef struct hck_known_handover {
  uint64_t word;
  uint32_t given;  // what this thread knew when it handed over last
  uint32_t taken;  // the clock's version that it learned
  uint64_t record; // hck_handover
  uint32_t generation, unused; // the record's, when all this was so
} hck_known_handover;
#define HCK_SETTLED UINT32_MAX
#define HCK_KNOWN_ORDERS 64 // at first; four times as many where they do not suffice
#define HCK_MOST_KNOWN_ORDERS 65536
#define HCK_KNOWN_HANDOVERS 16
// A thread's epochs are those of several components, so that who learns of one context does not seem
// to know what others did on that thread before.
#define HCK_COMPONENTS 4
typedef struct hck_component { uint32_t number, epoch; } hck_component;
typedef struct hck_thread_orders {
  uint64_t shared; // hck_orders, in the watched process
  uint32_t component; // the context's; 0 until the thread meets its first order
  uint32_t epoch;
  uint32_t start;   // the context's first epoch
  uint32_t known;   // clock
  uint32_t busy;    // a signal's handler leaves all this alone
  uint64_t context;
  uint32_t is_block; // the context is a block that a queue runs
  uint32_t misses;   // of what the log had already
  uint32_t shift;    // of a key, to its place in `orders`
  uint32_t next_component; // which of these is given up next
  hck_component components[HCK_COMPONENTS]; // the thread's, as they were left
  hck_known_order *_Nonnull orders; // in the watched process
  hck_known_order first_orders[HCK_KNOWN_ORDERS];
  hck_known_handover handovers[HCK_KNOWN_HANDOVERS];
} hck_thread_orders;

// libdispatch's, where it is there and its queues are laid out as hck_dispatch_memory.h says.
extern void *_Nullable (*_Nullable hck_current_queue_function)(void) HCK_HIDDEN;
extern uint32_t hck_queue_layout_known HCK_HIDDEN;
HCK_INLINE void *_Nullable hck_current_queue(void) {
  return hck_current_queue_function ? hck_current_queue_function() : NULL;
}
// The Concurrency runtime's: whom the thread runs a job for, an actor or nobody (0).
typedef struct hck_executor { uint64_t identity, implementation; } hck_executor;
extern hck_executor (*_Nullable hck_current_executor_function)(void) HCK_HIDDEN;
HCK_INLINE const void *_Nullable hck_current_actor(void) {
  return hck_current_executor_function ? (const void *)hck_current_executor_function().identity : NULL;
}
extern uint64_t hck_main_queue_address HCK_HIDDEN;
HCK_INLINE uint64_t hck_main_thread_queue(void) { return hck_main_queue_address; }
HCK_INLINE void hck_know_queues(void *_Nullable current, void *_Nullable main_queue, void *_Nullable executor) {
  hck_queue_layout_known = 1;
  hck_current_queue_function = (void *(*)(void))current;
  hck_current_executor_function = (hck_executor(*)(void))executor;
  hck_main_queue_address = (uint64_t)main_queue;
}
// Whether somebody may join the calling thread.
int hck_is_joinable(void) HCK_HIDDEN;
HCK_INLINE uint32_t hck_knows_queue_layout(void) { return hck_queue_layout_known; }
// glibc's flag in the lock.
HCK_INLINE int hck_rwlock_prefers_writers(uint64_t lock) {
  return ((const pthread_rwlock_t *)lock)->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

_Static_assert(HCK_PAGE_BYTES >= sizeof(hck_order_site), "a record lies in one page");

// Swift imports neither arrays of this length nor members of them.
#define HCK_CHAIN(name, LENGTH)                                                                   \
  HCK_INLINE uint32_t *_Nonnull hck_##name##_chain(hck_orders *_Nonnull o, uint64_t hash) {       \
    return &o->name##_chains[hash & (LENGTH - 1)];                                                \
  }
HCK_CHAIN(lock, HCK_LOCK_CHAINS)
HCK_CHAIN(node, HCK_NODE_CHAINS)
HCK_CHAIN(site, HCK_SITE_CHAINS)
HCK_CHAIN(handover, HCK_HANDOVER_CHAINS)
HCK_INLINE uint32_t *_Nonnull hck_era(hck_orders *_Nonnull o, uint64_t word) {
  return &o->eras[(word >> 4 ^ word >> 14) & (HCK_ERAS - 1)];
}
HCK_INLINE hck_page_table *_Nonnull hck_order_table(hck_orders *_Nonnull o, enum hck_pages kind) {
  return &o->tables[kind];
}
HCK_INLINE uint64_t *_Nonnull hck_order_page(hck_page_table *_Nonnull t, uint32_t page) {
  return &t->pages[page];
}
HCK_INLINE hck_component *_Nonnull hck_component_at(hck_thread_orders *_Nonnull o, uint32_t at) {
  return &o->components[at];
}
HCK_INLINE uint32_t *_Nonnull hck_clock_epoch(hck_clock *_Nonnull c, uint32_t at) { return &c->epochs[at]; }
HCK_INLINE uint32_t *_Nonnull hck_clock_next(hck_clock *_Nonnull c) { return &c->next; }
HCK_INLINE void hck_clear_clock(hck_clock *_Nonnull c) { __builtin_memset(c, 0, sizeof *c); }
HCK_INLINE hck_known_order *_Nonnull hck_first_orders(hck_thread_orders *_Nonnull t) { return t->first_orders; }
// What another thread learned in this slot.
HCK_INLINE void hck_forget_orders(hck_thread_orders *_Nonnull t) {
  __builtin_memset(t->orders, 0, sizeof *t->orders << (64 - t->shift));
  __builtin_memset(t->handovers, 0, sizeof t->handovers);
}
HCK_INLINE hck_known_order *_Nonnull hck_known(hck_thread_orders *_Nonnull t, uint64_t key) {
  return &t->orders[key >> t->shift];
}
HCK_INLINE hck_known_handover *_Nonnull hck_known_hand(hck_thread_orders *_Nonnull t, uint64_t word) {
  return &t->handovers[word * 0x9e3779b97f4a7c15ull >> 60];
}
// A lock that this thread makes, and whether it made one just now.
HCK_INLINE void hck_made(hck_slot *_Nonnull slot, uint64_t word, uint32_t clock) {
  uint64_t at = (word & HCK_ADDRESS_MASK) * 0x9e3779b97f4a7c15ull >> 59;
  slot->own_locks[at] = word;
  slot->own_segments[at] = slot->segment;
  slot->own_since[at] = clock;
}
HCK_INLINE int hck_is_fresh(const hck_slot *_Nonnull slot, uint64_t word, uint32_t clock, uint32_t patience) {
  uint64_t at = (word & HCK_ADDRESS_MASK) * 0x9e3779b97f4a7c15ull >> 59;
  return slot->own_locks[at] == word && slot->own_segments[at] == slot->segment && clock - slot->own_since[at] < patience;
}
HCK_INLINE void hck_name_lock(hck_order_lock *_Nonnull lock, const char *_Nullable name) {
  size_t length = 0;
  for (; name && name[length] && length < sizeof lock->name - 1; length++) { lock->name[length] = name[length]; }
  lock->name[length] = 0;
}
HCK_INLINE char *_Nonnull hck_occurrence_name(hck_occurrence *_Nonnull o) { return o->name; }
_Static_assert(HCK_KNOWN_ORDERS == 64 && HCK_KNOWN_HANDOVERS == 16 && HCK_OWN_LOCKS == 32, "hashes are shifted");

HCK_INLINE uint64_t hck_mixed(uint64_t a) {
  a ^= a >> 32;
  a *= 0xd6e8feb86659fd93ull;
  return a ^ a >> 32;
}
// What one entry adds to the key of those below: which lock, how, and from where in the code.
HCK_INLINE uint64_t hck_order_key(hck_orders *_Nonnull o, uint64_t below, const hck_entry *_Nonnull e) {
  uint64_t from = e->window[1] + (e->levels ? e->chain[1] * 3 : 0);
  uint64_t era = __atomic_load_n(hck_era(o, e->resource), __ATOMIC_RELAXED);
  // One factor: a second one would need a register that is stored first.
  return ((below ^ below >> 29) + e->resource + (era << 40) + (from << 17 | from >> 47)) * 0x9e3779b97f4a7c15ull;
}
// The program's own code, as far as it is in the executable; 0, 0 where not known.
extern uint64_t hck_program_low HCK_HIDDEN, hck_program_high HCK_HIDDEN;
void hck_find_program(void) HCK_HIDDEN;
// The first word above a frame that is a return address of the program's: libraries that keep no
// frame pointer hide their callers. Only of a call that goes on. 0 where there is none.
HCK_INLINE uint64_t hck_program_return(const hck_slot *_Nonnull slot, const hck_entry *_Nonnull entry) {
  uint64_t at = entry->frame, end = at >= slot->stack_low && at < slot->stack_high ? slot->stack_high : (at | 4095) + 1;
  if (entry->length != HCK_WINDOW_BYTES) { return 0; }
  at += 8;
  for (uint32_t words = 0; words < HCK_ORDER_WORDS && at + 8 <= end; words++, at += 8) {
    uint64_t word = *(const uint64_t *)at;
    if (word < hck_program_low + 8 || word >= hck_program_high) { continue; }
    const uint8_t *code = (const uint8_t *)word;
    if (code[-5] == 0xe8 || code[-2] == 0xff || code[-3] == 0xff || code[-6] == 0xff) { return word; }
  }
  return 0;
}
// Keeps more of the stack than a site's window does.
HCK_INLINE void hck_order_more(
  const hck_slot *_Nonnull slot, hck_order_site *_Nonnull record, const hck_entry *_Nonnull entry) {
  uint64_t at = entry->frame, end = at >= slot->stack_low && at < slot->stack_high ? slot->stack_high : (at | 4095) + 1;
  uint32_t words = 0;
  at += HCK_WINDOW_BYTES;
  if (entry->length == HCK_WINDOW_BYTES) {
    for (; words < HCK_ORDER_WORDS && at + 8 <= end; words++, at += 8) { record->more[words] = *(const uint64_t *)at; }
  }
  record->more_words = words;
}
// Grows a word of a clock; whether it did.
HCK_INLINE int hck_clock_raise(uint32_t *_Nonnull word, uint32_t epoch) {
  uint32_t there = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (there < epoch) {
    if (__atomic_compare_exchange_n(word, &there, epoch, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) { return 1; }
  }
  return 0;
}

#endif
