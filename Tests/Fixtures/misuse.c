// Locks, conditions and rwlocks of pthread's used as they must not be; the first argument says how.
// For each there is a scenario `right-…` that does nearly the same and is right. Most go on as if
// nothing had happened: it must be said all the same.
#include "fixture.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int met, over, ready;

static int seen(int *flag) { return __atomic_load_n(flag, __ATOMIC_SEQ_CST); }
static void say(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST); }
static void await(int *flag) {
  while (!seen(flag)) nap(1);
}
static void make(pthread_mutex_t *lock, int type) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, type);
  pthread_mutex_init(lock, &attr);
}

// Unlocked by who did not lock it.
static void *owner(void *_) {
  pthread_mutex_lock(&a);
  say(&met);
  await(&over);
  return _;
}
static void foreign(void) {
  pthread_t thread = start("owner", owner, NULL);
  await(&met);
  printf("%d\n", pthread_mutex_unlock(&a));
  say(&over);
  pthread_join(thread, NULL);
}
static void foreign_checked(void) {
  make(&a, PTHREAD_MUTEX_ERRORCHECK);
  foreign();
}
static void foreign_recursive(void) {
  make(&a, PTHREAD_MUTEX_RECURSIVE);
  foreign();
}
static void *sharer(void *_) {
  pthread_rwlock_wrlock(&table);
  say(&met);
  await(&over);
  return _;
}
static void foreign_rwlock(void) {
  pthread_t thread = start("sharer", sharer, NULL);
  await(&met);
  printf("%d\n", pthread_rwlock_unlock(&table));
  say(&over);
  pthread_join(thread, NULL);
}
static void *honest(void *_) {
  pthread_mutex_lock(&a);
  say(&met);
  await(&over);
  pthread_mutex_unlock(&a);
  return _;
}
// Only tried, and refused: nobody unlocks what is not theirs.
static void right_foreign(void) {
  pthread_t thread = start("honest", honest, NULL);
  await(&met);
  if (pthread_mutex_trylock(&a) == 0) pthread_mutex_unlock(&a);
  nap(2700);
  say(&over);
  pthread_join(thread, NULL);
}

// Unlocked though nobody had locked it.
static void unlocked(void) { printf("%d\n", pthread_mutex_unlock(&a)); }
static void unlocked_checked(void) {
  make(&a, PTHREAD_MUTEX_ERRORCHECK);
  unlocked();
}

// Destroyed or made anew while held.
static void destroyed(void) {
  pthread_t thread = start("owner", owner, NULL);
  await(&met);
  printf("%d\n", pthread_mutex_destroy(&a));
  say(&over);
  pthread_join(thread, NULL);
}
static void destroyed_own(void) {
  pthread_mutex_lock(&a);
  printf("%d\n", pthread_mutex_destroy(&a));
}
static void made_again(void) {
  pthread_t thread = start("owner", owner, NULL);
  await(&met);
  printf("%d\n", pthread_mutex_init(&a, NULL));
  say(&over);
  pthread_join(thread, NULL);
}
static void rwlock_destroyed(void) {
  pthread_t thread = start("sharer", sharer, NULL);
  await(&met);
  printf("%d\n", pthread_rwlock_destroy(&table));
  say(&over);
  pthread_join(thread, NULL);
}
static void right_destroy(void) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_t *lock = malloc(sizeof *lock);
    make(lock, i % 3);
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    pthread_mutex_destroy(lock);
    free(lock);
  }
}

// Freed while held; then another lock is made in the same place.
static void freed(void) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_t *lock = malloc(4096);
    pthread_mutex_init(lock, NULL);
    pthread_mutex_lock(lock);
    free(lock);
  }
}

// Held when its thread ends: nobody waits for it.
static void *leaver(void *_) {
  pthread_mutex_lock(&a);
  return _;
}
static void exit_held(void) {
  pthread_join(start("leaver", leaver, NULL), NULL);
  nap(100);
}
static void *cancelled(void *_) {
  pthread_mutex_lock(&a);
  say(&met);
  for (;;) nap(10);
  return _;
}
static void cancel_held(void) {
  pthread_t thread = start("cancelled", cancelled, NULL);
  await(&met);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  nap(100);
}
static void unlock_it(void *lock) { pthread_mutex_unlock(lock); }
static void *cleaned(void *_) {
  pthread_mutex_lock(&a);
  pthread_cleanup_push(unlock_it, &a);
  say(&met);
  for (;;) nap(10);
  pthread_cleanup_pop(1);
  return _;
}
static void right_cancel(void) {
  pthread_t thread = start("cleaned", cleaned, NULL);
  await(&met);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
}

