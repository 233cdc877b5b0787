// A busy server and its client in one: threads that answer requests over socket pairs, each a little
// work under a common lock. Measures the latency of each request for as many seconds as the first
// argument says; writes "ready" first, and last: requests, failed ones, p50, p99 and the longest, in
// microseconds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, MOST = 4000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long table[1024];

static void *serve(void *socket) {
  int fd = *(int *)socket;
  unsigned request;
  while (read(fd, &request, sizeof request) == sizeof request) {
    pthread_mutex_lock(&lock);
    unsigned long sum = 0;
    for (int i = 0; i < 1024; i++) sum += table[i] += request;
    pthread_mutex_unlock(&lock);
    if (write(fd, &sum, sizeof sum) != sizeof sum) break;
  }
  return NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x < y ? -1 : x > y;
}

int main(int count, char **arguments) {
  double seconds = count > 1 ? atof(arguments[1]) : 5;
  static int pairs[WORKERS][2];
  pthread_t thread;
  for (int i = 0; i < WORKERS; i++) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]);
    pthread_create(&thread, NULL, serve, &pairs[i][1]);
  }
  float *took = malloc(MOST * sizeof *took);
  int requests = 0, failed = 0;
  puts("ready");
  fflush(stdout);
  double end = now() + seconds * 1e6;
  for (unsigned i = 0; requests < MOST; i++) {
    double begun = now();
    if (begun > end) break;
    unsigned long answer;
    int fd = pairs[i % WORKERS][0];
    if (write(fd, &i, sizeof i) != sizeof i || read(fd, &answer, sizeof answer) != sizeof answer)
      failed++;
    took[requests++] = now() - begun;
    if (i % 16 == 0) usleep(100);
  }
  qsort(took, requests, sizeof *took, ascending);
  printf("%d %d %.0f %.0f %.0f\n", requests, failed, took[requests / 2], took[requests * 99 / 100],
         took[requests - 1]);
}
