// Deadlocks over read-write locks; the first argument says which. Each must be reported as `deadlock`
// with the threads and the kinds of resource that fixtures.tsv names.
#include "fixture.h"

static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER, q = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int both;
static void asleep(void) { for (int i = 0; i < 5500; i++) nap(10); }

static void *writer_1(void *_) {
  pthread_rwlock_wrlock(&r);  // HOLDS(writer-1)
  meet(&both, 2);
  pthread_rwlock_wrlock(&q);  // WAITS(writer-1)
  pthread_rwlock_unlock(&q);
  return _;
}
static void *writer_2(void *_) {
  pthread_rwlock_wrlock(&q);  // HOLDS(writer-2)
  meet(&both, 2);
  pthread_rwlock_wrlock(&r);  // WAITS(writer-2)
  pthread_rwlock_unlock(&r);
  return _;
}
static void writers(void) {
  start("writer-1", writer_1, NULL);
  start("writer-2", writer_2, NULL);
  asleep();
}

// Readers hold what writers want: the shared mode takes part in the cycle.
static void *reader_1(void *_) {
  pthread_rwlock_rdlock(&r);  // HOLDS(reader-1)
  meet(&both, 2);
  pthread_rwlock_wrlock(&q);  // WAITS(reader-1)
  pthread_rwlock_unlock(&q);
  return _;
}
static void *reader_2(void *_) {
  pthread_rwlock_rdlock(&q);  // HOLDS(reader-2)
  meet(&both, 2);
  pthread_rwlock_wrlock(&r);  // WAITS(reader-2)
  pthread_rwlock_unlock(&r);
  return _;
}
static void readers(void) {
  start("reader-1", reader_1, NULL);
  start("reader-2", reader_2, NULL);
  asleep();
}

static void *upgrade(void *_) {
  pthread_rwlock_rdlock(&r);  // HOLDS(upgrader)
  pthread_rwlock_wrlock(&r);  // WAITS(upgrader)
  pthread_rwlock_unlock(&r);
  return _;
}
static void upgrader(void) {
  start("upgrader", upgrade, NULL);
  asleep();
}

// Two readers that both want to write: each waits for the other, and for itself.
static void *up(void *_) {
  pthread_rwlock_rdlock(&r);  // HOLDS(up-1,up-2)
  meet(&both, 2);
  pthread_rwlock_wrlock(&r);  // WAITS(up-1,up-2)
  pthread_rwlock_unlock(&r);
  return _;
}
static void two_upgraders(void) {
  start("up-1", up, NULL);
  start("up-2", up, NULL);
  asleep();
}

// A lock that prefers writers: a reader that reads again behind a writer in the queue waits for the
// writer, who waits for the reader.
static void prefer_writers(pthread_rwlock_t *lock) {
  pthread_rwlockattr_t attr;
  pthread_rwlockattr_init(&attr);
  pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(lock, &attr);
  pthread_rwlockattr_destroy(&attr);
}
static void *rereader(void *_) {
  pthread_rwlock_rdlock(&r);  // HOLDS(rereader)
  meet(&both, 2);
  // The writer is in the queue once nobody may read any more.
  while (pthread_rwlock_tryrdlock(&r) == 0) {
    pthread_rwlock_unlock(&r);
    nap(2);
  }
  pthread_rwlock_rdlock(&r);  // WAITS(rereader)
  pthread_rwlock_unlock(&r);
  pthread_rwlock_unlock(&r);
  return _;
}
static void *queued(void *_) {
  meet(&both, 2);
  pthread_rwlock_wrlock(&r);  // WAITS(queued)
  pthread_rwlock_unlock(&r);
  return _;
}
static void pending_writer(void) {
  prefer_writers(&r);
  start("rereader", rereader, NULL);
  start("queued", queued, NULL);
  asleep();
}

static void *mix_reader(void *_) {
  pthread_rwlock_rdlock(&r);  // HOLDS(mix-reader)
  meet(&both, 2);
  pthread_mutex_lock(&m);  // WAITS(mix-reader)
  pthread_mutex_unlock(&m);
  return _;
}
static void *mix_writer(void *_) {
  pthread_mutex_lock(&m);  // HOLDS(mix-writer)
  meet(&both, 2);
  pthread_rwlock_wrlock(&r);  // WAITS(mix-writer)
  pthread_rwlock_unlock(&r);
  return _;
}
static void mix(void) {
  start("mix-reader", mix_reader, NULL);
  start("mix-writer", mix_writer, NULL);
  asleep();
}

// Many innocent readers of the lock, one guilty one: the cycle goes through the guilty one.
static void *reads_and_ends(void *_) {
  pthread_rwlock_rdlock(&r);
  meet(&both, 5);
  nap(300);
  pthread_rwlock_unlock(&r);
  return _;
}
static void *guilty(void *_) {
  pthread_rwlock_rdlock(&r);  // HOLDS(guilty)
  meet(&both, 5);
  pthread_mutex_lock(&m);  // WAITS(guilty)
  pthread_mutex_unlock(&m);
  return _;
}
static void *wants_all(void *_) {
  pthread_mutex_lock(&m);  // HOLDS(wants-all)
  meet(&both, 5);
  pthread_rwlock_wrlock(&r);  // WAITS(wants-all)
  pthread_rwlock_unlock(&r);
  return _;
}
static void many_readers(void) {
  for (int i = 0; i < 3; i++) start("reads", reads_and_ends, NULL);
  start("guilty", guilty, NULL);
  start("wants-all", wants_all, NULL);
  asleep();
}

// A writer that was quick enough by a time limit holds it like any other.
static void *timed_writer(void *_) {
  struct timespec limit = in(CLOCK_MONOTONIC, 4000);
  if (pthread_rwlock_clockwrlock(&r, CLOCK_MONOTONIC, &limit)) exit(3);  // HOLDS(timed-writer)
  meet(&both, 2);
  pthread_rwlock_rdlock(&q);  // WAITS(timed-writer)
  pthread_rwlock_unlock(&q);
  return _;
}
static void *plain_writer(void *_) {
  if (pthread_rwlock_trywrlock(&q)) exit(3);  // HOLDS(plain-writer)
  meet(&both, 2);
  pthread_rwlock_rdlock(&r);  // WAITS(plain-writer)
  pthread_rwlock_unlock(&r);
  return _;
}
static void timed(void) {
  start("timed-writer", timed_writer, NULL);
  start("plain-writer", plain_writer, NULL);
  asleep();
}

static const struct scenario all[] = {
  {"writers", writers}, {"readers", readers}, {"upgrade", upgrader},
  {"two-upgraders", two_upgraders}, {"pending-writer", pending_writer}, {"mix", mix},
  {"many-readers", many_readers}, {"timed", timed},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
