// The entry points of the Swift runtime and of libdispatch that tell of one-time initialisations and
// of continuations: their types and their calling convention are not Embedded Swift's to spell.
#include "include/hck_misuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

__thread hck_refused hck_tls_refused;

// The next definition; of a library that was loaded privately (a plugin's), the caller's own.
// dlerror's text is left as if nothing had been asked.
static void *find(const char *name, const char *library, const void *caller) {
  int error = errno;
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) { found = dlsym(handle, name); }
  }
  Dl_info info;
  if (!found && dladdr(caller, &info) && info.dli_fname) {
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) { found = dlsym(handle, name); }
  }
  if (!found) { (void)dlerror(); }
  errno = error;
  return found;
}

#define CALLER __builtin_return_address(0)
#define REAL(pointer, name, library)                                                         \
  __typeof__(pointer) real = __atomic_load_n(&pointer, __ATOMIC_ACQUIRE);                    \
  if (!real) {                                                                               \
    real = (__typeof__(pointer))find(name, library, CALLER);                                 \
    if (real) { __atomic_store_n(&pointer, real, __ATOMIC_RELEASE); }                        \
  }

typedef void (*body)(void *);

// Is it this thread's to run, the initialiser runs in hck_once_run, which notes that it is held.
static void (*real_swift_once)(void *, body, void *);
void swift_once(void *token, body initialiser, void *context) {
  REAL(real_swift_once, "swift_once", "libswiftCore.so")
  if (!real) { abort(); }
  // Done: negative for Swift.
  if (*(const int32_t *)token < 0) {
    real(token, initialiser, context);
    return;
  }
  hck_once once = {(uint64_t)token, 0, __builtin_frame_address(0), 0, initialiser, context};
  hck_once_begin(&once);
  real(token, hck_once_run, &once);
  hck_once_end(&once);
}

static void (*real_dispatch_once_f)(void *, void *, body);
void dispatch_once_f(void *token, void *context, body initialiser) {
  REAL(real_dispatch_once_f, "dispatch_once_f", "libdispatch.so")
  if (!real) { abort(); }
  if (*(const int64_t *)token == -1) {
    real(token, context, initialiser);
    return;
  }
  hck_once once = {(uint64_t)token, 0, __builtin_frame_address(0), 0, initialiser, context};
  hck_once_begin(&once);
  real(token, &once, hck_once_run);
  hck_once_end(&once);
}

static const char misuse[] = "SWIFT TASK CONTINUATION MISUSE: ";
#define MISUSE_LENGTH (sizeof misuse - 1)

// A checked continuation that went away without a resume; the program goes on.
static void (*real_report_error)(uint32_t, const char *);
void swift_reportError(uint32_t flags, const char *message) {
  REAL(real_report_error, "swift_reportError", "libswiftCore.so")
  if (message && strncmp(message, misuse, MISUSE_LENGTH) == 0) {
    hck_continuation_misused(message, __builtin_frame_address(0));
  }
  if (real) { real(flags, message); }
}

// A checked continuation that is resumed again: a failed assertion, whose message is a Swift
// string. The assertion never returns, so nothing of ours stays on its stack.
#define ASSERTION_PARAMETERS                                                                \
  const char *prefix, intptr_t prefix_length, uint8_t prefix_flags, uint64_t count_and_flags, \
    uint64_t object, const char *file, intptr_t file_length, uint8_t file_flags, uintptr_t line, uint32_t flags
#define ASSERTION_ARGUMENTS \
  prefix, prefix_length, prefix_flags, count_and_flags, object, file, file_length, file_flags, line, flags
#define ASSERTION "$ss17_assertionFailure__4file4line5flagss5NeverOs12StaticStringV_SSAHSus6UInt32VtF"

static void (*real_assertion)(ASSERTION_PARAMETERS) __attribute__((swiftcall));

static __attribute__((noinline)) void look_at_message(uint64_t count_and_flags, uint64_t object, const void *frame) {
  uint64_t length = count_and_flags & 0x0000ffffffffffffull;
  // Small strings are short; of the others the native ones have their bytes behind a header.
  if (object >> 61 & 1 || object >> 60 & 1 || length <= MISUSE_LENGTH) { return; }
  const char *bytes = (const char *)(object & 0x0fffffffffffffffull) + 32;
  if (memcmp(bytes, misuse, MISUSE_LENGTH) != 0) { return; }
  char text[168];
  if (length >= sizeof text) { length = sizeof text - 1; }
  memcpy(text, bytes, length);
  text[length] = 0;
  hck_continuation_misused(text, frame);
}

__attribute__((swiftcall)) void hck_assertion_failure(ASSERTION_PARAMETERS) __asm__(ASSERTION);
__attribute__((swiftcall)) void hck_assertion_failure(ASSERTION_PARAMETERS) {
  REAL(real_assertion, ASSERTION, "libswiftCore.so")
  if (!real) { abort(); }
  look_at_message(count_and_flags, object, __builtin_frame_address(0));
  __attribute__((musttail)) return real(ASSERTION_ARGUMENTS);
}
