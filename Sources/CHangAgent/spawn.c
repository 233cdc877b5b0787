// Hands the agent on to the programs that this one starts. The environment is built on the stack:
// these run in children of vfork and in signal handlers. Nothing is added for a program that could
// not load the agent.
#include "include/hck_real.h"
#include "include/hck_sanitizer.h"
#include "hck_system.h"

#include <alloca.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;
extern char hck_link_entry[], hck_preload_entry[];
extern const char *hck_agent_path;

static void resolve_spawning(void);
#define REAL_POINTER(name, version, parameters, arguments) static int(*real_##name) parameters;
HCK_SPAWNING(REAL_POINTER)
static FILE *(*real_popen)(const char *, const char *);

static void resolve_spawning(void) {
#define RESOLVE(name, version, parameters, arguments) \
  real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name);
  HCK_SPAWNING(RESOLVE)
  real_popen = (__typeof__(real_popen))dlsym(RTLD_NEXT, "popen");
}

__attribute__((constructor)) static void early(void) { resolve_spawning(); }

#define NEED(name)                             \
  if (!real_##name) { resolve_spawning(); }    \
  if (!real_##name) {                          \
    errno = ENOSYS;                            \
    return -1;                                 \
  }

static int can_load_at(int directory, const char *path, int depth);

// The interpreter that a script's first line names is what loads the agent.
static int can_load_script(const unsigned char *bytes, size_t got, int depth) {
  char interpreter[256];
  size_t at = 2, length = 0;
  while (at < got && (bytes[at] == ' ' || bytes[at] == '\t')) { at++; }
  while (at < got && length < sizeof interpreter - 1 && bytes[at] && !strchr(" \t\n", bytes[at])) {
    interpreter[length++] = (char)bytes[at++];
  }
  interpreter[length] = 0;
  return length == 0 || depth == 0 || can_load_at(AT_FDCWD, interpreter, depth - 1);
}

// False for an ELF file that is not for x86-64 and glibc, whose loader would complain about the
// agent or refuse to start, and for one that would itself.
static int can_load_file(int fd, int depth) {
  unsigned char bytes[2048];
  ssize_t got = pread(fd, bytes, sizeof bytes, 0);
  if (got > 2 && bytes[0] == '#' && bytes[1] == '!') { return can_load_script(bytes, (size_t)got, depth); }
  if (got < (ssize_t)sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0) { return 1; }
  Elf64_Ehdr header;
  memcpy(&header, bytes, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) { return 0; }
  for (unsigned i = 0; i < header.e_phnum; i++) {
    uint64_t at = header.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
    if (at < header.e_phoff || at + sizeof(Elf64_Phdr) > (uint64_t)got) { return 1; }
    Elf64_Phdr program;
    memcpy(&program, bytes + at, sizeof program);
    if (program.p_type != PT_INTERP) { continue; }
    if (program.p_offset >= (uint64_t)got || program.p_filesz > (uint64_t)got - program.p_offset) { return 1; }
    return memmem(bytes + program.p_offset, program.p_filesz, "ld-linux-x86-64", 15) != 0 && !hck_insists_on_first(fd);
  }
  return 1; // static: it loads nothing
}

static int can_load_at(int directory, const char *path, int depth) {
  int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) { return 1; }
  int result = can_load_file(fd, depth);
  close(fd);
  return result;
}

static char *const *find(char *const environment[], const char *prefix);

// A name without a slash is looked up as execvp and posix_spawnp do, in the caller's own PATH.
static int can_load_named(const char *name) {
  char *const *entry = find(environ, "PATH=");
  const char *folders = entry ? *entry + 5 : "/bin:/usr/bin";
  size_t name_length = strlen(name);
  char path[4096];
  for (;;) {
    size_t length = strcspn(folders, ":");
    if (length + name_length + 2 <= sizeof path) {
      memcpy(path, folders, length);
      path[length] = '/';
      memcpy(path + length + 1, name, name_length + 1);
      const char *candidate = length ? path : name;
      if (faccessat(AT_FDCWD, candidate, X_OK, AT_EACCESS) == 0) { return can_load_at(AT_FDCWD, candidate, 4); }
    }
    if (!folders[length]) { return 1; }
    folders += length + 1;
  }
}

// Not inlined: their buffers would lie in the frames of those who never come here.
__attribute__((noinline)) static int can_load(int directory, const char *path, int searches) {
  if (!path || !*path) { return 1; }
  int error = errno;
  int result = searches && !strchr(path, '/') ? can_load_named(path) : can_load_at(directory, path, 4);
  errno = error;
  return result;
}

