// Long waits that no deadlock explains: for a holder that takes its time, behind others that take the
// lock again and again; and what looks like it.
#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t records = PTHREAD_RWLOCK_INITIALIZER;
static int is_held;
static void hold(void) { __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST); }
static void await_holder(void) { while (!__atomic_load_n(&is_held, __ATOMIC_SEQ_CST)) nap(1); }

// What the holder does with the lock in hand, until the end comes.
static void (*work)(void);
static int milliseconds = 2500;
static int ends[2];

static void *holds(void *unused) {
  pthread_mutex_lock(&lock);  // HOLDS(holder)
  hold();
  work();  // STANDS(holder)
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *waits(void *unused) {
  await_holder();
  pthread_mutex_lock(&lock);  // WAITS(waiter)
  pthread_mutex_unlock(&lock);

  return unused;
}
static void run(void (*what)(void)) {
  work = what;
  pthread_t holder = start("holder", holds, NULL), waiter = start("waiter", waits, NULL);
  pthread_join(holder, NULL);
  pthread_join(waiter, NULL);
}
static void sleeps(void) { nap(milliseconds); }
static void computes(void) {
  double begun = seconds();
  while (seconds() - begun < milliseconds / 1000.0) {}
}
static void reads(void) {
  char byte;
  if (read(ends[0], &byte, 1) != 1) exit(3);
}
static void waits_for_child(void) {
  pid_t child = fork();
  if (child == 0) {
    nap(milliseconds);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}
static void waits_itself(void) {
  pthread_mutex_lock(&inner);
  pthread_mutex_unlock(&inner);
}

static void *writes(void *unused) {
  nap(milliseconds);
  if (write(ends[1], "x", 1) != 1) exit(3);
  return unused;
}
static void *sleeps_inside(void *unused) {
  pthread_mutex_lock(&inner);
  nap(milliseconds);
  pthread_mutex_unlock(&inner);
  return unused;
}

static void run_sleeper(void) { run(sleeps); }
static void run_brief(void) {
  milliseconds = 300;
  run(sleeps);
}
static void run_two_seconds(void) {
  milliseconds = 2000;
  run(sleeps);
}
static void run_computer(void) { run(computes); }
static void run_parent(void) { run(waits_for_child); }
static void run_pipe(void) {
  if (pipe(ends)) exit(3);
  pthread_t writer = start("writer", writes, NULL);
  run(reads);
  pthread_join(writer, NULL);
}
static void run_socket(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1)) exit(3);
  getsockname(listener, (struct sockaddr *)&address, &size);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(ends[0], (struct sockaddr *)&address, size)) exit(3);
  ends[1] = accept(listener, NULL, NULL);
  pthread_t writer = start("writer", writes, NULL);
  run(reads);
  pthread_join(writer, NULL);
}
static void run_chain(void) {
  pthread_t sleeper = start("sleeper", sleeps_inside, NULL);
  nap(50);
  run(waits_itself);
  pthread_join(sleeper, NULL);
}

// Gives the lock back and takes it again before anybody who must be woken comes to it.
static void *hogs(void *unused) {
  double begun = seconds();
  while (seconds() - begun < milliseconds / 1000.0) {
    pthread_mutex_lock(&lock);  // HOLDS(hog)
    hold();
    nap(5);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}
// Beside a thread that computes, one of no urgency takes long to wake up.
static void on_first_processor(int policy) {
  cpu_set_t all, first;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&first);
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (CPU_ISSET(i, &all)) {
      CPU_SET(i, &first);
      break;
    }
  }
  sched_setaffinity(0, sizeof first, &first);
  struct sched_param none = {0};
  sched_setscheduler(0, policy, &none);
}
static void *computes_beside(void *unused) {
  on_first_processor(SCHED_OTHER);
  computes();
  return unused;
}
// Chance may let it in; then it comes again.
static int is_over;
static void *waits_idly(void *unused) {
  on_first_processor(SCHED_IDLE);
  await_holder();
  while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    nap(20);
  }
  return unused;
}
static void run_hog(void) {
  milliseconds = 6000;
  start("busy", computes_beside, NULL);
  pthread_t hog = start("hog", hogs, NULL), waiter = start("waiter", waits_idly, NULL);
  pthread_join(hog, NULL);
  __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
  pthread_join(waiter, NULL);
}

// One of the two always reads.
static int reading[2];
static void *reads_on(void *raw) {
  int own = (int)(intptr_t)raw;
  double begun = seconds();
  while (seconds() - begun < milliseconds / 1000.0) {
    pthread_rwlock_rdlock(&records);
    __atomic_store_n(&reading[own], 1, __ATOMIC_SEQ_CST);
    hold();
    // Until the other one reads as well, but not for ever: that one may have left.
    for (int i = 0; i < 20 || (i < 200 && !__atomic_load_n(&reading[1 - own], __ATOMIC_SEQ_CST)); i++) nap(1);
    __atomic_store_n(&reading[own], 0, __ATOMIC_SEQ_CST);
    pthread_rwlock_unlock(&records);
    nap(2);
  }
  return NULL;
}
static void *writes_once(void *unused) {
  await_holder();
  pthread_rwlock_wrlock(&records);
  pthread_rwlock_unlock(&records);
  return unused;
}
static void run_readers(void) {
  pthread_t a = start("reader-0", reads_on, (void *)0), b = start("reader-1", reads_on, (void *)1);
  pthread_t writer = start("waiter", writes_once, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  pthread_join(writer, NULL);
}
static void run_writer_first(void) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&records, &attributes);
  run_readers();
}

// Many want it all the time, and all of them get it in turn: each waits nearly always, and never long.
#define CROWD 16
static pthread_mutex_t turnstile = PTHREAD_MUTEX_INITIALIZER;
static void *takes_turns(void *unused) {
  double begun = seconds();
  while (seconds() - begun < milliseconds / 1000.0) {
    pthread_mutex_lock(&turnstile);
    usleep(300);
    pthread_mutex_unlock(&turnstile);
    usleep(50);
  }
  return unused;
}
static void run_crowd(void) {
  pthread_t crowd[CROWD];
  for (int i = 0; i < CROWD; i++) crowd[i] = start("crowd", takes_turns, NULL);
  for (int i = 0; i < CROWD; i++) pthread_join(crowd[i], NULL);
}

int main(int argc, char **argv) {
  static const struct scenario all[] = {
    {"sleeper", run_sleeper}, {"brief", run_brief}, {"two-seconds", run_two_seconds}, {"computer", run_computer},
    {"parent", run_parent}, {"pipe", run_pipe}, {"socket", run_socket}, {"chain", run_chain}, {"hog", run_hog},
    {"readers", run_readers}, {"writer-first", run_writer_first}, {"crowd", run_crowd},
  };

  return PLAY(argc, argv, all);
}
