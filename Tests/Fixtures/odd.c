// Processes that are hard to look at, and launchers that make looking hard.
#include "fixture.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

static char **words;

static void pausing(void) { for (;;) pause(); }
static void undumpable(void) {
  prctl(PR_SET_DUMPABLE, 0);
  pausing();
}
// Becomes the same program again, all the time.
static void executing(void) {
  nap(3);
  execv("/proc/self/exe", words);
}
// Ends soon.
static void ending(void) { nap(atoi(words[2])); }
// Stops another process as a debugger does, and says so.
static void tracing(void) {
  pid_t pid = atoi(words[2]);
  if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0)) exit(3);
  waitpid(pid, NULL, __WALL);
  puts("stopped");
  pausing();
}
// Runs a program to which system calls are refused.
static void filter(int second) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) exit(3);
  alarm(0);
  execv(words[2], words + 2);
  exit(3);
}
static void untraced(void) { filter(SYS_ptrace); }
static void unread(void) { filter(SYS_process_vm_readv); }

static const struct scenario all[] = {
  {"pausing", pausing}, {"undumpable", undumpable}, {"executing", executing}, {"ending", ending},
  {"tracing", tracing}, {"untraced", untraced}, {"unread", unread},
};
int main(int argc, char **argv) {
  words = argv;
  return PLAY(argc, argv, all);
}
