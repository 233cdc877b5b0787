// Programs that look like a deadlock and are none; the first argument says which. Nothing may be said
// of them above a note, and their output and status must be what they are alone.
#include "fixture.h"
#include <sched.h>
#include <spawn.h>

extern char **environ;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int both;
static char self[4096];

static void all_of(int count, const char *name, body run) {
  pthread_t threads[64];
  for (int i = 0; i < count; i++) threads[i] = start(name, run, (void *)(intptr_t)i);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

// Hand over hand along a list, each node locked before the one behind it is let go.
enum { NODES = 64 };
static struct node { pthread_mutex_t lock; long value; } list[NODES];
static void *walker(void *_) {
  for (int round = 0; round < 500; round++) {
    pthread_mutex_lock(&list[0].lock);
    for (int i = 1; i < NODES; i++) {
      pthread_mutex_lock(&list[i].lock);
      list[i].value++;
      pthread_mutex_unlock(&list[i - 1].lock);
    }
    pthread_mutex_unlock(&list[NODES - 1].lock);
  }
  return _;
}
static void hand_over_hand(void) {
  for (int i = 0; i < NODES; i++) pthread_mutex_init(&list[i].lock, NULL);
  all_of(4, "walker", walker);
  printf("%ld\n", list[NODES - 1].value);
}

// Pairs from a pool, the lower address first.
static long moved;
static void *mover(void *raw) {
  unsigned seed = (unsigned)(intptr_t)raw + 7;
  for (int round = 0; round < 20000; round++) {
    int x = rand_r(&seed) % NODES, y = rand_r(&seed) % NODES;
    if (x == y) continue;
    struct node *low = &list[x < y ? x : y], *high = &list[x < y ? y : x];
    pthread_mutex_lock(&low->lock);
    pthread_mutex_lock(&high->lock);
    low->value++;
    high->value--;
    pthread_mutex_unlock(&low->lock);
    pthread_mutex_unlock(&high->lock);
  }
  return NULL;
}
static void address_order(void) {
  for (int i = 0; i < NODES; i++) pthread_mutex_init(&list[i].lock, NULL);
  all_of(4, "mover", mover);
  for (int i = 0; i < NODES; i++) moved += list[i].value;
  printf("%ld\n", moved);
}

// Opposite orders, but the second lock is only tried, and the first one let go when it is taken.
static long tries;
static void *polite(void *raw) {
  pthread_mutex_t *first = raw ? &a : &b, *second = raw ? &b : &a;
  for (int done = 0; done < 5000;) {
    pthread_mutex_lock(first);
    if (pthread_mutex_trylock(second) == 0) {
      tries++;
      done++;
      pthread_mutex_unlock(second);
    }
    pthread_mutex_unlock(first);
    if (done % 16 == 0) sched_yield();
  }
  return NULL;
}
static void try_back_off(void) {
  all_of(2, "polite", polite);
  printf("%ld\n", tries);
}

// Opposite orders that meet; both waits have a limit, so that the knot comes undone by itself.
static void *limited(void *raw) {
  pthread_mutex_t *first = raw ? &a : &b, *second = raw ? &b : &a;
  pthread_mutex_lock(first);
  meet(&both, 2);
  int error;
  if (raw) {
    struct timespec limit = in(CLOCK_REALTIME, 1500);
    error = pthread_mutex_timedlock(second, &limit);
  } else {
    struct timespec limit = in(CLOCK_MONOTONIC, 1500);
    error = pthread_mutex_clocklock(second, CLOCK_MONOTONIC, &limit);
  }
  if (error == 0) pthread_mutex_unlock(second);
  else if (error != ETIMEDOUT) puts(strerror(error));
  pthread_mutex_unlock(first);
  return NULL;
}
static void timed_cross(void) { all_of(2, "limited", limited); }

// One of the two waits has no limit: it is let go when the other gives up.
static void *half(void *raw) {
  pthread_mutex_t *first = raw ? &a : &b, *second = raw ? &b : &a;
  pthread_mutex_lock(first);
  meet(&both, 2);
  struct timespec limit = in(CLOCK_REALTIME, 1500);
  int error = raw ? pthread_mutex_timedlock(second, &limit) : pthread_mutex_lock(second);
  if (error == 0) pthread_mutex_unlock(second);
  puts(raw ? (error == ETIMEDOUT ? "gave up" : "taken") : "waited");
  pthread_mutex_unlock(first);
  return NULL;
}
static void half_timed(void) {
  pthread_t one = start("half", half, (void *)1), two = start("half", half, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER, q = PTHREAD_RWLOCK_INITIALIZER;
static void *timed_upgrade(void *_) {
  pthread_rwlock_rdlock(&r);
  struct timespec limit = in(CLOCK_REALTIME, 600);
  puts(pthread_rwlock_timedwrlock(&r, &limit) == ETIMEDOUT ? "too late" : "?");
  pthread_rwlock_unlock(&r);
  return _;
}
static void timed_rwlock(void) { all_of(1, "upgrader", timed_upgrade); }

static pthread_mutex_t again;
static void *deep(void *_) {
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < 300; i++) pthread_mutex_lock(&again);
    for (int i = 0; i < 300; i++) pthread_mutex_unlock(&again);
  }
  return _;
}
static void recursive(void) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&again, &attr);
  all_of(4, "deep", deep);
}

