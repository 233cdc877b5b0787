// The recorder's memory: what the watched process writes and hangcheck reads.
//
// One arena a process. Slots grow from its start, chunks of held locks from its end; both only
// grow, freed ones are used again. Everything is written by its own thread and read by anyone at
// any time:
//   I1  an entry's `resource` is 0 from its reservation until its other fields are written, and again from its release
//   I2  entries at and above `count` are free
//   I3  a wait is written before the call that may block and cleared after it: a thread that took the lock but has not
//       cleared its wait yet looks as if it waited, so a reader asks the kernel and the lock's memory before it believes
#ifndef HCK_LAYOUT_H
#define HCK_LAYOUT_H

#include <stdint.h>

#define HCK_MAGIC 0x6b63656863676e68ull // "hngcheck"
#define HCK_LAYOUT_VERSION 7u

// A resource word: address in bits 0-55, kind in 56-59, then flags.
#define HCK_ADDRESS_MASK 0x00ffffffffffffffull
#define HCK_KIND_SHIFT 56
#define HCK_SHARED (1ull << 60) // held or wanted for reading
#define HCK_TIMED (1ull << 61)  // the wait ends by itself; what is held was taken without a wait, or with such a one
#define HCK_HOLE (1ull << 62)   // an entry that was released out of order

enum hck_kind {
  HCK_MUTEX = 1,
  HCK_RWLOCK = 2,
  HCK_SPIN = 3,
  HCK_CONDITION = 4,
  HCK_BARRIER = 5,
  HCK_JOIN = 6, // the address is the pthread_t that is waited for
  HCK_SEMAPHORE = 7,       // dispatch_semaphore_t, the C object
  HCK_GROUP = 8,           // dispatch_group_t
  HCK_QUEUE = 9,           // dispatch_queue_t; shared: a reader of a concurrent queue
  HCK_ONCE = 10,           // the token of dispatch_once or swift_once
  HCK_POSIX_SEMAPHORE = 11, // sem_t
  HCK_FUTEX_LOCK = 12,     // the word of a priority-inheriting futex, as Synchronization.Mutex has
  HCK_OPERATION = 13,      // a Foundation Operation, the Swift object
  HCK_OPERATION_QUEUE = 14,
  HCK_WORK_ITEM = 15,      // a block object of libdispatch
};

// Where something was acquired: the frame address of the recorder's entry point and what lay on the
// stack from there up. window[0] is the caller's rbp, window[1] the return address, the rest the
// top of the caller's stack. Code that keeps frame pointers, as unoptimised code does, is followed
// further: chain holds for each frame the rbp that it saved, which is where the next frame lies, and
// the return address in it; the first lies at window[0]. So wrappers that have returned are seen
// through.
#define HCK_WINDOW_WORDS 6
#define HCK_WINDOW_BYTES (HCK_WINDOW_WORDS * 8)
#define HCK_CHAIN_LEVELS 4

typedef struct hck_entry {
  uint64_t resource;
  uint32_t since;  // arena clock, milliseconds
  uint16_t length; // bytes of the window that are true
  uint16_t levels; // frames of the chain that are true
  uint64_t window[HCK_WINDOW_WORDS]; // from offset 16: no copy of 16 bytes crosses a cache line
  uint64_t chain[HCK_CHAIN_LEVELS * 2];
  uint64_t order; // of a lock taken while others were held: a hash of them all and of where they were taken
  uint64_t frame; // 0 where no site was kept
  uint32_t node;  // the same in the log of orders; 0 while it is not known
  uint32_t unused;
  uint64_t looked_at; // of the outermost entry: the last resource that was looked for in the log
} hck_entry;

