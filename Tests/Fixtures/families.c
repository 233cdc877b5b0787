// Processes that wait for each other over locks on files, sockets, and memory that they share. What the
// second process does is the body of `if (forked())`.
#include "fixture.h"
#include <semaphore.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>

static char one[] = "/tmp/hangcheck-family-1-XXXXXX", two[] = "/tmp/hangcheck-family-2-XXXXXX";
static char much[600000];

// What both have in memory.
struct shared {
  int met;
  pthread_mutex_t a, b;
  pthread_cond_t changed;
  pthread_rwlock_t table;
  sem_t ping, pong;
} *shared;

static int forked(void) { return fork() == 0; }
static void both(void) { meet(&shared->met, 2); }
static void reap(void) {
  while (wait(NULL) > 0 || errno == EINTR) {}
}
// Files are open descriptions of their own in each process, not inherited.
static int opened(const char *path) { return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); }
static int lock(int file, int command, short type, off_t start, off_t length) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  return fcntl(file, command, &lock);
}
static void setup(int robust) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  if (robust) pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->a, &mutex);
  pthread_mutex_init(&shared->b, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->changed, &condition);
  pthread_rwlockattr_t table;
  pthread_rwlockattr_init(&table);
  pthread_rwlockattr_setpshared(&table, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&shared->table, &table);
  sem_init(&shared->ping, 1, 0);
  sem_init(&shared->pong, 1, 0);
  close(mkstemp(one));
  close(mkstemp(two));
}

// Two files in two orders.
static void flock_crossed(void) {
  if (forked()) {
    int a = opened(one), b = opened(two);
    flock(b, LOCK_EX);
    both();
    flock(a, LOCK_EX);  // WAITS(flock-crossed:main)
    _exit(0);
  }
  int a = opened(one), b = opened(two);
  flock(a, LOCK_EX);
  both();
  flock(b, LOCK_EX);  // WAITS(flock-crossed:main)
  reap();
}
static void ofd_crossed(void) {
  if (forked()) {
    int a = opened(one), b = opened(two);
    lock(b, F_OFD_SETLK, F_WRLCK, 0, 0);
    both();
    lock(a, F_OFD_SETLKW, F_WRLCK, 0, 0);  // WAITS(ofd-crossed:main)
    _exit(0);
  }
  int a = opened(one), b = opened(two);
  lock(a, F_OFD_SETLK, F_WRLCK, 0, 0);
  both();
  lock(b, F_OFD_SETLKW, F_WRLCK, 0, 0);  // WAITS(ofd-crossed:main)
  reap();
}
// Each has read it and would write.
static void ofd_upgrade(void) {
  int isChild = forked(), a = opened(one);
  lock(a, F_OFD_SETLK, F_RDLCK, 100, 50);
  both();
  lock(a, F_OFD_SETLKW, F_WRLCK, 120, 10);  // WAITS(ofd-upgrade:main)
  if (isChild) _exit(0);
  reap();
}
// The kernel sees no circle that is not all of one kind.
static void posix_flock(void) {
  if (forked()) {
    int a = opened(one), b = opened(two);
    flock(b, LOCK_EX);
    both();
    lock(a, F_SETLKW, F_WRLCK, 0, 0);  // WAITS(posix-flock:main)
    _exit(0);
  }
  int a = opened(one), b = opened(two);
  lock(a, F_SETLK, F_WRLCK, 0, 0);
  both();
  flock(b, LOCK_SH);  // WAITS(posix-flock:main)
  reap();
}
// The parent waits for a child that needs what it has locked.
static void flock_child(void) {
  int a = opened(one);
  flock(a, LOCK_EX);
  if (forked()) {
    close(a);
    flock(opened(one), LOCK_EX);  // WAITS(flock-child:main)
    _exit(0);
  }
  reap();  // WAITS(flock-child:main)
}
static void posix_pipe(void) {
  int ends[2], a = opened(one);
  char word;
  if (pipe(ends)) exit(3);
  lock(a, F_SETLK, F_WRLCK, 10, 10);
  if (forked()) {
    close(ends[0]);
    lock(a, F_SETLKW, F_RDLCK, 0, 0);  // WAITS(posix-pipe:main)
    _exit(write(ends[1], "x", 1) != 1);
  }
  close(ends[1]);
  if (read(ends[0], &word, 1) != 1) exit(3);  // WAITS(posix-pipe:main)
  reap();
}
// Two descriptions of one file in one process.
static void flock_self(void) {
  int a = opened(one), again = opened(one);
  flock(a, LOCK_EX);
  flock(again, LOCK_EX);  // WAITS(flock-self:main)
}
// A thread keeps the lock and waits for the child, which waits for the lock.
static int inbox[2];
static void *keeper(void *_) {
  char word;
  int a = opened(one);
  flock(a, LOCK_EX);
  both();
  if (read(inbox[0], &word, 1) != 1) exit(3);  // WAITS(flock-thread:keeper)
  flock(a, LOCK_UN);
  return _;
}
static void flock_thread(void) {
  if (pipe(inbox)) exit(3);
  if (forked()) {
    close(inbox[0]);
    both();
    flock(opened(one), LOCK_EX);  // WAITS(flock-thread:main)
    _exit(write(inbox[1], "x", 1) != 1);
  }
  close(inbox[1]);
  pthread_join(start("keeper", keeper, NULL), NULL);
  reap();
}
// Parent, child, and another child: over its end, a file and a pipe.
static void flock_three(void) {
  int ends[2];
  char word;
  if (pipe(ends)) exit(3);
  if (forked()) {
    close(ends[1]);
    int a = opened(one);
    flock(a, LOCK_EX);
    both();
    _exit(read(ends[0], &word, 1) != 1);  // WAITS(flock-three:main)
  }
  close(ends[0]);
  pid_t second = fork();
  if (second == 0) {
    close(ends[1]);
    both();
    flock(opened(one), LOCK_EX);  // WAITS(flock-three:main)
    _exit(0);
  }
  waitpid(second, NULL, 0);  // WAITS(flock-three:main)
  if (write(ends[1], "x", 1) != 1) exit(3);
  reap();
}