// Two read locks in both orders, and one read lock twice: readers do not wait for readers.
static void *reader(void *raw) {
  pthread_rwlock_t *first = raw ? &r : &q, *second = raw ? &q : &r;
  pthread_rwlock_rdlock(first);
  meet(&both, 2);
  pthread_rwlock_rdlock(second);
  pthread_rwlock_rdlock(first);
  nap(300);
  for (int i = 0; i < 2; i++) pthread_rwlock_unlock(first);
  pthread_rwlock_unlock(second);
  return NULL;
}
static void read_read(void) {
  for (int i = 0; i < 2; i++) {
    both = 0;
    all_of(2, "reader", reader);
  }
}

// Held for three seconds while four others wait for it.
static void *holder(void *_) {
  pthread_mutex_lock(&a);
  meet(&both, 2);
  nap(3000);
  pthread_mutex_unlock(&a);
  return _;
}
static void *patient(void *_) {
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  return _;
}
static void long_hold(void) {
  pthread_t thread = start("holder", holder, NULL);
  meet(&both, 2);
  all_of(4, "patient", patient);
  pthread_join(thread, NULL);
}

// Workers that wait for work until the program ends, each with a lock of its own held.
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t own[8], board = PTHREAD_MUTEX_INITIALIZER;
static int jobs;
static void *idler(void *raw) {
  pthread_mutex_lock(&own[(intptr_t)raw]);
  pthread_mutex_lock(&board);
  for (;;) {
    while (jobs == 0) pthread_cond_wait(&work, &board);
    jobs--;
  }
  return NULL;
}
static void idle_pool(void) {
  for (int i = 0; i < 8; i++) {
    pthread_mutex_init(&own[i], NULL);
    pthread_detach(start("idler", idler, (void *)(intptr_t)i));
  }
  nap(1200);
  pthread_mutex_lock(&board);
  jobs = 3;
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&board);
  nap(300);
}

// Both orders, one after the other: nothing stood still, so nothing is certain.
static void *forwards(void *_) {
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return _;
}
static void *backwards(void *_) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return _;
}
static void never_overlap(void) {
  for (int i = 0; i < 20; i++) {
    all_of(1, "forwards", forwards);
    all_of(1, "backwards", backwards);
  }
}
static void one_thread(void) {
  forwards(NULL);
  backwards(NULL);
}
// Both orders at once, but always under a third lock.
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *gated(void *raw) {
  for (int i = 0; i < 3000; i++) {
    pthread_mutex_lock(&gate);
    if (raw) forwards(NULL); else backwards(NULL);
    pthread_mutex_unlock(&gate);
  }
  return NULL;
}
static void gate_lock(void) { all_of(2, "gated", gated); }

// A mutex as a turnstile: one thread locks what the other unlocks. Not portable, common all the same.
static pthread_mutex_t ping = PTHREAD_MUTEX_INITIALIZER, pong = PTHREAD_MUTEX_INITIALIZER;
static long turns;
static void *pinger(void *_) {
  for (int i = 0; i < 100000; i++) {
    pthread_mutex_lock(&ping);
    turns++;
    pthread_mutex_unlock(&pong);
  }
  return _;
}
static void *ponger(void *_) {
  for (int i = 0; i < 100000; i++) {
    pthread_mutex_lock(&pong);
    turns++;
    pthread_mutex_unlock(&ping);
  }
  return _;
}
static void handed_over(void) {
  pthread_mutex_lock(&pong);
  pthread_t one = start("pinger", pinger, NULL), two = start("ponger", ponger, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  printf("%ld\n", turns);
}
// A mutex as a start signal: locked twice by main, unlocked by the thread that it waits for.
static void *starter(void *_) {
  nap(700);
  pthread_mutex_unlock(&a);
  return _;
}
static void start_signal(void) {
  pthread_mutex_lock(&a);
  pthread_t thread = start("starter", starter, NULL);
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  pthread_join(thread, NULL);
}

// Eight threads that want one lock, for two seconds.
static int stop;
static void *contender(void *_) {
  long mine = 0;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    mine++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
  }
  return mine ? NULL : _;
}
static void *stopper(void *_) {
  nap(2000);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  return _;
}
static void contention(void) {
  pthread_t thread = start("stopper", stopper, NULL);
  all_of(8, "contender", contender);
  pthread_join(thread, NULL);
}