__attribute__((noinline)) static int can_load_open(int fd) {
  int error = errno;
  int result = can_load_file(fd, 4);
  errno = error;
  return result;
}

static size_t length_of(char *const list[]) {
  size_t n = 0;
  while (list && list[n]) { n++; }
  return n;
}

static char *const *find(char *const environment[], const char *prefix) {
  size_t length = strlen(prefix);
  for (size_t i = 0; environment && environment[i]; i++) {
    if (strncmp(environment[i], prefix, length) == 0) { return environment + i; }
  }
  return 0;
}

// Where a process is started from a stack of a few kilobytes, as a crash's handler does on its own,
// or in a child that clone gave a small one, there is no room for a second environment. The child in
// which Swift's runtime executes its reporter runs on a page of variables, with others beside it.
static int is_cramped(void) {
  struct dl_find_object object;
  if (_dl_find_object(__builtin_frame_address(0), &object) == 0) { return 1; }
  stack_t stack;
  if (sigaltstack(0, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0) { return 1; }
  const hck_slot *slot = hck_slot_of_thread();
  if (!slot || slot->stack_high == 0) { return 0; }
  uint64_t here = (uint64_t)hck_frame();
  return here < slot->stack_low || here >= slot->stack_high;
}

static int wanted(char *const environment[]) {
  return hck_socket_name && !is_cramped() && hck_follows() && hck_agent_path && !find(environment, "HANGCHECK_LINK=");
}

static const char preload_name[] = "LD_PRELOAD=", sanitizer_name[] = HCK_SANITIZER_VARIABLE;

static int is_ours(const char *entry) {
  return strncmp(entry, preload_name, sizeof preload_name - 1) == 0 ||
         strncmp(entry, sanitizer_name, sizeof sanitizer_name - 1) == 0;
}

static const char *entry_of(char *const environment[], const char *name) {
  char *const *entry = find(environment, name);
  return entry ? *entry : name;
}

// Room for the copy that `fill` writes: three more entries and the end, and the text of two.
#define ROOM(environment) ((length_of(environment) + 4) * sizeof(char *))
#define TEXT(environment)                                                                   \
  (strlen(entry_of(environment, preload_name)) + strlen(hck_agent_path) + 2 +               \
   strlen(entry_of(environment, sanitizer_name)) + sizeof HCK_SANITIZER_WORD + 1)

// The entry with one more word at its end; returns where the next text begins.
static char *extend(char *text, char *const environment[], const char *name, const char *word) {
  strcpy(text, entry_of(environment, name));
  if (find(environment, name) && strlen(text) > strlen(name)) { strcat(text, ":"); }
  strcat(text, word);
  return text + strlen(text) + 1;
}

static char *const *fill(char *const environment[], char **copy, char *text) {
  char *more = extend(text, environment, preload_name, hck_agent_path);
  extend(more, environment, sanitizer_name, HCK_SANITIZER_WORD);
  size_t n = 0;
  for (size_t i = 0; environment && environment[i]; i++) {
    if (!is_ours(environment[i])) { copy[n++] = environment[i]; }
  }
  copy[n++] = text;
  copy[n++] = more;
  copy[n++] = hck_link_entry;
  copy[n] = 0;
  return copy;
}

#define WITH_AGENT(loads, e)                                                 \
  if (wanted(e) && loads) {                                                  \
    char **copy = alloca(ROOM(e));                                           \
    char *text = alloca(TEXT(e));                                            \
    e = (char *const *)fill(e, copy, text);                                  \
  }

int execve(const char *path, char *const argv[], char *const envp[]) {
  NEED(execve)
  char *const *e = envp;
  WITH_AGENT(can_load(AT_FDCWD, path, 0), e)
  return real_execve(path, argv, (char *const *)e);
}
int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
int execvpe(const char *file, char *const argv[], char *const envp[]) {
  NEED(execvpe)
  char *const *e = envp;
  WITH_AGENT(can_load(AT_FDCWD, file, 1), e)
  return real_execvpe(file, argv, (char *const *)e);
}
int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }
int fexecve(int fd, char *const argv[], char *const envp[]) {
  NEED(fexecve)
  char *const *e = envp;
  WITH_AGENT(can_load_open(fd), e)
  return real_fexecve(fd, argv, (char *const *)e);
}
int execveat(int directory, const char *path, char *const argv[], char *const envp[], int flags) {
  NEED(execveat)
  char *const *e = envp;
  WITH_AGENT((*path ? can_load(directory, path, 0) : can_load_open(directory)), e)
  return real_execveat(directory, path, argv, (char *const *)e, flags);
}

