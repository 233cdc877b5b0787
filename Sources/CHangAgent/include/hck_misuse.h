// What the agent keeps of a thread's misuse, and the runtime's functions that tell of it.
#ifndef HCK_MISUSE_H
#define HCK_MISUSE_H

#include "hck_real.h"
#include "hck_alarm.h"
#include "hck_system.h"

// <unistd.h> declares syscall with an ellipsis, which sandbox.c defines without.
extern int getpid(void);

// A lock that was refused with EDEADLK, until the thread shows whether it saw that.
typedef struct hck_refused {
  uint64_t word; // 0 for none
  uint64_t has_held;
  hck_entry site; // of the refused call
  hck_entry held; // where the thread had taken it
} hck_refused;
extern __thread hck_refused hck_tls_refused __attribute__((tls_model("initial-exec"))) HCK_HIDDEN;
HCK_INLINE hck_refused *_Nonnull hck_refusal(void) { return &hck_tls_refused; }
HCK_INLINE hck_entry *_Nonnull hck_refusal_site(hck_refused *_Nonnull r) { return &r->site; }
HCK_INLINE hck_entry *_Nonnull hck_refusal_held(hck_refused *_Nonnull r) { return &r->held; }

// In Swift, called from the C stubs. A one-time initialisation: what the stub and, on the thread
// that runs it, the initialiser are to record. Signal-safe.
typedef struct hck_once {
  uint64_t word;
  uint64_t before; // the wait that this one stands in
  const void *_Nonnull frame;
  hck_slot *_Nullable slot;
  void (*_Nonnull body)(void *_Nullable);
  void *_Nullable context;
} hck_once;
void hck_once_begin(hck_once *_Nonnull once);
void hck_once_run(void *_Nullable once);
void hck_once_end(hck_once *_Nonnull once);

// The wait for a priority-inheriting futex, around the call; `error`: what the kernel said.
uint64_t hck_futex_begin(const void *_Nonnull word);
void hck_futex_end(const void *_Nonnull word, uint64_t before, int error, const void *_Nonnull frame);

// In Swift, called by the library's destructor.
void hck_agent_end(void);
HCK_INLINE uint32_t hck_process_id(void) { return (uint32_t)getpid(); }

// What the Swift runtime says of a continuation.
void hck_continuation_misused(const char *_Nonnull text, const void *_Nonnull frame);

#endif
