// Threads that fail in turn to take what the others hold, and what looks like it.
#include "fixture.h"

#include <semaphore.h>
#include <threads.h>

#define MOST 3
static pthread_mutex_t mutexes[MOST] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t records[MOST] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static pthread_spinlock_t spins[MOST];
static sem_t permits[MOST];
static mtx_t c11[MOST];

// What a scenario does to the lock of a number: 1 where it got it.
static void (*take)(int);
static int (*try)(int);
static void (*give)(int);
static int members = 2, milliseconds = 3000;

static void lock_mutex(int i) { pthread_mutex_lock(&mutexes[i]); }  // HOLDS(try:ann,try:ben,timed:ann,timed:ben,clock:ann,clock:ben,two-seconds:ann,two-seconds:ben,three:ann,three:ben,three:cat)
static void unlock_mutex(int i) { pthread_mutex_unlock(&mutexes[i]); }
static int try_mutex(int i) { return pthread_mutex_trylock(&mutexes[i]) == 0; }  // WAITS(try:ann,try:ben,two-seconds:ann,two-seconds:ben,inside:ann,inside:ben,three:ann,three:ben,three:cat)
static int time_mutex(int i) {
  struct timespec at = in(CLOCK_REALTIME, 20);
  return pthread_mutex_timedlock(&mutexes[i], &at) == 0;  // WAITS(timed:ann,timed:ben)
}
static int clock_mutex(int i) {
  struct timespec at = in(CLOCK_MONOTONIC, 20);
  return pthread_mutex_clocklock(&mutexes[i], CLOCK_MONOTONIC, &at) == 0;  // WAITS(clock:ann,clock:ben)
}
static void read_record(int i) { pthread_rwlock_rdlock(&records[i]); }  // HOLDS(readers:ann,readers:ben)
static void write_record(int i) { pthread_rwlock_wrlock(&records[i]); }  // HOLDS(writers:ann,writers:ben)
static int try_record(int i) { return pthread_rwlock_trywrlock(&records[i]) == 0; }  // WAITS(readers:ann,readers:ben)
static int time_record(int i) {
  struct timespec at = in(CLOCK_REALTIME, 20);
  return pthread_rwlock_timedwrlock(&records[i], &at) == 0;  // WAITS(writers:ann,writers:ben)
}
static void unlock_record(int i) { pthread_rwlock_unlock(&records[i]); }
static void lock_spin(int i) { pthread_spin_lock(&spins[i]); }  // HOLDS(spin:ann,spin:ben)
static int try_spin(int i) { return pthread_spin_trylock(&spins[i]) == 0; }  // WAITS(spin:ann,spin:ben)
static void unlock_spin(int i) { pthread_spin_unlock(&spins[i]); }
static void lock_permit(int i) { sem_wait(&permits[i]); }  // HOLDS(permits:ann,permits:ben)
static int time_permit(int i) {
  struct timespec at = in(CLOCK_REALTIME, 20);
  return sem_timedwait(&permits[i], &at) == 0;  // WAITS(permits:ann,permits:ben)
}
static void unlock_permit(int i) { sem_post(&permits[i]); }
static void lock_c11(int i) { mtx_lock(&c11[i]); }  // HOLDS(c11:ann,c11:ben)
static int try_c11(int i) { return mtx_trylock(&c11[i]) == thrd_success; }  // WAITS(c11:ann,c11:ben)
static void unlock_c11(int i) { mtx_unlock(&c11[i]); }

// All members come here before any goes on; no call that is watched says so.
static int arrived, generation;
static void step(void) {
  int now = __atomic_load_n(&generation, __ATOMIC_SEQ_CST);
  if (__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST) == members) {
    __atomic_store_n(&arrived, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&generation, 1, __ATOMIC_SEQ_CST);
    return;
  }
  while (__atomic_load_n(&generation, __ATOMIC_SEQ_CST) == now) nap(1);
}
static int is_over;

