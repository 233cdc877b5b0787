// A healthy program that locks where locking is delicate; the first argument says where. Nothing may be
// reported above a note, and the output must be the same with and without hangcheck.
#include "fixture.h"
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <limits.h>
#include <threads.h>
#include <ucontext.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int both;
static long count;
NOINLINE static void use(void) {
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  count++;
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
}

// In constructors, in atexit handlers, in destructors, and after main has returned.
__attribute__((constructor(101))) static void first(void) { use(); }
__attribute__((constructor)) static void second(void) { use(); }
static int loud;
__attribute__((destructor)) static void last(void) {
  use();
  if (loud) printf("destructor %ld\n", count);
}
static void at_exit(void) {
  use();
  printf("atexit %ld\n", count);
}
static void outer(void) { loud = 1; atexit(at_exit); use(); }

// Threads that still run, and lock, while the process ends.
static void *runs_on(void *_) {
  pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
  meet(&both, 5);
  for (;;) {
    pthread_mutex_lock(&own);
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_mutex_unlock(&own);
  }
  return _;
}
static void still_running(void) {
  for (int i = 0; i < 4; i++) start("runs-on", runs_on, NULL);
  meet(&both, 5);
  nap(50);
}
// The main thread leaves before the others; the last one ends the process.
static void *finisher(void *_) {
  nap(300);
  use();
  puts("DONE");
  fflush(stdout);
  return _;
}
static void main_leaves(void) {
  start("finisher", finisher, NULL);
  pthread_exit(NULL);
}

// Handlers on an alternate stack, nested, that use locks of their own.
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER, of_nested = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t handled, nested;
static void inner(int _) {
  (void)_;
  if (pthread_mutex_trylock(&of_nested) == 0) { nested++; pthread_mutex_unlock(&of_nested); }
}
static void handle(int _) {
  (void)_;
  if (pthread_mutex_trylock(&of_handler) == 0) {
    handled++;
    raise(SIGUSR2);
    pthread_mutex_unlock(&of_handler);
  }
}
static void *struck(void *_) {
  stack_t alternate = {0};
  alternate.ss_size = 65536;
  alternate.ss_sp = malloc(alternate.ss_size);
  sigaltstack(&alternate, NULL);
  for (int i = 0; i < 2000; i++) {
    pthread_mutex_lock(&a);
    pthread_kill(pthread_self(), SIGUSR1);
    pthread_mutex_unlock(&a);
  }
  return _;
}
static void handlers(void) {
  struct sigaction action = {0};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = inner;
  sigaction(SIGUSR2, &action, NULL);
  pthread_join(start("struck", struck, NULL), NULL);
  printf("%d %d\n", (int)handled, (int)nested);
}
// A fault in the middle, and a handler that jumps out of it with the lock held, which is then given back.
static sigjmp_buf back;
static void on_fault(int _) { siglongjmp(back, _); }
static void faults(void) {
  struct sigaction action = {0};
  action.sa_handler = on_fault;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, NULL);
  volatile int caught = 0;
  for (volatile int i = 0; i < 100; i++) {
    pthread_mutex_lock(&a);
    if (sigsetjmp(back, 1) == 0) *(volatile int *)16 = 1; else caught++;
    pthread_mutex_unlock(&a);
  }
  printf("%d\n", caught);
}
// Jumps across frames that took locks; who jumps gives them back.
static jmp_buf out;
NOINLINE static void deep(int depth) {
  pthread_mutex_lock(&b);
  if (depth == 0) longjmp(out, 1);
  pthread_mutex_unlock(&b);
  deep(depth - 1);
}
static void *jumps(void *_) {
  for (volatile int i = 0; i < 3000; i++) {
    pthread_mutex_lock(&a);
    if (setjmp(out) == 0) deep(5);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
  }
  return _;
}
static void long_jumps(void) {
  pthread_join(start("jumps", jumps, NULL), NULL);
  use();
  printf("%ld\n", count);
}

