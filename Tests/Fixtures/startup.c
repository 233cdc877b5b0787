// Deadlocks before main has begun and after it has returned; the first argument says which.
#include "fixture.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int both;

static void *helper(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(helper)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(helper)
  pthread_mutex_unlock(&a);
  return _;
}
NOINLINE static void deadlock(void) {
  start("helper", helper, NULL);
  pthread_mutex_lock(&a);  // HOLDS(main)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(main)
  pthread_mutex_unlock(&b);
}
static void late(void) { deadlock(); }
static const char *when = "";

__attribute__((constructor)) static void early(int argc, char **argv, char **environment) {
  (void)environment;
  if (argc > 1 && strcmp(argv[1], "constructor") == 0) {
    begin();
    deadlock();
  }
}
__attribute__((destructor)) static void last(void) {
  if (strcmp(when, "destructor") == 0) deadlock();
}
int main(int argc, char **argv) {
  begin();
  when = argc > 1 ? argv[1] : "";
  if (strcmp(when, "atexit") == 0) atexit(late);
  puts("DONE");
  return 0;
}