// In step with the others: takes its own, tries for the next one's, gives its own back.
static void *polite(void *raw) {
  int own = (int)(intptr_t)raw, next = (own + 1) % members;
  double begun = seconds();
  while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
    take(own);
    step();
    int got = try(next);
    step();
    if (got) give(next);
    give(own);
    if (own == 0 && seconds() - begun > milliseconds / 1000.0) __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
    step();
  }
  return NULL;
}
static const char *const people[MOST] = {"ann", "ben", "cat"};
static void meet_in_step(void (*t)(int), int (*y)(int), void (*g)(int)) {
  pthread_t threads[MOST];
  take = t, try = y, give = g;
  for (int i = 0; i < MOST; i++) {
    pthread_spin_init(&spins[i], 0);
    sem_init(&permits[i], 0, 1);
    mtx_init(&c11[i], mtx_timed);
  }
  for (int i = 0; i < members; i++) threads[i] = start(people[i], polite, (void *)(intptr_t)i);
  for (int i = 0; i < members; i++) pthread_join(threads[i], NULL);
}

static void run_try(void) { meet_in_step(lock_mutex, try_mutex, unlock_mutex); }
static void run_timed(void) { meet_in_step(lock_mutex, time_mutex, unlock_mutex); }
static void run_clock(void) { meet_in_step(lock_mutex, clock_mutex, unlock_mutex); }
static void run_three(void) {
  members = 3;
  run_try();
}
static void run_readers(void) { meet_in_step(read_record, try_record, unlock_record); }
static void run_writers(void) { meet_in_step(write_record, time_record, unlock_record); }
static void run_spin(void) { meet_in_step(lock_spin, try_spin, unlock_spin); }
static void run_permits(void) { meet_in_step(lock_permit, time_permit, unlock_permit); }
static void run_c11(void) { meet_in_step(lock_c11, try_c11, unlock_c11); }
static void run_brief(void) {
  milliseconds = 300;
  run_try();
}
static void run_two_seconds(void) {
  milliseconds = 2000;
  run_try();
}

// With a third lock around everything that nobody else wants.
static pthread_mutex_t around[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void lock_inside(int i) {
  pthread_mutex_lock(&around[i]);
  lock_mutex(i);
}
static void unlock_inside(int i) {
  unlock_mutex(i);
  pthread_mutex_unlock(&around[i]);
}
static void run_inside(void) { meet_in_step(lock_inside, try_mutex, unlock_inside); }

// Near misses. Each goes on until the time is up.
static double until;
static int goes_on(void) { return seconds() < until; }

// Now and then one of them lets the other go first, so that it gets on: 1 ann, 2 ben, 3 both in turn.
static int round_number, who_yields;
static void *yields(void *raw) {
  int own = (int)(intptr_t)raw, next = 1 - own;
  while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
    int lets = who_yields & 1 << own && round_number % 50 == 49 - own;
    if (!lets) take(own);
    step();
    if (!lets && try(next)) give(next);
    step();
    if (!lets) give(own);
    step();
    if (own == 0) {
      round_number++;
      if (!goes_on()) __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
    }
    step();
  }
  return NULL;
}
static void both(body run) {
  until = seconds() + 3;
  take = lock_mutex, try = try_mutex, give = unlock_mutex;
  pthread_t a = start("ann", run, (void *)0), b = start("ben", run, (void *)1);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}
static void run_one_yields(void) {
  who_yields = 2;
  both(yields);
}
static void run_yields(void) {
  who_yields = 3;
  both(yields);
}

// As std::lock does: what it could not get it then waits for, without holding anything.
static void *other_way(void *raw) {
  int first = (int)(intptr_t)raw;
  while (goes_on()) {
    for (;;) {
      pthread_mutex_lock(&mutexes[first]);
      nap(1);
      if (pthread_mutex_trylock(&mutexes[1 - first]) == 0) break;
      pthread_mutex_unlock(&mutexes[first]);
      first = 1 - first;
    }
    pthread_mutex_unlock(&mutexes[1 - first]);
    pthread_mutex_unlock(&mutexes[first]);
  }
  return NULL;
}
static void run_other_way(void) { both(other_way); }

