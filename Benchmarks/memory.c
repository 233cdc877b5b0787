// Resident memory in KB while two thousand threads stand, each of which has nested a pair of locks.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2000 };
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all, end;

static void *run(void *none) {
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
  }
  pthread_barrier_wait(&all);
  pthread_barrier_wait(&end);
  return none;
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_attr_t small;
  alarm(30);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_barrier_init(&all, NULL, THREADS + 1);
  pthread_barrier_init(&end, NULL, THREADS + 1);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], &small, run, NULL)) return 1;
  pthread_barrier_wait(&all);
  FILE *status = fopen("/proc/self/status", "r");
  char line[200];
  while (fgets(line, sizeof line, status))
    if (strncmp(line, "VmRSS:", 6) == 0) {
      int size;
      sscanf(line + 6, "%d", &size);
      printf("%d\n", size);
    }
  pthread_barrier_wait(&end);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return 0;
}
