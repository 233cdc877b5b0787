// C++'s locks; the first argument says which. Deadlocks but for `scoped`, which takes both locks
// at once in either order and must stay silent.
#include "fixture.h"
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::mutex a, b;
static std::recursive_mutex ra, rb;
static std::shared_mutex s;
static std::timed_mutex ta;
static int both;
static void asleep() { for (int i = 0; i < 5500; i++) nap(10); }

static void *cxx_1(void *_) {
  std::lock_guard<std::mutex> first(a);  // HOLDS(cxx-1)
  meet(&both, 2);
  std::lock_guard<std::mutex> second(b);  // WAITS(cxx-1)
  return _;
}
static void *cxx_2(void *_) {
  std::unique_lock<std::mutex> first(b);  // HOLDS(cxx-2)
  meet(&both, 2);
  std::unique_lock<std::mutex> second(a);  // WAITS(cxx-2)
  return _;
}
static void plain() {
  start("cxx-1", cxx_1, nullptr);
  start("cxx-2", cxx_2, nullptr);
  asleep();
}
static void *rec_1(void *_) {
  std::lock_guard<std::recursive_mutex> first(ra);  // HOLDS(rec-1)
  std::lock_guard<std::recursive_mutex> again(ra);
  meet(&both, 2);
  std::lock_guard<std::recursive_mutex> second(rb);  // WAITS(rec-1)
  return _;
}
static void *rec_2(void *_) {
  std::lock_guard<std::recursive_mutex> first(rb);  // HOLDS(rec-2)
  meet(&both, 2);
  std::lock_guard<std::recursive_mutex> second(ra);  // WAITS(rec-2)
  return _;
}
static void recursive() {
  start("rec-1", rec_1, nullptr);
  start("rec-2", rec_2, nullptr);
  asleep();
}
static void *share_1(void *_) {
  std::shared_lock<std::shared_mutex> first(s);  // HOLDS(share-1)
  meet(&both, 2);
  std::lock_guard<std::mutex> second(a);  // WAITS(share-1)
  return _;
}
static void *share_2(void *_) {
  std::lock_guard<std::mutex> first(a);  // HOLDS(share-2)
  meet(&both, 2);
  std::unique_lock<std::shared_mutex> second(s);  // WAITS(share-2)
  return _;
}
static void shared() {
  start("share-1", share_1, nullptr);
  start("share-2", share_2, nullptr);
  asleep();
}

// A static object's destructor joins a thread that wants what main() left locked.
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static void *final_user(void *_) {
  pthread_mutex_lock(&left);  // WAITS(final-user)
  pthread_mutex_unlock(&left);
  return _;
}
struct Closer {
  pthread_t thread;
  bool armed = false;
  ~Closer() {
    if (!armed) return;
    pthread_join(thread, nullptr);  // WAITS(static-destructor:main)
    armed = false;
  }
};
static Closer closer;
static void static_destructor() {
  pthread_mutex_lock(&left);  // HOLDS(static-destructor:main)
  closer.thread = start("final-user", final_user, nullptr);
  closer.armed = true;
}

// std::thread's own join, under a lock that the thread wants.
static void std_thread() {
  std::lock_guard<std::mutex> guard(a);  // HOLDS(std-thread:main)
  std::thread wanting([] {
    pthread_setname_np(pthread_self(), "wanting");
    std::lock_guard<std::mutex> inner(a);  // WAITS(wanting)
  });
  wanting.join();  // WAITS(std-thread:main)
}

static void scoped() {
  std::thread threads[4];
  long count = 0;
  for (int i = 0; i < 4; i++) {
    threads[i] = std::thread([i, &count] {
      for (int round = 0; round < 20000; round++) {
        if (i % 2) {
          std::scoped_lock guard(a, b, ta);
          count++;
        } else {
          std::scoped_lock guard(ta, b, a);
          count++;
        }
      }
    });
  }
  for (auto &thread : threads) thread.join();
  printf("%ld\n", count);
}

static const struct scenario all[] = {
  {"mutex", plain}, {"recursive", recursive}, {"shared", shared},
  {"static-destructor", static_destructor}, {"std-thread", std_thread}, {"scoped", scoped},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
