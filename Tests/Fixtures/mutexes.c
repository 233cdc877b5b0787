// Deadlocks over mutexes and spin locks between a C program's threads; the first argument says which.
// Each must be reported as `deadlock`, with the threads that fixtures.tsv names in its cycle and the
// marked lines among its evidence: `WAITS(thread)` is where that thread waits, `HOLDS(thread)` where
// it took what the cycle is made of. `WAITS(scenario:thread)` counts for that scenario alone.
#include "fixture.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER;
static int both;

// Two threads, two locks, two orders.
static void *alice(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(alice)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(alice)
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return _;
}
static void *bob(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(bob)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(bob)
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return _;
}
// The main thread sleeps and looks, as a program with an event loop would; it is in no cycle.
static void wait_asleep(void) {
  for (int i = 0; i < 5500; i++) nap(10);
}
static void abba(void) {
  start("alice", alice, NULL);
  start("bob", bob, NULL);
  wait_asleep();
}

static void remake(pthread_mutex_t *lock, int type, int protocol, int robust, int shared) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, type);
  pthread_mutexattr_setprotocol(&attr, protocol);
  pthread_mutexattr_setrobust(&attr, robust);
  pthread_mutexattr_setpshared(&attr, shared);
  if (pthread_mutex_init(lock, &attr)) exit(3);
  pthread_mutexattr_destroy(&attr);
}
static void abba_of(int type, int protocol, int robust, int shared) {
  remake(&a, type, protocol, robust, shared);
  remake(&b, type, protocol, robust, shared);
  abba();
}
static void errorcheck(void) {
  abba_of(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 0);
}
static void recursive(void) {
  abba_of(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 0);
}
static void adaptive(void) {
  abba_of(PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 0);
}
static void robust(void) {
  abba_of(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, 0);
}
static void shared(void) {
  abba_of(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 1);
}

