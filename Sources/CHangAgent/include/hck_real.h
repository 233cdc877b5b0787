// The functions that the agent stands in front of, and the way to the real ones: the next
// definition after the agent's in the program's search order. A pointer resolves itself at its
// first call, which may come before any constructor.
#ifndef HCK_REAL_H
#define HCK_REAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 // for the clock and rwlock variants
#endif
#include "hck_thread.h"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <spawn.h>
#include <threads.h>
#include <time.h>

typedef void *_Nullable (*_Nonnull hck_thread_body)(void *_Nullable);

#define HCK_M pthread_mutex_t *_Nonnull
#define HCK_R pthread_rwlock_t *_Nonnull
#define HCK_C pthread_cond_t *_Nonnull
#define HCK_T const struct timespec *_Nonnull

// name, version (glibc keeps an older pthread_cond_* beside the one that programs bind to),
// parameters, arguments
#define HCK_INTERPOSED(X)                                                                              \
  X(pthread_mutex_init, 0, (HCK_M m, const pthread_mutexattr_t *_Nullable a), (m, a))                  \
  X(pthread_mutex_destroy, 0, (HCK_M m), (m))                                                          \
  X(pthread_mutex_lock, 0, (HCK_M m), (m))                                                             \
  X(pthread_mutex_trylock, 0, (HCK_M m), (m))                                                          \
  X(pthread_mutex_timedlock, 0, (HCK_M m, HCK_T t), (m, t))                                            \
  X(pthread_mutex_clocklock, 0, (HCK_M m, clockid_t k, HCK_T t), (m, k, t))                            \
  X(pthread_mutex_unlock, 0, (HCK_M m), (m))                                                           \
  X(pthread_rwlock_init, 0, (HCK_R l, const pthread_rwlockattr_t *_Nullable a), (l, a))                \
  X(pthread_rwlock_destroy, 0, (HCK_R l), (l))                                                         \
  X(pthread_rwlock_rdlock, 0, (HCK_R l), (l))                                                          \
  X(pthread_rwlock_tryrdlock, 0, (HCK_R l), (l))                                                       \
  X(pthread_rwlock_timedrdlock, 0, (HCK_R l, HCK_T t), (l, t))                                         \
  X(pthread_rwlock_clockrdlock, 0, (HCK_R l, clockid_t k, HCK_T t), (l, k, t))                         \
  X(pthread_rwlock_wrlock, 0, (HCK_R l), (l))                                                          \
  X(pthread_rwlock_trywrlock, 0, (HCK_R l), (l))                                                       \
  X(pthread_rwlock_timedwrlock, 0, (HCK_R l, HCK_T t), (l, t))                                         \
  X(pthread_rwlock_clockwrlock, 0, (HCK_R l, clockid_t k, HCK_T t), (l, k, t))                         \
  X(pthread_rwlock_unlock, 0, (HCK_R l), (l))                                                          \
  X(pthread_spin_init, 0, (pthread_spinlock_t *_Nonnull s, int p), (s, p))                             \
  X(pthread_spin_destroy, 0, (pthread_spinlock_t *_Nonnull s), (s))                                    \
  X(pthread_spin_lock, 0, (pthread_spinlock_t *_Nonnull s), (s))                                       \
  X(pthread_spin_trylock, 0, (pthread_spinlock_t *_Nonnull s), (s))                                    \
  X(pthread_spin_unlock, 0, (pthread_spinlock_t *_Nonnull s), (s))                                     \
  X(pthread_cond_wait, "GLIBC_2.3.2", (HCK_C c, HCK_M m), (c, m))                                      \
  X(pthread_cond_timedwait, "GLIBC_2.3.2", (HCK_C c, HCK_M m, HCK_T t), (c, m, t))                     \
  X(pthread_cond_clockwait, 0, (HCK_C c, HCK_M m, clockid_t k, HCK_T t), (c, m, k, t))                 \
  X(pthread_cond_signal, "GLIBC_2.3.2", (HCK_C c), (c))                                                \
  X(pthread_cond_broadcast, "GLIBC_2.3.2", (HCK_C c), (c))                                             \
  X(pthread_cond_destroy, "GLIBC_2.3.2", (HCK_C c), (c))                                               \
  X(cnd_signal, 0, (cnd_t * _Nonnull c), (c))                                                          \
  X(cnd_broadcast, 0, (cnd_t * _Nonnull c), (c))                                                       \
  X(pthread_barrier_wait, 0, (pthread_barrier_t *_Nonnull b), (b))                                     \
  X(pthread_create, 0,                                                                                 \
    (pthread_t * _Nonnull t, const pthread_attr_t *_Nullable a, hck_thread_body f, void *_Nullable p), \
    (t, a, f, p))                                                                                      \
  X(pthread_join, 0, (pthread_t t, void *_Nullable *_Nullable r), (t, r))                              \
  X(pthread_timedjoin_np, 0, (pthread_t t, void *_Nullable *_Nullable r, HCK_T w), (t, r, w))          \
  X(pthread_clockjoin_np, 0, (pthread_t t, void *_Nullable *_Nullable r, clockid_t k, HCK_T w),        \
    (t, r, k, w)) \
  X(ppoll, 0,                                                                                          \
    (struct pollfd *_Nullable d, nfds_t n, const struct timespec *_Nullable t, const sigset_t *_Nullable s), \
    (d, n, t, s))                                                                                      \
  X(mtx_lock, 0, (mtx_t * _Nonnull m), (m))                                                            \
  X(mtx_trylock, 0, (mtx_t * _Nonnull m), (m))                                                         \
  X(mtx_timedlock, 0, (mtx_t * _Nonnull m, HCK_T t), (m, t))                                           \
  X(mtx_unlock, 0, (mtx_t * _Nonnull m), (m))                                                          \
  X(cnd_wait, 0, (cnd_t * _Nonnull c, mtx_t *_Nonnull m), (c, m))                                      \
  X(cnd_timedwait, 0, (cnd_t * _Nonnull c, mtx_t *_Nonnull m, HCK_T t), (c, m, t))                     \
  X(thrd_join, 0, (thrd_t t, int *_Nullable r), (t, r))

