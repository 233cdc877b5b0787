// The agent's entry into a process: the real functions, the constructor, and the environment that
// it takes away.
#include "include/hck_dispatch.h"
#include "hck_order.h"
#include "include/hck_misuse.h"
#include "include/hck_real.h"
#include "include/hck_sanitizer.h"
#include "include/hck_steer.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

static void resolve(void);

static int not_there(void) { return ENOSYS; }

#define FIRST(name, version, parameters, arguments)   \
  static int first_##name parameters {                \
    resolve();                                        \
    return hck_pointer_##name arguments;              \
  }                                                   \
  int(*hck_pointer_##name) parameters = first_##name;
HCK_INTERPOSED(FIRST)

static void resolve(void) {
#define RESOLVE(name, version, parameters, arguments)                                                      \
  {                                                                                                        \
    const char *v = version;                                                                               \
    void *found = v ? dlvsym(RTLD_NEXT, #name, v) : 0;                                                     \
    if (!found) { found = dlsym(RTLD_NEXT, #name); }                                                       \
    __atomic_store_n(                                                                                      \
      &hck_pointer_##name, found ? (__typeof__(hck_pointer_##name))found : (__typeof__(hck_pointer_##name))not_there, \
      __ATOMIC_RELEASE);                                                                                   \
  }
  HCK_INTERPOSED(RESOLVE)
}

const char *hck_socket_name;
int hck_follow;
int hck_orders_wanted, hck_semaphores_wanted;

uint64_t hck_stack_bytes(const pthread_attr_t *attributes) {
  size_t size = 0;
  if (attributes && pthread_attr_getstacksize(attributes, &size) == 0) { return size; }
  // glibc's default is the limit as it was at the start, or 2 MiB; a program may ask for less or
  // more by name.
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0) { return 0; }
  return limit.rlim_cur < (1u << 20) ? 0 : 1u << 20;
}

void hck_close(int fd) { close(fd); }

int hck_register_fork_handlers(void) {
  return pthread_atfork(hck_before_fork, hck_after_fork_in_parent, hck_after_fork_in_child);
}

// "HANGCHECK_LINK=<socket>;<flag>,…[;<plan>]" and our own path at the end of LD_PRELOAD are
// hangcheck's, not the program's: both are taken out of the environment and kept for the programs
// that this one starts.
char hck_link_entry[512 + HCK_PLAN_BYTES];
char hck_preload_entry[4608];
const char *hck_agent_path;

static char agent_path[4096];

static void take_environment(void) {
  char **link = 0;
  for (char **e = environ; e && *e; e++) {
    if (strncmp(*e, "HANGCHECK_LINK=", 15) == 0) {
      link = e;
      break;
    }
  }
  if (!link || strlen(*link) >= sizeof hck_link_entry) { return; }
  strcpy(hck_link_entry, *link);
  static char name[108];
  const char *value = hck_link_entry + 15;
  size_t length = strcspn(value, ";");
  if (length == 0 || length >= sizeof name) { return; }
  memcpy(name, value, length);
  static char flags[sizeof hck_link_entry];
  strcpy(flags, value + length + (value[length] == ';'));
  char *plan = strchr(flags, ';');
  if (plan) {
    *plan = 0;
    hck_take_plan(plan + 1);
  }
  hck_follow = strstr(flags, "nofollow") == 0;
  hck_orders_wanted = strstr(flags, "orders") != 0;
  hck_semaphores_wanted = strstr(flags, "semaphores") != 0;
  // A permit that is taken without a call would not be seen to be held.
  if (hck_semaphores_wanted) { hck_dispatch_permits_known = 2; }
  if (strstr(flags, "stacks=none")) {
    hck_keep_windows(0);
  } else if (strstr(flags, "stacks=site")) {
    hck_keep_windows(16);
  }
  for (char **e = link; *e; e++) { e[0] = e[1]; }
  hck_socket_name = name;
  hck_take_sanitizer_word(environ);

  for (char **e = environ; *e; e++) {
    if (strncmp(*e, "LD_PRELOAD=", 11) != 0) { continue; }
    size_t whole = strlen(*e);
    if (whole >= sizeof hck_preload_entry) { break; }
    strcpy(hck_preload_entry, *e);
    char *last = strrchr(*e, ':');
    const char *path = last ? last + 1 : *e + 11;
    if (strlen(path) < sizeof agent_path) {
      strcpy(agent_path, path);
      hck_agent_path = agent_path;
    }
    if (last) {
      *last = 0;
    } else {
      for (char **f = e; *f; f++) { f[0] = f[1]; }
    }
    break;
  }
}

__attribute__((constructor)) static void begin(void) {
  int error = errno;
  take_environment();
  if (hck_socket_name) {
    resolve();
    hck_find_program();
    hck_resolve_dispatch();
    hck_resolve_sanitizer();
    hck_install_steering();
    hck_agent_begin();
  }
  errno = error;
}

__attribute__((destructor)) static void end(void) {
  int error = errno;
  if (hck_socket_name) { hck_agent_end(); }
  errno = error;
}
