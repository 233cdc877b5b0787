// Deadlocks in processes that the program starts; the first argument says how. The report's cycle
// names the child's threads, whose `pid` is the child's.
#include "fixture.h"
#include <spawn.h>

extern char **environ;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int both;
static char self[4096];

static void *kid_a(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(kid-a)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(kid-a)
  pthread_mutex_unlock(&b);
  return _;
}
static void *kid_b(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(kid-b)
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(kid-b)
  pthread_mutex_unlock(&a);
  return _;
}
static void abba(void) {
  start("kid-a", kid_a, NULL);
  start("kid-b", kid_b, NULL);
  for (int i = 0; i < 3000; i++) nap(10);
}
static void reap(pid_t pid) {
  int status;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(status)) puts("the child was ended"); else puts("the child ended");
}
static void forked(void) {
  pid_t pid = fork();
  if (pid == 0) {
    begin();
    abba();
    _exit(0);
  }
  reap(pid);
}
static void grandchild(void) {
  pid_t pid = fork();
  if (pid == 0) {
    begin();
    forked();
    _exit(0);
  }
  reap(pid);
}
static void executed(void) {
  pid_t pid = fork();
  if (pid == 0) {
    execl(self, self, "abba", (char *)NULL);
    _exit(127);
  }
  reap(pid);
}
static void spawned(void) {
  char *arguments[] = {self, "abba", NULL};
  pid_t pid;
  if (posix_spawn(&pid, self, NULL, NULL, arguments, environ)) exit(3);
  reap(pid);
}
static void by_system(void) {
  char command[5000];
  snprintf(command, sizeof command, "'%s' abba", self);
  if (system(command) == 0) puts("ended");
}
static void by_popen(void) {
  char command[5000];
  snprintf(command, sizeof command, "'%s' abba", self);
  FILE *pipe = popen(command, "r");
  char line[100];
  while (pipe && fgets(line, sizeof line, pipe)) fputs(line, stdout);
  if (pipe) pclose(pipe);
}
static void by_vfork(void) {
  pid_t pid = vfork();
  if (pid == 0) {
    execl(self, self, "abba", (char *)NULL);
    _exit(127);
  }
  reap(pid);
}
// The program becomes the one that deadlocks: the same process.
static void replaced(void) { execl(self, self, "abba", (char *)NULL); }

// The child of a fork has one thread, and the lock of a thread that it does not have.
static void *keeper(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(keeper)
  meet(&both, 2);
  nap(20000);
  pthread_mutex_unlock(&a);
  return _;
}
static void inherited(void) {
  start("keeper", keeper, NULL);
  meet(&both, 2);
  pid_t pid = fork();
  if (pid == 0) {
    begin();
    pthread_mutex_lock(&a);  // WAITS(child)
    pthread_mutex_unlock(&a);
    _exit(0);
  }
  reap(pid);
}
// Two children, each with a deadlock of its own, and a parent that only waits.
static void two_children(void) {
  pid_t pids[2];
  for (int i = 0; i < 2; i++) {
    if ((pids[i] = fork()) == 0) {
      begin();
      abba();
      _exit(0);
    }
  }
  for (int i = 0; i < 2; i++) reap(pids[i]);
}
// The deadlock is the program's own; meanwhile it forks and reaps all the time.
static void forking(void) {
  start("kid-a", kid_a, NULL);
  start("kid-b", kid_b, NULL);
  for (int i = 0; i < 2000; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
      pthread_mutex_lock(&own);
      pthread_mutex_unlock(&own);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
    nap(5);
  }
  for (int i = 0; i < 3000; i++) nap(10);
}

// Several threads fork at once, and are still told apart afterwards.
static void *forker(void *_) {
  for (int i = 0; i < 300; i++) {
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
  }
  return _;
}
static void *forking_a(void *_) { return kid_a(forker(_)); }
static void *forking_b(void *_) { return kid_b(forker(_)); }
static void forking_many(void) {
  pthread_t others[4];
  for (int i = 0; i < 4; i++) others[i] = start("forker", forker, NULL);
  start("kid-a", forking_a, NULL);
  start("kid-b", forking_b, NULL);
  for (int i = 0; i < 4; i++) pthread_join(others[i], NULL);
  for (int i = 0; i < 3000; i++) nap(10);
}

static const struct scenario all[] = {
  {"abba", abba}, {"fork", forked}, {"grandchild", grandchild}, {"exec", executed},
  {"spawn", spawned}, {"system", by_system}, {"popen", by_popen}, {"vfork", by_vfork},
  {"replaced", replaced}, {"inherited", inherited}, {"two-children", two_children},
  {"forking", forking}, {"forking-many", forking_many},
};
int main(int argc, char **argv) {
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length > 0 ? length : 0] = 0;
  return PLAY(argc, argv, all);
}