// Key destructors that lock, set their value again and so run in every iteration there is.
static pthread_key_t keys[3];
static long destroyed;
static void destroy(void *value) {
  intptr_t left = (intptr_t)value;
  use();
  __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
  if (left > 1) pthread_setspecific(keys[left % 3], (void *)(left - 1));
}
static __thread long local;
static void *keyed(void *_) {
  local++;
  for (int i = 0; i < 3; i++) pthread_setspecific(keys[i], (void *)3);
  use();
  return _;
}
static void key_destructors(void) {
  for (int i = 0; i < 3; i++) pthread_key_create(&keys[i], destroy);
  for (int i = 0; i < 200; i++) pthread_join(start("keyed", keyed, NULL), NULL);
  printf("%d %ld\n", destroyed >= 600, count);
}

// Stacks that the program provides, and the smallest there are.
static void *on_own_stack(void *_) {
  char here;
  use();
  *(char **)_ = &here;
  return NULL;
}
static void own_stacks(void) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  printf("%d\n", pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));
  char *where = NULL;
  for (int i = 0; i < 50; i++) {
    pthread_t thread;
    printf("%s", pthread_create(&thread, &attr, on_own_stack, &where) ? "no\n" : "");
    pthread_join(thread, NULL);
  }
  size_t size = 65536;
  char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("%d\n", pthread_attr_setstack(&attr, stack, size));
  for (int i = 0; i < 50; i++) {
    pthread_t thread;
    pthread_create(&thread, &attr, on_own_stack, &where);
    pthread_join(thread, NULL);
  }
  printf("%d\n", where >= stack && where < stack + size);
  char *small = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("%d\n", pthread_attr_setstack(&attr, small, PTHREAD_STACK_MIN));
  pthread_t thread;
  pthread_create(&thread, &attr, on_own_stack, &where);
  pthread_join(thread, NULL);
  printf("%d\n", where >= small && where < small + PTHREAD_STACK_MIN);
  munmap(stack, size);
  munmap(small, size);
  printf("%ld\n", count);
}
// Coroutines that take a lock, switch, and give it back on another stack of the same thread.
static ucontext_t scheduler, fibres[4];
static pthread_mutex_t of_fibre[4];
static int alive;
static void fibre(int mine) {
  for (int i = 0; i < 500; i++) {
    pthread_mutex_lock(&of_fibre[mine]);
    swapcontext(&fibres[mine], &scheduler);
    use();
    pthread_mutex_unlock(&of_fibre[mine]);
  }
  alive--;
  for (;;) swapcontext(&fibres[mine], &scheduler);
}
static void *runs_fibres(void *_) {
  alive = 4;
  for (int i = 0; i < 4; i++) {
    pthread_mutex_init(&of_fibre[i], NULL);
    getcontext(&fibres[i]);
    fibres[i].uc_stack.ss_size = 65536;
    fibres[i].uc_stack.ss_sp = malloc(65536);
    fibres[i].uc_link = NULL;
    makecontext(&fibres[i], (void (*)(void))fibre, 1, i);
  }
  while (alive) for (int i = 0; i < 4; i++) swapcontext(&scheduler, &fibres[i]);
  return _;
}
static void coroutines(void) {
  pthread_join(start("fibres", runs_fibres, NULL), NULL);
  printf("%ld\n", count);
}

// C11's threads.
static mtx_t plain, timed, both_kinds;
static cnd_t signal_of;
static once_flag flag = ONCE_FLAG_INIT;
static tss_t slot;
static int wakes;
static void once(void) { puts("once"); }
static void slot_destroyed(void *_) { (void)_; mtx_lock(&plain); count++; mtx_unlock(&plain); }
static int c11_thread(void *raw) {
  call_once(&flag, once);
  tss_set(slot, raw);
  mtx_lock(&plain);
  while (!wakes) cnd_wait(&signal_of, &plain);
  mtx_unlock(&plain);
  mtx_lock(&both_kinds);
  mtx_lock(&both_kinds);
  count++;
  mtx_unlock(&both_kinds);
  mtx_unlock(&both_kinds);
  return 7;
}
static void c11(void) {
  count = 0;
  mtx_init(&plain, mtx_plain);
  mtx_init(&timed, mtx_timed);
  mtx_init(&both_kinds, mtx_recursive | mtx_timed);
  cnd_init(&signal_of);
  tss_create(&slot, slot_destroyed);
  thrd_t threads[4];
  for (int i = 0; i < 4; i++) thrd_create(&threads[i], c11_thread, &slot);
  nap(50);
  mtx_lock(&plain);
  wakes = 1;
  cnd_broadcast(&signal_of);
  mtx_unlock(&plain);
  int sum = 0, result;
  for (int i = 0; i < 4; i++) { thrd_join(threads[i], &result); sum += result; }
  struct timespec limit = in(CLOCK_REALTIME, 30);
  printf("%d %ld\n", sum, count);
  printf("%d\n", mtx_timedlock(&timed, &limit) == thrd_success);
  printf("%d\n", mtx_trylock(&timed) == thrd_busy);
  printf("%d\n", mtx_timedlock(&timed, &limit) == thrd_timedout);
  mtx_unlock(&timed);
  mtx_lock(&plain);
  printf("%d\n", cnd_timedwait(&signal_of, &plain, &limit) == thrd_timedout);
  mtx_unlock(&plain);
  mtx_destroy(&plain);
  cnd_destroy(&signal_of);
}

