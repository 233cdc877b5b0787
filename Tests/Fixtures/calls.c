// A healthy program: every pthread call that is watched, with every answer it can give, each printed.
// Nothing may be reported above a note, and the output must be the same with and without hangcheck.
// What is an error on purpose here (a lock given back by one who does not hold it, where the type of
// the lock makes that an answer and no fault) is handled by the program: it is not misuse.
#include "fixture.h"
#include <sched.h>
#include <semaphore.h>

static void say(const char *what, int error) {
  const char *name = error == 0 ? "0" : strerrorname_np(error);
  printf("%s: %s\n", what, name ? name : "?");
}
#define SAY(call) say(#call, call)

static void *call_in_thread(void *raw) { return (void *)(intptr_t)((int (*)(void))raw)(); }
static int elsewhere(int (*run)(void)) {
  void *result;
  pthread_t thread;
  pthread_create(&thread, NULL, call_in_thread, (void *)run);
  pthread_join(thread, &result);
  return (int)(intptr_t)result;
}

static pthread_mutex_t m;
static struct timespec past = {1, 0}, wrong = {1, 2000000000L};
static int lock_m(void) { return pthread_mutex_lock(&m); }
static int try_m(void) { return pthread_mutex_trylock(&m); }
static int unlock_m(void) { return pthread_mutex_unlock(&m); }
static int timed_m(void) {
  struct timespec limit = in(CLOCK_REALTIME, 20);
  return pthread_mutex_timedlock(&m, &limit);
}
static int clock_m(void) {
  struct timespec limit = in(CLOCK_MONOTONIC, 20);
  return pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &limit);
}
static int past_m(void) { return pthread_mutex_timedlock(&m, &past); }
static int wrong_m(void) { return pthread_mutex_timedlock(&m, &wrong); }
static int bad_clock_m(void) { return pthread_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &past); }
static int try_and_unlock_m(void) {
  int error = pthread_mutex_trylock(&m);
  if (error == 0) pthread_mutex_unlock(&m);
  return error;
}
static int leave_locked(void) { return pthread_mutex_lock(&m); }

static void mutex_of(const char *title, int type, int protocol, int robust, int shared) {
  printf("-- mutex %s\n", title);
  pthread_mutexattr_t attr;
  SAY(pthread_mutexattr_init(&attr));
  SAY(pthread_mutexattr_settype(&attr, type));
  SAY(pthread_mutexattr_setprotocol(&attr, protocol));
  SAY(pthread_mutexattr_setrobust(&attr, robust));
  SAY(pthread_mutexattr_setpshared(&attr, shared));
  SAY(pthread_mutex_init(&m, &attr));
  SAY(pthread_mutexattr_destroy(&attr));
  SAY(pthread_mutex_lock(&m));
  say("elsewhere try", elsewhere(try_m));
  say("elsewhere timed", elsewhere(timed_m));
  if (protocol != PTHREAD_PRIO_INHERIT) say("elsewhere clock", elsewhere(clock_m));
  say("elsewhere past", elsewhere(past_m));
  say("elsewhere wrong", elsewhere(wrong_m));
  say("elsewhere bad clock", elsewhere(bad_clock_m));
  if (type == PTHREAD_MUTEX_ERRORCHECK) {
    SAY(pthread_mutex_lock(&m));
    SAY(pthread_mutex_trylock(&m));
    SAY(timed_m());
    say("elsewhere unlock", elsewhere(unlock_m));
  }
  if (type == PTHREAD_MUTEX_RECURSIVE) {
    SAY(pthread_mutex_lock(&m));
    SAY(pthread_mutex_trylock(&m));
    SAY(timed_m());
    SAY(pthread_mutex_unlock(&m));
    SAY(pthread_mutex_unlock(&m));
    SAY(pthread_mutex_unlock(&m));
    say("elsewhere unlock", elsewhere(unlock_m));
  }
  if (type == PTHREAD_MUTEX_NORMAL || type == PTHREAD_MUTEX_ADAPTIVE_NP) {
    SAY(pthread_mutex_trylock(&m));
    SAY(past_m());
  }
  SAY(pthread_mutex_unlock(&m));
  if (type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE)
    SAY(pthread_mutex_unlock(&m));
  say("elsewhere try and unlock", elsewhere(try_and_unlock_m));
  SAY(timed_m());
  SAY(pthread_mutex_unlock(&m));
  if (protocol != PTHREAD_PRIO_INHERIT) {
    SAY(clock_m());
    SAY(pthread_mutex_unlock(&m));
  }
  SAY(pthread_mutex_trylock(&m));
  SAY(pthread_mutex_unlock(&m));
  SAY(past_m());
  SAY(pthread_mutex_unlock(&m));
  if (robust == PTHREAD_MUTEX_ROBUST) {
    say("left locked", elsewhere(leave_locked));
    SAY(pthread_mutex_lock(&m));
    SAY(pthread_mutex_consistent(&m));
    SAY(pthread_mutex_consistent(&m));
    SAY(pthread_mutex_unlock(&m));
    say("left locked", elsewhere(leave_locked));
    SAY(pthread_mutex_trylock(&m));
    SAY(pthread_mutex_consistent(&m));
    SAY(pthread_mutex_unlock(&m));
    say("left locked", elsewhere(leave_locked));
    SAY(timed_m());
    SAY(pthread_mutex_unlock(&m));
    SAY(pthread_mutex_lock(&m));
    say("elsewhere lock", elsewhere(lock_m));
    // Last: glibc 2.36 leaves the word locked after a trylock that answers ENOTRECOVERABLE.
    SAY(pthread_mutex_trylock(&m));
  }
  SAY(pthread_mutex_destroy(&m));
}

