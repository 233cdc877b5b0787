// System calls and glibc layouts that Swift cannot spell: macros, control messages, struct members
// by offset.
#ifndef HCK_SYSTEM_H
#define HCK_SYSTEM_H

#include "hck_layout.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Maps a new arena of up to 1 GiB, sparse, less where the process's limits forbid it. With `fd` it
// is backed by a memfd that the caller closes; without it is private to the process. NULL when not
// even 1 MiB can be had.
hck_arena *_Nullable hck_arena_make(int *_Nullable fd);
void hck_arena_unmap(hck_arena *_Nonnull arena);
// Makes the arena usable below `low` and from `high` up; 0, or an errno. Any thread may, at any
// time.
int hck_arena_ready(hck_arena *_Nonnull arena, uint64_t low, uint64_t high);

// Whether an ELF program (64 bits, of this machine) needs AddressSanitizer's shared library, which
// refuses to start when another library is preloaded before it. System calls and the stack alone;
// moves no file offset.
int hck_insists_on_first(int fd);

// Sends the arena's descriptor to hangcheck's abstract socket. Never blocks. 0 or an errno.
int hck_hello_send(const char *_Nonnull name, int fd, const hck_arena *_Nonnull arena);
// Takes a hello from a connection: 0 and an owned descriptor, or an errno (EAGAIN when none is
// there yet).
int hck_hello_receive(int connection, hck_hello *_Nonnull hello, int *_Nonnull fd);
// Maps the arena behind a descriptor for reading and for moving its clock; closes nothing. NULL and
// errno on failure.
hck_arena *_Nullable hck_arena_open(int fd, uint64_t *_Nonnull size);

uint32_t hck_gettid(void);
uint64_t hck_monotonic_ns(void);
void hck_thread_name(char *_Nonnull sixteen);
// Offset of the tid inside struct pthread, found by looking for it in the calling thread's; 0 when
// unsure.
uint64_t hck_tid_offset(void);

// glibc's public struct members, checked against this glibc by the compiler.
size_t hck_mutex_owner_offset(void);
size_t hck_mutex_kind_offset(void);
size_t hck_mutex_size(void);
size_t hck_rwlock_writer_offset(void);
size_t hck_rwlock_readers_offset(void);
size_t hck_rwlock_shared_offset(void);
size_t hck_rwlock_size(void);
size_t hck_condition_size(void);

// ptrace is variadic in C. Each returns 0 or an errno.
int hck_ptrace_seize(int tid);
int hck_ptrace_interrupt(int tid);
int hck_ptrace_detach(int tid, int signal);
// Fills 17 registers in the order r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi
// orig_rax rip, then rsp.
int hck_ptrace_registers(int tid, uint64_t *_Nonnull registers);
// The extended state of a stopped thread, XSAVE's area: its length, or minus an errno.
int64_t hck_ptrace_vectors(int tid, void *_Nullable to, size_t size);
// How many bytes a pipe or socket of another process holds that nobody has read, or minus an errno.
int64_t hck_pending_bytes(int pidfd, int fd);
int64_t hck_read_memory(int pid, uint64_t address, void *_Nonnull to, size_t size);

// The inode of the socket that a Unix socket of this network namespace is connected to; 0 where that is
// not known.
uint32_t hck_unix_peer(uint32_t inode);

#endif