// Priority inheritance: the kernel would answer EDEADLK to the second of two, and glibc then
// stands still in a sleep of its own, as it does for a normal mutex locked twice.
static void inherit(void) {
  abba_of(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
}

// A lock taken by trylock or with a time limit is held like any other.
static void *tryer(void *_) {
  if (pthread_mutex_trylock(&a)) exit(3);  // HOLDS(tryer)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(tryer)
  pthread_mutex_unlock(&b);
  return _;
}
static void *timer(void *_) {
  struct timespec limit = in(CLOCK_REALTIME, 5000);
  if (pthread_mutex_timedlock(&b, &limit)) exit(3);  // HOLDS(timer)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(timer)
  pthread_mutex_unlock(&a);
  return _;
}
static void tried(void) {
  start("tryer", tryer, NULL);
  start("timer", timer, NULL);
  wait_asleep();
}

static void *ann(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(ann)
  meet(&both, 3);
  pthread_mutex_lock(&b);  // WAITS(ann)
  pthread_mutex_unlock(&b);
  return _;
}
static void *ben(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(ben)
  meet(&both, 3);
  pthread_mutex_lock(&c);  // WAITS(ben)
  pthread_mutex_unlock(&c);
  return _;
}
static void *cat(void *_) {
  pthread_mutex_lock(&c);  // HOLDS(cat)
  meet(&both, 3);
  pthread_mutex_lock(&a);  // WAITS(cat)
  pthread_mutex_unlock(&a);
  return _;
}
static void three(void) {
  start("ann", ann, NULL);
  start("ben", ben, NULL);
  start("cat", cat, NULL);
  wait_asleep();
}

// Each of a hundred threads waits for its neighbour's lock.
enum { ROUND = 100 };
static pthread_mutex_t seat[ROUND];
static void *philosopher(void *raw) {
  int mine = (int)(intptr_t)raw;
  pthread_mutex_lock(&seat[mine]);  // HOLDS(ring-*)
  meet(&both, ROUND);
  pthread_mutex_lock(&seat[(mine + 1) % ROUND]);  // WAITS(ring-*)
  pthread_mutex_unlock(&seat[(mine + 1) % ROUND]);
  return NULL;
}
static void ring(void) {
  for (int i = 0; i < ROUND; i++) pthread_mutex_init(&seat[i], NULL);
  for (int i = 0; i < ROUND; i++) {
    char name[16];
    snprintf(name, sizeof name, "ring-%d", i);
    start(name, philosopher, (void *)(intptr_t)i);
  }
  wait_asleep();
}

// One thread alone.
static void *twice(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(lonely)
  pthread_mutex_lock(&a);  // WAITS(lonely)
  pthread_mutex_unlock(&a);
  return _;
}
static void self(void) {
  start("lonely", twice, NULL);
  wait_asleep();
}
static void self_adaptive(void) {
  remake(&a, PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 0);
  self();
}
static void self_main(void) {
  pthread_mutex_lock(&a);  // HOLDS(self-main:main)
  pthread_mutex_lock(&a);  // WAITS(self-main:main)
  pthread_mutex_unlock(&a);
}

// A signal handler wants what the code that it interrupted holds.
static void on_signal(int _) {
  (void)_;
  pthread_mutex_lock(&a);  // WAITS(struck)
  pthread_mutex_unlock(&a);
}
static void *struck(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(struck)
  pthread_kill(pthread_self(), SIGUSR1);
  pthread_mutex_unlock(&a);
  return _;
}
static void handler(void) {
  signal(SIGUSR1, on_signal);
  start("struck", struck, NULL);
  wait_asleep();
}

// The main thread is in the cycle: the program can never end by itself.
static void *worker(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(worker)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(worker)
  pthread_mutex_unlock(&a);
  return _;
}
static void main_in(void) {
  start("worker", worker, NULL);
  pthread_mutex_lock(&a);  // HOLDS(main-in:main)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(main-in:main)
  pthread_mutex_unlock(&b);
}
// The main thread joins one of the two: it is stuck behind the cycle, not in it.
static void main_behind(void) {
  pthread_t first = start("alice", alice, NULL);
  start("bob", bob, NULL);
  pthread_join(first, NULL);
}
// The main thread goes on and ends the program in time: it must be let.
static void goes_on(void) {
  start("alice", alice, NULL);
  start("bob", bob, NULL);
  nap(1500);
}

// Threads that merely queue behind the cycle are not of it.
static void *innocent(void *_) {
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  return _;
}
static void bystanders(void) {
  start("alice", alice, NULL);
  start("bob", bob, NULL);
  while (__atomic_load_n(&both, __ATOMIC_SEQ_CST) < 2) nap(1);
  nap(20);
  for (int i = 0; i < 3; i++) start("innocent", innocent, NULL);
  wait_asleep();
}

// Five hundred locks held by one thread, one of which the other wants.
enum { MANY = 500 };
static pthread_mutex_t drawer[MANY];
static void *hoarder(void *_) {
  for (int i = 0; i < MANY; i++) pthread_mutex_lock(&drawer[i]);  // HOLDS(hoarder)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(hoarder)
  pthread_mutex_unlock(&a);
  return _;
}
static void *seeker(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(seeker)
  meet(&both, 2);
  pthread_mutex_lock(&drawer[321]);  // WAITS(seeker)
  pthread_mutex_unlock(&drawer[321]);
  return _;
}
static void many_locks(void) {
  for (int i = 0; i < MANY; i++) pthread_mutex_init(&drawer[i], NULL);
  start("hoarder", hoarder, NULL);
  start("seeker", seeker, NULL);
  wait_asleep();
}

// Two of five thousand threads; the others wait on a condition for work that does not come.
enum { CROWD = 5000 };
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int arrived;
static void *idle(void *_) {
  pthread_mutex_lock(&gate);
  arrived++;
  for (;;) pthread_cond_wait(&work, &gate);
  return _;
}
static void crowd(void) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  for (int i = 0; i < CROWD; i++) start_with(&small, "idle", idle, NULL);
  for (int here = 0; here < CROWD; nap(5)) {
    pthread_mutex_lock(&gate);
    here = arrived;
    pthread_mutex_unlock(&gate);
  }
  puts("all here");
  abba();
}

