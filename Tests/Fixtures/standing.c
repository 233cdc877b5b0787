// Programs that stand still in one way each: those in the first table of OutsideWorldTests can be
// woken by nobody, those in the second can.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static pthread_t first;

static void ready(void) { write(1, "ready\n", 6); }
static void handler(int signal) { (void)signal; }

static void *waits(void *unused) {
  sem_wait(&semaphore);
  return unused;
}
static void *joins(void *unused) {
  pthread_join(first, NULL);
  return unused;
}
static void *reads(void *unused) {
  char byte;
  read(0, &byte, 1);
  return unused;
}
static void *sleeps(void *unused) {
  sleep(1000);
  return unused;
}
static void *holds(void *lock) {
  pthread_mutex_lock(lock);
  return waits(NULL);
}
static void begin(void *(*run)(void *), void *argument) {
  pthread_t thread;
  pthread_create(&thread, NULL, run, argument);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int (*is)(const char *, const char *) = strcmp;
  char byte;
  struct timespec far = {.tv_sec = 64000000000};
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
  first = pthread_self();
  sem_init(&semaphore, 0, 0);
  pthread_barrier_init(&barrier, NULL, 3);
  ready();
  // Nobody can wake these.
  if (!is(mode, "mutex")) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  } else if (!is(mode, "condition")) {
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
  } else if (!is(mode, "distant")) {
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &far);
  } else if (!is(mode, "semaphore")) {
    sem_wait(&semaphore);
  } else if (!is(mode, "rwlock")) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
  } else if (!is(mode, "barrier")) {
    pthread_barrier_wait(&barrier);
  } else if (!is(mode, "join")) {
    begin(joins, NULL);
    sem_wait(&semaphore);
  } else if (!is(mode, "exited")) {
    begin(waits, NULL);
    begin(joins, NULL);
    sleep(0);
    pthread_exit(NULL);
  } else if (!is(mode, "inherits")) {
    pthread_mutexattr_t attributes;
    static pthread_mutex_t pi;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&pi, &attributes);
    begin(holds, &pi);
    while (pthread_mutex_trylock(&pi) == 0) {
      pthread_mutex_unlock(&pi);
      usleep(1000);
    }
    pthread_mutex_lock(&pi);
  } else if (!is(mode, "descriptors")) {
    // Open, but nobody waits there.
    int epoll = epoll_create1(0), pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event);
    eventfd(0, 0);
    sem_wait(&semaphore);
  } else if (!is(mode, "zombie")) {
    if (fork() == 0) _exit(0);
    sem_wait(&semaphore);
  } else if (!is(mode, "many")) {
    for (int i = 0; i < 50; i++) begin(waits, NULL);
    sem_wait(&semaphore);
  } else if (!is(mode, "crowd")) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < 5000; i++) {
      pthread_t thread;
      pthread_create(&thread, &attributes, waits, NULL);
    }
    write(1, "all\n", 4);
    sem_wait(&semaphore);
  }
  // These can be woken.
  else if (!is(mode, "spin")) {
    for (volatile int i = 0;; i++) {}
  } else if (!is(mode, "sleep")) {
    sleep(1000);
  } else if (!is(mode, "one-sleeps")) {
    begin(sleeps, NULL);
    sem_wait(&semaphore);
  } else if (!is(mode, "one-reads")) {
    begin(reads, NULL);
    sem_wait(&semaphore);
  } else if (!is(mode, "timed-condition")) {
    clock_gettime(CLOCK_REALTIME, &far);
    far.tv_sec += 1000;
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &far);
  } else if (!is(mode, "timed-semaphore")) {
    clock_gettime(CLOCK_REALTIME, &far);
    far.tv_sec += 1000;
    sem_timedwait(&semaphore, &far);
  } else if (!is(mode, "shared")) {
    sem_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(shared, 1, 0);
    sem_wait(shared);
  } else if (!is(mode, "shared-private-call")) {
    // Another process may have the memory, whatever this one says of it.
    sem_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(shared, 0, 0);
    sem_wait(shared);
  } else if (!is(mode, "handler")) {
    signal(SIGUSR1, handler);
    sem_wait(&semaphore);
  } else if (!is(mode, "quit-handler")) {
    signal(SIGQUIT, handler);
    sem_wait(&semaphore);
  } else if (!is(mode, "realtime-handler")) {
    signal(SIGRTMIN + 3, handler);
    sem_wait(&semaphore);
  } else if (!is(mode, "itimer")) {
    struct itimerval timer = {{1000, 0}, {1000, 0}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &timer, NULL);
    sem_wait(&semaphore);
  } else if (!is(mode, "timer")) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    sem_wait(&semaphore);
  } else if (!is(mode, "child")) {
    if (fork() == 0) {
      pause();
      _exit(0);
    }
    sem_wait(&semaphore);
  } else if (!is(mode, "waitpid")) {
    if (fork() == 0) {
      pause();
      _exit(0);
    }
    wait(NULL);
  } else if (!is(mode, "accept")) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t));
    listen(fd, 1);
    accept(fd, NULL, NULL);
  } else if (!is(mode, "own-pipe")) {
    int ends[2];
    pipe(ends);
    read(ends[0], &byte, 1);
  } else if (!is(mode, "eventfd")) {
    eventfd_t value;
    eventfd_read(eventfd(0, 0), &value);
  } else if (!is(mode, "timerfd")) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec time = {.it_value.tv_sec = 1000};
    timerfd_settime(fd, 0, &time, NULL);
    read(fd, &byte, 8);
  } else if (!is(mode, "own-epoll")) {
    // Looks like libdispatch's, but is the program's.
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, eventfd(0, 0), &event);
    epoll_wait(epoll, &event, 1, -1);
  } else if (!is(mode, "timed-epoll")) {
    epoll_wait(epoll_create1(0), &event, 1, 1000000);
  } else if (!is(mode, "poll")) {
    poll(NULL, 0, -1);
  } else if (!is(mode, "select")) {
    select(0, NULL, NULL, NULL, NULL);
  } else if (!is(mode, "signalfd") || !is(mode, "sigwait")) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (!is(mode, "sigwait")) sigwait(&set, &number);
    struct signalfd_siginfo info;
    read(signalfd(-1, &set, 0), &info, sizeof info);
  } else if (!is(mode, "pause")) {
    pause();
  } else if (!is(mode, "sigsuspend")) {
    sigset_t set;
    sigemptyset(&set);
    sigsuspend(&set);
  } else if (!is(mode, "inotify")) {
    char event[4096];
    int fd = inotify_init();
    inotify_add_watch(fd, "/", IN_CREATE);
    read(fd, event, sizeof event);
  } else if (!is(mode, "stopped")) {
    raise(SIGSTOP);
    sem_wait(&semaphore);
  } else if (!is(mode, "file-lock")) {
    char name[] = "/tmp/standing-XXXXXX";
    struct flock lock = {.l_type = F_WRLCK};
    int fd = mkstemp(name);
    unlink(name);
    int go[2];
    pipe(go);
    if (fork() == 0) {
      fcntl(fd, F_SETLK, &lock);
      write(go[1], "x", 1);
      pause();
      _exit(0);
    }
    read(go[0], &byte, 1);
    fcntl(fd, F_SETLKW, &lock);
  } else if (!is(mode, "full-pipe")) {
    int ends[2];
    pipe(ends);
    for (;;) write(ends[1], &byte, 1);
  } else {
    return 2;
  }
  return 0;
}
