#define _GNU_SOURCE
#include "hck_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

// The child runs in the parent's memory until execve, and the parent stands still for that long: it
// makes system calls only. No handler can run in it, because hangcheck installs none.
pid_t hck_spawn(
    const char *path, char *const argv[], char *const envp[], const sigset_t *mask,
    bool ignores_child_signal, int apart) {
  volatile int failure = 0;
  pid_t pid = vfork();
  if (pid == 0) {
    if (ignores_child_signal) {
      struct sigaction ignore = {.sa_handler = SIG_IGN};
      sigaction(SIGCHLD, &ignore, NULL);
    }
    if (apart >= 0) {
      setsid();
      prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      for (int stream = 0; stream < 3; stream++) dup2(apart, stream);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execve(path, argv, envp);
    failure = errno;
    _exit(127);
  }
  if (pid < 0) return -errno;
  if (failure) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return -failure;
  }
  return pid;
}

void hck_adopt_orphans(bool adopts) { prctl(PR_SET_CHILD_SUBREAPER, adopts, 0, 0, 0); }

bool hck_take_child_signal(void) {
  struct sigaction old, normal = {.sa_handler = SIG_DFL};
  if (sigaction(SIGCHLD, &normal, &old) < 0) return false;
  return !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_IGN;
}

int hck_block_signals(sigset_t *handled, sigset_t *old) {
  // Faults stay deadly, and so does the limit on hangcheck's own processor time.
  static const int excluded[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU};
  sigset_t set;
  sigfillset(&set);
  for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++) sigdelset(&set, excluded[i]);
  *handled = set;
  // A write to a closed pipe or beyond a limit is to fail with an error, not to be read as a
  // signal.
  sigdelset(handled, SIGPIPE);
  sigdelset(handled, SIGXFSZ);
  return sigprocmask(SIG_BLOCK, &set, old) < 0 ? -errno : 0;
}

int hck_signalfd(const sigset_t *mask) {
  int fd = signalfd(-1, mask, SFD_CLOEXEC | SFD_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

int hck_read_signal(int fd, struct hck_signal *signal) {
  struct signalfd_siginfo info;
  ssize_t size = read(fd, &info, sizeof info);
  if (size < 0) return errno == EAGAIN || errno == EINTR ? 0 : -errno;
  if (size != sizeof info) return 0;
  signal->number = (int32_t)info.ssi_signo;
  signal->code = info.ssi_code;
  signal->pid = (int32_t)info.ssi_pid;
  return 1;
}

int hck_pidfd_open(pid_t pid) {
  long fd = syscall(SYS_pidfd_open, pid, 0);
  return fd < 0 ? -errno : (int)fd;
}

int hck_pidfd_kill(int fd, int signal) {
  return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) < 0 ? -errno : 0;
}

int hck_accept(int fd, pid_t *pid, uid_t *uid) {
  int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) return -errno;
  struct ucred peer = {0};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
    int failure = errno;
    close(connection);
    return -failure;
  }
  *pid = peer.pid;
  *uid = peer.uid;
  return connection;
}

int hck_wait_change(pid_t pid, bool reap, struct hck_change *change) {
  siginfo_t info = {0};
  // WNOWAIT would leave a stop unread too, so the end and the stops are asked for one by one.
  int flags = WEXITED | WNOHANG | (reap ? 0 : WNOWAIT);
  while (waitid(P_PID, (id_t)pid, &info, flags) < 0)
    if (errno != EINTR) return -errno;
  if (!info.si_pid) {
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0) {
      if (errno == EINTR) { continue; }
      // It has ended since it was asked for its end: now there is nothing else to be asked.
      if (errno != ECHILD || waitid(P_PID, (id_t)pid, &info, flags) < 0) { return -errno; }
      break;
    }
  }
  change->code = info.si_pid ? info.si_code : 0;
  change->status = info.si_status;
  return 0;
}

bool hck_has_file_capabilities(const char *path) {
  return getxattr(path, "security.capability", NULL, 0) > 0;
}

bool hck_no_new_privileges(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }

int hck_open(const char *path, int flags, mode_t mode) {
  int fd;
  do fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
  while (fd < 0 && errno == EINTR);
  return fd < 0 ? -errno : fd;
}

int hck_duplicate(int fd) {
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  return copy < 0 ? -errno : copy;
}
