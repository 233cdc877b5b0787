// Steering: in a run that is to confirm a predicted deadlock, threads are held back where the cycle's
// threads ask for what closes it, until it closes or patience ends. An idea of DeadlockFuzzer's (Joshi,
// Park, Sen, Naik, PLDI'09).
//
// The plan comes in HANGCHECK_LINK, as `SteeringPlan.swift` writes it: places in the code as image and
// offset, since addresses differ from run to run. A run without one has none of this in its way: the
// pointers to the real functions are only then led through here.
#ifndef HCK_STEER_H
#define HCK_STEER_H

#include "hck_dispatch.h"

#define HCK_STEPS 32
#define HCK_PLACES 3
#define HCK_PLAN_BYTES 3072

// A place in the code: a return address. `image` may be empty: the executable.
typedef struct hck_place {
  const char *_Nonnull image;
  uint64_t offset; // from the image's first mapped byte; UINT64_MAX where it is not known
} hck_place;
// A call site: the return address, its caller's, and that one's caller's, as a lock order keeps them.
typedef struct hck_call_site {
  hck_place places[HCK_PLACES];
  uint32_t count; // 0 for none
} hck_call_site;
typedef struct hck_step {
  hck_call_site asks; // where the thread asks for what closes the cycle,
  hck_call_site took; // and where it took what it holds then
  uint32_t waiting;   // threads that are held back there now
} hck_step;
typedef struct hck_plan {
  uint32_t count; // of steps; 0 where nothing is steered
  uint32_t late;  // number of the step whose threads are not to take what they hold too early; 0 for none
  uint32_t fruitless; // how often a thread was held back and no cycle closed
  uint32_t unused;
  uint64_t patience; // of the first time, nanoseconds; half as much each further time
  hck_step steps[HCK_STEPS];
} hck_plan;
extern hck_plan hck_steering_plan HCK_HIDDEN;

HCK_INLINE int hck_is_steered(void) { return hck_steering_plan.count != 0 && !hck_confined; }
HCK_INLINE hck_plan *_Nonnull hck_plan_get(void) { return &hck_steering_plan; }
HCK_INLINE hck_step *_Nonnull hck_plan_step(uint32_t index) { return &hck_steering_plan.steps[index]; }

// Takes over a plan's text, which it keeps and writes into.
void hck_take_plan(char *_Nonnull text) HCK_HIDDEN;
// Leads the calls that may wait through `hck_steer`. Called once, by the constructor.
void hck_install_steering(void) HCK_HIDDEN;
// Whether an entry's site is that call site. Async-signal-safe; takes no lock.
int hck_is_at(const hck_entry *_Nonnull entry, const hck_call_site *_Nonnull site) HCK_HIDDEN;
// Sleeps for a millisecond, or less where a signal comes. No point of cancellation; keeps errno.
void hck_nap(void) HCK_HIDDEN;
// In Swift: the calling thread is about to ask for what its slot says that it waits for. `frame`: of the
// agent's entry point.
void hck_steer(const void *_Nonnull frame);

#endif