// What it could not get by a try it then waits for, in the order that all keep.
static void *waits_then(void *raw) {
  int is_second = (int)(intptr_t)raw;
  while (goes_on()) {
    pthread_mutex_lock(&mutexes[0]);
    if (pthread_mutex_trylock(&mutexes[1]) != 0) pthread_mutex_lock(&mutexes[1]);
    nap(is_second ? 3 : 2);
    pthread_mutex_unlock(&mutexes[1]);
    pthread_mutex_unlock(&mutexes[0]);
  }
  return NULL;
}
static void run_waits_then(void) { both(waits_then); }

// Backs off for a random time, and so gets on.
static void *backs_off(void *raw) {
  int own = (int)(intptr_t)raw;
  unsigned seed = (unsigned)own + 1;
  while (goes_on()) {
    pthread_mutex_lock(&mutexes[own]);
    nap(1);
    if (pthread_mutex_trylock(&mutexes[1 - own]) == 0) pthread_mutex_unlock(&mutexes[1 - own]);
    pthread_mutex_unlock(&mutexes[own]);
    nap(rand_r(&seed) % 8);
  }
  return NULL;
}
static void run_backs_off(void) { both(backs_off); }

// One holds for long what the other, which holds something itself, looks for again and again.
static void *holds_long(void *raw) {
  pthread_mutex_lock(&mutexes[(intptr_t)raw]);
  while (goes_on()) nap(10);
  pthread_mutex_unlock(&mutexes[(intptr_t)raw]);
  return NULL;
}
static void *polls(void *raw) {
  int own = (int)(intptr_t)raw;
  while (goes_on()) {
    pthread_mutex_lock(&mutexes[own]);
    if (pthread_mutex_trylock(&mutexes[2]) == 0) pthread_mutex_unlock(&mutexes[2]);
    pthread_mutex_unlock(&mutexes[own]);
    nap(5);
  }
  return NULL;
}
static void run_poller(void) {
  until = seconds() + 3;
  pthread_t holder = start("holder", holds_long, (void *)2), poller = start("poller", polls, (void *)0);
  pthread_join(holder, NULL);
  pthread_join(poller, NULL);
}
// Two of them, of whom each holds its own lock: nobody wants that.
static void run_pollers(void) {
  until = seconds() + 3;
  pthread_t holder = start("holder", holds_long, (void *)2);
  pthread_t a = start("ann", polls, (void *)0), b = start("ben", polls, (void *)1);
  pthread_join(holder, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}

// Two that keep their own locks while they work, and ask now and then for the other's.
static void *keeps(void *raw) {
  int own = (int)(intptr_t)raw;
  pthread_mutex_lock(&mutexes[own]);
  while (goes_on()) {
    for (int i = 0; i < 20; i++) {
      pthread_mutex_lock(&mutexes[2]);
      pthread_mutex_unlock(&mutexes[2]);
    }
    nap(3);
    if (pthread_mutex_trylock(&mutexes[1 - own]) == 0) pthread_mutex_unlock(&mutexes[1 - own]);
  }
  pthread_mutex_unlock(&mutexes[own]);
  return NULL;
}
static void run_keepers(void) {
  until = seconds() + 4;
  pthread_t a = start("ann", keeps, (void *)0), b = start("ben", keeps, (void *)1);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}

int main(int argc, char **argv) {
  static const struct scenario all[] = {
    {"try", run_try}, {"timed", run_timed}, {"clock", run_clock}, {"three", run_three},
    {"readers", run_readers}, {"writers", run_writers}, {"spin", run_spin}, {"permits", run_permits},
    {"c11", run_c11}, {"inside", run_inside}, {"brief", run_brief}, {"two-seconds", run_two_seconds},
    {"one-yields", run_one_yields}, {"yields", run_yields}, {"other-way", run_other_way},
    {"waits-then", run_waits_then}, {"backs-off", run_backs_off}, {"poller", run_poller},
    {"pollers", run_pollers}, {"keepers", run_keepers},
  };
  return PLAY(argc, argv, all);
}