// A timer's handler tries a lock while the program locks and unlocks as fast as it can.
static volatile sig_atomic_t ticks;
static void on_tick(int _) {
  (void)_;
  int before = errno;
  if (pthread_mutex_trylock(&b) == 0) pthread_mutex_unlock(&b);
  ticks++;
  errno = before;
}
static void *spinner(void *_) {
  while (ticks < 400) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    pthread_mutex_unlock(&a);
  }
  return _;
}
static void signals(void) {
  struct sigaction action = {0};
  action.sa_handler = on_tick;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  timer_t timer;
  struct sigevent event = {0};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  struct itimerspec every = {{0, 2000000}, {0, 2000000}};
  timer_settime(timer, 0, &every, NULL);
  all_of(3, "spinner", spinner);
  timer_delete(timer);
}

// Every wake wakes all.
static pthread_cond_t storm_cond = PTHREAD_COND_INITIALIZER;
static int epoch;
static void *stormed(void *_) {
  pthread_mutex_lock(&board);
  for (int seen = 0; seen < 300; seen = epoch)
    while (epoch == seen) pthread_cond_wait(&storm_cond, &board);
  pthread_mutex_unlock(&board);
  return _;
}
static void *storming(void *_) {
  for (int i = 0; i < 300; i++) {
    pthread_mutex_lock(&board);
    epoch++;
    pthread_cond_broadcast(&storm_cond);
    pthread_mutex_unlock(&board);
    if (i % 10 == 0) nap(1);
  }
  return _;
}
static void broadcasts(void) {
  pthread_t thread = start("storming", storming, NULL);
  all_of(32, "stormed", stormed);
  pthread_join(thread, NULL);
}

static pthread_barrier_t line;
static long serial;
static void *rounds(void *_) {
  for (int i = 0; i < 1000; i++)
    if (pthread_barrier_wait(&line) == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
  return _;
}
static void barriers(void) {
  pthread_barrier_init(&line, NULL, 8);
  all_of(8, "rounds", rounds);
  printf("%ld\n", serial);
}

static long born;
static void *brief(void *_) {
  pthread_mutex_lock(&a);
  born++;
  pthread_mutex_unlock(&a);
  return _;
}
static void many_threads(void) {
  for (int i = 0; i < 20000; i += 20) {
    pthread_t threads[20];
    for (int k = 0; k < 20; k++) {
      if (pthread_create(&threads[k], NULL, brief, NULL)) exit(3);
      if (k % 2) pthread_detach(threads[k]);
    }
    for (int k = 0; k < 20; k += 2) pthread_join(threads[k], NULL);
  }
  for (int still = 1; still; nap(1)) {
    pthread_mutex_lock(&a);
    still = born < 20000;
    pthread_mutex_unlock(&a);
  }
  printf("%ld\n", born);
}

static void *rw_storm(void *raw) {
  unsigned seed = (unsigned)(intptr_t)raw + 1;
  for (int i = 0; i < 30000; i++) {
    int what = rand_r(&seed) % 8;
    if (what == 0) pthread_rwlock_wrlock(&r);
    else if (what == 1 && pthread_rwlock_trywrlock(&r)) continue;
    else if (what == 2 && pthread_rwlock_tryrdlock(&r)) continue;
    else if (what > 2) pthread_rwlock_rdlock(&r);
    pthread_rwlock_unlock(&r);
  }
  return NULL;
}
static void rw_storms(void) {
  all_of(8, "rw-storm", rw_storm);
  pthread_rwlockattr_t attr;
  pthread_rwlockattr_init(&attr);
  pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&r, &attr);
  all_of(8, "rw-storm", rw_storm);
}

