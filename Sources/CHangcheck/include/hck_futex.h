// The slow side of a lock whose word is a priority-inheriting futex, as Synchronization.Mutex has
// it. Swift can call neither syscall nor a pause instruction.
#ifndef HCK_FUTEX_H
#define HCK_FUTEX_H

#include "hck_thread.h"

// Takes the lock: looks at it for a while, then waits in the kernel. 0 or an errno; EDEADLK where
// the wait would never end.
int hck_futex_lock(uint32_t *_Nonnull word, uint32_t tid) HCK_HIDDEN;
// Whether a thread with that id lives in this process.
int hck_lives_here(uint32_t tid) HCK_HIDDEN;

#endif
