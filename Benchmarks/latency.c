// Two threads deadlock; the moment the cycle closes goes to standard output, in nanoseconds since 1970.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int here;

static void *run(void *raw) {
  int mine = raw != NULL;
  pthread_mutex_lock(&locks[mine]);
  atomic_fetch_add(&here, 1);
  while (atomic_load(&here) < 2) usleep(100);
  if (mine) {
    // The other one is waiting by now; this one closes the cycle.
    usleep(200000);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
    fflush(stdout);
  }
  pthread_mutex_lock(&locks[!mine]);
  pthread_mutex_unlock(&locks[!mine]);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  alarm(30);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, i ? &here : NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
