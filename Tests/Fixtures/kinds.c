// Threads of all kinds that go on for some seconds, whatever is done to the process: on a processor, in
// writes to a pipe that is full most of the time, in epoll, in sleeps, behind a lock. Each call has to end
// as it ends alone, and each thread has to get on.
#include "fixture.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { BURN, WRITE, READ, POLL, SLEEP, LOCK, COUNT };
static _Atomic unsigned long progress[COUNT], wrong[COUNT];
static int ends[2], poller, event;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void act(long kind) {
  static char block[300000];
  static char part[4096];
  unsigned long long one = 1;
  struct timespec pause = {0, 2000000};
  struct epoll_event seen;
  switch (kind) {
  case BURN:
    for (volatile int i = 0; i < 1000; i++) {}
    break;
  case WRITE: wrong[kind] += write(ends[1], block, sizeof block) != sizeof block; break;
  case READ:
    wrong[kind] += read(ends[0], part, sizeof part) <= 0;
    pause.tv_nsec = 200000;
    nanosleep(&pause, NULL);
    break;
  case POLL:
    wrong[kind] += epoll_wait(poller, &seen, 1, -1) != 1;
    wrong[kind] += read(event, &one, sizeof one) != sizeof one;
    break;
  case SLEEP:
    wrong[kind] += nanosleep(&pause, NULL) != 0;
    wrong[kind] += write(event, &one, sizeof one) != sizeof one;
    break;
  case LOCK:
    pthread_mutex_lock(&gate);
    nanosleep(&pause, NULL);
    pthread_mutex_unlock(&gate);
    break;
  }
}

static void *go(void *kind) {
  for (;;) {
    act((long)kind);
    progress[(long)kind]++;
  }
  return NULL;
}

int main(void) {
  static const char *names[] = {"burn", "write", "read", "poll", "sleep", "lock"};
  begin();
  if (pipe(ends) != 0) return 2;
  poller = epoll_create1(0);
  event = eventfd(0, 0);
  struct epoll_event wanted = {.events = EPOLLIN};
  epoll_ctl(poller, EPOLL_CTL_ADD, event, &wanted);
  for (long kind = 0; kind < COUNT; kind++) start(names[kind], go, (void *)kind);
  for (long more = 0; more < 2; more++) start("lock", go, (void *)(long)LOCK);
  nap(6000);
  for (int kind = 0; kind < COUNT; kind++) {
    unsigned long before = progress[kind];
    for (int i = 0; i < 500 && progress[kind] == before; i++) nap(10);
    if (progress[kind] == before) printf("%s stands still\n", names[kind]);
    if (wrong[kind] != 0) printf("%s: %lu calls ended in another way\n", names[kind], wrong[kind]);
  }
  puts("DONE");
  // Threads are in the midst of things.
  fflush(stdout);
  _exit(0);
}
