// Orders of locks that could deadlock and in this run do not, and others that look like it and could
// not. Threads take turns (`await_turn`), so nothing ever waits for long.
#include "fixture.h"
#include <semaphore.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
                       c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;

// One order of one thread.
struct order {
  const char *name;
  pthread_mutex_t *first, *second;
  int turn;
  pthread_mutex_t *gate;
};

static void *nest(void *raw) {
  const struct order *order = raw;
  await_turn(order->turn);
  if (order->gate) pthread_mutex_lock(order->gate);
  pthread_mutex_lock(order->first);   // HOLDS(one,two,three,four,eater)
  pthread_mutex_lock(order->second);  // WAITS(one,two,three,four,eater)
  pthread_mutex_unlock(order->second);
  pthread_mutex_unlock(order->first);
  if (order->gate) pthread_mutex_unlock(order->gate);
  end_turn();
  return NULL;
}

// All are there before the first one acts.
static void nest_all(const struct order *orders, int count) {
  pthread_t threads[8];
  for (int i = 0; i < count; i++) threads[i] = start(orders[i].name, nest, (void *)&orders[i]);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}
#define NEST(...) \
  nest_all((struct order[]){__VA_ARGS__}, sizeof((struct order[]){__VA_ARGS__}) / sizeof(struct order))

static void ab_ba(void) { NEST({"one", &a, &b, 0}, {"two", &b, &a, 1}); }
static void three(void) { NEST({"one", &a, &b, 0}, {"two", &b, &c, 1}, {"three", &c, &a, 2}); }
static void four(void) {
  NEST({"one", &a, &b, 0}, {"two", &b, &c, 1}, {"three", &c, &d, 2}, {"four", &d, &a, 3});
}
// The closing order comes in the middle.
static void four_shuffled(void) {
  NEST({"one", &a, &b, 0}, {"two", &c, &d, 1}, {"three", &d, &a, 2}, {"four", &b, &c, 3});
}
static void gate(void) { NEST({"one", &a, &b, 0, &c}, {"two", &b, &a, 1, &c}); }
static void gate_of_three(void) {
  NEST({"one", &a, &b, 0, &d}, {"two", &b, &c, 1, &d}, {"three", &c, &a, 2, &d});
}
// Two of three under one gate can never hold at once: no thread is left to close the cycle.
static void gate_of_two(void) {
  NEST({"one", &a, &b, 0, &d}, {"two", &b, &c, 1, &d}, {"three", &c, &a, 2});
}
// A gate that one of two passes is none.
static void gate_of_one(void) { NEST({"one", &a, &b, 0, &d}, {"two", &b, &a, 1}); }
static void gates_differ(void) { NEST({"one", &a, &b, 0, &c}, {"two", &b, &a, 1, &d}); }

static void with_kind(int type, int protocol, int shared, int robust) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, type);
  pthread_mutexattr_setprotocol(&attr, protocol);
  if (shared) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  if (robust) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
  static pthread_mutex_t x, y;
  pthread_mutex_init(&x, &attr);
  pthread_mutex_init(&y, &attr);
  NEST({"one", &x, &y, 0}, {"two", &y, &x, 1});
}
static void errorcheck(void) { with_kind(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, 0, 0); }
static void recursive(void) { with_kind(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, 0, 0); }
static void adaptive(void) { with_kind(PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, 0, 0); }
static void inherit(void) { with_kind(PTHREAD_MUTEX_DEFAULT, PTHREAD_PRIO_INHERIT, 0, 0); }
static void shared(void) { with_kind(PTHREAD_MUTEX_DEFAULT, PTHREAD_PRIO_NONE, 1, 0); }
static void robust(void) { with_kind(PTHREAD_MUTEX_DEFAULT, PTHREAD_PRIO_NONE, 0, 1); }

// Both ended long ago, one before the other began; nobody joined, so it might have been otherwise.
static void detached(void) {
  static const struct order first = {"one", &a, &b, 0}, second = {"two", &b, &a, 1};
  pthread_detach(start("one", nest, (void *)&first));
  await_turn(1);
  nap(50);  // its thread id is free again
  pthread_detach(start("two", nest, (void *)&second));
  await_turn(2);
}