// One address, many locks: made, used in an order, destroyed or just freed, made again the other way.
static void *user(void *raw) {
  pthread_mutex_t **pair = raw;
  pthread_mutex_lock(pair[0]);
  pthread_mutex_lock(pair[1]);
  pthread_mutex_unlock(pair[1]);
  pthread_mutex_unlock(pair[0]);
  return NULL;
}
static void reused(void) {
  for (int round = 0; round < 300; round++) {
    pthread_mutex_t *x = malloc(sizeof *x), *y = malloc(sizeof *y);
    pthread_mutex_init(x, NULL);
    pthread_mutex_init(y, NULL);
    pthread_mutex_t *pair[2] = {x < y ? x : y, x < y ? y : x};
    if (round % 2) { pthread_mutex_t *swap = pair[0]; pair[0] = pair[1]; pair[1] = swap; }
    pthread_join(start("user", user, pair), NULL);
    if (round % 3) {
      pthread_mutex_destroy(x);
      pthread_mutex_destroy(y);
    }
    memset(x, 0, sizeof *x);
    free(x);
    free(y);
  }
  // The memory of a lock that is held becomes another lock's, which is free.
  pthread_mutex_t place;
  pthread_mutex_init(&place, NULL);
  pthread_mutex_lock(&place);
  memset(&place, 0x5a, sizeof place);
  pthread_mutex_init(&place, NULL);
  printf("%d\n", pthread_mutex_lock(&place));
  pthread_mutex_unlock(&place);
  pthread_mutex_destroy(&place);
}

static void error_check(void) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&again, &attr);
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&again);
    puts(pthread_mutex_lock(&again) == EDEADLK ? "already mine" : "?");
    pthread_mutex_unlock(&again);
  }
}
// A thread that joins itself is told so.
static void self_join(void) {
  for (int i = 0; i < 3; i++)
    puts(pthread_join(pthread_self(), NULL) == EDEADLK ? "myself" : "?");
}

static void *dies(void *raw) {
  pthread_mutex_lock(raw);
  return NULL;
}
static void robust(void) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&again, &attr);
  for (int i = 0; i < 3; i++) {
    pthread_join(start("dies", dies, &again), NULL);
    if (pthread_mutex_lock(&again) == EOWNERDEAD) {
      puts("owner died");
      pthread_mutex_consistent(&again);
    }
    pthread_mutex_unlock(&again);
  }
}

// Stopped for two seconds with locks held and waited for, then told to go on.
static void *held_while_stopped(void *_) {
  pthread_mutex_lock(&a);
  meet(&both, 2);
  nap(1000);
  pthread_mutex_unlock(&a);
  return _;
}
static void stopped(void) {
  pid_t me = getpid(), helper = fork();
  if (helper == 0) {
    alarm(20);
    nap(2500);
    kill(me, SIGCONT);
    _exit(0);
  }
  pthread_t thread = start("holder", held_while_stopped, NULL);
  meet(&both, 2);
  pthread_t other = start("patient", patient, NULL);
  nap(100);
  kill(me, SIGSTOP);
  pthread_join(thread, NULL);
  pthread_join(other, NULL);
  waitpid(helper, NULL, 0);
}

// Forks under load, with handlers that take the locks before and give them back after.
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER, table = PTHREAD_MUTEX_INITIALIZER;
static void prepare(void) { pthread_mutex_lock(&heap); pthread_mutex_lock(&table); }
static void parent(void) { pthread_mutex_unlock(&table); pthread_mutex_unlock(&heap); }
static void child(void) { pthread_mutex_unlock(&table); pthread_mutex_unlock(&heap); }
static void *loader(void *_) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&heap);
    pthread_mutex_lock(&table);
    pthread_mutex_unlock(&table);
    pthread_mutex_unlock(&heap);
  }
  return _;
}
static void fork_storm(void) {
  pthread_atfork(prepare, parent, child);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) threads[i] = start("loader", loader, NULL);
  int good = 0;
  for (int i = 0; i < 300; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      for (int k = 0; k < 20; k++) {
        pthread_mutex_lock(&heap);
        pthread_mutex_lock(&table);
        pthread_mutex_unlock(&table);
        pthread_mutex_unlock(&heap);
      }
      if (i % 10 == 0) {
        stop = 0;
        pthread_t thread = start("in child", brief, NULL);
        pthread_join(thread, NULL);
      }
      _exit(i % 7);
    }
    int status;
    waitpid(pid, &status, 0);
    good += WIFEXITED(status) && WEXITSTATUS(status) == i % 7;
  }
  stop = 1;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("%d\n", good);
}

