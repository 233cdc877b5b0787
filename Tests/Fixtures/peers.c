// What other lock checkers get wrong, one scenario for each: rows that are about pthreads. The others
// are in peers.swift.
#include "fixture.h"
#include <semaphore.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
                       c = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);   // HOLDS(one,two,three)
  pthread_mutex_lock(second);  // WAITS(one,two,three)
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}
static void *ab_first(void *_) { await_turn(0); both(&a, &b); end_turn(); return _; }
static void *bc_second(void *_) { await_turn(1); both(&b, &c); end_turn(); return _; }
static void *ba_second(void *_) { await_turn(1); both(&b, &a); end_turn(); return _; }
static void *ca_third(void *_) { await_turn(2); both(&c, &a); end_turn(); return _; }

static void run(body one, body two, body three) {
  pthread_t threads[] = {start("one", one, NULL), start("two", two, NULL),
                         three ? start("three", three, NULL) : 0};
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  if (three) pthread_join(threads[2], NULL);
}
static void ab_ba(void) { run(ab_first, ba_second, NULL); }
static void ab_bc_ca(void) { run(ab_first, bc_second, ca_third); }

static void *gated_ab(void *_) {
  await_turn(0);
  pthread_mutex_lock(&c);
  both(&a, &b);
  pthread_mutex_unlock(&c);
  end_turn();
  return _;
}
static void *gated_ba(void *_) {
  await_turn(1);
  pthread_mutex_lock(&c);
  both(&b, &a);
  pthread_mutex_unlock(&c);
  end_turn();
  return _;
}
static void gate(void) { run(gated_ab, gated_ba, NULL); }

static void *both_orders(void *_) {
  both(&a, &b);
  both(&b, &a);
  return _;
}
static void one_thread(void) { pthread_join(start("one", both_orders, NULL), NULL); }

static void joined(void) {
  pthread_join(start("one", ab_first, NULL), NULL);
  pthread_join(start("two", ba_second, NULL), NULL);
}

static pthread_mutex_t chain[8];
static void *hand_over_hand(void *_) {
  for (int round = 0; round < 1000; round++) {
    pthread_mutex_lock(&chain[0]);
    for (int i = 1; i < 8; i++) {
      pthread_mutex_lock(&chain[i]);
      pthread_mutex_unlock(&chain[i - 1]);
    }
    pthread_mutex_unlock(&chain[7]);
  }
  return _;
}
static void hand_over(void) {
  for (int i = 0; i < 8; i++) pthread_mutex_init(&chain[i], NULL);
  run(hand_over_hand, hand_over_hand, hand_over_hand);
}

static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER, s = PTHREAD_RWLOCK_INITIALIZER;
static void read_both(pthread_rwlock_t *first, pthread_rwlock_t *second) {
  pthread_rwlock_rdlock(first);
  pthread_rwlock_rdlock(second);
  pthread_rwlock_unlock(second);
  pthread_rwlock_unlock(first);
}
static void *read_rs(void *_) { await_turn(0); read_both(&r, &s); end_turn(); return _; }
static void *read_sr(void *_) { await_turn(1); read_both(&s, &r); end_turn(); return _; }
static void read_read(void) { run(read_rs, read_sr, NULL); }

static void *tries(void *_) {
  await_turn(1);
  pthread_mutex_lock(&b);
  if (pthread_mutex_trylock(&a) == 0) pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  end_turn();
  return _;
}
static void trylock(void) { run(ab_first, tries, NULL); }