// What a thread did to something that it does not hold in the sense of a lock: permits taken and
// given back, groups entered and left. One record for each resource, operation and call site that
// a thread used lately; what is evicted, and what a thread leaves behind at its end, goes to a
// table that all threads share.
enum hck_operation {
  HCK_TAKE = 1,   // semaphore waited for and got; group entered; queue or source suspended
  HCK_GIVE = 2,   // semaphore or condition signalled; group left; queue or source resumed
  HCK_NOTIFY = 3, // group or work item: notify asked for
  HCK_CREATE = 4, // made here; `count` is the initial value
  HCK_TAKE_BY_BLOCK = 5, // dispatch_group_async: entered here, left when the block has run
  HCK_GIVE_BY_BLOCK = 6, // left by libdispatch, after such a block
};
#define HCK_TALLY_WORDS 24
typedef struct hck_tally {
  uint64_t resource; // resource word without flags; 0 free
  uint64_t key;      // of resource, operation and call site; 0 in a free one
  uint32_t operation;
  uint32_t tid;      // 0 where several threads that have ended share the record
  uint64_t count;
  uint32_t first, last; // arena clock
  hck_entry site;       // its `resource` is not used
  char name[16];        // of a thread that has ended
  // What lay on the stack above the site's window: wrappers of the libraries keep no frame pointers.
  uint64_t more_words;
  uint64_t more[HCK_TALLY_WORDS];
} hck_tally;
// Of one thread; in a chunk of their own, made at the first use.
#define HCK_TALLIES 16
#define HCK_TALLY_HINTS 256
typedef struct hck_tallies {
  // By the top byte of a key, where its record lies if it is there: an offset from here. So a
  // record is found with two loads, and any record may serve any key.
  uint16_t hints[HCK_TALLY_HINTS];
  uint64_t reach; // how far away the caller's frame may be that takes part in the key
  uint32_t next;  // where the search for room begins
  uint32_t busy;  // the records are being changed: a signal's handler leaves them alone
  uint64_t unused[6];
  hck_tally records[HCK_TALLIES];
} hck_tallies;
// Of all threads: a chunk that holds first the resource words (0 free, 1 being written), then the
// records. Those of one address lie among the HCK_TALLY_RUN behind its hash.
#define HCK_SHARED_TALLIES 16384
#define HCK_TALLY_RUN 64

// Something is wrong, or about to be: said by the thread that does it, read by whoever watches.
enum hck_alarm_kind {
  HCK_ALARM_FOREIGN_UNLOCK = 1, // other: the owner's tid
  HCK_ALARM_UNLOCK_OF_UNLOCKED = 2,
  HCK_ALARM_DESTROY_HELD = 3, // other: the owner's tid
  HCK_ALARM_INIT_HELD = 4,    // other: the owner's tid
  HCK_ALARM_FREED_HELD = 5,   // other: the owner's tid
  HCK_ALARM_EXIT_HELD = 6,    // a thread ended with it
  HCK_ALARM_WRITE_TWICE = 7,  // EDEADLK of a second write lock
  HCK_ALARM_GROUP_OVERLEFT = 8,
  HCK_ALARM_GROUP_ABANDONED = 9, // its last reference goes; other: enters outstanding
  HCK_ALARM_SEMAPHORE_LOW = 10,  // its last reference goes; other: how many are missing
  HCK_ALARM_SEMAPHORE_HIGH = 11, // a limiter is signalled above its first value
  HCK_ALARM_SYNC_SELF = 12,      // dispatch_sync onto a queue that this thread runs on
  HCK_ALARM_OVERRESUMED = 13,
  HCK_ALARM_RELEASED_SUSPENDED = 14, // other: 1 when it was never activated
  HCK_ALARM_TARGET_CYCLE = 15,
  HCK_ALARM_WAITED_TWICE = 16, // a work item
  HCK_ALARM_BARRIER_ON_GLOBAL = 17,
  HCK_ALARM_CONDITION_WITHOUT_MUTEX = 18, // other: the mutex
  HCK_ALARM_CONDITION_TWO_MUTEXES = 19,   // other: the mutex
  HCK_ALARM_CONTINUATION = 20, // text: what the Swift runtime says
  HCK_ALARM_FUTEX_DEADLOCK = 21, // the kernel refuses to wait: a circle of priority inheritance
  HCK_ALARM_ONCE_REENTERED = 22,
  HCK_ALARM_AT_EXIT = 23, // the program ends with something outstanding
  HCK_ALARM_OPERATION_CYCLE = 24,
  HCK_ALARM_FORKED_HELD = 25, // a child locks what another thread of its parent held
  HCK_ALARM_IDENTITY_CHANGED = 26, // synchronized: the object is another one at the end
  HCK_ALARM_DATA_RACE = 27,   // other: where its hck_race lies in the arena
  HCK_ALARM_STALE_WRITE = 28, // the same
};
enum hck_alarm_state {
  HCK_ALARM_FREE = 0,
  HCK_ALARM_WRITTEN = 1, // being written
  HCK_ALARM_RAISED = 2,
  HCK_ALARM_TAKEN = 3, // somebody reads it
  HCK_ALARM_TOLD = 4,  // its thread waits for this; it then makes it free
};
typedef struct hck_alarm {
  uint32_t state; // a futex, shared between processes
  uint32_t kind;
  uint64_t resource; // resource word
  uint64_t other;
  uint32_t tid;
  uint32_t clock;
  uint32_t waits; // 1: the thread stands still until it is told, for what comes next is a trap
  uint32_t slot;  // index + 1; 0 where the thread has none
  hck_entry site;
  union {
    char text[168]; // of HCK_ALARM_CONTINUATION
    struct {        // of all others
      hck_entry other_site; // where the other side of the misuse lies: a lock was taken
      uint64_t has_other_site;
      char name[16]; // of the thread, for it may have ended when it is told
    };
  };
} hck_alarm;
#define HCK_ALARMS 16