// The variadic forms: arguments up to NULL, then, for execle, the environment.
#define COLLECT(first)                                              \
  va_list list;                                                     \
  size_t count = 1;                                                 \
  va_start(list, first);                                            \
  while (va_arg(list, char *)) { count++; }                         \
  va_end(list);                                                     \
  char **argv = alloca((count + 1) * sizeof(char *));               \
  argv[0] = (char *)first;                                          \
  va_start(list, first);                                            \
  for (size_t i = 1; i <= count; i++) { argv[i] = va_arg(list, char *); }

int execl(const char *path, const char *first, ...) {
  COLLECT(first)
  va_end(list);
  return execve(path, argv, environ);
}
int execlp(const char *file, const char *first, ...) {
  COLLECT(first)
  va_end(list);
  return execvpe(file, argv, environ);
}
int execle(const char *path, const char *first, ...) {
  COLLECT(first)
  char *const *e = va_arg(list, char *const *);
  va_end(list);
  return execve(path, argv, e);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  if (!real_posix_spawn) { resolve_spawning(); }
  if (!real_posix_spawn) { return ENOSYS; }
  char *const *e = envp;
  WITH_AGENT(can_load(AT_FDCWD, path, 0), e)
  return real_posix_spawn(pid, path, actions, attributes, argv, (char *const *)e);
}
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
  if (!real_posix_spawnp) { resolve_spawning(); }
  if (!real_posix_spawnp) { return ENOSYS; }
  char *const *e = envp;
  WITH_AGENT(can_load(AT_FDCWD, file, 1), e)
  return real_posix_spawnp(pid, file, actions, attributes, argv, (char *const *)e);
}

// system and popen start the shell inside glibc with `environ`: while glibc reads it, that is a
// copy with the agent. The copy lies in pages of its own that are never given back, so that nobody
// is left with a pointer to what is gone.
static int is_unchanged(const char *name, const char *entry, const char *word) {
  char *const *now = find(environ, name);
  size_t own = strlen(entry) - strlen(word);
  return now ? strlen(*now) + 1 == own && strncmp(*now, entry, own - 1) == 0 : own == strlen(name);
}

static char **shared_copy(void) {
  static volatile int busy;
  static char **copy;
  static size_t room;
  int preload = find(environ, preload_name) || find(environ, sanitizer_name);
  if (!is_unchanged(preload_name, hck_preload_entry, hck_agent_path) ||
      !is_unchanged(sanitizer_name, hck_sanitizer_entry, HCK_SANITIZER_WORD) || __sync_lock_test_and_set(&busy, 1)) { return 0; }
  size_t count = length_of(environ), n = 0, at = 0;
  char **current = copy;
  if (current) {
    while (at < count && environ[at] == current[n]) { at++, n++; }
  }
  if (!current || at < count || preload) {
    if (!current || count + 4 > room || at < count) {
      room = count + 64;
      void *pages = mmap(0, room * sizeof(char *), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      current = pages == MAP_FAILED ? 0 : pages;
    }
    if (current) {
      n = 0;
      for (size_t i = 0; i < count; i++) {
        if (!is_ours(environ[i])) { current[n++] = environ[i]; }
      }
    }
  }
  if (current) {
    current[n] = hck_preload_entry;
    current[n + 1] = hck_sanitizer_entry;
    current[n + 2] = hck_link_entry;
    current[n + 3] = 0;
  }
  copy = current;
  __sync_lock_release(&busy);
  return current;
}

#define SHELL_BEGIN                                              \
  char **before = environ, **copy = 0;                           \
  if (wanted(environ) && (copy = shared_copy())) { environ = copy; }
#define SHELL_END \
  if (copy && environ == copy) { environ = before; }

int system(const char *command) {
  NEED(system)
  SHELL_BEGIN
  int result = real_system(command);
  SHELL_END
  return result;
}
FILE *popen(const char *command, const char *type) {
  if (!real_popen) { resolve_spawning(); }
  if (!real_popen) {
    errno = ENOSYS;
    return 0;
  }
  SHELL_BEGIN
  FILE *result = real_popen(command, type);
  SHELL_END
  return result;
}

// glibc's _Fork runs no fork handlers.
pid_t _Fork(void) {
  NEED(_Fork)
  hck_before_fork();
  pid_t pid = real__Fork();
  if (pid == 0) {
    hck_after_fork_in_child();
  } else {
    hck_after_fork_in_parent();
  }
  return pid;
}
