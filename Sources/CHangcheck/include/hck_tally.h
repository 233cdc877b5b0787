// Counting what a thread does to semaphores and groups: the part that is expanded into the hot
// paths.
#ifndef HCK_TALLY_H
#define HCK_TALLY_H

#include "hck_thread.h"

// Keeps more of the stack than a site's window does: this is not on a hot path.
HCK_INLINE uint64_t hck_more_words(
  const hck_slot *_Nonnull slot, uint16_t length, uint64_t *_Nonnull more, const void *_Nonnull frame) {
  uint64_t at = (uint64_t)frame;
  uint64_t end = at >= slot->stack_low && at < slot->stack_high ? slot->stack_high : (at | 4095) + 1;
  uint64_t words = 0;
  at += HCK_WINDOW_BYTES;
  if (length == HCK_WINDOW_BYTES) {
    for (; words < HCK_TALLY_WORDS && at + 8 <= end; words++, at += 8) { more[words] = *(const uint64_t *)at; }
  }
  return words;
}
HCK_INLINE void hck_more_site(
  const hck_slot *_Nonnull slot, hck_tally *_Nonnull record, const void *_Nonnull frame) {
  record->more_words = hck_more_words(slot, record->site.length, record->more, frame);
}
HCK_INLINE void hck_trial_site(hck_slot *_Nonnull slot, const void *_Nonnull frame) {
  hck_site(slot, &slot->trial.site, frame);
  slot->trial.more_words = hck_more_words(slot, slot->trial.site.length, slot->trial.more, frame);
}

// One number for resource, operation and call site. The call site is the return address and, where
// the frame pointer leads to a frame on this thread's stack, the return address there: wrappers are
// told apart by who called them.
HCK_INLINE uint64_t hck_tally_key(
  const hck_slot *_Nonnull slot, const hck_tallies *_Nonnull tallies, uint64_t word,
  uint32_t operation, const void *_Nonnull frame) {
  uint64_t at = (uint64_t)frame, next = ((const uint64_t *)frame)[0];
  uint64_t site = ((const uint64_t *)frame)[1];
  if (next - at - 1 < tallies->reach && next + 16 <= slot->stack_high && at >= slot->stack_low) {
    site += ((const uint64_t *)next)[1] * 5;
  }
  return (word | (uint64_t)operation << 60) * 0x9e3779b97f4a7c15ull + site * 0xd6e8feb86659fd93ull;
}

// Counts once more what is on the thread's record already; 0 when it is not. What a signal's
// handler counts meanwhile is at worst lost.
HCK_INLINE int hck_tally_again(
  hck_slot *_Nonnull slot, uint64_t word, uint32_t operation, const void *_Nonnull frame) {
  hck_tallies *tallies = slot->tallies;
  if (__builtin_expect(!tallies, 0)) { return 0; }
  uint64_t key = hck_tally_key(slot, tallies, word, operation, frame);
  hck_tally *record = (hck_tally *)((char *)tallies + tallies->hints[key >> 56]);
  if (__builtin_expect(record->key != key, 0)) { return 0; }
  record->count += 1;
  record->last = __atomic_load_n(&hck_current_arena->clock, __ATOMIC_RELAXED);
  return 1;
}

// Swift imports neither arrays of this length nor offsets of members.
HCK_INLINE hck_tally *_Nonnull hck_tally_at(hck_tallies *_Nonnull tallies, uint32_t index) {
  return &tallies->records[index];
}
HCK_INLINE void hck_tally_hint(
  hck_tallies *_Nonnull tallies, uint64_t key, const hck_tally *_Nonnull record) {
  tallies->hints[key >> 56] = (uint16_t)((const char *)record - (const char *)tallies);
}
// Every hint leads to the first record.
HCK_INLINE void hck_tally_clear_hints(hck_tallies *_Nonnull tallies) {
  for (int i = 0; i < HCK_TALLY_HINTS; i++) {
    tallies->hints[i] = (uint16_t)__builtin_offsetof(hck_tallies, records);
  }
}
// The return address that a site begins with.
HCK_INLINE uint64_t hck_tally_return(const hck_tally *_Nonnull record) {
  return record->site.length >= 16 ? record->site.window[1] : 0;
}
HCK_INLINE char *_Nonnull hck_tally_name(hck_tally *_Nonnull record) { return record->name; }

#define HCK_SHARED_TALLIES_BYTES (HCK_SHARED_TALLIES * (sizeof(uint64_t) + sizeof(hck_tally)))
HCK_INLINE uint64_t hck_shared_tallies_bytes(void) { return HCK_SHARED_TALLIES_BYTES; }
HCK_INLINE uint64_t *_Nonnull hck_shared_tally_word(void *_Nonnull table, uint32_t index) {
  return (uint64_t *)table + (index & (HCK_SHARED_TALLIES - 1));
}
HCK_INLINE hck_tally *_Nonnull hck_shared_tally(void *_Nonnull table, uint32_t index) {
  return (hck_tally *)((uint64_t *)table + HCK_SHARED_TALLIES) + (index & (HCK_SHARED_TALLIES - 1));
}
HCK_INLINE uint32_t hck_shared_tally_start(uint64_t word) {
  return (uint32_t)(((word & HCK_ADDRESS_MASK) * 0x9e3779b97f4a7c15ull) >> 40) & (HCK_SHARED_TALLIES - 1);
}
HCK_INLINE void hck_add64(uint64_t *_Nonnull p, uint64_t n) { __atomic_fetch_add(p, n, __ATOMIC_RELAXED); }

_Static_assert(__builtin_offsetof(hck_tallies, records) + sizeof(hck_tally) * HCK_TALLIES < 65536, "hints are short");
_Static_assert((HCK_SHARED_TALLIES & (HCK_SHARED_TALLIES - 1)) == 0, "indices are masked");

#endif
