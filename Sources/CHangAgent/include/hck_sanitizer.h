// ThreadSanitizer, in a program that was built with it: a copy of what it prints, and the edges of
// happens-before that its own interceptors miss.
#ifndef HCK_SANITIZER_H
#define HCK_SANITIZER_H

#include "hck_thread.h"

// Appended to TSAN_OPTIONS: with it each line is printed as ever and handed to syslog(), in front of
// which the agent stands. It alone swallows them, so the word goes where the agent goes.
#define HCK_SANITIZER_VARIABLE "TSAN_OPTIONS="
#define HCK_SANITIZER_WORD "log_to_syslog=1"
// That variable with the word, as the programs that this one starts are to find it; "" for none.
extern char hck_sanitizer_entry[4096] HCK_HIDDEN;

// Takes the word out of the environment and remembers what was there. Before main.
void hck_take_sanitizer_word(char *_Nullable *_Nonnull environment) HCK_HIDDEN;
// Looks for the runtime. No other thread runs yet.
void hck_resolve_sanitizer(void) HCK_HIDDEN;

// The arena of this process, and where the copy is kept in it; in Swift. NULL where there is none.
hck_arena *_Nullable hck_agent_arena(void);
hck_words *_Nullable hck_agent_words(void);

// The runtime's own code; both 0 where there is none.
extern uint64_t hck_sanitizer_low HCK_HIDDEN, hck_sanitizer_bytes HCK_HIDDEN;
HCK_INLINE int hck_in_sanitizer(uint64_t address) { return address - hck_sanitizer_low < hck_sanitizer_bytes; }

// NULL where the program is not built with ThreadSanitizer.
extern void (*_Nullable hck_tsan_acquire)(void *_Nonnull) HCK_HIDDEN;
extern void (*_Nullable hck_tsan_release)(void *_Nonnull) HCK_HIDDEN;

// Everything that was done before a release of an address comes before what is done after an acquire
// of it. One load where there is no ThreadSanitizer. Async-signal-safe as far as the runtime is.
HCK_INLINE void hck_hb_release(const void *_Nonnull address) {
  if (__builtin_expect(hck_tsan_release != 0, 0)) { hck_tsan_release((void *)address); }
}
HCK_INLINE void hck_hb_acquire(const void *_Nonnull address) {
  if (__builtin_expect(hck_tsan_acquire != 0, 0)) { hck_tsan_acquire((void *)address); }
}

#endif
