// A healthy program that looks at what it was given: environment, arguments, descriptors, limits,
// signals, processes. All of it must be the same with and without hangcheck.
#include "fixture.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int arguments;
static char **values, self[4096];
static void *uses(void *_) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
  }
  return _;
}
static void work(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) threads[i] = start("uses", uses, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static int by_text(const void *x, const void *y) {
  return strcmp(*(char *const *)x, *(char *const *)y);
}
static void environment(void) {
  int count = 0;
  while (environ[count]) count++;
  char **sorted = calloc((size_t)count, sizeof *sorted);
  memcpy(sorted, environ, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, by_text);
  for (int i = 0; i < count; i++) puts(sorted[i]);
  printf("LD_PRELOAD %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "is not set");
}
static void process(void) {
  for (int i = 0; i < arguments; i++) printf("[%s]\n", i ? values[i] : "name");
  mode_t mask = umask(0);
  umask(mask);
  printf("umask %o\n", mask);
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    struct rlimit limit;
    getrlimit(i, &limit);
    printf("limit %d %lld %lld\n", i, (long long)limit.rlim_cur, (long long)limit.rlim_max);
  }
  sigset_t mask_now;
  pthread_sigmask(SIG_BLOCK, NULL, &mask_now);
  for (int i = 1; i < NSIG; i++) {
    struct sigaction action;
    if (sigismember(&mask_now, i)) printf("blocked %d\n", i);
    if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
      printf("not default %d\n", i);
  }
  printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
  printf("%d %d %d\n", getpgrp() == getpgid(getppid()), getsid(0) == getsid(getppid()), getpid() == getpgrp());
  char name[32];
  pthread_getname_np(pthread_self(), name, sizeof name);
  FILE *comm = fopen("/proc/self/comm", "r");
  char text[64] = "";
  if (comm) { if (!fgets(text, sizeof text, comm)) puts("?"); fclose(comm); }
  text[strcspn(text, "\n")] = 0;
  printf("comm is name %d\n", strcmp(name, text) == 0);
  char folder[4096];
  puts(getcwd(folder, sizeof folder));
}
static void list_descriptors(void) {
  int seen[64], count = 0;
  DIR *folder = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(folder));)
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder) && count < 64)
      seen[count++] = atoi(entry->d_name);
  closedir(folder);
  for (int i = 0; i < count; i++) {
    char path[64], target[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", seen[i]);
    if (readlink(path, target, sizeof target - 1) < 0) continue;
    target[strcspn(target, ":")] = 0;
    printf("%d %s\n", seen[i], target);
  }
}
static void threads(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  printf("threads %d\n", count);
}

// Closes everything above standard error, and counts on what comes next.
static void close_all(void) {
  syscall(SYS_close_range, 3, ~0U, 0);
  for (int i = 0; i < 5; i++) printf("%d\n", open("/dev/null", O_RDONLY));
  work();
  int fresh[2];
  printf("%d ", pipe(fresh));
  printf("%d %d\n", fresh[0], fresh[1]);
  close(fresh[0]);
  close(fresh[1]);
  printf("%d\n", dup(1));
}
static void close_loop(void) {
  for (int i = 3; i < 5000; i++) close(i);
  for (int i = 0; i < 5; i++) printf("%d\n", open("/dev/null", O_RDONLY));
  work();
  printf("%d\n", dup2(1, 900));
  work();
  pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(open("/dev/null", O_RDONLY));
  }
  int status;
  waitpid(pid, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
}
static void plain_descriptors(void) {
  for (int i = 0; i < 3; i++) printf("%d\n", open("/dev/null", O_RDONLY));
  work();
  printf("%d\n", open("/dev/null", O_RDONLY));
}
// Without standard streams: what is opened first is 0.
static void no_streams(void) {
  int kept = dup(1);
  close(0);
  close(1);
  close(2);
  int first = open("/dev/null", O_RDWR), second = open("/dev/null", O_RDWR);
  work();
  dprintf(kept, "%d %d\n", first, second);
  dup2(kept, 1);
}
static void loads(void) { work(); }

// A limit on processes or memory or files: the calls that fail must fail as they do alone.
static void limited(void) {
  struct rlimit limit = {3, 3};
  setrlimit(RLIMIT_NOFILE, &limit);
  printf("%d %d\n", open("/dev/null", O_RDONLY), errno == EMFILE);
  work();
}
// A memory-hungry program under `ulimit -v`: it stops where the limit is, and goes on.
static void hungry(void) {
  void *blocks[64];
  int count = 0;
  while (count < 64 && (blocks[count] = malloc(32u << 20))) count++;
  printf("%d\n", count < 64);
  while (count) free(blocks[--count]);
  work();
}

static void empty_environment(void) {
  if (!getenv("HOME") && !getenv("PATH")) {
    printf("%d\n", environ[0] == NULL);
    work();
    return;
  }
  char *list[] = {self, values[1], NULL}, *nothing[] = {NULL};
  execve(self, list, nothing);
}
static void null_environment(void) {
  if (!environ || !environ[0]) {
    puts("none");
    work();
    return;
  }
  char *list[] = {self, values[1], NULL};
  execve(self, list, NULL);
}
// The program clears its environment, and starts another all the same.
static void cleared(void) {
  clearenv();
  setenv("ONLY", "this", 1);
  work();
  printf("%d\n", WEXITSTATUS(system("test \"$ONLY\" = this; exit $?")));
}
static void no_preload(void) {
  unsetenv("LD_PRELOAD");
  char *list[] = {self, "loads", NULL};
  execv(self, list);
}
static void own_preload(void) {
  setenv("LD_PRELOAD", "", 1);
  char *list[] = {self, "loads", NULL};
  execv(self, list);
}

