// A healthy program that loads and unloads a library with locks a thousand times, while threads lock
// and new ones come. LIBRARY(plugin.c)
#include "fixture.h"
#include <dlfcn.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static void *locks(void *_) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
  }
  return _;
}
static int (*count)(int);
static void *counts(void *_) {
  pthread_mutex_lock(&a);
  count(3);
  pthread_mutex_unlock(&a);
  return _;
}
int main(void) {
  begin();
  pthread_t thread = start("locks", locks, NULL);
  long sum = 0;
  for (int i = 0; i < 1000; i++) {
    void *library = dlopen("plugin.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      puts(dlerror());
      return 2;
    }
    count = (int (*)(int))dlsym(library, "plugin_count");
    sum += count(10);
    if (i % 20 == 0) pthread_join(start("counts", counts, NULL), NULL);
    dlclose(library);
  }
  stop = 1;
  pthread_join(thread, NULL);
  printf("%ld\n", sum);
  puts("DONE");
  return 0;
}