static void socket_crossed(void) {
  int pair[2];
  char word;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) exit(3);
  if (forked()) {
    close(pair[0]);
    _exit(read(pair[1], &word, 1) != 1);  // WAITS(socket-crossed:main)
  }
  close(pair[1]);
  if (recv(pair[0], &word, 1, 0) != 1) exit(3);  // WAITS(socket-crossed:main)
  reap();
}
static void socket_full(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) exit(3);
  pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    _exit(write(pair[1], much, sizeof much) < 0);  // WAITS(socket-full:main)
  }
  close(pair[1]);
  siginfo_t ended;
  waitid(P_PID, child, &ended, WEXITED);  // WAITS(socket-full:main)
}

// Locks in memory that both have.
static void mutex_crossed(void) {
  if (forked()) {
    pthread_mutex_lock(&shared->b);
    both();
    pthread_mutex_lock(&shared->a);  // WAITS(mutex-crossed:main,robust-crossed:main)
    _exit(0);
  }
  pthread_mutex_lock(&shared->a);
  both();
  pthread_mutex_lock(&shared->b);  // WAITS(mutex-crossed:main,robust-crossed:main)
  reap();
}
static void mutex_pipe(void) {
  int ends[2];
  char word;
  if (pipe(ends)) exit(3);
  pthread_mutex_lock(&shared->a);
  if (forked()) {
    close(ends[0]);
    pthread_mutex_lock(&shared->a);  // WAITS(mutex-pipe:main)
    _exit(write(ends[1], "x", 1) != 1);
  }
  close(ends[1]);
  if (read(ends[0], &word, 1) != 1) exit(3);  // WAITS(mutex-pipe:main)
  reap();
}
static void rwlock_child(void) {
  pthread_rwlock_wrlock(&shared->table);
  if (forked()) {
    pthread_rwlock_rdlock(&shared->table);  // WAITS(rwlock-child:main)
    _exit(0);
  }
  reap();  // WAITS(rwlock-child:main)
}
// Each waits for the other's signal.
static void semaphore_crossed(void) {
  if (forked()) {
    sem_wait(&shared->ping);  // WAITS(semaphore-crossed:main)
    sem_post(&shared->pong);
    _exit(0);
  }
  sem_wait(&shared->pong);  // WAITS(semaphore-crossed:main)
  sem_post(&shared->ping);
  reap();
}
static void semaphore_child(void) {
  if (forked()) {
    sem_wait(&shared->ping);  // WAITS(semaphore-child:main)
    _exit(0);
  }
  reap();  // WAITS(semaphore-child:main)
}
static void condition_child(void) {
  if (forked()) {
    pthread_mutex_lock(&shared->a);
    while (!shared->met) pthread_cond_wait(&shared->changed, &shared->a);  // WAITS(condition-child:main)
    _exit(0);
  }
  reap();  // WAITS(condition-child:main)
}

