// Thousands of threads that wait, and an end at a moment when their stacks may just be copied.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_it(void *unused) {
  pthread_mutex_lock(&mutex);
  return unused;
}

int main(int count, char **words) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  pthread_mutex_lock(&mutex);
  for (int left = atoi(words[1]); left > 0; left--) {
    pthread_t thread;
    pthread_create(&thread, &attributes, wait_for_it, 0);
  }
  usleep((useconds_t)atoi(words[count - 1]) * 1000);
  puts("DONE");
  fflush(stdout);
  _exit(3);
}
