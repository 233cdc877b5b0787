// The cases of the Linux kernel's lock self-test (lib/locking-selftest.c), written anew for pthreads:
// TYPE-SHAPE, such as mutex-ABBCCDDA. One thread does everything, as there.
//
// spin: pthread_spinlock_t; mutex; rtmutex: PTHREAD_PRIO_INHERIT; wlock, rlock: a read-write lock that
// prefers readers (glibc's default), written or read; wsem, rsem: the same over one that prefers
// writers and whose readers may not nest. A writer has been at each of the latter before: without one
// readers never wait.
#include "fixture.h"

enum kind { SPIN, MUTEX, RTMUTEX, RWLOCK, RWSEM };
struct lock {
  enum kind kind;
  union { pthread_spinlock_t spin; pthread_mutex_t mutex; pthread_rwlock_t rwlock; };
};

static void init(struct lock *lock, enum kind kind) {
  lock->kind = kind;
  pthread_mutexattr_t mutex;
  pthread_rwlockattr_t rwlock;
  pthread_mutexattr_init(&mutex);
  pthread_rwlockattr_init(&rwlock);
  switch (kind) {
  case SPIN: pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE); break;
  case RTMUTEX: pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);  // falls through
  case MUTEX: pthread_mutex_init(&lock->mutex, &mutex); break;
  case RWSEM:
    pthread_rwlockattr_setkind_np(&rwlock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    // falls through
  case RWLOCK: pthread_rwlock_init(&lock->rwlock, &rwlock); break;
  }
}

static int acquire(struct lock *lock, int reads) {
  switch (lock->kind) {
  case SPIN: return pthread_spin_lock(&lock->spin);
  case MUTEX: case RTMUTEX: return pthread_mutex_lock(&lock->mutex);
  default:
    return reads ? pthread_rwlock_rdlock(&lock->rwlock) : pthread_rwlock_wrlock(&lock->rwlock);
  }
}

static void release(struct lock *lock) {
  switch (lock->kind) {
  case SPIN: pthread_spin_unlock(&lock->spin); break;
  case MUTEX: case RTMUTEX: pthread_mutex_unlock(&lock->mutex); break;
  default: pthread_rwlock_unlock(&lock->rwlock); break;
  }
}

// A to D are of the case's own type, P is a plain lock: a spin lock or, beside rsem, a mutex.
static struct lock locks[128];

// Letters in pairs: L takes as the case's type says, R reads, W writes, U gives back, I makes anew.
static void play_script(const char *script, int reads) {
  for (; *script; script++) {
    if (*script == ' ') continue;
    char action = *script++;
    struct lock *lock = &locks[(unsigned char)*script];
    int error = 0;
    switch (action) {
    case 'L': error = acquire(lock, reads); break;
    case 'R': error = acquire(lock, 1); break;
    case 'W': error = acquire(lock, 0); break;
    case 'U': release(lock); break;
    case 'I': init(lock, lock->kind); break;
    }
    // As most programs do, nobody looks at the error.
    if (error) printf("%s\n", strerror(error));
  }
}

struct shape { const char *name, *script; };

// For every type. Two letters at a time are an order: taken one in the other, and given back.
static const char *const orders[] = {
  "ABBA", "ABBCCA", "ABCABC", "ABBCCDDA", "ABCDBDDA", "ABCDBCDA",
};
static const struct shape simple[] = {
  {"AA", "LA LA UA UA"}, {"double_unlock", "LA UA UA"}, {"init_held", "LA IA"},
};
// For rlock and rsem.
static const struct shape mixed[] = {
  {"AA1", "RA RA UA UA"}, {"AA1B", "RA RB UB UA"}, {"AA2", "RA WA"}, {"AA3", "WA RA"},
  {"ABBA1", "RA LP UP UA  LP WA UA UP"}, {"ABBA2", "RA LP UP UA  LP RA UA UP"},
  {"ABBA3", "WA LP UP UA  LP WA UA UP"},
  {"chaincache_ABBA1", "RA LP UP UA  LP RA UA UP  LP WA UA UP"},
};
// For rlock and rsem, in all orders: _123 to _321.
static const struct { const char *name, *steps[3]; } triples[] = {
  {"W1R2_W2R3_W3R1", {"WA RB UB UA", "WB RC UC UB", "WC RA UA UC"}},
  {"W1W2_R2R3_W3R1", {"WA WB UB UA", "RB RC UC UB", "WC RA UA UC"}},
  {"W1W2_R2R3_R3W1", {"WA WB UB UA", "RB RC UC UB", "RC WA UA UC"}},
  {"W1R2_R2R3_W3W1", {"WA RB UB UA", "RB RC UC UB", "WC WA UA UC"}},
};

static int run_shape(const char *shape, int reads, int has_readers) {
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    if (strcmp(shape, orders[i]) != 0) continue;
    for (const char *pair = orders[i]; *pair; pair += 2) {
      char script[16];
      snprintf(script, sizeof script, "L%c L%c U%c U%c", pair[0], pair[1], pair[1], pair[0]);
      play_script(script, reads);
    }
    return 1;
  }
  for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
    if (strcmp(shape, simple[i].name) == 0) return play_script(simple[i].script, reads), 1;
  if (!has_readers) return 0;
  for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
    if (strcmp(shape, mixed[i].name) == 0) return play_script(mixed[i].script, reads), 1;
  for (size_t i = 0; i < sizeof triples / sizeof *triples; i++) {
    size_t length = strlen(triples[i].name);
    if (strncmp(shape, triples[i].name, length) != 0 || strlen(shape) != length + 4) continue;
    for (const char *step = shape + length + 1; *step; step++)
      if (*step < '1' || *step > '3') return 0;
    for (const char *step = shape + length + 1; *step; step++)
      play_script(triples[i].steps[*step - '1'], reads);
    return 1;
  }
  return 0;
}

// Unordered with what the main thread does, but not at the same time.
static void *write_all(void *_) {
  play_script("WA UA WB UB WC UC WD UD", 0);
  end_turn();
  return _;
}

int main(int argc, char **argv) {
  static const struct { const char *name; enum kind kind; int reads, has_readers; } types[] = {
    {"spin", SPIN, 0, 0}, {"mutex", MUTEX, 0, 0}, {"rtmutex", RTMUTEX, 0, 0},
    {"wlock", RWLOCK, 0, 0}, {"rlock", RWLOCK, 1, 1}, {"wsem", RWSEM, 0, 0}, {"rsem", RWSEM, 1, 1},
  };
  begin();
  const char *dash = argc > 1 ? strchr(argv[1], '-') : NULL;
  for (size_t i = 0; dash && i < sizeof types / sizeof *types; i++) {
    size_t length = (size_t)(dash - argv[1]);
    if (strlen(types[i].name) != length || strncmp(argv[1], types[i].name, length) != 0) continue;
    for (char name = 'A'; name <= 'D'; name++) init(&locks[(int)name], types[i].kind);
    // The plain lock beside them, as the kernel has it.
    init(&locks['P'], types[i].kind == RWSEM ? MUTEX : SPIN);
    if (types[i].kind == RWSEM) {
      pthread_t writer = start("writer", write_all, NULL);
      await_turn(1);
      pthread_detach(writer);
    }
    if (!run_shape(dash + 1, types[i].reads, types[i].has_readers)) break;
    puts("DONE");
    return 0;
  }
  fprintf(stderr, "no such case\n");
  return 2;
}