enum hck_slot_state {
  HCK_SLOT_FREE = 0,
  HCK_SLOT_STARTING = 1, // reserved by the creator of the thread
  HCK_SLOT_LIVE = 2,
  HCK_SLOT_EXITED = 3, // kept since the thread still held something
};

#define HCK_SLOT_BYTES 8192
#define HCK_OWN_LOCKS 32
#define HCK_SLOT_ENTRIES 40 // held inside the slot; more go to a chunk

// What a thread tried to take in vain lately, without a wait or with one that ended by itself. Written
// where a try fails, and wiped where the thread gets a lock by a try while it holds others, or gets
// this one: then it gets on.
#define HCK_TRIAL_HELD 2
typedef struct hck_trial {
  uint64_t lock;     // resource word without flags; 0 while the last try was none in vain
  uint32_t failures; // since the thread got on
  uint32_t since;    // arena clock of the first of them
  uint32_t last;     // arena clock of the last whose site was kept
  uint32_t owner;    // tid that the lock's memory named then; 0 for none
  uint32_t version;  // odd while it is written
  uint32_t held;     // entries of `holds`
  hck_entry site;    // of the last
  hck_entry holds[HCK_TRIAL_HELD]; // what it held then, the newest first
  // What lay on the stack above the site's window: wrappers of the libraries keep no frame pointers.
  uint64_t more_words;
  uint64_t more[HCK_TALLY_WORDS];
} hck_trial;

typedef struct hck_slot {
  uint64_t wait;     // resource word, 0 when it does not wait
  uint64_t count;    // entries in use
  hck_entry *_Nonnull held;   // in the watched process
  uint64_t capacity; // entries at `held`
  uint64_t wait_aux; // condition: the mutex that it gives back
  uint64_t held_offset;
  uint64_t pthread; // pthread_t
  uint32_t tid;
  uint32_t state; // enum hck_slot_state

  uint32_t born;      // arena clock
  uint32_t exited;    // arena clock
  uint32_t generation; // counts the threads that used this slot
  uint32_t next_free; // index + 1
  uint32_t index;
  uint32_t rounds; // of the thread's key destructors
  uint32_t chunk;  // entries of the chunk that this slot owns
  uint32_t flags;  // HCK_SLOT_…
  uint64_t start;  // pthread_create's routine and argument, until the thread has begun
  uint64_t argument;
  hck_entry created; // site of the pthread_create
  char name[16];     // as it exited
  // The part of the stack that is certainly mapped from any frame in it up to its end; 0, 0 where
  // not known.
  uint64_t stack_low, stack_high;
  uint64_t wait_frame; // of the drop-in that waits, like an entry's frame; 0 where none is kept
  uint64_t spare_offset, spare_capacity; // room that entries lay in before, for the next time they move
  hck_tallies *_Nullable tallies; // in the watched process; NULL while it has none
  uint64_t tallies_offset;
  struct hck_thread_orders *_Nullable orders; // the same: what it knows of lock orders (hck_order.h)
  uint64_t order_base;   // a hash of the queue that it runs on; 0 for none
  uint32_t segment;      // counts what it did that another thread may build on
  uint32_t inherited;    // clock: what whoever created it knew
  uint32_t knows;        // version of what it could hand over; 0 for nothing
  uint32_t given;        // the version that it handed over last,
  uint64_t given_to;     // and by which resource
  uint64_t taken_from;   // the resource that it learned from last,
  uint64_t taken;        // and the arena's `handovers` then
  // The locks that it made lately, and the segment and the time when: nobody else may know them yet.
  uint64_t own_locks[HCK_OWN_LOCKS];
  uint32_t own_segments[HCK_OWN_LOCKS];
  uint32_t own_since[HCK_OWN_LOCKS];
  hck_trial trial;
  char reserved[HCK_SLOT_BYTES - 64 - 48 - 16 - 16 - 8 - 16 - 16 - 56 - 16 * HCK_OWN_LOCKS - sizeof(hck_trial) - (HCK_SLOT_ENTRIES + 1) * sizeof(hck_entry)];
  hck_entry entries[HCK_SLOT_ENTRIES];
} hck_slot;

#define HCK_SLOT_JOINED 1u
#define HCK_SLOT_DETACHED 2u

// Names that the program gave to resources: open addressing, a name a record.
#define HCK_NAME_RECORDS 65536
typedef struct hck_name {
  uint64_t address; // 0 free, 1 removed
  char text[56];
} hck_name;

