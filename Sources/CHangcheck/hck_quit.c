#define _GNU_SOURCE
#include "include/hck_quit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct sigaction previous;
static pid_t owner;
static int has_come;

// Async-signal-safe: a flag, and in a forked child, which nobody watches, system calls alone.
static void ask(int signal) {
  int error = errno;
  if (getpid() == owner) {
    __atomic_store_n(&has_come, 1, __ATOMIC_RELEASE);
  } else {
    sigaction(signal, &previous, NULL);
    raise(signal);
  }
  errno = error;
}

static int is_ours(const struct sigaction *action) {
  return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == ask;
}

static void *handler(const struct sigaction *action) {
  return action->sa_flags & SA_SIGINFO ? (void *)action->sa_sigaction : (void *)action->sa_handler;
}

// A catcher of crashes handles all of their signals alike, and this one as one of them.
static int catches_crashes(const struct sigaction *action) {
  const int crashes[] = {SIGSEGV, SIGILL, SIGABRT};
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
    struct sigaction other;
    if (sigaction(crashes[i], NULL, &other) != 0 || handler(&other) != handler(action)) { return 0; }
  }
  return 1;
}

int hck_quit_begin(void) {
  struct sigaction ours, now;
  memset(&ours, 0, sizeof ours);
  ours.sa_handler = ask;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGQUIT, NULL, &now) != 0) { return errno; }
  if (!is_ours(&now)) {
    void *there = handler(&now);
    if (there != (void *)SIG_DFL && there != (void *)SIG_IGN && !catches_crashes(&now)) {
      return EBUSY;
    }
    previous = now;
    __atomic_store_n(&has_come, 0, __ATOMIC_RELEASE);
  }
  owner = getpid();
  return sigaction(SIGQUIT, &ours, NULL) == 0 ? 0 : errno;
}

int hck_quit_is_taken(void) {
  struct sigaction now;
  return sigaction(SIGQUIT, NULL, &now) == 0 && is_ours(&now);
}

void hck_quit_end(void) {
  if (hck_quit_is_taken()) { sigaction(SIGQUIT, &previous, NULL); }
}

int hck_quit_has_come(void) { return __atomic_exchange_n(&has_come, 0, __ATOMIC_ACQ_REL); }