// A condition wait gives its mutex back only to want it again; other locks stay held meanwhile.
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int woken;
static void *sleeper(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(sleeper)
  pthread_mutex_lock(&b);
  meet(&both, 2);
  while (!woken) pthread_cond_wait(&ready, &b);  // WAITS(sleeper)
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return _;
}
static void *waker(void *_) {
  meet(&both, 2);
  pthread_mutex_lock(&b);  // HOLDS(waker)
  woken = 1;
  pthread_cond_signal(&ready);
  pthread_mutex_lock(&a);  // WAITS(waker)
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return _;
}
static void condition(void) {
  start("sleeper", sleeper, NULL);
  start("waker", waker, NULL);
  wait_asleep();
}

// The owner is gone, the lock is not.
static void *leaver(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(leaver)
  return _;
}
static void *heir(void *_) {
  pthread_mutex_lock(&a);  // WAITS(heir)
  pthread_mutex_unlock(&a);
  return _;
}
static void owner_exited(void) {
  pthread_join(start("leaver", leaver, NULL), NULL);
  start("heir", heir, NULL);
  wait_asleep();
}
static void *cancelled(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(cancelled)
  for (;;) pause();
  return _;
}
static void owner_cancelled(void) {
  pthread_t thread = start("cancelled", cancelled, NULL);
  nap(100);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  start("heir", heir, NULL);
  wait_asleep();
}

// The lock was taken by a function that has returned: both its line and its caller's matter.
NOINLINE static void acquire(pthread_mutex_t *lock) {
  pthread_mutex_lock(lock);  // HOLDS(wrap-1,wrap-2) WAITS(wrap-1,wrap-2)
  __asm__ volatile("");
}
NOINLINE static void release(pthread_mutex_t *lock) {
  pthread_mutex_unlock(lock);
  __asm__ volatile("");
}
static void *wrap_1(void *_) {
  acquire(&a);  // HOLDS(wrap-1)
  meet(&both, 2);
  acquire(&b);  // WAITS(wrap-1)
  release(&b);
  release(&a);
  return _;
}
static void *wrap_2(void *_) {
  acquire(&b);  // HOLDS(wrap-2)
  meet(&both, 2);
  acquire(&a);  // WAITS(wrap-2)
  release(&a);
  release(&b);
  return _;
}
static void wrappers(void) {
  start("wrap-1", wrap_1, NULL);
  start("wrap-2", wrap_2, NULL);
  wait_asleep();
}
static inline __attribute__((always_inline)) void inlined_lock(pthread_mutex_t *lock) {
  pthread_mutex_lock(lock);  // HOLDS(in-1,in-2) WAITS(in-1,in-2)
}
static void *in_1(void *_) {
  inlined_lock(&a);  // HOLDS(in-1)
  meet(&both, 2);
  inlined_lock(&b);  // WAITS(in-1)
  release(&b);
  return _;
}
static void *in_2(void *_) {
  inlined_lock(&b);  // HOLDS(in-2)
  meet(&both, 2);
  inlined_lock(&a);  // WAITS(in-2)
  release(&a);
  return _;
}
static void inlined(void) {
  start("in-1", in_1, NULL);
  start("in-2", in_2, NULL);
  wait_asleep();
}

// Released and taken again elsewhere: the later site is the one that counts.
static void *again(void *_) {
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  pthread_mutex_lock(&a);  // HOLDS(again)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(again)
  pthread_mutex_unlock(&b);
  return _;
}
static void retaken(void) {
  start("again", again, NULL);
  start("bob", bob, NULL);
  wait_asleep();
}

