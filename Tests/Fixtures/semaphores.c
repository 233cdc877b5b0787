// Semaphores of POSIX; the first argument says which scenario. Those called `right-…` end well.
#include "fixture.h"
#include <semaphore.h>

static sem_t permit, other, done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int met;

// Nobody posts.
static void never(void) {
  sem_init(&permit, 0, 0);
  sem_wait(&permit);  // WAITS(never:main)
}

// Two permits of one each, in two orders.
static void *left(void *_) {
  sem_wait(&permit);  // HOLDS(left)
  meet(&met, 2);
  sem_wait(&other);  // WAITS(left)
  sem_post(&other);
  sem_post(&permit);
  return _;
}
static void *right(void *_) {
  sem_wait(&other);  // HOLDS(right)
  meet(&met, 2);
  sem_wait(&permit);  // WAITS(right)
  sem_post(&permit);
  sem_post(&other);
  return _;
}
static void cross(void) {
  sem_init(&permit, 0, 1);
  sem_init(&other, 0, 1);
  pthread_t one = start("left", left, NULL), two = start("right", right, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// Three of a limiter of three want a second one each.
static void *greedy(void *_) {
  sem_wait(&permit);  // HOLDS(greedy-*)
  meet(&met, 3);
  sem_wait(&permit);  // WAITS(greedy-*)
  return _;
}
static void limiter(void) {
  sem_init(&permit, 0, 3);
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "greedy-%d", i);
    threads[i] = start(name, greedy, NULL);
  }
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

// Who would post wants the lock of who waits.
static void *poster(void *_) {
  meet(&met, 2);
  pthread_mutex_lock(&lock);  // WAITS(poster)
  sem_post(&done);
  pthread_mutex_unlock(&lock);
  return _;
}
static void under_lock(void) {
  sem_init(&done, 0, 0);
  pthread_t thread = start("poster", poster, NULL);
  pthread_mutex_lock(&lock);  // HOLDS(under-lock:main)
  meet(&met, 2);
  sem_wait(&done);  // WAITS(under-lock:main)
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
}

// The main thread joins a worker that waits for what the main thread would post after the join.
static void *worker(void *_) {
  sem_wait(&done);  // WAITS(worker)
  return _;
}
static void join(void) {
  sem_init(&done, 0, 0);
  pthread_t thread = start("worker", worker, NULL);
  pthread_join(thread, NULL);  // WAITS(join:main)
  sem_post(&done);
}

// A permit that is lost with the thread that had it.
static void *thief(void *_) {
  sem_wait(&permit);
  return _;
}
static void leaked(void) {
  sem_init(&permit, 0, 1);
  pthread_join(start("thief", thief, NULL), NULL);
  sem_wait(&permit);  // WAITS(leaked:main)
}

// A signal handler may post at any time.
static void on_signal(int _) {
  (void)_;
  sem_post(&done);
}
static void handler(void) {
  signal(SIGUSR1, on_signal);
  sem_init(&done, 0, 0);
  pid_t parent = getpid();
  // Its grandchild belongs to nobody.
  pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      nap(2800);
      kill(parent, SIGUSR1);
    }
    _exit(0);
  }
  waitpid(child, NULL, 0);
  while (sem_wait(&done)) {}
}
static void itimer(void) {
  signal(SIGALRM, on_signal);
  sem_init(&done, 0, 0);
  alarm(3);
  while (sem_wait(&done)) {}
}

// Shared with a child, which posts late.
#include <sys/mman.h>
static void shared(void) {
  sem_t *both = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sem_init(both, 1, 0);
  pid_t child = fork();
  if (child == 0) {
    nap(2800);
    sem_post(both);
    _exit(0);
  }
  while (sem_wait(both)) {}
  waitpid(child, NULL, 0);
}
// Named: anybody may post.
static void named_one(void) {
  char name[64];
  snprintf(name, sizeof name, "/fixture-%d", getpid());
  sem_t *mine = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
  if (mine == SEM_FAILED) return;
  pid_t child = fork();
  if (child == 0) {
    sem_t *theirs = sem_open(name, 0);
    nap(2800);
    sem_post(theirs);
    _exit(0);
  }
  while (sem_wait(mine)) {}
  waitpid(child, NULL, 0);
  sem_unlink(name);
}

static void *late(void *_) {
  nap(2800);
  sem_post(&done);
  return _;
}
static void right_late(void) {
  sem_init(&done, 0, 0);
  pthread_t thread = start("late", late, NULL);
  sem_wait(&done);
  pthread_join(thread, NULL);
}
static void right_timed(void) {
  sem_init(&done, 0, 0);
  struct timespec limit = in(CLOCK_REALTIME, 2600);
  puts(sem_timedwait(&done, &limit) ? "in vain" : "?");
  puts(sem_trywait(&done) ? "in vain" : "?");
}
// A ring of permits through many hands; each is posted by another thread than the one that waited.
static void *consumer(void *_) {
  for (int i = 0; i < 2000; i++) {
    sem_wait(&other);
    sem_post(&permit);
  }
  return _;
}
static void right_buffer(void) {
  sem_init(&permit, 0, 4);
  sem_init(&other, 0, 0);
  pthread_t thread = start("consumer", consumer, NULL);
  for (int i = 0; i < 2000; i++) {
    sem_wait(&permit);
    sem_post(&other);
  }
  pthread_join(thread, NULL);
}

static const struct scenario all[] = {
  {"never", never}, {"cross", cross}, {"limiter", limiter}, {"under-lock", under_lock},
  {"join", join}, {"leaked", leaked}, {"right-handler", handler}, {"right-itimer", itimer},
  {"right-shared", shared}, {"right-named", named_one}, {"right-late", right_late},
  {"right-timed", right_timed}, {"right-buffer", right_buffer},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
