// An urgent thread waits for a less urgent one, and what looks like it. All threads of a scenario
// share one processor, so that the scheduler must choose.
#include "fixture.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t records = PTHREAD_RWLOCK_INITIALIZER;
static int is_held, is_realtime;

static void compute(int milliseconds) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  long long end = now.tv_sec * 1000LL + now.tv_nsec / 1000000 + milliseconds;
  do { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); } while (now.tv_sec * 1000LL + now.tv_nsec / 1000000 < end);
}
// By SCHED_FIFO where that is asked for and permitted, else by nice values, which need no permission.
static void be(int realtime, int niceness) {
  cpu_set_t first;
  CPU_ZERO(&first);
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (CPU_ISSET(i, &all)) { CPU_SET(i, &first); break; }
  }
  sched_setaffinity(0, sizeof first, &first);
  struct sched_param wanted = {realtime};
  if (!is_realtime || pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) != 0) {
    setpriority(PRIO_PROCESS, syscall(SYS_gettid), niceness);
  }
}
static void await_holder(void) { while (!__atomic_load_n(&is_held, __ATOMIC_SEQ_CST)) nap(1); }
static void hold(void) { __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST); }

static void *low_computes(void *unused) {
  be(10, 19);
  pthread_mutex_lock(&lock);  // HOLDS(low)
  hold();
  compute(100);
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *low_sleeps(void *milliseconds) {
  be(10, 19);
  pthread_mutex_lock(&lock);
  hold();
  nap((int)(intptr_t)milliseconds);
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void *medium_computes(void *unused) {
  be(20, 5);
  await_holder();
  nap(20);
  compute(600);
  return unused;
}
static void *high_locks(void *unused) {
  be(30, 0);
  await_holder();
  pthread_mutex_lock(&lock);  // WAITS(high)
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *same_locks(void *unused) {
  be(10, 19);
  await_holder();
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *high_sleeps(void *unused) {
  be(30, 0);
  pthread_mutex_lock(&lock);
  hold();
  nap(500);
  pthread_mutex_unlock(&lock);
  return unused;
}

static void all(pthread_t *threads, int count) {
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}
// Those who wait are there before the holder is: less urgent ones would not come to run.
static void three(void) {
  pthread_t threads[] = {start("high", high_locks, NULL), start("medium", medium_computes, NULL), 0};
  nap(100);
  threads[2] = start("low", low_computes, NULL);
  all(threads, 3);
}
static void pathfinder(void) {
  is_realtime = 1;
  three();
}
static void inherited(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&lock, &attributes);
  three();
}
static void inherited_realtime(void) {
  is_realtime = 1;
  inherited();
}

static void two(body waiter, body holder, int milliseconds) {
  pthread_t threads[] = {start("high", waiter, NULL), start("low", holder, (void *)(intptr_t)milliseconds)};
  all(threads, 2);
}
static void bounded(void) { two(high_locks, low_sleeps, 500); }
static void brief(void) { two(high_locks, low_sleeps, 20); }
static void same(void) { two(same_locks, low_sleeps, 500); }
static void upside_down(void) { two(same_locks, high_sleeps, 500); }

static void *low_reads(void *unused) {
  be(10, 19);
  pthread_rwlock_rdlock(&records);
  hold();
  nap(500);
  pthread_rwlock_unlock(&records);
  return unused;
}
static void *high_writes(void *unused) {
  be(30, 0);
  await_holder();
  pthread_rwlock_wrlock(&records);
  pthread_rwlock_unlock(&records);
  return unused;
}
static void reader(void) { two(high_writes, low_reads, 0); }

// The one in the middle is as urgent as the waiter and waits itself.
static void *middle(void *unused) {
  be(30, 0);
  pthread_mutex_lock(&second);
  await_holder();
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&second);
  return unused;
}
static void *high_behind(void *unused) {
  be(30, 0);
  await_holder();
  nap(30);
  pthread_mutex_lock(&second);
  pthread_mutex_unlock(&second);
  return unused;
}
static void chain(void) {
  pthread_t threads[] = {start("middle", middle, NULL), start("high", high_behind, NULL), 0};
  nap(50);
  threads[2] = start("low", low_sleeps, (void *)(intptr_t)600);
  all(threads, 3);
}

static const struct scenario scenarios[] = {
  {"three", three}, {"pathfinder", pathfinder}, {"inherited", inherited}, {"inherited-realtime", inherited_realtime},
  {"bounded", bounded}, {"brief", brief}, {"same", same}, {"upside-down", upside_down}, {"reader", reader},
  {"chain", chain},
};
int main(int argc, char **argv) { return PLAY(argc, argv, scenarios); }