// A lock given back out of order leaves the other one held.
static void *shuffler(void *_) {
  pthread_mutex_lock(&c);
  pthread_mutex_lock(&a);  // HOLDS(shuffler)
  pthread_mutex_unlock(&c);
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(shuffler)
  pthread_mutex_unlock(&b);
  return _;
}
static void out_of_order(void) {
  start("shuffler", shuffler, NULL);
  start("bob", bob, NULL);
  wait_asleep();
}

// The thread is already leaving: its key's destructor takes the locks.
static pthread_key_t key;
static void last_words(void *value) {
  if (value == (void *)1) alice(NULL); else bob(NULL);
}
static void *leave_value(void *value) {
  pthread_setspecific(key, value);
  return NULL;
}
static void key_destructor(void) {
  pthread_key_create(&key, last_words);
  start("alice", leave_value, (void *)1);
  start("bob", leave_value, (void *)2);
  wait_asleep();
}

// A thousand locks made, used and destroyed at the address before the pair that matters.
static void *old_1(void *raw) {
  pthread_mutex_t *pair = raw;
  pthread_mutex_lock(&pair[0]);  // HOLDS(old-1)
  meet(&both, 2);
  pthread_mutex_lock(&pair[1]);  // WAITS(old-1)
  pthread_mutex_unlock(&pair[1]);
  return NULL;
}
static void *old_2(void *raw) {
  pthread_mutex_t *pair = raw;
  pthread_mutex_lock(&pair[1]);  // HOLDS(old-2)
  meet(&both, 2);
  pthread_mutex_lock(&pair[0]);  // WAITS(old-2)
  pthread_mutex_unlock(&pair[0]);
  return NULL;
}
static void reused(void) {
  pthread_mutex_t *pair = NULL;
  for (int i = 0; i < 1000; i++) {
    free(pair);
    pair = malloc(2 * sizeof *pair);
    for (int k = 0; k < 2; k++) pthread_mutex_init(&pair[k], NULL);
    if (i == 999) break;
    for (int k = 0; k < 2; k++) pthread_mutex_lock(&pair[k]);
    for (int k = 0; k < 2; k++) pthread_mutex_unlock(&pair[k]);
    for (int k = 0; k < 2; k++) pthread_mutex_destroy(&pair[k]);
  }
  start("old-1", old_1, pair);
  start("old-2", old_2, pair);
  wait_asleep();
}

// Two cycles at once: two findings, or one that has either.
static pthread_mutex_t d = PTHREAD_MUTEX_INITIALIZER;
static int second_pair;
static void *carol(void *_) {
  pthread_mutex_lock(&c);
  meet(&second_pair, 2);
  pthread_mutex_lock(&d);
  pthread_mutex_unlock(&d);
  return _;
}
static void *dave(void *_) {
  pthread_mutex_lock(&d);
  meet(&second_pair, 2);
  pthread_mutex_lock(&c);
  pthread_mutex_unlock(&c);
  return _;
}
static void two_cycles(void) {
  start("alice", alice, NULL);
  start("bob", bob, NULL);
  start("carol", carol, NULL);
  start("dave", dave, NULL);
  wait_asleep();
}