// Every way to start another program.
static void others(void) {
  fflush(stdout);
  pid_t pid = vfork();
  if (pid == 0) {
    execl("/bin/echo", "echo", "vfork", (char *)NULL);
    _exit(127);
  }
  int status;
  waitpid(pid, &status, 0);
  printf("%d\n", status);
  pid = vfork();
  if (pid == 0) _exit(7);
  waitpid(pid, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  pid = vfork();
  if (pid == 0) {
    execl("/nowhere/at/all", "x", (char *)NULL);
    _exit(errno == ENOENT ? 8 : 9);
  }
  waitpid(pid, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  char *arguments[] = {"sh", "-c", "echo spawned; exit 3", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, 1, 5);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  int answer = posix_spawnp(&pid, "sh", &actions, &attributes, arguments, environ);
  waitpid(pid, &status, 0);
  printf("%d\n", answer);
  printf("%d\n", WEXITSTATUS(status));
  printf("%d\n", posix_spawn(&pid, "/nowhere", NULL, NULL, arguments, environ));
  printf("%d\n", WEXITSTATUS(system("exit 5")));
  FILE *pipe = popen("echo from a pipe", "r");
  char text[100];
  while (fgets(text, sizeof text, pipe)) fputs(text, stdout);
  printf("%d\n", pclose(pipe));
}
// Becomes itself again and again, counting down, with a thread alive and a lock held each time.
static void again_and_again(void) {
  const char *text = getenv("FIXTURE_COUNT");
  int left = text ? atoi(text) : 20;
  if (left == 0) return;
  char value[16];
  snprintf(value, sizeof value, "%d", left - 1);
  setenv("FIXTURE_COUNT", value, 1);
  pthread_t thread = start("holder", holder, NULL);
  (void)thread;
  meet(&both, 2);
  execl(self, self, "exec-self", (char *)NULL);
}

// Two threads that keep failing to get each other's lock without ever letting go of their own:
// for two seconds they make no headway. A livelock, not a deadlock.
static void *stubborn(void *raw) {
  pthread_mutex_t *first = raw ? &a : &b, *second = raw ? &b : &a;
  double until = seconds() + 2;
  pthread_mutex_lock(first);
  meet(&both, 2);
  int got = 0;
  while (!got && seconds() < until) got = pthread_mutex_trylock(second) == 0;
  if (got) pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
  return NULL;
}
static void livelock(void) { all_of(2, "stubborn", stubborn); }

// Cycles that close and open again: a thread waits in a handler's shadow, a signal lets it go.
static volatile sig_atomic_t let_go;
static void on_release(int _) { (void)_; let_go = 1; }
static void *sleeps_with_lock(void *_) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_mutex_lock(&a);
  meet(&both, 2);
  while (!let_go) nap(5);
  pthread_mutex_unlock(&a);
  return _;
}
static void signal_release(void) {
  signal(SIGUSR1, on_release);
  pthread_t thread = start("sleeps", sleeps_with_lock, NULL);
  meet(&both, 2);
  pthread_t other = start("patient", patient, NULL);
  nap(800);
  pthread_kill(thread, SIGUSR1);
  pthread_join(thread, NULL);
  pthread_join(other, NULL);
}

// A lock is handed to a thread that was not born when it was taken: the owner exits, its heir unlocks.
static void *hands_on(void *_) {
  pthread_mutex_lock(&a);
  return _;
}
static void *takes_over(void *_) {
  meet(&both, 2);
  nap(600);
  pthread_mutex_unlock(&a);
  return _;
}
static void inheritance(void) {
  pthread_join(start("hands-on", hands_on, NULL), NULL);
  pthread_t thread = start("takes-over", takes_over, NULL);
  meet(&both, 2);
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  pthread_join(thread, NULL);
}

// Shared between processes: the owner lives in another one.
#include <sys/mman.h>
static void between_processes(void) {
  pthread_mutex_t *pair = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int *place = (int *)(pair + 2);
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  for (int i = 0; i < 2; i++) pthread_mutex_init(&pair[i], &attr);
  pid_t pid = fork();
  pthread_mutex_lock(&pair[pid == 0]);
  meet(place, 2);
  if (pid == 0) {
    nap(1000);
    pthread_mutex_unlock(&pair[1]);
    pthread_mutex_lock(&pair[0]);
    pthread_mutex_unlock(&pair[0]);
    _exit(0);
  }
  pthread_mutex_lock(&pair[1]);
  pthread_mutex_unlock(&pair[1]);
  pthread_mutex_unlock(&pair[0]);
  int status;
  waitpid(pid, &status, 0);
  printf("%d\n", status);
}

// The lock's memory is given back while the lock is held: nobody may look there any more.
static void unmapped(void) {
  for (int i = 0; i < 50; i++) {
    pthread_mutex_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_init(lock, NULL);
    pthread_mutex_lock(lock);
    munmap(lock, 4096);
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
  }
  nap(300);
}

// The owner sleeps, and will for long; that is no circle, however long others wait.
static void *sleeps_on(void *_) {
  pthread_mutex_lock(&a);
  meet(&both, 2);
  for (int i = 0; i < 400; i++) nap(100);
  return _;
}
static void *reads_on(void *_) {
  int ends[2];
  char byte;
  pthread_mutex_lock(&b);
  if (pipe(ends) == 0 && read(ends[0], &byte, 1) < 0) puts("?");
  return _;
}
static void stuck_owner(void) {
  start("sleeps-on", sleeps_on, NULL);
  start("reads-on", reads_on, NULL);
  meet(&both, 2);
  nap(50);
  pthread_t one = start("patient", patient, NULL);
  pthread_mutex_lock(&b);
  pthread_join(one, NULL);
}
// Everybody waits for a signal that nobody is left to give.
static pthread_cond_t lost = PTHREAD_COND_INITIALIZER;
static void *unwoken(void *_) {
  pthread_mutex_lock(&board);
  for (;;) pthread_cond_wait(&lost, &board);
  return _;
}
static void all_asleep(void) { all_of(3, "unwoken", unwoken); }

// Hand over hand round a ring, without end: what a thread has let go again takes no memory.
static void endless_hand(void) {
  pthread_mutex_t ring[4];
  for (int i = 0; i < 4; i++) pthread_mutex_init(&ring[i], NULL);
  pthread_mutex_lock(&ring[0]);
  for (long i = 0; i < 1000000; i++) {
    pthread_mutex_lock(&ring[(i + 1) % 4]);
    pthread_mutex_unlock(&ring[i % 4]);
  }
  pthread_mutex_unlock(&ring[0]);
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file) {
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
  }
  puts(pages < 25000 ? "little memory" : "much memory");
}

