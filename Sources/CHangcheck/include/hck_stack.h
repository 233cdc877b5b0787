// Copies of the stacks of this process's own threads, each made by the thread itself in a signal
// handler.
#ifndef HCK_STACK_H
#define HCK_STACK_H

#include <stddef.h>
#include <stdint.h>

enum hck_copy_state {
  HCK_COPY_ASKED = 1,
  HCK_COPY_STARTED = 2,
  HCK_COPY_DONE = 3,
};

// One thread's answer. Registers in the order r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi
// rdi, rip, rsp.
typedef struct hck_stack_copy {
  uint32_t state;
  uint32_t tid;
  uint64_t registers[17];
  uint64_t base;   // address of the first byte copied
  uint64_t length; // bytes copied
  uint64_t room;   // bytes at `bytes`
  uint8_t *_Nullable bytes;
} hck_stack_copy;

// The signals that may ask for copies, best first; fills `signals` with those that nobody handles
// now, returns how many.
int hck_stack_signals(int *_Nonnull signals, int room);
// Takes one of them: 0 or an errno. In C for the struct sigaction that holds a union, for
// ucontext's registers, and since the handler may not touch the Swift runtime.
int hck_stack_signal_begin(int signal);
// Gives it back. With `late` threads that may still answer it keeps the handler where the default
// would end the process.
void hck_stack_signal_end(int signal, int late);
// Asks a thread of this process for its copy: 0 or an errno. The copy must stay in memory until its
// state is done.
int hck_stack_ask(int signal, hck_stack_copy *_Nonnull copy);

// A thread of our own: a small stack and no signals but those of its own faults. 0 or an errno.
int hck_thread_start(
  const char *_Nonnull name, void *_Nullable (*_Nonnull body)(void *_Nullable), void *_Nullable argument);

// In a program built with the thread sanitizer: what the calling thread does in between is left out
// of its books. Weak symbols are C's.
void hck_sanitizer_ignore_begin(void);
void hck_sanitizer_ignore_end(void);
int hck_has_sanitizer(void);

#endif