// Every signal has a handler of the program's own, and each is delivered.
static volatile sig_atomic_t got[NSIG];
static void record(int number) { got[number]++; }
static void all_signals(void) {
  int sum = 0, set = 0;
  for (int i = 1; i < NSIG; i++) {
    struct sigaction action = {0}, before;
    action.sa_handler = record;
    if (sigaction(i, NULL, &before) == 0 && i != SIGALRM)
      printf("%d: %s %x\n", i, before.sa_handler == SIG_DFL ? "default" : before.sa_handler == SIG_IGN ? "ignored" : "handled", (unsigned)before.sa_flags);
    if (i != SIGALRM && sigaction(i, &action, NULL) == 0) set++;
  }
  for (int i = 1; i < NSIG; i++) {
    if (i == SIGKILL || i == SIGSTOP || i == SIGALRM) continue;
    if (raise(i) == 0) sum += got[i];
  }
  use();
  printf("%d %d\n", set, sum);
}

// Code that keeps no frame pointers uses rbp for whatever it likes, also while it calls.
#ifdef __x86_64__
static pthread_mutex_t any_rbp = PTHREAD_MUTEX_INITIALIZER;
static int call_with_rbp(int (*function)(pthread_mutex_t *), uint64_t rbp) {
  int result;
  __asm__ volatile(
    "push %%rbp\n\t"
    "sub $136, %%rsp\n\t"  // beyond the red zone, and 16-byte aligned with the two pushes
    "mov %%rsp, %%rbx\n\t"
    "and $-16, %%rsp\n\t"
    "mov %[value], %%rbp\n\t"
    "call *%[function]\n\t"
    "mov %%rbx, %%rsp\n\t"
    "add $136, %%rsp\n\t"
    "pop %%rbp\n\t"
    : "=a"(result)
    : [function] "r"(function), [value] "r"(rbp), "D"(&any_rbp)
    : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
  return result;
}
static void *every_rbp(void *_) {
  uint64_t here = (uint64_t)__builtin_frame_address(0);
  uint64_t page = (here | 4095) + 1;
  uint64_t top = (uint64_t)pthread_self();
  const uint64_t values[] = {
    0, 1, 8, 0x1000, here - 8, here, here + 1, here + 8, here + 4096, page - 16, page - 15, page - 8, page - 1, page,
    page + 8, top - 16, top - 8, top - 1, top, top + 8, top + 4096, 0x7fffffffffff, 0x7fffffffefff, 0x7ffffffffff8,
    0x800000000000, 0x8000000000000000, -4096ull, -16ull, -15ull, -8ull, -1ull,
  };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (call_with_rbp(pthread_mutex_lock, values[i]) || call_with_rbp(pthread_mutex_unlock, values[i])) {
      printf("failed at %zu\n", i);
    }
  }
  return _;
}
static void garbage_rbp(void) {
  every_rbp(NULL);
  pthread_join(start("rbp", every_rbp, NULL), NULL);
  printf("any rbp will do\n");
}
#else
static void garbage_rbp(void) { printf("any rbp will do\n"); }
#endif

static const struct scenario all[] = {
  {"outer", outer}, {"still-running", still_running}, {"main-leaves", main_leaves},
  {"handlers", handlers}, {"faults", faults}, {"long-jumps", long_jumps},
  {"key-destructors", key_destructors}, {"own-stacks", own_stacks}, {"coroutines", coroutines},
  {"c11", c11}, {"all-signals", all_signals},
  {"garbage-rbp", garbage_rbp},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