// A lock is held across fork: in the child it is the first thread's, which gives it back in its own time.
static void *heir_waits(void *_) {
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  puts("had it");
  return _;
}
static void held_across_fork(void) {
  pthread_mutex_lock(&a);
  pid_t pid = fork();
  if (pid == 0) {
    begin();
    pthread_t thread = start("heir", heir_waits, NULL);
    nap(2500);
    pthread_mutex_unlock(&a);
    pthread_join(thread, NULL);
    fflush(stdout);
    _exit(0);
  }
  waitpid(pid, NULL, 0);
  pthread_mutex_unlock(&a);
}

static const struct scenario all[] = {
  {"hand-over-hand", hand_over_hand}, {"address-order", address_order},
  {"try-back-off", try_back_off}, {"timed-cross", timed_cross}, {"half-timed", half_timed},
  {"timed-rwlock", timed_rwlock}, {"recursive", recursive}, {"read-read", read_read},
  {"long-hold", long_hold}, {"idle-pool", idle_pool}, {"never-overlap", never_overlap},
  {"one-thread", one_thread}, {"gate-lock", gate_lock}, {"handed-over", handed_over},
  {"start-signal", start_signal}, {"contention", contention}, {"signals", signals},
  {"broadcasts", broadcasts}, {"barriers", barriers}, {"many-threads", many_threads},
  {"rw-storms", rw_storms}, {"reused", reused}, {"error-check", error_check},
  {"self-join", self_join}, {"robust", robust}, {"stopped", stopped},
  {"fork-storm", fork_storm}, {"others", others}, {"exec-self", again_and_again},
  {"livelock", livelock}, {"signal-release", signal_release}, {"inheritance", inheritance},
  {"between-processes", between_processes}, {"unmapped", unmapped},
  {"stuck-owner", stuck_owner}, {"all-asleep", all_asleep},
  {"endless-hand", endless_hand}, {"held-across-fork", held_across_fork},
};
int main(int argc, char **argv) {
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length > 0 ? length : 0] = 0;
  return PLAY(argc, argv, all);
}