// And the same with somebody who acts in the end. A third process has the lock's description.
static void third(void) {
  int a = opened(one);
  flock(a, LOCK_EX);
  if (forked()) {
    nap(2500);
    flock(a, LOCK_UN);
    _exit(0);
  }
  pid_t child = fork();
  if (child == 0) {
    close(a);
    flock(opened(one), LOCK_EX);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  reap();
}
// The parent has other bytes of the file than those that the child waits for.
static void ranges(void) {
  int a = opened(one);
  lock(a, F_SETLK, F_WRLCK, 0, 10);
  if (forked()) {
    lock(a, F_SETLK, F_WRLCK, 10, 10);
    both();
    nap(2500);
    _exit(0);
  }
  if (forked()) {
    both();
    lock(a, F_SETLKW, F_WRLCK, 10, 5);
    _exit(0);
  }
  reap();
}
static void slow(void) {
  if (forked()) {
    flock(opened(one), LOCK_EX);
    both();
    nap(2500);
    _exit(0);
  }
  both();
  flock(opened(one), LOCK_EX);
  reap();
}
// A clock ends what would else last for ever.
static void rung(int _) {}
static void alarmed(void) {
  struct sigaction action = {.sa_handler = rung};
  sigaction(SIGALRM, &action, NULL);
  if (forked()) {
    alarm(60);
    int a = opened(one), b = opened(two);
    flock(b, LOCK_EX);
    both();
    flock(a, LOCK_EX);
    _exit(0);
  }
  int a = opened(one), b = opened(two);
  flock(a, LOCK_EX);
  both();
  alarm(3);
  if (flock(b, LOCK_EX) && errno == EINTR) flock(a, LOCK_UN);
  alarm(60);
  reap();
}
// One thread of the holder is still there for the child.
static void *giver(void *file) {
  nap(2500);
  flock(*(int *)file, LOCK_UN);
  return NULL;
}
static void other_thread(void) {
  static int a;
  a = opened(one);
  flock(a, LOCK_EX);
  if (forked()) {
    close(a);
    flock(opened(one), LOCK_EX);
    _exit(0);
  }
  start("giver", giver, &a);
  reap();
}
static void socket_slow(void) {
  int pair[2];
  char word = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) exit(3);
  if (forked()) {
    close(pair[0]);
    nap(2500);
    _exit(write(pair[1], &word, 1) != 1);
  }
  close(pair[1]);
  if (recv(pair[0], &word, 1, 0) != 1) exit(3);
  reap();
}
static void mutex_slow(void) {
  if (forked()) {
    pthread_mutex_lock(&shared->a);
    both();
    nap(2500);
    pthread_mutex_unlock(&shared->a);
    _exit(0);
  }
  both();
  pthread_mutex_lock(&shared->a);
  reap();
}
// Two wait, and a third one posts.
static void semaphore_third(void) {
  if (forked()) {
    nap(2500);
    sem_post(&shared->pong);
    _exit(0);
  }
  if (forked()) {
    sem_wait(&shared->ping);
    _exit(0);
  }
  sem_wait(&shared->pong);
  sem_post(&shared->ping);
  reap();
}
static void semaphore_timed(void) {
  if (forked()) {
    struct timespec until = in(CLOCK_REALTIME, 2500);
    if (sem_timedwait(&shared->ping, &until)) sem_post(&shared->pong);
    _exit(0);
  }
  sem_wait(&shared->pong);
  reap();
}
// A handler posts.
static void post(int _) { sem_post(&shared->pong); }
static void semaphore_handler(void) {
  struct sigaction action = {.sa_handler = post, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pid_t first = getpid(), reader = fork();
  if (reader == 0) {
    sem_wait(&shared->ping);
    _exit(0);
  }
  // Started by a shell that is gone: no relative.
  if (forked()) {
    if (forked()) {
      setsid();
      munmap(shared, sizeof *shared);
      nap(2500);
      kill(first, SIGUSR1);
      _exit(0);
    }
    _exit(0);
  }
  while (sem_wait(&shared->pong) && errno == EINTR) {}
  sem_post(&shared->ping);
  reap();
}

static const struct scenario all[] = {
  {"flock-crossed", flock_crossed}, {"ofd-crossed", ofd_crossed}, {"ofd-upgrade", ofd_upgrade},
  {"posix-flock", posix_flock}, {"flock-child", flock_child}, {"posix-pipe", posix_pipe},
  {"flock-self", flock_self}, {"flock-thread", flock_thread}, {"flock-three", flock_three},
  {"socket-crossed", socket_crossed}, {"socket-full", socket_full},
  {"mutex-crossed", mutex_crossed}, {"robust-crossed", mutex_crossed}, {"mutex-pipe", mutex_pipe},
  {"rwlock-child", rwlock_child}, {"semaphore-crossed", semaphore_crossed},
  {"semaphore-child", semaphore_child}, {"condition-child", condition_child},
  {"third", third}, {"ranges", ranges}, {"slow", slow}, {"alarmed", alarmed},
  {"other-thread", other_thread}, {"socket-slow", socket_slow}, {"mutex-slow", mutex_slow},
  {"semaphore-third", semaphore_third}, {"semaphore-timed", semaphore_timed},
  {"semaphore-handler", semaphore_handler},
};
int main(int argc, char **argv) {
  setup(argc > 1 && strstr(argv[1], "robust") != NULL);
  int status = PLAY(argc, argv, all);
  unlink(one);
  unlink(two);
  return status;
}
