#define _GNU_SOURCE
#include "include/hck_order.h"
#include "include/hck_system.h"
#include "include/hck_thread.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__thread hck_slot *hck_tls_slot;
__thread int hck_tls_closed;
__thread hck_slot *hck_tls_forking;
hck_arena *hck_current_arena;
uint32_t hck_confined;
uint32_t hck_window_bytes = HCK_WINDOW_BYTES;
uint64_t hck_window_reach = HCK_WINDOW_BYTES;

void *(*hck_current_queue_function)(void);
// The free jobs: an index into the pages, from 1, and a tag against ABA.
#define JOBS_PER_PAGE 1024
#define JOB_PAGES 1024
static hck_job *job_pages[JOB_PAGES];
static uint64_t jobs_free, jobs_used;

static hck_job *job_at(uint64_t number) { return &job_pages[(number - 1) / JOBS_PER_PAGE][(number - 1) % JOBS_PER_PAGE]; }

hck_job *hck_job_take(void) {
  uint64_t head = __atomic_load_n(&jobs_free, __ATOMIC_ACQUIRE);
  while ((uint32_t)head) {
    hck_job *job = job_at((uint32_t)head);
    uint64_t next = (uint64_t)__atomic_load_n(&job->next, __ATOMIC_RELAXED) | ((head >> 32) + 1) << 32;
    if (__atomic_compare_exchange_n(&jobs_free, &head, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) { return job; }
  }
  uint64_t number = __atomic_add_fetch(&jobs_used, 1, __ATOMIC_RELAXED), page = (number - 1) / JOBS_PER_PAGE;
  if (page >= JOB_PAGES) { return NULL; }
  if (!__atomic_load_n(&job_pages[page], __ATOMIC_ACQUIRE)) {
    size_t bytes = JOBS_PER_PAGE * sizeof(hck_job);
    void *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) { return NULL; }
    hck_job *none = NULL;
    if (!__atomic_compare_exchange_n(&job_pages[page], &none, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) { munmap(fresh, bytes); }
  }
  hck_job *job = job_at(number);
  job->number = (uint32_t)number;
  return job;
}

void hck_job_give(hck_job *job) {
  // A search for who refers to something is not to find what has been run.
  job->context = 0;
  uint64_t head = __atomic_load_n(&jobs_free, __ATOMIC_RELAXED), now;
  do {
    __atomic_store_n(&job->next, (uint32_t)head, __ATOMIC_RELAXED);
    now = job->number | ((head >> 32) + 1) << 32;
  } while (!__atomic_compare_exchange_n(&jobs_free, &head, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

uint64_t hck_program_low, hck_program_high;

static int note_program(struct dl_phdr_info *info, size_t size, void *none) {
  (void)size;
  (void)none;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const Elf64_Phdr *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) { continue; }
    hck_program_low = info->dlpi_addr + part->p_vaddr;
    hck_program_high = hck_program_low + part->p_memsz;
    break;
  }
  // The executable comes first.
  return 1;
}

int hck_is_joinable(void) {
  pthread_attr_t attributes;
  int state = PTHREAD_CREATE_DETACHED;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getdetachstate(&attributes, &state);
    pthread_attr_destroy(&attributes);
  }
  return state == PTHREAD_CREATE_JOINABLE;
}

void hck_find_program(void) { dl_iterate_phdr(note_program, NULL); }

hck_executor (*hck_current_executor_function)(void);
uint32_t hck_queue_layout_known;
uint64_t hck_main_queue_address;

void hck_keep_windows(uint32_t bytes) {
  hck_window_bytes = bytes;
  hck_window_reach = bytes == HCK_WINDOW_BYTES ? HCK_WINDOW_BYTES : 1ull << 62;
}

void hck_short_site(hck_entry *entry, const void *frame, uint64_t end) {
  uint64_t room = end - (uint64_t)frame;
  uint32_t length = hck_window_bytes < room ? hck_window_bytes : (uint32_t)room;
  if (length == 0) { entry->frame = 0; }
  entry->since = __atomic_load_n(&hck_current_arena->clock, __ATOMIC_RELAXED);
  entry->length = (uint16_t)length;
  entry->levels = 0;
  for (uint32_t i = 0; i < length / 8; i++) { entry->window[i] = ((const uint64_t *)frame)[i]; }
}

static void *hck_libc_stack_end(void);

static uint32_t inherited[HCK_INHERITED];

void hck_inherit(uint32_t tid) {
  memmove(inherited + 1, inherited, sizeof inherited - sizeof *inherited);
  inherited[0] = tid;
}

#define READY_STEP (256ull << 10)

/// Makes a part of the arena usable, and part of a core of the program.
static int open_part(void *start, uint64_t size) {
  int error = mprotect(start, size, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
  // A core without it only tells less; a filter may forbid it. Whoever takes a lock keeps its errno.
  if (error != 0 || hck_confined) { return error; }
  int kept = errno;
  madvise(start, size, MADV_DODUMP);
  errno = kept;
  return 0;
}

int hck_arena_ready(hck_arena *arena, uint64_t low, uint64_t high) {
  int error;
  uint64_t was = __atomic_load_n(&arena->ready_low, __ATOMIC_ACQUIRE);
  if (low > was) {
    low = (low + READY_STEP - 1) & ~(READY_STEP - 1);
    if (low > arena->size) { low = arena->size; }
    if ((error = open_part((char *)arena + was, low - was)) != 0) { return error; }
    while (was < low && !__atomic_compare_exchange_n(&arena->ready_low, &was, low, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
  }
  was = __atomic_load_n(&arena->ready_high, __ATOMIC_ACQUIRE);
  if (high < was) {
    high &= ~(READY_STEP - 1);
    if ((error = open_part((char *)arena + high, was - high)) != 0) { return error; }
    while (was > high && !__atomic_compare_exchange_n(&arena->ready_high, &was, high, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
  }
  return 0;
}

hck_arena *hck_arena_make(int *fd_out) {
  struct rlimit file = {RLIM_INFINITY, RLIM_INFINITY}, space = file;
  getrlimit(RLIMIT_FSIZE, &file);
  getrlimit(RLIMIT_AS, &space);
  for (uint64_t size = 1ull << 30; size >= 1ull << 20; size >>= 1) {
    int fd = -1;
    // Address space under a limit is the program's: it may count on nearly all of it.
    if (space.rlim_cur != RLIM_INFINITY && size > 1ull << 20 && size > space.rlim_cur / 64) { continue; }
    if (fd_out) {
      // A size above the limit would raise SIGXFSZ in the watched program.
      if (file.rlim_cur != RLIM_INFINITY && size > file.rlim_cur) { continue; }
      fd = memfd_create("hangcheck", MFD_CLOEXEC);
      if (fd < 0) { return NULL; }
      if (ftruncate(fd, (off_t)size) != 0) {
        close(fd);
        continue;
      }
    }
    int flags = fd_out ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *p = mmap(NULL, size, PROT_NONE, flags | MAP_NORESERVE, fd, 0);
    // A core of the program would be as large as all that is reserved; what is used is part of it.
    if (p != MAP_FAILED) { madvise(p, size, MADV_DONTDUMP); }
    if (p != MAP_FAILED && open_part(p, READY_STEP) != 0) {
      munmap(p, size);
      p = MAP_FAILED;
    }
    if (p == MAP_FAILED) {
      if (fd >= 0) { close(fd); }
      continue;
    }
    // One touched slot must not cost a huge page.
    madvise(p, size, MADV_NOHUGEPAGE);
    hck_arena *arena = p;
    arena->ready_low = READY_STEP;
    arena->ready_high = size;
    memcpy(arena->inherited, inherited, sizeof inherited);
    arena->version = HCK_LAYOUT_VERSION;
    arena->header_bytes = HCK_FIRST_SLOT;
    arena->size = size;
    arena->pid = (uint32_t)getpid();
    arena->chunks_end = size;
    arena->base = (uint64_t)p;
    arena->main_stack_end = (uint64_t)hck_libc_stack_end();
    arena->tid_offset = hck_tid_offset();
    arena->clock = (uint32_t)(hck_monotonic_ns() / 1000000);
    __atomic_store_n(&arena->magic, HCK_MAGIC, __ATOMIC_RELEASE);
    if (fd_out) { *fd_out = fd; }
    return arena;
  }
  return NULL;
}

void hck_arena_unmap(hck_arena *arena) { munmap(arena, arena->size); }

static int read_all(int fd, void *to, size_t size, uint64_t at) {
  return at < INT64_MAX && pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

// Where the bytes lie in the file that are to lie at `address` in memory; UINT64_MAX for nowhere.
static uint64_t file_offset(int fd, const Elf64_Ehdr *header, uint64_t address) {
  for (unsigned i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr load;
    if (!read_all(fd, &load, sizeof load, header->e_phoff + (uint64_t)i * sizeof load)) { break; }
    if (load.p_type == PT_LOAD && address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz) {
      return load.p_offset + (address - load.p_vaddr);
    }
  }
  return UINT64_MAX;
}

int hck_insists_on_first(int fd) {
  static const char first[] = "libasan.so";
  Elf64_Ehdr header;
  if (!read_all(fd, &header, sizeof header, 0) || header.e_phentsize != sizeof(Elf64_Phdr)) { return 0; }
  Elf64_Phdr dynamic = {0};
  for (unsigned i = 0; i < header.e_phnum && dynamic.p_type != PT_DYNAMIC; i++) {
    if (!read_all(fd, &dynamic, sizeof dynamic, header.e_phoff + (uint64_t)i * sizeof dynamic)) { return 0; }
  }
  if (dynamic.p_type != PT_DYNAMIC) { return 0; }
  // Libraries that are needed come first in the table, the strings' address after them.
  uint64_t names[64], count = 0, strings = UINT64_MAX;
  Elf64_Dyn entry;
  for (uint64_t i = 0; i < 1024 && read_all(fd, &entry, sizeof entry, dynamic.p_offset + i * sizeof entry); i++) {
    if (entry.d_tag == DT_NULL) { break; }
    if (entry.d_tag == DT_NEEDED && count < 64) { names[count++] = entry.d_un.d_val; }
    if (entry.d_tag == DT_STRTAB) { strings = file_offset(fd, &header, entry.d_un.d_ptr); }
  }
  for (uint64_t i = 0; i < count && strings != UINT64_MAX; i++) {
    char name[sizeof first - 1];
    if (read_all(fd, name, sizeof name, strings + names[i]) && memcmp(name, first, sizeof name) == 0) { return 1; }
  }
  return 0;
}

// ld.so's record of where the main thread's stack began.
extern void *__libc_stack_end;
static void *hck_libc_stack_end(void) { return __libc_stack_end; }

static socklen_t abstract_address(struct sockaddr_un *address, const char *name) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  size_t length = strlen(name);
  if (length > sizeof address->sun_path - 1) { length = sizeof address->sun_path - 1; }
  memcpy(address->sun_path + 1, name, length);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

int hck_hello_send(const char *name, int fd, const hck_arena *arena) {
  int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) { return errno; }
  struct sockaddr_un address;
  socklen_t length = abstract_address(&address, name);
  int result = 0;
  if (connect(s, (struct sockaddr *)&address, length) != 0) {
    result = errno;
  } else {
    hck_hello hello = {HCK_MAGIC, HCK_LAYOUT_VERSION, arena->pid, arena->size};
    struct iovec io = {&hello, sizeof hello};
    union {
      char bytes[CMSG_SPACE(sizeof(int))];
      struct cmsghdr header;
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {0};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(int));
    if (sendmsg(s, &message, MSG_NOSIGNAL) != (ssize_t)sizeof hello) { result = errno ? errno : EIO; }
  }
  close(s);
  return result;
}

int hck_hello_receive(int connection, hck_hello *hello, int *fd) {
  struct iovec io = {hello, sizeof *hello};
  union {
    char bytes[CMSG_SPACE(sizeof(int) * 4)];
    struct cmsghdr header;
  } control;
  struct msghdr message = {0};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  *fd = -1;
  ssize_t got = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) { return errno; }
  for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) { continue; }
    size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int one;
      memcpy(&one, CMSG_DATA(h) + i * sizeof(int), sizeof one);
      if (*fd < 0) {
        *fd = one;
      } else {
        close(one);
      }
    }
  }
  if (got == (ssize_t)sizeof *hello && hello->magic == HCK_MAGIC && *fd >= 0) {
    return hello->version == HCK_LAYOUT_VERSION ? 0 : EPROTONOSUPPORT;
  }
  if (*fd >= 0) { close(*fd); }
  *fd = -1;
  return EPROTO;
}

hck_arena *hck_arena_open(int fd, uint64_t *size) {
  struct stat info;
  if (fstat(fd, &info) != 0) { return NULL; }
  if (info.st_size < 2 * HCK_SLOT_BYTES) {
    errno = EINVAL;
    return NULL;
  }
  void *p = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (p == MAP_FAILED) { return NULL; }
  *size = (uint64_t)info.st_size;
  return p;
}

uint32_t hck_gettid(void) {
  // glibc keeps it, and a filter may not allow the call.
  const hck_arena *arena = hck_confined ? hck_arena_get() : NULL;
  if (arena && arena->tid_offset) { return *(const uint32_t *)((const char *)pthread_self() + arena->tid_offset); }
  return (uint32_t)syscall(SYS_gettid);
}

uint64_t hck_monotonic_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void hck_thread_name(char *sixteen) {
  memset(sixteen, 0, 16);
  if (hck_confined) { return; }
  prctl(PR_GET_NAME, sixteen, 0, 0, 0);
}

uint64_t hck_tid_offset(void) {
  // struct pthread holds pid-like words once only at small offsets; 720 on glibc 2.36, searched for
  // elsewhere.
  const uint32_t *self = (const uint32_t *)pthread_self();
  uint32_t tid = hck_gettid();
  if (self[720 / 4] == tid) { return 720; }
  uint64_t found = 0;
  for (uint64_t offset = 512; offset < 1024; offset += 4) {
    if (self[offset / 4] == tid) {
      if (found) { return 0; }
      found = offset;
    }
  }
  return found;
}

size_t hck_mutex_owner_offset(void) { return offsetof(pthread_mutex_t, __data.__owner); }
size_t hck_mutex_kind_offset(void) { return offsetof(pthread_mutex_t, __data.__kind); }
size_t hck_mutex_size(void) { return sizeof(pthread_mutex_t); }
size_t hck_rwlock_writer_offset(void) { return offsetof(pthread_rwlock_t, __data.__cur_writer); }
size_t hck_rwlock_readers_offset(void) { return offsetof(pthread_rwlock_t, __data.__readers); }
size_t hck_rwlock_shared_offset(void) { return offsetof(pthread_rwlock_t, __data.__shared); }
size_t hck_condition_size(void) { return sizeof(pthread_cond_t); }
size_t hck_rwlock_size(void) { return sizeof(pthread_rwlock_t); }

int hck_ptrace_seize(int tid) { return ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 ? 0 : errno; }
int hck_ptrace_interrupt(int tid) { return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 ? 0 : errno; }
int hck_ptrace_detach(int tid, int signal) {
  return ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal) == 0 ? 0 : errno;
}
int hck_ptrace_registers(int tid, uint64_t *r) {
  struct user_regs_struct u;
  struct iovec io = {&u, sizeof u};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)1 /* NT_PRSTATUS */, &io) != 0) { return errno; }
  const uint64_t all[18] = {u.r15, u.r14, u.r13, u.r12, u.rbp, u.rbx, u.r11, u.r10, u.r9,
                            u.r8,  u.rax, u.rcx, u.rdx, u.rsi, u.rdi, u.orig_rax, u.rip, u.rsp};
  memcpy(r, all, sizeof all);
  return 0;
}
int64_t hck_ptrace_vectors(int tid, void *to, size_t size) {
  struct iovec io = {to, size};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)0x202 /* NT_X86_XSTATE */, &io) != 0) { return -errno; }
  return (int64_t)io.iov_len;
}
int64_t hck_pending_bytes(int pidfd, int fd) {
  long own = syscall(438 /* pidfd_getfd */, pidfd, fd, 0);
  if (own < 0) { return -errno; }
  int count = 0;
  int64_t result = ioctl((int)own, FIONREAD, &count) == 0 ? count : -errno;
  close((int)own);
  return result;
}
int64_t hck_read_memory(int pid, uint64_t address, void *to, size_t size) {
  struct iovec local = {to, size}, remote = {(void *)address, size};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}