// These two do hang.
static int place;
static void *hang_ab(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(left)
  meet(&place, 2);
  pthread_mutex_lock(&b);  // WAITS(left)
  return _;
}
static void *hang_ba(void *_) {
  pthread_mutex_lock(&b);  // HOLDS(right)
  meet(&place, 2);
  pthread_mutex_lock(&a);  // WAITS(right)
  return _;
}
static void happens(void) {
  pthread_t one = start("left", hang_ab, NULL), two = start("right", hang_ba, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
static void *twice(void *_) {
  pthread_mutex_lock(&a);  // HOLDS(lonely)
  pthread_mutex_lock(&a);  // WAITS(lonely)
  return _;
}
static void self(void) { pthread_join(start("lonely", twice, NULL), NULL); }

static sem_t p, q;
static void *take_pq(void *_) {
  sem_wait(&p);
  meet(&place, 2);
  sem_wait(&q);  // WAITS(left-taker)
  sem_post(&q);
  sem_post(&p);
  return _;
}
static void *take_qp(void *_) {
  sem_wait(&q);
  meet(&place, 2);
  sem_wait(&p);  // WAITS(right-taker)
  sem_post(&p);
  sem_post(&q);
  return _;
}
static void semaphores(void) {
  sem_init(&p, 0, 1);
  sem_init(&q, 0, 1);
  pthread_t one = start("left-taker", take_pq, NULL), two = start("right-taker", take_qp, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// Two pairs of locks, one after the other at the same address.
static pthread_mutex_t *block;
static void make(void) {
  block = malloc(2 * sizeof *block);
  pthread_mutex_init(&block[0], NULL);
  pthread_mutex_init(&block[1], NULL);
}
static void *uses_and_frees(void *_) {
  await_turn(0);
  make();
  pthread_mutex_t *before = block;
  both(&block[0], &block[1]);
  pthread_mutex_destroy(&block[0]);
  pthread_mutex_destroy(&block[1]);
  free(block);
  make();
  if (block != before) puts("another address");
  end_turn();
  return _;
}
static void *uses_again(void *_) {
  await_turn(1);
  both(&block[1], &block[0]);
  end_turn();
  return _;
}
static void freed(void) { run(uses_and_frees, uses_again, NULL); }

static void *takes(void *_) {
  pthread_mutex_lock(&a);
  end_turn();
  await_turn(2);
  return _;
}
static void *gives(void *_) {
  await_turn(1);
  pthread_mutex_unlock(&a);
  end_turn();
  return _;
}
static void foreign_unlock(void) { run(takes, gives, NULL); }

// Many locks at once; with `reversed` the first is wanted under the last.
enum { most = 129 };
static pthread_mutex_t many[most];
static int held;
static void *hoards(void *_) {
  await_turn(0);
  for (int i = 0; i < held; i++)
    pthread_mutex_lock(&many[i]);  // HOLDS(hoarder) WAITS(hoarder)
  for (int i = held; i-- > 0;) pthread_mutex_unlock(&many[i]);
  end_turn();
  return _;
}
static void *reverses(void *_) {
  await_turn(1);
  pthread_mutex_lock(&many[held - 1]);  // HOLDS(reverser)
  pthread_mutex_lock(&many[0]);         // WAITS(reverser)
  pthread_mutex_unlock(&many[0]);
  pthread_mutex_unlock(&many[held - 1]);
  end_turn();
  return _;
}
static void *rests(void *_) { return _; }
static void hoard(int count, body second) {
  held = count;
  for (int i = 0; i < count; i++) pthread_mutex_init(&many[i], NULL);
  pthread_t one = start("hoarder", hoards, NULL), two = start("reverser", second, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
static void hold_65(void) { hoard(65, rests); }
static void hold_129(void) { hoard(129, rests); }
static void hold_65_reversed(void) { hoard(65, reverses); }
static void hold_129_reversed(void) { hoard(129, reverses); }

static void *many_later(void *_) {
  await_turn(0);
  pthread_mutex_lock(&a);  // HOLDS(early)
  pthread_mutex_lock(&b);  // WAITS(early)
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  pthread_mutex_t *others = calloc(4100, sizeof *others);
  for (int i = 0; i < 4100; i++) {
    pthread_mutex_init(&others[i], NULL);
    pthread_mutex_lock(&others[i]);
    if (i > 0) {
      pthread_mutex_lock(&others[i - 1]);
      pthread_mutex_unlock(&others[i - 1]);
    }
    pthread_mutex_unlock(&others[i]);
  }
  end_turn();
  return _;
}
static void later(void) {
  pthread_t one = start("early", many_later, NULL), two = start("two", ba_second, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

static const struct scenario all[] = {
  {"ab-ba", ab_ba}, {"ab-bc-ca", ab_bc_ca}, {"gate", gate}, {"one-thread", one_thread},
  {"joined", joined}, {"hand-over-hand", hand_over}, {"read-read", read_read},
  {"trylock", trylock}, {"happens", happens}, {"self", self}, {"semaphores", semaphores},
  {"freed", freed}, {"foreign-unlock", foreign_unlock}, {"hold-65", hold_65},
  {"hold-129", hold_129}, {"hold-65-reversed", hold_65_reversed},
  {"hold-129-reversed", hold_129_reversed}, {"later", later},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
