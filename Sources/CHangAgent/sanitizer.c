// A program built with ThreadSanitizer has its runtime inside. It prints with system calls of its
// own, but with log_to_syslog it also calls libc's syslog for every line, in the thread that it
// reports, which a preloaded library can stand in front of: so its text stays where it would be
// without hangcheck, and is known here the moment it is printed.
#define _GNU_SOURCE 1 // for _dl_find_object
#include "include/hck_sanitizer.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <syslog.h>

char hck_sanitizer_entry[4096];
void (*hck_tsan_acquire)(void *), (*hck_tsan_release)(void *);
static int user_wants_syslog;
uint64_t hck_sanitizer_low, hck_sanitizer_bytes;
static int looked;

void hck_take_sanitizer_word(char **environment) {
  const size_t name = sizeof HCK_SANITIZER_VARIABLE - 1, word = sizeof HCK_SANITIZER_WORD - 1;
  for (char **e = environment; *e; e++) {
    size_t whole = strlen(*e);
    if (strncmp(*e, HCK_SANITIZER_VARIABLE, name) != 0 || whole < name + word) { continue; }
    char *ours = *e + whole - word;
    if (strcmp(ours, HCK_SANITIZER_WORD) != 0) { continue; }
    if (whole < sizeof hck_sanitizer_entry) { strcpy(hck_sanitizer_entry, *e); }
    if (ours == *e + name) {
      for (; *e; e++) { e[0] = e[1]; }
      return;
    }
    ours[-1] = 0; // the colon before it
    // The last of several counts.
    for (const char *at = *e; (at = strstr(at, "log_to_syslog=")) != 0;) {
      at += sizeof "log_to_syslog=" - 1;
      user_wants_syslog = *at && strchr("1ty", *at) != 0;
    }
    return;
  }
}

// Of a shared runtime the whole library; of one that is linked in, the part of the program that lies
// between functions that it exports, for the program may call syslog too.
static void find_range(void *init) {
  struct dl_find_object object;
  if (_dl_find_object(init, &object) == 0 && object.dlfo_link_map->l_name[0]) {
    hck_sanitizer_low = (uint64_t)object.dlfo_map_start;
    hck_sanitizer_bytes = (uint64_t)object.dlfo_map_end - hck_sanitizer_low;
    return;
  }
  static const char *const names[] = {
    "___interceptor_free", "__tsan_read1", "__sanitizer_acquire_crash_state", "__sanitizer_set_report_fd",
    "__tsan_init", "__sanitizer_print_stack_trace"};
  uint64_t low = (uint64_t)init, high = low;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    uint64_t at = (uint64_t)dlsym(RTLD_DEFAULT, names[i]);
    if (at && at < low) { low = at; }
    if (at > high) { high = at; }
  }
  hck_sanitizer_low = low;
  hck_sanitizer_bytes = high - low;
}

void hck_resolve_sanitizer(void) {
  int error = errno;
  looked = 1;
  void *init = dlsym(RTLD_DEFAULT, "__tsan_init");
  if (init) {
    find_range(init);
    hck_tsan_acquire = (__typeof__(hck_tsan_acquire))dlsym(RTLD_DEFAULT, "__tsan_acquire");
    hck_tsan_release = (__typeof__(hck_tsan_release))dlsym(RTLD_DEFAULT, "__tsan_release");
  }
  (void)dlerror();
  errno = error;
}

// Several threads may: each has its own room, which is 0 until it is written, the line's end last.
static void keep(const char *line) {
  hck_words *words = hck_agent_words();
  if (!words) { return; }
  uint64_t length = strlen(line), at = __atomic_fetch_add(&words->used, length + 1, __ATOMIC_RELAXED);
  // What does not fit is lost, and `used` says so.
  if (at + length + 1 > sizeof words->text) { return; }
  memcpy(words->text + at, line, length);
  __atomic_store_n(words->text + at + length, '\n', __ATOMIC_RELEASE);
}

// A runtime that exports nothing is known by its words: two calls in one function hand them over.
static int sounds_like_sanitizer(uint64_t caller, const char *line) {
  static const char rule[] = "==================";
  if (hck_sanitizer_bytes || (strcmp(line, rule) != 0 && !strstr(line, "ThreadSanitizer: "))) { return 0; }
  hck_sanitizer_low = caller - 1024;
  hck_sanitizer_bytes = 2048;
  hck_arena *arena = hck_agent_arena();
  if (arena) { __atomic_store_n(&arena->sanitizer_hides, 1, __ATOMIC_RELEASE); }
  return 1;
}

void syslog(int priority, const char *format, ...) {
  int error = errno;
  uint64_t caller = (uint64_t)__builtin_return_address(0);
  if (!looked) { hck_resolve_sanitizer(); }
  va_list list;
  if (hck_sanitizer_entry[0] && strcmp(format, "%s") == 0) {
    va_start(list, format);
    const char *line = va_arg(list, const char *);
    va_end(list);
    if (hck_in_sanitizer(caller) || sounds_like_sanitizer(caller, line)) {
      keep(line);
      errno = error;
      if (!user_wants_syslog) { return; }
    }
  }
  va_start(list, format);
  vsyslog(priority, format, list);
  va_end(list);
}
