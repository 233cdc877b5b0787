// What steering needs of C: places in the code, and functions in place of the real ones.
#include "include/hck_steer.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

// <unistd.h> declares it with an ellipsis, which sandbox.c defines without.
extern long syscall(long number, long a, long b, long c, long d, long e, long f);
// glibc's since 2.35: looks an address up without a lock, which dladdr and dl_iterate_phdr take.
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

hck_plan hck_steering_plan;

// Cuts the text at the next of these characters; what lies behind it, or NULL.
static char *cut(char *text, const char *at) {
  char *end = strpbrk(text, at);
  if (end) { *end++ = 0; }
  return end;
}

static void read_site(char *text, hck_call_site *site) {
  while (text && site->count < HCK_PLACES) {
    char *rest = cut(text, ":");
    char *plus = strrchr(text, '+');
    hck_place *place = &site->places[site->count++];
    place->image = text;
    place->offset = plus ? strtoull(plus + 1, 0, 16) : UINT64_MAX;
    if (plus) { *plus = 0; }
    text = rest;
  }
}

// <milliseconds>[.<late>]@<step>[,<step>]…, where a step is <asks>[/<took>].
void hck_take_plan(char *text) {
  hck_plan *plan = &hck_steering_plan;
  char *steps = cut(text, "@");
  if (!steps || !_dl_find_object) { return; }
  char *late = cut(text, ".");
  plan->patience = strtoull(text, 0, 10) * 1000000;
  plan->late = late ? (uint32_t)strtoul(late, 0, 10) : 0;
  while (steps && plan->count < HCK_STEPS) {
    char *rest = cut(steps, ",");
    char *took = cut(steps, "/");
    hck_step *step = &plan->steps[plan->count++];
    read_site(steps, &step->asks);
    read_site(took, &step->took);
    steps = rest;
  }
}

// A library is loaded as libx.so.1 and mapped as libx.so.1.2. `_` stands for what a plan cannot spell.
static int is_image(const char *loaded, const char *planned) {
  const char *slash = strrchr(loaded, '/');
  const char *name = slash ? slash + 1 : loaded;
  if (!*name || !*planned) { return !*name && !*planned; }
  while (*name && *planned && (*name == *planned || *planned == '_')) {
    name++;
    planned++;
  }
  return !*name || !*planned;
}

static int is_place(uint64_t address, const hck_place *place) {
  if (place->offset == UINT64_MAX) { return 1; }
  // Images begin on pages: most addresses are told apart without a look for theirs.
  if ((address ^ place->offset) & 4095) { return 0; }
  struct dl_find_object found;
  if (_dl_find_object((void *)address, &found) != 0) { return 0; }
  return address - (uint64_t)found.dlfo_map_start == place->offset &&
         is_image(found.dlfo_link_map->l_name, place->image);
}

int hck_is_at(const hck_entry *entry, const hck_call_site *site) {
  if (site->count == 0 || entry->length < 16) { return 0; }
  for (uint32_t i = 0; i < site->count; i++) {
    if (i > entry->levels) { return 0; }
    if (!is_place(i == 0 ? entry->window[1] : entry->chain[2 * i - 1], &site->places[i])) { return 0; }
  }
  return 1;
}

void hck_nap(void) {
  int error = errno;
  struct timespec time = {0, 1000000};
  syscall(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
  errno = error;
}

// The agent's entry point stands above, perhaps behind helpers of its own.
static void steer_from(const uint64_t *frame) {
  for (int depth = 0; depth < 8; depth++) {
    if (!hck_in_agent(frame[1])) {
      hck_steer(frame);
      return;
    }
    frame = (const uint64_t *)frame[0];
  }
}

// What may wait without a limit for what somebody holds.
#define WAITING(X)                                                               \
  X(int, pthread_mutex_lock, (HCK_M m), (m))                                     \
  X(int, mtx_lock, (mtx_t * m), (m))                                             \
  X(int, pthread_rwlock_rdlock, (HCK_R l), (l))                                  \
  X(int, pthread_rwlock_wrlock, (HCK_R l), (l))                                  \
  X(int, pthread_spin_lock, (pthread_spinlock_t * s), (s))                       \
  X(int, sem_wait, (sem_t * s), (s))                                             \
  X(intptr_t, dispatch_semaphore_wait, (HCK_O s, uint64_t t), (s, t))            \
  X(void, dispatch_sync, (HCK_O q, HCK_O b), (q, b))                             \
  X(void, dispatch_barrier_sync, (HCK_O q, HCK_O b), (q, b))                     \
  X(void, dispatch_async_and_wait, (HCK_O q, HCK_O b), (q, b))                   \
  X(void, dispatch_barrier_async_and_wait, (HCK_O q, HCK_O b), (q, b))           \
  X(void, dispatch_sync_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))                 \
  X(void, dispatch_barrier_sync_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))         \
  X(void, dispatch_async_and_wait_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))       \
  X(void, dispatch_barrier_async_and_wait_f, (HCK_O q, HCK_N c, HCK_F), (q, c, f))

#define STEERED(type, name, parameters, arguments)  \
  static type(*real_##name) parameters;             \
  static type steered_##name parameters {           \
    steer_from(__builtin_frame_address(0));         \
    return real_##name arguments;                   \
  }
WAITING(STEERED)

void hck_install_steering(void) {
#define INSTALL(type, name, parameters, arguments) \
  real_##name = hck_pointer_##name;                \
  hck_pointer_##name = steered_##name;
  if (hck_is_steered()) { WAITING(INSTALL) }
}
