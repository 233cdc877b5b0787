// What every C and C++ fixture shares. A fixture is bounded: `begin` arms an alarm that ends it even
// when nobody else does. `meet` lets threads wait for each other without any call that is watched,
// so that a deadlock closes on every run.
#ifndef FIXTURE_H
#define FIXTURE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#define NOINLINE __attribute__((noinline))

typedef void *(*body)(void *);
struct birth { body run; void *argument; char name[16]; };

UNUSED static void begin(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(60);
}

UNUSED static void *named(void *raw) {
  struct birth *birth = (struct birth *)raw;
  struct birth copy = *birth;
  free(birth);
  pthread_setname_np(pthread_self(), copy.name);
  return copy.run(copy.argument);
}

UNUSED static pthread_t start_with(const pthread_attr_t *attr, const char *name, body run, void *argument) {
  struct birth *birth = (struct birth *)calloc(1, sizeof *birth);
  birth->run = run;
  birth->argument = argument;
  snprintf(birth->name, sizeof birth->name, "%s", name);
  pthread_t thread;
  int error = pthread_create(&thread, attr, named, birth);
  if (error) {
    printf("pthread_create: %s\n", strerror(error));
    exit(2);
  }
  return thread;
}

UNUSED static pthread_t start(const char *name, body run, void *argument) {
  return start_with(NULL, name, run, argument);
}

UNUSED static void nap(int milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  while (nanosleep(&left, &left) && errno == EINTR) {}
}

// Returns once `count` threads have come here.
UNUSED static void meet(int *place, int count) {
  __atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(place, __ATOMIC_SEQ_CST) < count) nap(1);
}

// Turns of threads that have nothing to do with each other: one acts after the other, and no call
// that is watched says so.
static int turn;
UNUSED static void await_turn(int wanted) {
  while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) < wanted) nap(1);
}
UNUSED static void end_turn(void) { __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST); }

UNUSED static struct timespec in(clockid_t clock, int milliseconds) {
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_sec += milliseconds / 1000;
  at.tv_nsec += milliseconds % 1000 * 1000000L;
  if (at.tv_nsec >= 1000000000L) { at.tv_sec++; at.tv_nsec -= 1000000000L; }
  return at;
}

UNUSED static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct scenario { const char *name; void (*run)(void); };

// Runs the scenario that the first argument names, says DONE and leaves with 0.
UNUSED static int play(int argc, char **argv, const struct scenario *all, size_t count) {
  begin();
  for (size_t i = 0; argc > 1 && i < count; i++) {
    if (strcmp(all[i].name, argv[1]) == 0) {
      all[i].run();
      puts("DONE");
      return 0;
    }
  }
  for (size_t i = 0; i < count; i++) fprintf(stderr, "%s\n", all[i].name);
  return 2;
}
#define PLAY(argc, argv, all) play(argc, argv, all, sizeof(all) / sizeof((all)[0]))
#endif
