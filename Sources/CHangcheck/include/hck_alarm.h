// How a thread that raised an alarm waits, and how it is let go. The futex is one between
// processes: who watches may be another one.
#ifndef HCK_ALARM_H
#define HCK_ALARM_H

#include "hck_thread.h"
#include <stdint.h>

// C's arrays are tuples in Swift.
HCK_INLINE hck_alarm *_Nonnull hck_alarms(hck_arena *_Nonnull arena) { return arena->alarms; }
HCK_INLINE uint64_t *_Nonnull hck_told(hck_arena *_Nonnull arena) { return arena->told; }
HCK_INLINE char *_Nonnull hck_alarm_text(hck_alarm *_Nonnull alarm) { return alarm->text; }
HCK_INLINE char *_Nonnull hck_alarm_name(hck_alarm *_Nonnull alarm) { return alarm->name; }
HCK_INLINE hck_entry *_Nonnull hck_alarm_site(hck_alarm *_Nonnull alarm) { return &alarm->site; }
HCK_INLINE hck_entry *_Nonnull hck_alarm_other_site(hck_alarm *_Nonnull alarm) { return &alarm->other_site; }
HCK_INLINE uint32_t hck_is_confined(void) { return hck_confined; }

// Sleeps while the word is `expected`, `milliseconds` at most. Not by way of syscall(), which the
// agent interposes and which would set errno. Async-signal-safe; no cancellation point.
void hck_alarm_sleep(const uint32_t *_Nonnull word, uint32_t expected, uint32_t milliseconds);
// Wakes all that sleep so.
void hck_alarm_wake(const uint32_t *_Nonnull word);

#endif