// A thread that holds A takes B and C in turn: the chain is in one thread, the reverse in another.
static void *chain(void *_) {
  await_turn(0);
  pthread_mutex_lock(&a);  // HOLDS(chain)
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&c);  // WAITS(chain)
  pthread_mutex_unlock(&c);
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  end_turn();
  return _;
}
static void chain_three(void) {
  static const struct order back = {"two", &c, &a, 1};
  pthread_t one = start("chain", chain, NULL), two = start("two", nest, (void *)&back);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// A to B and B to C by one thread, one after the other: it cannot be in both places at once.
static void *two_orders(void *_) {
  await_turn(0);
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  pthread_mutex_unlock(&a);  // not nested: A is free when C is taken
  pthread_mutex_lock(&c);
  pthread_mutex_unlock(&c);
  pthread_mutex_unlock(&b);
  end_turn();
  return _;
}
static void two_threads_three_orders(void) {
  static const struct order back = {"two", &c, &a, 1};
  pthread_t one = start("one", two_orders, NULL), two = start("two", nest, (void *)&back);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// The gate is given back before the second lock is taken.
static void *leaky(void *raw) {
  const struct order *order = raw;
  await_turn(order->turn);
  pthread_mutex_lock(order->gate);
  pthread_mutex_lock(order->first);  // HOLDS(leaky-1,leaky-2)
  pthread_mutex_unlock(order->gate);
  pthread_mutex_lock(order->second);  // WAITS(leaky-1,leaky-2)
  pthread_mutex_unlock(order->second);
  pthread_mutex_unlock(order->first);
  end_turn();
  return NULL;
}
static void gate_leaks(void) {
  static const struct order one = {"", &a, &b, 0, &c}, two = {"", &b, &a, 1, &c};
  pthread_t first = start("leaky-1", leaky, (void *)&one);
  pthread_t second = start("leaky-2", leaky, (void *)&two);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
}

// Gates of other kinds: 0 tried, 1 read by both, 2 read by one and written by the other.
static int gate_kind;
static pthread_rwlock_t door = PTHREAD_RWLOCK_INITIALIZER;
static void *through_door(void *raw) {
  const struct order *order = raw;
  await_turn(order->turn);
  if (gate_kind == 0) while (pthread_mutex_trylock(&c)) nap(1);
  else if (gate_kind == 2 && order->turn) pthread_rwlock_wrlock(&door);
  else pthread_rwlock_rdlock(&door);
  pthread_mutex_lock(order->first);   // HOLDS(door-1,door-2)
  pthread_mutex_lock(order->second);  // WAITS(door-1,door-2)
  pthread_mutex_unlock(order->second);
  pthread_mutex_unlock(order->first);
  if (gate_kind == 0) pthread_mutex_unlock(&c);
  else pthread_rwlock_unlock(&door);
  end_turn();
  return NULL;
}
static void doors(int kind) {
  static const struct order one = {"", &a, &b, 0}, two = {"", &b, &a, 1};
  gate_kind = kind;
  pthread_t first = start("door-1", through_door, (void *)&one);
  pthread_t second = start("door-2", through_door, (void *)&two);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
}
static void gate_tried(void) { doors(0); }
static void gate_read(void) { doors(1); }
static void gate_written(void) { doors(2); }

// How the first and the second lock are taken: by lock, trylock or timedlock.
static int try_first, time_first, try_second, time_second;
static int take(pthread_mutex_t *mutex, int tries, int times) {
  if (tries) return pthread_mutex_trylock(mutex);
  struct timespec at = in(CLOCK_REALTIME, 2000);
  return times ? pthread_mutex_timedlock(mutex, &at) : pthread_mutex_lock(mutex);
}
static void *variously(void *raw) {
  const struct order *order = raw;
  await_turn(order->turn);
  take(order->first, try_first, time_first);  // HOLDS(various-1,various-2)
  int error = order->turn ? take(order->second, try_second, time_second)
                          : pthread_mutex_lock(order->second);  // WAITS(various-1)
  if (!error) pthread_mutex_unlock(order->second);
  pthread_mutex_unlock(order->first);
  end_turn();
  return NULL;
}
static void various(void) {
  static const struct order one = {"", &a, &b, 0}, two = {"", &b, &a, 1};
  pthread_t first = start("various-1", variously, (void *)&one);
  pthread_t second = start("various-2", variously, (void *)&two);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
}
static void second_tried(void) { try_second = 1; various(); }
static void second_timed(void) { time_second = 1; various(); }
static void first_tried(void) { try_first = 1; various(); }
static void first_timed(void) { time_first = 1; various(); }

// An order learned, a hundred thousand locks, and its reverse.
static void *old_order(void *_) {
  await_turn(0);
  pthread_mutex_lock(&a);  // HOLDS(old)
  pthread_mutex_lock(&b);  // WAITS(old)
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  for (int i = 0; i < 100000; i++) {
    pthread_mutex_t *pair = calloc(2, sizeof *pair);
    pthread_mutex_init(&pair[0], NULL);
    pthread_mutex_init(&pair[1], NULL);
    pthread_mutex_lock(&pair[0]);
    pthread_mutex_lock(&pair[1]);
    pthread_mutex_unlock(&pair[1]);
    pthread_mutex_unlock(&pair[0]);
    pthread_mutex_destroy(&pair[0]);
    pthread_mutex_destroy(&pair[1]);
    free(pair);
  }
  end_turn();
  return _;
}
static void long_ago(void) {
  static const struct order back = {"two", &b, &a, 1};
  pthread_t one = start("old", old_order, NULL), two = start("two", nest, (void *)&back);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// Read-write locks: each step is a letter, R or W for the read-write lock and M for the mutex.
static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER, s = PTHREAD_RWLOCK_INITIALIZER;
struct steps { const char *first, *second; int turn; };
static void step(const char *what) {
  pthread_rwlock_t *lock = what[1] == 'r' ? &r : &s;
  switch (what[0]) {
  case 'R': pthread_rwlock_rdlock(lock); break;  // HOLDS(reader-*) WAITS(reader-*)
  case 'W': pthread_rwlock_wrlock(lock); break;  // HOLDS(writer-*) WAITS(writer-*)
  default: pthread_mutex_lock(&a);
  }
}
static void unstep(const char *what) {
  if (what[0] == 'M') pthread_mutex_unlock(&a);
  else pthread_rwlock_unlock(what[1] == 'r' ? &r : &s);
}
static void *mixed(void *raw) {
  const struct steps *steps = raw;
  await_turn(steps->turn);
  step(steps->first);
  step(steps->second);
  unstep(steps->second);
  unstep(steps->first);
  end_turn();
  return NULL;
}
static void mix(const char *first, const char *x, const char *y, const char *second,
                const char *z, const char *w) {
  static struct steps both[2];
  both[0] = (struct steps){x, y, 0};
  both[1] = (struct steps){z, w, 1};
  pthread_t threads[] = {start(first, mixed, &both[0]), start(second, mixed, &both[1])};
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}
static void read_mutex_write(void) { mix("reader-1", "Rr", "M", "writer-2", "M", "Wr"); }
static void read_then_mutex_read(void) { mix("reader-1", "Rr", "M", "reader-2", "M", "Rr"); }
static void write_then_mutex_read(void) { mix("writer-1", "Wr", "M", "reader-2", "M", "Rr"); }
static void write_then_write(void) { mix("writer-1", "Wr", "Ws", "writer-2", "Ws", "Wr"); }
static void read_then_read(void) { mix("reader-1", "Rr", "Rs", "reader-2", "Rs", "Rr"); }
static void read_write_crossed(void) { mix("reader-1", "Rr", "Ws", "reader-2", "Rs", "Wr"); }
// Each waits to read what the other one reads.
static void write_read_crossed(void) { mix("writer-1", "Wr", "Rs", "writer-2", "Ws", "Rr"); }
static void write_reads_other(void) { mix("writer-1", "Wr", "Rs", "reader-2", "Rs", "Rr"); }

static pthread_spinlock_t spin;
static void *spin_in_mutex(void *_) {
  await_turn(0);
  pthread_mutex_lock(&a);    // HOLDS(spin-1)
  pthread_spin_lock(&spin);  // WAITS(spin-1)
  pthread_spin_unlock(&spin);
  pthread_mutex_unlock(&a);
  end_turn();
  return _;
}
static void *mutex_in_spin(void *_) {
  await_turn(1);
  pthread_spin_lock(&spin);  // HOLDS(spin-2)
  pthread_mutex_lock(&a);    // WAITS(spin-2)
  pthread_mutex_unlock(&a);
  pthread_spin_unlock(&spin);
  end_turn();
  return _;
}
static void spin_mix(void) {
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  pthread_t one = start("spin-1", spin_in_mutex, NULL), two = start("spin-2", mutex_in_spin, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// A wait on a condition gives back A alone and then wants it again, under B.
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready;
static void *waits_under(void *_) {
  await_turn(0);
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);  // HOLDS(waiter)
  __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) == 1)
    pthread_cond_wait(&cond, &a);  // WAITS(waiter)
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  end_turn();
  return _;
}
static void *wakes(void *_) {
  while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST)) nap(1);
  pthread_mutex_lock(&a);
  __atomic_store_n(&ready, 2, __ATOMIC_SEQ_CST);
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&a);
  return _;
}
static void condition_reacquires(void) {
  static const struct order same = {"two", &a, &b, 1};
  pthread_t one = start("waiter", waits_under, NULL), waker = start("waker", wakes, NULL);
  pthread_t two = start("two", nest, (void *)&same);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  pthread_join(waker, NULL);
}

