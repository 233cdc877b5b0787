#define _GNU_SOURCE
#include "include/hck_gate.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int is_inside, is_forking;

static void before_fork(void) {
  if (is_inside) { return; } // the watchdog's own thread, from a handler of the program's
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 1;
  is_forking = pthread_mutex_clocklock(&gate, CLOCK_MONOTONIC, &until) == 0;
}

static void after_fork_in_parent(void) {
  if (is_forking) { pthread_mutex_unlock(&gate); }
  is_forking = 0;
}

static void after_fork_in_child(void) {
  pthread_mutex_init(&gate, 0);
  is_inside = is_forking = 0;
}

static void prepare(void) { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

void hck_gate_enter(void) {
  pthread_once(&once, prepare);
  pthread_mutex_lock(&gate);
  is_inside = 1;
}

void hck_gate_leave(void) {
  is_inside = 0;
  pthread_mutex_unlock(&gate);
}
