// Threads that wait for each other's end; the first argument says which way. Each must be reported as
// `deadlock`; a thread that is joined is a resource of kind `thread`, owned by itself.
#include "fixture.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_t threads[8];
static int ready, both;
static void asleep(void) { for (int i = 0; i < 5500; i++) nap(10); }

// The joined thread wants the lock that the joining one holds.
static void *wants(void *_) {
  meet(&both, 2);
  pthread_mutex_lock(&m);  // WAITS(wants)
  pthread_mutex_unlock(&m);
  return _;
}
static void *stopper(void *_) {
  pthread_mutex_lock(&m);  // HOLDS(stopper)
  pthread_t thread = start("wants", wants, NULL);
  meet(&both, 2);
  pthread_join(thread, NULL);  // WAITS(stopper)
  pthread_mutex_unlock(&m);
  return _;
}
static void under_lock(void) {
  start("stopper", stopper, NULL);
  asleep();
}
static void main_under_lock(void) {
  pthread_mutex_lock(&m);  // HOLDS(main-under-lock:main)
  pthread_t thread = start("wants", wants, NULL);
  meet(&both, 2);
  pthread_join(thread, NULL);  // WAITS(main-under-lock:main)
  pthread_mutex_unlock(&m);
}

// Two threads join each other.
static void *partner(void *raw) {
  int mine = (int)(intptr_t)raw;
  meet(&ready, 3);
  if (mine) nap(50);
  pthread_join(threads[!mine], NULL);  // WAITS(mate-0,mate-1)
  __asm__ volatile("");
  return NULL;
}
static void mutual(void) {
  threads[0] = start("mate-0", partner, (void *)0);
  threads[1] = start("mate-1", partner, (void *)1);
  meet(&ready, 3);
  asleep();
}

// Three threads join each other in a ring.
static void *joiner(void *raw) {
  int mine = (int)(intptr_t)raw;
  meet(&ready, 4);
  pthread_join(threads[(mine + 1) % 3], NULL);  // WAITS(join-0,join-1,join-2)
  __asm__ volatile("");
  return NULL;
}
static void ring(void) {
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "join-%d", i);
    threads[i] = start(name, joiner, (void *)(intptr_t)i);
  }
  meet(&ready, 4);
  asleep();
}

// A chain of joins that ends at a thread which wants the lock that the first one holds.
static void *chained(void *raw) {
  int mine = (int)(intptr_t)raw;
  if (mine == 0) pthread_mutex_lock(&m);  // HOLDS(link-0)
  meet(&ready, 5);
  if (mine == 3) {
    pthread_mutex_lock(&m);  // WAITS(link-3)
    pthread_mutex_unlock(&m);
  } else {
    pthread_join(threads[mine + 1], NULL);  // WAITS(link-0,link-1,link-2)
  }
  return NULL;
}
static void chain(void) {
  for (int i = 0; i < 4; i++) {
    char name[16];
    snprintf(name, sizeof name, "link-%d", i);
    threads[i] = start(name, chained, (void *)(intptr_t)i);
  }
  meet(&ready, 5);
  asleep();
}

// Joined threads in a cycle of locks, with nobody waiting but the one that joins: the join is behind.
static void *left(void *_) {
  pthread_mutex_lock(&m);  // HOLDS(left)
  meet(&both, 2);
  pthread_mutex_lock(&n);  // WAITS(left)
  pthread_mutex_unlock(&n);
  return _;
}
static void *right(void *_) {
  pthread_mutex_lock(&n);  // HOLDS(right)
  meet(&both, 2);
  pthread_mutex_lock(&m);  // WAITS(right)
  pthread_mutex_unlock(&m);
  return _;
}
static void *boss(void *_) {
  pthread_t one = start("left", left, NULL), two = start("right", right, NULL);
  pthread_join(two, NULL);
  pthread_join(one, NULL);
  return _;
}
static void behind(void) { pthread_join(start("boss", boss, NULL), NULL); }

// The main thread has left by pthread_exit; the process lives as long as the others.
static void main_gone(void) {
  start("left", left, NULL);
  start("right", right, NULL);
  pthread_exit(NULL);
}

static const struct scenario all[] = {
  {"under-lock", under_lock}, {"main-under-lock", main_under_lock}, {"mutual", mutual}, {"ring", ring},
  {"chain", chain}, {"behind", behind}, {"main-gone", main_gone},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