static void mutexes(void) {
  int normal = PTHREAD_PRIO_NONE, stalled = PTHREAD_MUTEX_STALLED;
  mutex_of("normal", PTHREAD_MUTEX_NORMAL, normal, stalled, 0);
  mutex_of("errorcheck", PTHREAD_MUTEX_ERRORCHECK, normal, stalled, 0);
  mutex_of("recursive", PTHREAD_MUTEX_RECURSIVE, normal, stalled, 0);
  mutex_of("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, normal, stalled, 0);
  mutex_of("shared", PTHREAD_MUTEX_NORMAL, normal, stalled, 1);
  mutex_of("robust", PTHREAD_MUTEX_NORMAL, normal, PTHREAD_MUTEX_ROBUST, 0);
  mutex_of("robust errorcheck", PTHREAD_MUTEX_ERRORCHECK, normal, PTHREAD_MUTEX_ROBUST, 0);
  mutex_of("robust recursive", PTHREAD_MUTEX_RECURSIVE, normal, PTHREAD_MUTEX_ROBUST, 1);
  mutex_of("inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, stalled, 0);
  mutex_of("inherit errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT, stalled, 0);
  mutex_of("inherit recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT, stalled, 0);
  mutex_of("inherit robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ROBUST, 0);
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  SAY(pthread_mutexattr_settype(&attr, 77));
  SAY(pthread_mutexattr_setprotocol(&attr, 77));
  static pthread_mutex_t fixed = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  SAY(pthread_mutex_lock(&fixed));
  SAY(pthread_mutex_lock(&fixed));
  SAY(pthread_mutex_unlock(&fixed));
  SAY(pthread_mutex_unlock(&fixed));
  static pthread_mutex_t check = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  SAY(pthread_mutex_unlock(&check));
  int ceiling = 0;
  pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
  SAY(pthread_mutex_getprioceiling(&plain, &ceiling));
  SAY(pthread_mutex_init(&plain, NULL));
  SAY(pthread_mutex_destroy(&plain));
}

static pthread_rwlock_t r;
static int try_read(void) {
  int error = pthread_rwlock_tryrdlock(&r);
  if (!error) pthread_rwlock_unlock(&r);
  return error;
}
static int try_write(void) {
  int error = pthread_rwlock_trywrlock(&r);
  if (!error) pthread_rwlock_unlock(&r);
  return error;
}
static int timed_read(void) {
  struct timespec limit = in(CLOCK_REALTIME, 20);
  int error = pthread_rwlock_timedrdlock(&r, &limit);
  if (!error) pthread_rwlock_unlock(&r);
  return error;
}
static int timed_write(void) {
  struct timespec limit = in(CLOCK_REALTIME, 20);
  int error = pthread_rwlock_timedwrlock(&r, &limit);
  if (!error) pthread_rwlock_unlock(&r);
  return error;
}
static int clock_read(void) {
  struct timespec limit = in(CLOCK_MONOTONIC, 20);
  int error = pthread_rwlock_clockrdlock(&r, CLOCK_MONOTONIC, &limit);
  if (!error) pthread_rwlock_unlock(&r);
  return error;
}
static int clock_write(void) {
  struct timespec limit = in(CLOCK_MONOTONIC, 20);
  int error = pthread_rwlock_clockwrlock(&r, CLOCK_MONOTONIC, &limit);
  if (!error) pthread_rwlock_unlock(&r);
  return error;
}
static int wrong_read(void) { return pthread_rwlock_timedrdlock(&r, &wrong); }
static int bad_clock_write(void) {
  return pthread_rwlock_clockwrlock(&r, CLOCK_PROCESS_CPUTIME_ID, &past);
}
static void everyone(void) {
  say("elsewhere try read", elsewhere(try_read));
  say("elsewhere try write", elsewhere(try_write));
  say("elsewhere timed read", elsewhere(timed_read));
  say("elsewhere timed write", elsewhere(timed_write));
  say("elsewhere clock read", elsewhere(clock_read));
  say("elsewhere clock write", elsewhere(clock_write));
  say("elsewhere bad clock", elsewhere(bad_clock_write));
}
static void rwlocks(void) {
  for (int kind = 0; kind < 3; kind++) {
    printf("-- rwlock %d\n", kind);
    pthread_rwlockattr_t attr;
    SAY(pthread_rwlockattr_init(&attr));
    SAY(pthread_rwlockattr_setkind_np(&attr, kind));
    SAY(pthread_rwlock_init(&r, &attr));
    SAY(pthread_rwlockattr_destroy(&attr));
    everyone();
    SAY(pthread_rwlock_rdlock(&r));
    everyone();
    SAY(pthread_rwlock_tryrdlock(&r));
    SAY(pthread_rwlock_trywrlock(&r));
    SAY(pthread_rwlock_unlock(&r));
    SAY(pthread_rwlock_unlock(&r));
    SAY(pthread_rwlock_wrlock(&r));
    say("elsewhere wrong read", elsewhere(wrong_read));
    everyone();
    SAY(pthread_rwlock_tryrdlock(&r));
    SAY(pthread_rwlock_trywrlock(&r));
    SAY(pthread_rwlock_unlock(&r));
    SAY(pthread_rwlock_destroy(&r));
  }
}
// glibc answers EDEADLK to one who holds the lock for writing and wants it again.
static void rw_again(void) {
  pthread_rwlock_init(&r, NULL);
  SAY(pthread_rwlock_wrlock(&r));
  SAY(pthread_rwlock_wrlock(&r));
  SAY(pthread_rwlock_rdlock(&r));
  SAY(timed_write());
  SAY(pthread_rwlock_unlock(&r));
  SAY(pthread_rwlock_destroy(&r));
}

static pthread_spinlock_t spin;
static int try_spin(void) { return pthread_spin_trylock(&spin); }
static void spins(void) {
  puts("-- spin");
  SAY(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
  SAY(pthread_spin_lock(&spin));
  SAY(pthread_spin_trylock(&spin));
  say("elsewhere try", elsewhere(try_spin));
  SAY(pthread_spin_unlock(&spin));
  SAY(pthread_spin_trylock(&spin));
  SAY(pthread_spin_unlock(&spin));
  SAY(pthread_spin_destroy(&spin));
}

static pthread_cond_t c;
static pthread_mutex_t cm = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static void *waits(void *_) {
  pthread_mutex_lock(&cm);
  flag++;
  int seen = flag;
  while (flag < 100) pthread_cond_wait(&c, &cm);
  (void)seen;
  pthread_mutex_unlock(&cm);
  return _;
}
static void conditions(void) {
  puts("-- condition");
  pthread_condattr_t attr;
  clockid_t clock;
  SAY(pthread_condattr_init(&attr));
  SAY(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
  SAY(pthread_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID));
  SAY(pthread_condattr_getclock(&attr, &clock));
  SAY(pthread_cond_init(&c, &attr));
  SAY(pthread_condattr_destroy(&attr));
  SAY(pthread_cond_signal(&c));
  SAY(pthread_cond_broadcast(&c));
  pthread_mutex_lock(&cm);
  struct timespec limit = in(CLOCK_MONOTONIC, 20);
  SAY(pthread_cond_timedwait(&c, &cm, &limit));
  SAY(pthread_cond_timedwait(&c, &cm, &past));
  SAY(pthread_cond_timedwait(&c, &cm, &wrong));
  limit = in(CLOCK_REALTIME, 20);
  SAY(pthread_cond_clockwait(&c, &cm, CLOCK_REALTIME, &limit));
  SAY(pthread_cond_clockwait(&c, &cm, CLOCK_MONOTONIC, &past));
  SAY(pthread_cond_clockwait(&c, &cm, CLOCK_PROCESS_CPUTIME_ID, &past));
  SAY(pthread_mutex_trylock(&cm));
  pthread_mutex_unlock(&cm);
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) threads[i] = start("waits", waits, NULL);
  for (int here = 0; here < 3; nap(1)) {
    pthread_mutex_lock(&cm);
    here = flag;
    pthread_mutex_unlock(&cm);
  }
  pthread_mutex_lock(&cm);
  flag = 100;
  SAY(pthread_cond_signal(&c));
  SAY(pthread_cond_broadcast(&c));
  pthread_mutex_unlock(&cm);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  SAY(pthread_cond_destroy(&c));
  // With a recursive mutex held twice, and with an error-checking one that is not held.
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&m, &kind);
  pthread_cond_init(&c, NULL);
  pthread_mutex_lock(&m);
  pthread_mutex_lock(&m);
  limit = in(CLOCK_REALTIME, 10);
  SAY(pthread_cond_timedwait(&c, &m, &limit));
  SAY(pthread_mutex_unlock(&m));
  SAY(pthread_mutex_unlock(&m));
  SAY(pthread_mutex_unlock(&m));
}

static pthread_barrier_t line;
static int serial;
static void *comes(void *_) {
  int result = pthread_barrier_wait(&line);
  if (result == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
  else if (result) exit(4);
  return _;
}
static void barriers(void) {
  puts("-- barrier");
  SAY(pthread_barrier_init(&line, NULL, 0));
  SAY(pthread_barrier_init(&line, NULL, 4));
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) threads[i] = start("comes", comes, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("%d\n", serial);
  SAY(pthread_barrier_destroy(&line));
}

static int let_end;
static void *until_told(void *raw) {
  while (!__atomic_load_n(&let_end, __ATOMIC_SEQ_CST)) nap(1);
  return raw;
}
static void *exits(void *raw) { pthread_exit(raw); }
static void cleanup(void *text) { printf("cleanup %s\n", (char *)text); }
static void cleanup_unlock(void *lock) {
  printf("cleanup unlock %d\n", pthread_mutex_unlock(lock));
}
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int place;
static void *cancelled_in_wait(void *_) {
  pthread_mutex_lock(&cm);
  pthread_cleanup_push(cleanup_unlock, &cm);
  pthread_cleanup_push(cleanup, "wait");
  meet(&place, 2);
  for (;;) pthread_cond_wait(&never, &cm);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(1);
  return _;
}
static void *cancelled_in_timed(void *_) {
  struct timespec limit = in(CLOCK_REALTIME, 30000);
  pthread_mutex_lock(&cm);
  pthread_cleanup_push(cleanup_unlock, &cm);
  meet(&place, 2);
  for (;;) pthread_cond_timedwait(&never, &cm, &limit);
  pthread_cleanup_pop(1);
  return _;
}
static pthread_t target;
static void *cancelled_in_join(void *_) {
  pthread_cleanup_push(cleanup, "join");
  meet(&place, 2);
  pthread_join(target, NULL);
  pthread_cleanup_pop(1);
  return _;
}
static void *cancelled_async(void *_) {
  int before;
  pthread_cleanup_push(cleanup, "async");
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  meet(&place, 2);
  for (volatile long i = 0;; i++) {}
  pthread_cleanup_pop(1);
  return _;
}
static void *not_yet(void *_) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  meet(&place, 2);
  pthread_mutex_lock(&cm);
  nap(50);
  pthread_mutex_unlock(&cm);
  pthread_setcancelstate(before, NULL);
  pthread_cleanup_push(cleanup, "when allowed");
  pthread_testcancel();
  pthread_cleanup_pop(0);
  return _;
}
static void cancel(const char *name, body run) {
  void *result;
  place = 0;
  pthread_t thread = start(name, run, NULL);
  meet(&place, 2);
  nap(30);
  int error = pthread_cancel(thread);
  int joined = pthread_join(thread, &result);
  printf("cancel %s: %d\n", name, error);
  error = joined;
  printf("%s joined: %d %d\n", name, error, result == PTHREAD_CANCELED);
}
static void threads(void) {
  puts("-- threads");
  void *result;
  let_end = 0;
  pthread_t thread = start("until-told", until_told, (void *)42);
  struct timespec limit = in(CLOCK_REALTIME, 20);
  SAY(pthread_tryjoin_np(thread, &result));
  SAY(pthread_timedjoin_np(thread, &result, &limit));
  limit = in(CLOCK_MONOTONIC, 20);
  SAY(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &limit));
  SAY(pthread_clockjoin_np(thread, &result, CLOCK_PROCESS_CPUTIME_ID, &limit));
  let_end = 1;
  SAY(pthread_join(thread, &result));
  printf("%d\n", (int)(intptr_t)result);
  thread = start("exits", exits, (void *)43);
  limit = in(CLOCK_REALTIME, 20000);
  SAY(pthread_timedjoin_np(thread, &result, &limit));
  printf("%d\n", (int)(intptr_t)result);
  thread = start("exits", exits, (void *)44);
  nap(50);
  SAY(pthread_tryjoin_np(thread, &result));
  printf("%d\n", (int)(intptr_t)result);
  SAY(pthread_join(pthread_self(), NULL));
  let_end = 0;
  thread = start("detached", until_told, NULL);
  SAY(pthread_detach(thread));
  SAY(pthread_detach(thread));
  SAY(pthread_join(thread, NULL));
  let_end = 1;
  nap(20);
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  SAY(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
  SAY(pthread_attr_setstacksize(&attr, 1));
  let_end = 0;
  thread = start_with(&attr, "born detached", until_told, NULL);
  SAY(pthread_join(thread, NULL));
  let_end = 1;
  cancel("in-wait", cancelled_in_wait);
  cancel("in-timed", cancelled_in_timed);
  SAY(pthread_mutex_trylock(&cm));
  SAY(pthread_mutex_unlock(&cm));
  let_end = 0;
  target = start("target", until_told, (void *)45);
  cancel("in-join", cancelled_in_join);
  let_end = 1;
  SAY(pthread_join(target, &result));
  printf("%d\n", (int)(intptr_t)result);
  cancel("async", cancelled_async);
  cancel("not-yet", not_yet);
  char name[32];
  SAY(pthread_setname_np(pthread_self(), "renamed"));
  SAY(pthread_getname_np(pthread_self(), name, sizeof name));
  puts(name);
  SAY(pthread_getname_np(pthread_self(), name, 4));
  SAY(pthread_setname_np(pthread_self(), "a name that is too long"));
  let_end = 0;
  thread = start("first", until_told, NULL);
  nap(20);
  SAY(pthread_getname_np(thread, name, sizeof name));
  puts(name);
  SAY(pthread_setname_np(thread, "second"));
  SAY(pthread_getname_np(thread, name, sizeof name));
  puts(name);
  let_end = 1;
  pthread_join(thread, NULL);
  SAY(pthread_kill(pthread_self(), 0));
  SAY(pthread_kill(pthread_self(), 999));
}

static sem_t semaphore;
static void semaphores(void) {
  puts("-- semaphore");
  struct timespec limit = in(CLOCK_REALTIME, 20);
  SAY(sem_init(&semaphore, 0, 1));
  SAY(sem_wait(&semaphore));
  printf("%d %s\n", sem_trywait(&semaphore), strerrorname_np(errno));
  printf("%d %s\n", sem_timedwait(&semaphore, &limit), strerrorname_np(errno));
  SAY(sem_post(&semaphore));
  SAY(sem_destroy(&semaphore));
}
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void first_time(void) { puts("once"); }
static void rest(void) {
  SAY(pthread_once(&once, first_time));
  SAY(pthread_once(&once, first_time));
  errno = 4711;
  pthread_mutex_lock(&cm);
  pthread_mutex_unlock(&cm);
  pthread_cond_signal(&never);
  printf("errno stays %d\n", errno);
}
// A process that goes on in a child after its locks were held by the parent's only thread.
static void children(void) {
  puts("-- fork");
  fflush(stdout);
  pthread_mutex_lock(&cm);
  pid_t pid = fork();
  if (pid == 0) {
    SAY(pthread_mutex_trylock(&cm));
    SAY(pthread_mutex_unlock(&cm));
    SAY(pthread_mutex_lock(&cm));
    SAY(pthread_mutex_unlock(&cm));
    fflush(stdout);
    _exit(9);
  }
  pthread_mutex_unlock(&cm);
  int status;
  waitpid(pid, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
}
static void everything(void) {
  mutexes();
  rwlocks();
  spins();
  conditions();
  barriers();
  threads();
  semaphores();
  rest();
  children();
}

static const struct scenario all[] = {{"everything", everything}, {"rw-again", rw_again}};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