// Traces a child of its own: nobody else may be its tracer.
static void traces(void) {
  pid_t pid = fork();
  if (pid == 0) {
    printf("%ld\n", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    raise(SIGSTOP);
    work();
    _exit(6);
  }
  int status, stops = 0;
  waitpid(pid, &status, 0);
  printf("stopped %d\n", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  ptrace(PTRACE_CONT, pid, NULL, NULL);
  while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && stops++ < 100)
    ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)WSTOPSIG(status));
  printf("%d %d\n", WIFEXITED(status), WEXITSTATUS(status));
}
// Status, signals and streams as the parent sees them.
static void exit_7(void) { exit(7); }
static void killed(void) { raise(SIGKILL); }
static void aborts(void) { signal(SIGABRT, SIG_DFL); abort(); }
static void terminated(void) { raise(SIGTERM); }
static void streams(void) {
  fputs("to standard error\n", stderr);
  char line[64];
  while (fgets(line, sizeof line, stdin)) fputs(line, stdout);
  for (int i = 0; i < 2000; i++) printf("line %d of many, so that the pipe fills and somebody must drain it\n", i);
}
static void binary(void) { for (int i = 0; i < 256; i++) putchar(i); putchar('\n'); }
// Its own children only: nobody may leave one for it to find.
static void no_children(void) {
  int status;
  printf("%d %d\n", (int)waitpid(-1, &status, WNOHANG), errno == ECHILD);
  work();
  printf("%d %d\n", (int)waitpid(-1, &status, WNOHANG), errno == ECHILD);
}

// Most of the address space that a limit leaves.
static void spacious(void) {
  void *block = malloc(1000u << 20);
  puts(block ? "has it" : strerror(errno));
  free(block);
  work();
}

// All memory locked: no more than the program's own.
static void locked_in_memory(void) {
  int error = mlockall(MCL_CURRENT) ? errno : 0;
  long pages = 0, shared = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file) {
    if (fscanf(file, "%*d %ld %ld", &pages, &shared) != 2) pages = 0;
    fclose(file);
  }
  printf("%s, %s\n", strerror(error), pages < 10000 ? "little" : "much");
  munlockall();
}

// A filter that kills whoever makes a socket, a file in memory or asks for ids and names; then threads and a child.
static void confine(void) {
  static const unsigned refused[] = {
    SYS_socket, SYS_connect, SYS_memfd_create, SYS_gettid, SYS_prctl, SYS_openat,
  };
  enum { count = sizeof refused / sizeof *refused };
  struct sock_filter filter[2 * count + 2];
  int n = 0;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < count; i++) {
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  }
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {(unsigned short)n, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static pthread_mutex_t in_cage = PTHREAD_MUTEX_INITIALIZER;
static void *caged(void *_) {
  pthread_mutex_lock(&in_cage);
  pthread_mutex_unlock(&in_cage);
  return _;
}
static void told(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  printf("%d\n", status);
}
static void confined(void) {
  pid_t pid = fork();
  if (pid == 0) {
    confine();
    caged(NULL);
    _exit(0);
  }
  told(pid);
  fflush(stdout);
  confine();
  pthread_t thread;
  pthread_create(&thread, NULL, caged, NULL);
  pthread_join(thread, NULL);
  if ((pid = fork()) == 0) {
    caged(NULL);
    _exit(0);
  }
  told(pid);
}

// As Swift's runtime starts what reports a crash: a child on a page of its own variables, with others
// right beside it.
static struct {
  char before[4096], stack[4096];
} cramped_page __attribute__((aligned(4096)));
static int cramped_child(void *_) {
  char *arguments[] = {"true", NULL};
  execve("/bin/true", arguments, environ);
  _exit(1);
  return _ == NULL;
}
static void cramped(void) {
  memset(cramped_page.before, 'x', sizeof cramped_page.before);
  told(clone(cramped_child, cramped_page.stack + sizeof cramped_page.stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
  size_t spoiled = 0;
  for (size_t i = 0; i < sizeof cramped_page.before; i++) spoiled += cramped_page.before[i] != 'x';
  printf("%zu spoiled\n", spoiled);
}

static const struct scenario all[] = {
  {"environment", environment}, {"process", process}, {"descriptors", list_descriptors},
  {"threads", threads}, {"close-all", close_all}, {"close-loop", close_loop},
  {"plain-descriptors", plain_descriptors}, {"no-streams", no_streams}, {"loads", loads},
  {"limited", limited}, {"hungry", hungry}, {"empty-environment", empty_environment},
  {"null-environment", null_environment}, {"cleared", cleared}, {"no-preload", no_preload},
  {"own-preload", own_preload}, {"traces", traces}, {"exit-7", exit_7}, {"killed", killed},
  {"aborts", aborts}, {"terminated", terminated}, {"streams", streams}, {"binary", binary},
  {"no-children", no_children}, {"spacious", spacious}, {"locked-in-memory", locked_in_memory},
  {"confined", confined}, {"cramped", cramped},
};
int main(int argc, char **argv) {
  arguments = argc;
  values = argv;
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[length > 0 ? length : 0] = 0;
  return PLAY(argc, argv, all);
}