// The child of a fork wants what another thread of its parent held.
static void forked(void) {
  pthread_t thread = start("honest", honest, NULL);
  await(&met);
  pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(&a);  // WAITS(misuse)
    _exit(0);
  }
  waitpid(child, NULL, 0);
  say(&over);
  pthread_join(thread, NULL);
}
// The child does not touch it.
static void right_fork(void) {
  pthread_t thread = start("honest", honest, NULL);
  await(&met);
  for (int i = 0; i < 5; i++) {
    pid_t child = fork();
    if (child == 0) {
      pthread_mutex_lock(&b);
      pthread_mutex_unlock(&b);
      _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
  }
  say(&over);
  pthread_join(thread, NULL);
}

// A wait without the mutex: whether a signal is lost is left to chance.
static void *waits_bare(void *_) {
  struct timespec limit = in(CLOCK_REALTIME, 200);
  pthread_cond_timedwait(&changed, &a, &limit);
  return _;
}
static void wait_bare(void) { pthread_join(start("bare", waits_bare, NULL), NULL); }

// Two who wait on one condition, each with a mutex of its own.
static void *waits_with(void *lock) {
  pthread_mutex_lock(lock);
  meet(&met, 2);
  struct timespec limit = in(CLOCK_REALTIME, 500);
  pthread_cond_timedwait(&changed, lock, &limit);
  pthread_mutex_unlock(lock);
  return NULL;
}
static void two_mutexes(void) {
  pthread_t one = start("one", waits_with, &a), two = start("two", waits_with, &b);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
// One after the other a condition may be used with another mutex.
static void right_mutexes(void) {
  for (int i = 0; i < 2; i++) {
    pthread_mutex_t *lock = i ? &a : &b;
    pthread_mutex_lock(lock);
    struct timespec limit = in(CLOCK_REALTIME, 300);
    pthread_cond_timedwait(&changed, lock, &limit);
    pthread_mutex_unlock(lock);
  }
}

// A signal that comes before the wait.
static void *signaller(void *_) {
  pthread_mutex_lock(&a);
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&a);
  return _;
}
static void signal_lost(void) {
  pthread_join(start("signaller", signaller, NULL), NULL);
  pthread_mutex_lock(&a);
  pthread_cond_wait(&changed, &a);  // WAITS(signal-lost:main)
  pthread_mutex_unlock(&a);
}
static void *setter(void *_) {
  nap(2800);
  pthread_mutex_lock(&a);
  ready = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&a);
  return _;
}
static void right_signal(void) {
  // One that nobody hears, and one that counts.
  pthread_cond_signal(&changed);
  pthread_t thread = start("setter", setter, NULL);
  pthread_mutex_lock(&a);
  while (!ready) pthread_cond_wait(&changed, &a);
  pthread_mutex_unlock(&a);
  pthread_join(thread, NULL);
}

// A second write lock is refused, and nobody looks.
static void write_twice(void) {
  pthread_rwlock_wrlock(&table);
  pthread_rwlock_wrlock(&table);
  pthread_rwlock_unlock(&table);
  pthread_rwlock_unlock(&table);
}

// A barrier for one more than there are.
static pthread_barrier_t gate;
static void *arrives(void *_) {
  pthread_barrier_wait(&gate);  // WAITS(guest)
  return _;
}
static void barrier_short(void) {
  pthread_barrier_init(&gate, NULL, 3);
  pthread_t thread = start("guest", arrives, NULL);
  pthread_barrier_wait(&gate);  // WAITS(barrier-short:main)
  pthread_join(thread, NULL);
}
static void *arrives_late(void *_) {
  nap(2700);
  return arrives(_);
}
static void right_barrier(void) {
  pthread_barrier_init(&gate, NULL, 3);
  pthread_t one = start("guest", arrives, NULL), two = start("late", arrives_late, NULL);
  pthread_barrier_wait(&gate);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

static const struct scenario all[] = {
  {"foreign", foreign}, {"foreign-checked", foreign_checked},
  {"foreign-recursive", foreign_recursive}, {"foreign-rwlock", foreign_rwlock},
  {"right-foreign", right_foreign}, {"unlocked", unlocked}, {"unlocked-checked", unlocked_checked},
  {"destroyed", destroyed}, {"destroyed-own", destroyed_own}, {"made-again", made_again},
  {"rwlock-destroyed", rwlock_destroyed}, {"right-destroy", right_destroy}, {"freed", freed},
  {"exit-held", exit_held}, {"cancel-held", cancel_held}, {"right-cancel", right_cancel},
  {"forked", forked}, {"right-fork", right_fork}, {"wait-bare", wait_bare},
  {"two-mutexes", two_mutexes}, {"right-mutexes", right_mutexes}, {"signal-lost", signal_lost},
  {"right-signal", right_signal}, {"write-twice", write_twice}, {"barrier-short", barrier_short},
  {"right-barrier", right_barrier},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
