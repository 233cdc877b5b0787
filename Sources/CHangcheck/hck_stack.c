#define _GNU_SOURCE
#include "include/hck_stack.h"
#include "include/hck_system.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

static struct sigaction previous[_NSIG];

// Async-signal-safe: system calls and memory of the watchdog's alone; no allocation, no lock, no
// runtime.
static void copy_stack(int signal, siginfo_t *info, void *context) {
  int error = errno;
  // Others who send this signal meet what was there before us, which was to ignore it.
  if (info->si_code != SI_QUEUE || info->si_pid != getpid()) { return; }
  hck_stack_copy *copy = info->si_value.sival_ptr;
  uint32_t asked = HCK_COPY_ASKED;
  if (!copy || copy->tid != hck_gettid()
      || !__atomic_compare_exchange_n(
        &copy->state, &asked, HCK_COPY_STARTED, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    return;
  }
  const greg_t *r = ((const ucontext_t *)context)->uc_mcontext.gregs;
  const greg_t all[17] = {r[REG_R15], r[REG_R14], r[REG_R13], r[REG_R12], r[REG_RBP], r[REG_RBX],
                          r[REG_R11], r[REG_R10], r[REG_R9],  r[REG_R8],  r[REG_RAX], r[REG_RCX],
                          r[REG_RDX], r[REG_RSI], r[REG_RDI], r[REG_RIP], r[REG_RSP]};
  for (int i = 0; i < 17; i++) { copy->registers[i] = (uint64_t)all[i]; }
  uint64_t sp = copy->registers[16];
  // The kernel copies, so that the stack's end is no fault; below rsp lies the red zone.
  struct iovec local = {copy->bytes, copy->room}, remote = {(void *)(sp - 128), copy->room};
  ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  copy->base = sp - 128;
  if (got <= 128) {
    // Not allowed in some sandboxes: then the rest of the page that rsp points into.
    uint64_t left = 4096 - (sp & 4095);
    got = (ssize_t)(left < copy->room ? left : copy->room);
    for (ssize_t i = 0; i < got; i++) { copy->bytes[i] = ((const volatile uint8_t *)sp)[i]; }
    copy->base = sp;
  }
  copy->length = (uint64_t)got;
  __atomic_store_n(&copy->state, HCK_COPY_DONE, __ATOMIC_RELEASE);
  errno = error;
}

static int is_ignored_by_default(int signal) {
  return signal == SIGURG || signal == SIGWINCH;
}

static int is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == copy_stack;
}

static int is_free(const struct sigaction *action) {
  return is_ours(action)
    || (!(action->sa_flags & SA_SIGINFO) && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN));
}

int hck_stack_signals(int *signals, int room) {
  // First those whose late arrival does no harm, whatever becomes of the handler; then the one that
  // libdispatch's workers do not block.
  const int all[] = {SIGURG, SIGWINCH, SIGPROF, SIGRTMAX - 1, SIGRTMAX - 2, SIGRTMAX - 3};
  int count = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all && count < room; i++) {
    struct sigaction now;
    if (sigaction(all[i], NULL, &now) == 0 && is_free(&now)) { signals[count++] = all[i]; }
  }
  return count;
}

int hck_stack_signal_begin(int signal) {
  struct sigaction ours, now;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = copy_stack;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  if (sigaction(signal, NULL, &now) != 0) { return errno; }
  if (!is_free(&now)) { return EBUSY; }
  // Left in place for a thread that answered too late the last time: what was there before is still
  // known.
  if (!is_ours(&now)) { previous[signal] = now; }
  return sigaction(signal, &ours, NULL) == 0 ? 0 : errno;
}

void hck_stack_signal_end(int signal, int late) {
  if (late && !is_ignored_by_default(signal) && previous[signal].sa_handler != SIG_IGN) { return; }
  struct sigaction now;
  // Whoever has put a handler of their own there since keeps it.
  if (sigaction(signal, NULL, &now) == 0 && is_ours(&now)) {
    sigaction(signal, &previous[signal], NULL);
  }
}

int hck_stack_ask(int signal, hck_stack_copy *copy) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = copy;
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)copy->tid, signal, &info) == 0 ? 0 : errno;
}

int hck_thread_start(const char *name, void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error) { return error; }
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Names, lines and JSON are made on it; touched pages alone cost memory.
  pthread_attr_setstacksize(&attributes, 1 << 20);
  sigset_t blocked, before;
  sigfillset(&blocked);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) { sigdelset(&blocked, faults[i]); }
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  error = pthread_create(&thread, &attributes, body, argument);
  if (!error) { pthread_setname_np(thread, name); }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));

void hck_sanitizer_ignore_begin(void) {
  if (AnnotateIgnoreReadsBegin) { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  if (AnnotateIgnoreWritesBegin) { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
}

void hck_sanitizer_ignore_end(void) {
  if (AnnotateIgnoreWritesEnd) { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
  if (AnnotateIgnoreReadsEnd) { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
}

int hck_has_sanitizer(void) { return AnnotateIgnoreReadsBegin != 0; }
