// What the launcher needs of Linux and Swift cannot spell. Every function returns -errno on
// failure.
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Starts a program with `mask` as its signal mask. Swift has no fork, and posix_spawn can not give
/// the child an ignored SIGCHLD that its parent must handle. Returns the pid, or -errno of vfork or
/// execve: the child has executed the program when this returns. `apart`: -1, or a descriptor for its
/// three streams; then it has a session of its own, without a terminal, and ends with this thread.
pid_t hck_spawn(
    const char *path, char *const argv[], char *const envp[], const sigset_t *mask,
    bool ignores_child_signal, int apart);
/// Whether processes whose parents have gone become children of this one. prctl is variadic.
void hck_adopt_orphans(bool adopts);

/// Makes SIGCHLD deliver again where it was inherited as ignored; tells whether it was.
bool hck_take_child_signal(void);

/// Blocks what a supervisor must not die of; `old` receives the mask as inherited. Real-time
/// signals are macros that call functions, which Swift does not import.
int hck_block_signals(sigset_t *handled, sigset_t *old);

/// signalfd, pidfd_open, pidfd_send_signal and accept4 are not in Swift's Glibc module.
int hck_signalfd(const sigset_t *mask);
struct hck_signal {
  int32_t number;
  int32_t code;
  int32_t pid;
};
/// 1 when a signal was read, 0 when there is none, -errno otherwise.
int hck_read_signal(int fd, struct hck_signal *signal);
int hck_pidfd_open(pid_t pid);
int hck_pidfd_kill(int fd, int signal);
int hck_accept(int fd, pid_t *pid, uid_t *uid);

/// How a child changed: the union inside siginfo_t has no names in Swift.
struct hck_change {
  int32_t code;  // CLD_*; 0 when nothing changed
  int32_t status;
};
int hck_wait_change(pid_t pid, bool reap, struct hck_change *change);

/// fstat of a file with capabilities is not enough: they are an extended attribute.
bool hck_has_file_capabilities(const char *path);
/// prctl is variadic.
bool hck_no_new_privileges(void);
/// S_ISFIFO and friends are macros; ioctl and open are variadic.
int hck_open(const char *path, int flags, mode_t mode);
int hck_duplicate(int fd);
