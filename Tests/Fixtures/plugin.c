// A library with locks of its own, for loader.c and reload.c. Its constructor can be told to wait.
#include "fixture.h"

static pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int touched;
static void nothing(void) {}

void plugin_under(void (*callback)(void)) {
  pthread_mutex_lock(&inside);  // HOLDS(caller)
  callback();
  pthread_mutex_unlock(&inside);
}
void plugin_use(void) {
  pthread_mutex_lock(&inside);  // WAITS(user)
  touched++;
  pthread_mutex_unlock(&inside);
}
int plugin_count(int rounds) {
  pthread_mutex_t local;
  pthread_once(&once, nothing);
  pthread_mutex_init(&local, NULL);
  for (int i = 0; i < rounds; i++) {
    pthread_mutex_lock(&inside);
    pthread_mutex_lock(&local);
    touched++;
    pthread_mutex_unlock(&local);
    pthread_mutex_unlock(&inside);
  }
  pthread_mutex_destroy(&local);
  return touched;
}
__attribute__((constructor)) static void loaded(void) {
  void (*hook)(void) = NULL;
  const char *text = getenv("PLUGIN_HOOK");
  if (text) hook = (void (*)(void))(uintptr_t)strtoull(text, NULL, 16);
  pthread_mutex_lock(&inside);
  pthread_mutex_unlock(&inside);
  if (hook) hook();
}
__attribute__((destructor)) static void unloaded(void) {
  pthread_mutex_lock(&inside);
  pthread_mutex_unlock(&inside);
}