// A barrier that one cannot reach because the other holds the lock and waits there.
static pthread_barrier_t line;
static void *early(void *_) {
  pthread_mutex_lock(&a);
  meet(&both, 2);
  pthread_barrier_wait(&line);
  pthread_mutex_unlock(&a);
  return _;
}
static void *late(void *_) {
  meet(&both, 2);
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  pthread_barrier_wait(&line);
  return _;
}
static void barrier(void) {
  pthread_barrier_init(&line, NULL, 2);
  pthread_t one = start("early", early, NULL), two = start("late", late, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// Spin locks burn their processors; they wait all the same.
static pthread_spinlock_t s, t;
static void *spin_1(void *_) {
  pthread_spin_lock(&s);  // HOLDS(spin-1)
  meet(&both, 2);
  pthread_spin_lock(&t);  // WAITS(spin-1)
  pthread_spin_unlock(&t);
  pthread_spin_unlock(&s);
  return _;
}
static void *spin_2(void *_) {
  pthread_spin_lock(&t);  // HOLDS(spin-2)
  meet(&both, 2);
  pthread_spin_lock(&s);  // WAITS(spin-2)
  pthread_spin_unlock(&s);
  pthread_spin_unlock(&t);
  return _;
}
static void spin(void) {
  pthread_spin_init(&s, 0);
  pthread_spin_init(&t, 0);
  start("spin-1", spin_1, NULL);
  start("spin-2", spin_2, NULL);
  wait_asleep();
}
static void *spin_mix_1(void *_) {
  pthread_spin_lock(&s);  // HOLDS(mix-1)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(mix-1)
  pthread_mutex_unlock(&a);
  return _;
}
static void *spin_mix_2(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(mix-2)
  meet(&both, 2);
  pthread_spin_lock(&s);  // WAITS(mix-2)
  pthread_spin_unlock(&s);
  return _;
}
static void spin_mix(void) {
  pthread_spin_init(&s, 0);
  start("mix-1", spin_mix_1, NULL);
  start("mix-2", spin_mix_2, NULL);
  wait_asleep();
}

// Every signal blocked, and the threads' stacks are the program's own.
static void blocked_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  abba();
}

// Names that a report must write so that a reader, and a JSON parser, can read them.
static void *oddly_named(void *_) {
  for (;;) nap(1000);
  return _;
}
static void *odd_1(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(say "hi")
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(say "hi")
  pthread_mutex_unlock(&b);
  return _;
}
static void *odd_2(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(back\slash ü)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(back\slash ü)
  pthread_mutex_unlock(&a);
  return _;
}
static void odd_names(void) {
  start("\xff\xc3\n\x01\t", oddly_named, NULL);
  start("", oddly_named, NULL);
  start("<b>&amp;</b>", oddly_named, NULL);
  start("\033[31mred", oddly_named, NULL);
  start("say \"hi\"", odd_1, NULL);
  start("back\\slash ü", odd_2, NULL);
  wait_asleep();
}

// The locks are taken at the bottom of a deep recursion.
NOINLINE static void *dive(int depth, body bottom) {
  void *result = depth ? dive(depth - 1, bottom) : bottom(NULL);
  __asm__ volatile("");
  return result;
}
static void *deep_1(void *_) { return dive(3000, alice); }
static void *deep_2(void *_) { return dive(3000, bob); }
static void deep(void) {
  start("alice", deep_1, NULL);
  start("bob", deep_2, NULL);
  wait_asleep();
}

// Other threads are as busy with other locks as they can be, before and after.
static pthread_mutex_t noise[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *noisy(void *_) {
  for (;;) {
    pthread_mutex_lock(&noise[0]);
    pthread_mutex_lock(&noise[1]);
    pthread_mutex_unlock(&noise[1]);
    pthread_mutex_unlock(&noise[0]);
  }
  return _;
}
static void busy(void) {
  for (int i = 0; i < 6; i++) start("noisy", noisy, NULL);
  nap(1500);
  abba();
}

// Twice the knot comes undone by a time limit; the third time there is none.
static int round_of[3];
static void *patient(void *raw) {
  pthread_mutex_t *mine = raw ? &b : &a, *other = raw ? &a : &b;
  for (int i = 0; i < 2; i++) {
    struct timespec limit = in(CLOCK_REALTIME, 250);
    pthread_mutex_lock(mine);
    meet(&round_of[i], 2);
    if (pthread_mutex_timedlock(other, &limit) == 0) pthread_mutex_unlock(other);
    pthread_mutex_unlock(mine);
  }
  pthread_mutex_lock(mine);  // HOLDS(patient-1,patient-2)
  meet(&round_of[2], 2);
  pthread_mutex_lock(other);  // WAITS(patient-1,patient-2)
  pthread_mutex_unlock(other);
  return NULL;
}
static void after_limits(void) {
  start("patient-1", patient, NULL);
  start("patient-2", patient, &a);
  wait_asleep();
}

// Renamed between the taking and the waiting: the later name is the thread's.
static void *renamed(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(later)
  pthread_setname_np(pthread_self(), "later");
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(later)
  pthread_mutex_unlock(&b);
  return _;
}
static void renames(void) {
  start("earlier", renamed, NULL);
  start("bob", bob, NULL);
  wait_asleep();
}

// Signals come to threads that wait already, and their handler takes a lock of its own.
static pthread_mutex_t handlers = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static int both_wait;
static void takes_own(int _) {
  (void)_;
  pthread_mutex_lock(&handlers);
  pthread_mutex_unlock(&handlers);
}
static void *interrupted_ivan(void *_) {
  pthread_mutex_lock(&left);  // HOLDS(ivan)
  meet(&both_wait, 3);
  pthread_mutex_lock(&right);  // WAITS(ivan)
  return _;
}
static void *interrupted_irma(void *_) {
  pthread_mutex_lock(&right);  // HOLDS(irma)
  meet(&both_wait, 3);
  pthread_mutex_lock(&left);  // WAITS(irma)
  return _;
}
static void interrupted(void) {
  struct sigaction action = {.sa_handler = takes_own, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pthread_t ivan = start("ivan", interrupted_ivan, NULL), irma = start("irma", interrupted_irma, NULL);
  meet(&both_wait, 3);
  nap(3);
  pthread_kill(ivan, SIGUSR1);
  pthread_kill(irma, SIGUSR1);
  pthread_join(ivan, NULL);
}

// A condition's wait runs out, and its mutex can never be had again.
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static void *timed_body(void *_) {
  pthread_mutex_lock(&left);  // HOLDS(timed)
  pthread_mutex_lock(&right);
  struct timespec at = in(CLOCK_REALTIME, 1000);
  pthread_cond_timedwait(&never, &right, &at);  // WAITS(timed)
  return _;
}
static void *other_body(void *_) {
  nap(50);
  pthread_mutex_lock(&right);  // HOLDS(other)
  pthread_mutex_lock(&left);   // WAITS(other)
  return _;
}
static void late_mutex(void) {
  pthread_t timed = start("timed", timed_body, NULL);
  start("other", other_body, NULL);
  for (int i = 0; i < 3000; i++) nap(10);
  pthread_join(timed, NULL);
}

static const struct scenario all[] = {
  {"interrupted", interrupted}, {"late-mutex", late_mutex},
  {"abba", abba}, {"errorcheck", errorcheck}, {"recursive", recursive}, {"adaptive", adaptive},
  {"robust", robust}, {"shared", shared}, {"inherit", inherit}, {"tried", tried},
  {"three", three}, {"ring", ring}, {"self", self}, {"self-adaptive", self_adaptive},
  {"self-main", self_main}, {"handler", handler}, {"main-in", main_in},
  {"main-behind", main_behind}, {"goes-on", goes_on}, {"bystanders", bystanders},
  {"many-locks", many_locks}, {"crowd", crowd}, {"condition", condition},
  {"owner-exited", owner_exited}, {"owner-cancelled", owner_cancelled}, {"wrappers", wrappers},
  {"inlined", inlined}, {"retaken", retaken}, {"out-of-order", out_of_order},
  {"key-destructor", key_destructor}, {"reused", reused}, {"two-cycles", two_cycles},
  {"barrier", barrier}, {"spin", spin}, {"spin-mix", spin_mix},
  {"blocked-signals", blocked_signals}, {"odd-names", odd_names}, {"deep", deep}, {"busy", busy},
  {"after-limits", after_limits}, {"renames", renames},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