// Threads around a table, one after the other.
enum { seats = 5 };
static pthread_mutex_t forks[seats];
static void dine(int last_turned) {
  static struct order eaters[seats];
  pthread_t threads[seats];
  for (int i = 0; i < seats; i++) pthread_mutex_init(&forks[i], NULL);
  for (int i = 0; i < seats; i++) {
    eaters[i] = (struct order){"", &forks[i], &forks[(i + 1) % seats], i};
    if (last_turned && i == seats - 1)
      eaters[i] = (struct order){"", &forks[0], &forks[i], i};
    threads[i] = start("eater", nest, &eaters[i]);
  }
  for (int i = 0; i < seats; i++) pthread_join(threads[i], NULL);
}
static void philosophers(void) { dine(0); }
static void philosophers_turned(void) { dine(1); }

// Locks of one class in both orders, but of different objects.
static void classes(void) {
  static pthread_mutex_t nodes[4];
  for (int i = 0; i < 4; i++) pthread_mutex_init(&nodes[i], NULL);
  NEST({"one", &nodes[0], &nodes[1], 0}, {"two", &nodes[3], &nodes[2], 1});
}

// Accounts locked by address, from eight threads.
static struct account { pthread_mutex_t lock; long money; } accounts[16];
static void *transfers(void *raw) {
  unsigned seed = (unsigned)(uintptr_t)raw;
  for (int i = 0; i < 20000; i++) {
    struct account *from = &accounts[rand_r(&seed) % 16], *to = &accounts[rand_r(&seed) % 16];
    if (from == to) continue;
    struct account *low = from < to ? from : to, *high = from < to ? to : from;
    pthread_mutex_lock(&low->lock);
    pthread_mutex_lock(&high->lock);
    from->money--;
    to->money++;
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_unlock(&to->lock);
  }
  return NULL;
}
static void bank(void) {
  pthread_t threads[8];
  for (int i = 0; i < 16; i++) pthread_mutex_init(&accounts[i].lock, NULL);
  for (int i = 0; i < 8; i++) threads[i] = start("teller", transfers, (void *)(uintptr_t)(i + 1));
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

// A tree locked from its root downwards, on random ways; node n is parent of 2n+1 and 2n+2.
static pthread_mutex_t tree[63];
static void *descends(void *raw) {
  unsigned seed = (unsigned)(uintptr_t)raw;
  for (int i = 0; i < 5000; i++) {
    int path[6], depth = 0;
    for (int node = 0; node < 63; node = 2 * node + 1 + rand_r(&seed) % 2) path[depth++] = node;
    for (int k = 0; k < depth; k++) pthread_mutex_lock(&tree[path[k]]);
    for (int k = 0; k < depth; k++) pthread_mutex_unlock(&tree[path[k]]);
  }
  return NULL;
}
static void trees(void) {
  pthread_t threads[4];
  for (int i = 0; i < 63; i++) pthread_mutex_init(&tree[i], NULL);
  for (int i = 0; i < 4; i++) threads[i] = start("walker", descends, (void *)(uintptr_t)(i + 1));
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

// A constructor nests the other way round before anybody else knows the locks.
struct node { pthread_mutex_t outer, inner; };
static struct node *published;
static void *uses(void *_) {
  struct node *node;
  while (!(node = __atomic_load_n(&published, __ATOMIC_SEQ_CST))) nap(1);
  pthread_mutex_lock(&node->outer);
  pthread_mutex_lock(&node->inner);
  pthread_mutex_unlock(&node->inner);
  pthread_mutex_unlock(&node->outer);
  return _;
}
static void *constructs(void *_) {
  struct node *node = calloc(1, sizeof *node);
  pthread_mutex_init(&node->outer, NULL);
  pthread_mutex_init(&node->inner, NULL);
  pthread_mutex_lock(&node->inner);
  pthread_mutex_lock(&node->outer);
  pthread_mutex_unlock(&node->outer);
  pthread_mutex_unlock(&node->inner);
  __atomic_store_n(&published, node, __ATOMIC_SEQ_CST);
  return _;
}
static void constructor(void) {
  pthread_t users[] = {start("user", uses, NULL), start("user", uses, NULL)};
  pthread_t maker = start("maker", constructs, NULL);
  pthread_join(users[0], NULL);
  pthread_join(users[1], NULL);
  pthread_join(maker, NULL);
}

// Orders that something makes one after the other.
static void take_both(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}
static sem_t permit;
static void *posts(void *_) { take_both(&a, &b); sem_post(&permit); return _; }
static void *sem_waits(void *_) { sem_wait(&permit); take_both(&b, &a); return _; }
static void pair(body first, body second) {
  pthread_t threads[] = {start("before", first, NULL), start("after", second, NULL)};
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}
static void by_semaphore(void) { sem_init(&permit, 0, 0); pair(posts, sem_waits); }

static void *hands_over(void *_) {
  take_both(&a, &b);
  pthread_mutex_lock(&c);
  ready = 1;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&c);
  return _;
}
static void *is_handed(void *_) {
  pthread_mutex_lock(&c);
  while (!ready) pthread_cond_wait(&cond, &c);
  pthread_mutex_unlock(&c);
  take_both(&b, &a);
  return _;
}
// The second one waits first, so that it is the signal that lets it go on.
static void *hands_over_late(void *_) { nap(100); return hands_over(_); }
static void by_condition(void) { pair(hands_over_late, is_handed); }

static pthread_barrier_t line;
static void *before_line(void *_) { take_both(&a, &b); pthread_barrier_wait(&line); return _; }
static void *after_line(void *_) { pthread_barrier_wait(&line); take_both(&b, &a); return _; }
static void by_barrier(void) { pthread_barrier_init(&line, NULL, 2); pair(before_line, after_line); }

static void *other_way(void *_) { take_both(&b, &a); return _; }
static void by_create(void) {
  take_both(&a, &b);
  pthread_join(start("after", other_way, NULL), NULL);
}
static void by_join(void) {
  static const struct order one = {"one", &a, &b, 0};
  pthread_join(start("one", nest, (void *)&one), NULL);
  pthread_join(start("after", other_way, NULL), NULL);
}
static void by_main_join(void) {
  static const struct order one = {"one", &a, &b, 0};
  pthread_join(start("one", nest, (void *)&one), NULL);
  take_both(&b, &a);
}
// The child's locks are its own.
static void by_fork(void) {
  take_both(&a, &b);
  pid_t child = fork();
  if (child == 0) {
    pthread_join(start("after", other_way, NULL), NULL);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

// The same memory, other locks.
static void *reuses(void *raw) {
  pthread_mutex_t *pair = raw;
  await_turn(1);
  pthread_mutex_init(&pair[0], NULL);
  pthread_mutex_init(&pair[1], NULL);
  take_both(&pair[1], &pair[0]);
  end_turn();
  return NULL;
}
static void *used(void *raw) {
  pthread_mutex_t *pair = raw;
  await_turn(0);
  pthread_mutex_init(&pair[0], NULL);
  pthread_mutex_init(&pair[1], NULL);
  take_both(&pair[0], &pair[1]);
  pthread_mutex_destroy(&pair[0]);
  pthread_mutex_destroy(&pair[1]);
  end_turn();
  return NULL;
}
static void remade(void) {
  static pthread_mutex_t memory[2];
  pthread_t one = start("first", used, memory), two = start("second", reuses, memory);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// A recursive lock taken again inside another one was held before it: no new order.
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *takes_again(void *_) {
  await_turn(0);
  pthread_mutex_lock(&again);
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&again);
  pthread_mutex_unlock(&again);
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&again);
  end_turn();
  return _;
}
static void retaken(void) {
  static const struct order same = {"two", &again, &b, 1};
  pthread_t one = start("again", takes_again, NULL), two = start("two", nest, (void *)&same);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

// Backs off where it cannot have the second lock.
static void *backs_off(void *raw) {
  const struct order *order = raw;
  for (int i = 0; i < 2000; i++) {
    pthread_mutex_lock(order->first);
    if (pthread_mutex_trylock(order->second) == 0) pthread_mutex_unlock(order->second);
    pthread_mutex_unlock(order->first);
  }
  return NULL;
}
static void back_off(void) {
  static const struct order one = {"", &a, &b}, two = {"", &b, &a};
  pthread_t threads[] = {start("one", backs_off, (void *)&one), start("two", backs_off, (void *)&two)};
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}

// Along a list hand over hand, forwards by all, or backwards by one.
static pthread_mutex_t list[32];
struct walk { int turn, step; };
static void *walks(void *raw) {
  const struct walk *walk = raw;
  await_turn(walk->turn);
  int at = walk->step > 0 ? 0 : 31;
  pthread_mutex_lock(&list[at]);
  for (int next = at + walk->step; next >= 0 && next < 32; at = next, next += walk->step) {
    pthread_mutex_lock(&list[next]);  // HOLDS(fore,back) WAITS(fore,back)
    pthread_mutex_unlock(&list[at]);
  }
  pthread_mutex_unlock(&list[at]);
  end_turn();
  return NULL;
}
static void walk(int second) {
  static struct walk walks_[2];
  walks_[0] = (struct walk){0, 1};
  walks_[1] = (struct walk){1, second};
  for (int i = 0; i < 32; i++) pthread_mutex_init(&list[i], NULL);
  pthread_t threads[] = {start("fore", walks, &walks_[0]), start("back", walks, &walks_[1])};
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}
static void list_forwards(void) { walk(1); }
static void list_backwards(void) { walk(-1); }

static const struct scenario all[] = {
  {"ab-ba", ab_ba}, {"three", three}, {"four", four}, {"four-shuffled", four_shuffled},
  {"gate", gate}, {"gate-of-three", gate_of_three}, {"gate-of-two", gate_of_two},
  {"gate-of-one", gate_of_one}, {"gates-differ", gates_differ}, {"gate-leaks", gate_leaks},
  {"gate-tried", gate_tried}, {"gate-read", gate_read}, {"gate-written", gate_written},
  {"errorcheck", errorcheck}, {"recursive", recursive}, {"adaptive", adaptive},
  {"inherit", inherit}, {"shared", shared}, {"robust", robust}, {"detached", detached},
  {"chain-three", chain_three}, {"two-threads-three-orders", two_threads_three_orders},
  {"second-tried", second_tried}, {"second-timed", second_timed}, {"first-tried", first_tried},
  {"first-timed", first_timed}, {"long-ago", long_ago},
  {"read-mutex-write", read_mutex_write}, {"read-mutex-read", read_then_mutex_read},
  {"write-mutex-read", write_then_mutex_read}, {"write-write", write_then_write},
  {"read-read", read_then_read}, {"read-write-crossed", read_write_crossed},
  {"write-read-crossed", write_read_crossed}, {"write-reads-other", write_reads_other},
  {"spin-mix", spin_mix}, {"condition-reacquires", condition_reacquires},
  {"philosophers", philosophers}, {"philosophers-turned", philosophers_turned},
  {"classes", classes}, {"bank", bank}, {"trees", trees}, {"constructor", constructor},
  {"by-semaphore", by_semaphore}, {"by-condition", by_condition}, {"by-barrier", by_barrier},
  {"by-create", by_create}, {"by-join", by_join}, {"by-main-join", by_main_join},
  {"by-fork", by_fork}, {"remade", remade}, {"retaken", retaken}, {"back-off", back_off},
  {"list-forwards", list_forwards}, {"list-backwards", list_backwards},
};
int main(int argc, char **argv) { return PLAY(argc, argv, all); }