// Those that only hand the agent on to a new program; in C, for they are variadic or build arrays
// on the stack.
#define HCK_SPAWNING(X)                                                                               \
  X(execve, 0, (const char *p, char *const a[], char *const e[]), (p, a, e))                          \
  X(execvpe, 0, (const char *p, char *const a[], char *const e[]), (p, a, e))                         \
  X(fexecve, 0, (int f, char *const a[], char *const e[]), (f, a, e))                                 \
  X(execveat, 0, (int d, const char *p, char *const a[], char *const e[], int f), (d, p, a, e, f))    \
  X(posix_spawn, 0,                                                                                   \
    (pid_t * i, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *t,       \
     char *const a[], char *const e[]),                                                               \
    (i, p, f, t, a, e))                                                                               \
  X(posix_spawnp, 0,                                                                                  \
    (pid_t * i, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *t,       \
     char *const a[], char *const e[]),                                                               \
    (i, p, f, t, a, e))                                                                               \
  X(system, 0, (const char *c), (c))                                                                  \
  X(_Fork, 0, (void), ())

#define HCK_DECLARE(name, version, parameters, arguments)                 \
  extern int(*_Nonnull hck_pointer_##name) parameters HCK_HIDDEN;         \
  HCK_INLINE int hck_real_##name parameters { return hck_pointer_##name arguments; }
HCK_INTERPOSED(HCK_DECLARE)

// Starts watching this process: called once by the constructor, and lazily in a child that was
// forked.
void hck_agent_begin(void);
// Where hangcheck listens, and how it wants to be told; NULL when this process is not watched.
extern const char *_Nullable hck_socket_name HCK_HIDDEN;
extern int hck_follow HCK_HIDDEN;
extern int hck_orders_wanted HCK_HIDDEN, hck_semaphores_wanted HCK_HIDDEN;
HCK_INLINE int hck_learns_semaphores(void) { return hck_semaphores_wanted; }
HCK_INLINE int hck_learns_orders(void) { return hck_orders_wanted; }
HCK_INLINE const char *_Nullable hck_socket(void) { return hck_socket_name; }
HCK_INLINE int hck_follows(void) { return hck_follow && !hck_confined; }
void hck_close(int fd) HCK_HIDDEN;
// The arena of this process, made where there is none yet; in Swift.
hck_arena *_Nullable hck_agent_arena(void);
// The size of the stack that a thread with these attributes gets.
uint64_t hck_stack_bytes(const pthread_attr_t *_Nullable attributes) HCK_HIDDEN;
int hck_register_fork_handlers(void) HCK_HIDDEN;
// In Swift, called around a fork.
void hck_before_fork(void);
void hck_after_fork_in_parent(void);
void hck_after_fork_in_child(void);

#endif
