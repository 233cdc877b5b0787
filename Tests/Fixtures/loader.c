// Locks of a library that was loaded at run time. LIBRARY(plugin.c)
// `used` deadlocks between the program's lock and the library's; `loading` deadlocks in the library's
// constructor, while the dynamic loader's own lock is held: who looks at it must not want that lock.
#include "fixture.h"
#include <dlfcn.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static int both;
static void (*under)(void (*)(void)), (*use)(void);

static void asks(void) {
  meet(&both, 2);
  pthread_mutex_lock(&a);  // WAITS(caller,main)
  pthread_mutex_unlock(&a);
}
static void *caller(void *_) {
  under(asks);  // HOLDS(caller)
  return _;
}
static void *user(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(user)
  meet(&both, 2);
  use();  // WAITS(user)
  pthread_mutex_unlock(&a);
  return _;
}
static void *load(void) {
  void *library = dlopen("plugin.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    puts(dlerror());
    exit(2);
  }
  return library;
}
static void used(void) {
  void *library = load();
  under = (void (*)(void (*)(void)))dlsym(library, "plugin_under");
  use = (void (*)(void))dlsym(library, "plugin_use");
  start("caller", caller, NULL);
  start("user", user, NULL);
  for (int i = 0; i < 5500; i++) nap(10);
}

// The other thread holds the lock that the constructor wants, and waits for what main holds.
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static void *other(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(other)
  meet(&both, 2);
  pthread_mutex_lock(&b);  // WAITS(other)
  pthread_mutex_unlock(&b);
  return _;
}
static void loading(void) {
  char hook[32];
  snprintf(hook, sizeof hook, "%llx", (unsigned long long)(uintptr_t)asks);
  setenv("PLUGIN_HOOK", hook, 1);
  pthread_mutex_lock(&b);  // HOLDS(main)
  start("other", other, NULL);
  load();
  pthread_mutex_unlock(&b);
}

static const struct scenario all[] = {{"used", used}, {"loading", loading}};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