#define HCK_FLAG_IN_PROCESS 1u
#define HCK_FLAG_ORDERS 2u     // lock orders are learned
#define HCK_FLAG_SEMAPHORES 4u // semaphores count as locks
#define HCK_INHERITED 8

// What a drop-in lock keeps right behind its pthread mutex: where it was made, for want of a name.
// Whoever reads the lock's memory finds it there, in process and from outside.
#define HCK_CREATION_MARK 0x656b616d636b6568ull // "hekcmake"
typedef struct hck_creation {
  uint64_t mark;
  const uint8_t *_Nullable file; // UTF-8, a constant of the program
  uint32_t file_bytes;
  uint32_t line;
} hck_creation;

// What a drop-in Mutex keeps right before its futex word: who holds it is in the word, where it was
// taken is here, an address in the code that did, like a return address. A store is all that the
// fast path can afford.
typedef struct hck_futex_mark {
  uint64_t taken; // by whoever holds it, or held it last
  hck_creation created;
} hck_futex_mark;

// Whether one thing at a time that comes around again and again has come around: a turn of a run loop,
// an item of a queue. Written by whoever is in it.
typedef struct hck_turns {
  uint64_t activity;   // monotonic nanoseconds since when; in the lowest bit, whether there is something to do; 0 before
  uint64_t long_began; // the last of more than HCK_LONG_TURN that has ended
  uint64_t long_ended;
  uint32_t tid;
  uint32_t unused;
} hck_turns;
#define HCK_LONG_TURN 20000000ull

typedef struct hck_arena {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t size;
  uint32_t pid;
  uint32_t flags;
  // The clock, in milliseconds: the reader moves it while it looks, so that a lock costs no clock
  // read.
  uint32_t clock;
  uint32_t slots;       // ever used, low ones first
  uint64_t free_slot;   // index + 1 in the low half, a tag against ABA in the high half
  uint64_t chunks_end;  // offset; chunks lie from here to `size`
  uint64_t names;       // offset of the table, 0 while there is none
  uint64_t unrecorded;  // events that were not recorded, for want of memory
  uint64_t tid_offset;  // of the tid inside struct pthread, 0 when it was not found
  uint64_t main_stack_end; // of the main thread's stack, 0 where not known
  uint32_t handed_over; // 1 once a thread gave back a mutex that another one took
  uint64_t base;        // of the arena in the watched process
  // Of the watched process, what lies below the first and above the second may be touched; the rest
  // is only reserved, so that mlockall does not fill it.
  uint64_t ready_low, ready_high;
  // Who the first thread was before the forks that led here, the last one first: it owns what it
  // had locked by then.
  uint32_t inherited[HCK_INHERITED];
  uint64_t shared_tallies; // offset of the table, 0 while there is none
  uint64_t orders;         // offset of the log of lock orders, 0 while there is none
  uint64_t job_entry, apply_entry; // addresses of the functions that run a job of that log,
  uint64_t item_entry;     // and of a block inside of a work item
  uint32_t seen;           // 1 once the reader knows where the process's code lies
  uint32_t unused;
  uint64_t handovers;      // counts what threads handed over of what they knew of orders
  uint32_t watched;        // 1 while somebody reads alarms, HCK_WATCH_BEGINS before the first time
  uint32_t alarms_raised;  // ever
  uint64_t told[64];       // what was alarmed about already: once for each kind and call site
  hck_alarm alarms[HCK_ALARMS];
  uint64_t words; // offset of a hck_words, 0 while ThreadSanitizer has printed nothing
  uint32_t sanitizer_tid;   // ThreadSanitizer's own thread, 0 for none
  uint32_t sanitizer_hides; // 1 where its runtime exports nothing, so that libraries do not call it
  hck_turns main_loop;  // of whichever run loop the first thread runs
  hck_turns main_queue; // of libdispatch
} hck_arena;

// What ThreadSanitizer printed: lines that end in a newline, from the beginning; 0 where nothing is
// written yet. `used` counts also what found no room.
typedef struct hck_words {
  uint64_t used;
  char text[(4 << 20) - 8];
} hck_words;

#define HCK_FIRST_SLOT 8192
#define HCK_WATCH_BEGINS 2u

_Static_assert(sizeof(hck_arena) <= HCK_FIRST_SLOT, "slots begin behind it");
_Static_assert(sizeof(hck_alarm) == 384, "a text and a second site share their room");
_Static_assert(sizeof(hck_entry) == 160, "an entry keeps the windows aligned");
_Static_assert(sizeof(hck_slot) == HCK_SLOT_BYTES, "slots are found by index");

// What an agent says when it has begun; the arena's descriptor comes with it.
typedef struct hck_hello {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;
  uint64_t size;
} hck_hello;

#endif
