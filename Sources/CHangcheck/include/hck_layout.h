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
#define HCK_LAYOUT_VERSION 1u

// A resource word: address in bits 0-55, kind in 56-59, then flags.
#define HCK_ADDRESS_MASK 0x00ffffffffffffffull
#define HCK_KIND_SHIFT 56
#define HCK_SHARED (1ull << 60) // held or wanted for reading
#define HCK_TIMED (1ull << 61)  // the wait ends by itself
#define HCK_HOLE (1ull << 62)   // an entry that was released out of order

enum hck_kind {
  HCK_MUTEX = 1,
  HCK_RWLOCK = 2,
  HCK_SPIN = 3,
  HCK_CONDITION = 4,
  HCK_BARRIER = 5,
  HCK_JOIN = 6, // the address is the pthread_t that is waited for
};

// Where something was acquired: the frame address of the recorder's entry point and what lay on the
// stack from there up. window[0] is the caller's rbp, window[1] the return address, the rest the
// top of the caller's stack. Code that keeps frame pointers, as unoptimised code does, is followed
// further: chain holds for each frame its address and the return address in it, and after the last
// one the rbp that it saved. So wrappers that have returned are seen through.
#define HCK_WINDOW_WORDS 6
#define HCK_WINDOW_BYTES (HCK_WINDOW_WORDS * 8)
#define HCK_CHAIN_LEVELS 4

typedef struct hck_entry {
  uint64_t resource;
  uint32_t since;  // arena clock, milliseconds
  uint16_t length; // bytes of the window that are true
  uint16_t levels; // frames of the chain that are true
  uint64_t window[HCK_WINDOW_WORDS]; // from offset 16: no copy of 16 bytes crosses a cache line
  uint64_t chain[HCK_CHAIN_LEVELS * 2 + 1];
  uint64_t frame; // 0 where no site was kept
} hck_entry;

enum hck_slot_state {
  HCK_SLOT_FREE = 0,
  HCK_SLOT_STARTING = 1, // reserved by the creator of the thread
  HCK_SLOT_LIVE = 2,
  HCK_SLOT_EXITED = 3, // kept since the thread still held something
};

#define HCK_SLOT_BYTES 8192
#define HCK_SLOT_ENTRIES 50 // held inside the slot; more go to a chunk

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
  char reserved[HCK_SLOT_BYTES - 64 - 48 - 16 - 16 - 8 - 16 - (HCK_SLOT_ENTRIES + 1) * sizeof(hck_entry)];
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
} hck_arena;

#define HCK_FIRST_SLOT 8192

_Static_assert(sizeof(hck_entry) == 144, "an entry keeps the windows aligned");
_Static_assert(sizeof(hck_slot) == HCK_SLOT_BYTES, "slots are found by index");

// What an agent says when it has begun; the arena's descriptor comes with it.
typedef struct hck_hello {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;
  uint64_t size;
} hck_hello;

#endif
