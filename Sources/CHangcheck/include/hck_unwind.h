#pragma once
/* What libunwind-x86_64.so.8 expects of a caller that reads another process.

   The library is loaded at run time and its headers are not needed to build; Swift cannot spell
   structs whose layout C fixes, nor pointers to C functions inside them. */
#include <stddef.h>
#include <stdint.h>

/* An address space, owned by the library. */
typedef void *hck_unwind_space;

/* What find_proc_info fills in. The tail is room for what other versions of the library append. */
typedef struct hck_unwind_procedure {
  uint64_t start, end, lsda, handler, gp, flags;
  int32_t format, info_size;
  void *info;
  uint64_t room[8];
} hck_unwind_procedure;

typedef int (*hck_unwind_find)(hck_unwind_space, uint64_t ip, hck_unwind_procedure *, int, void *);
typedef void (*hck_unwind_put)(hck_unwind_space, hck_unwind_procedure *, void *);
typedef int (*hck_unwind_list)(hck_unwind_space, uint64_t *, void *);
typedef int (*hck_unwind_memory)(hck_unwind_space, uint64_t at, uint64_t *, int write, void *);
typedef int (*hck_unwind_register)(hck_unwind_space, int number, uint64_t *, int write, void *);

/* The callbacks. Those that hangcheck never lets happen stay null; the tail stays zero. */
typedef struct hck_unwind_accessors {
  hck_unwind_find find_proc_info;
  hck_unwind_put put_unwind_info;
  hck_unwind_list get_dyn_info_list_addr;
  hck_unwind_memory access_mem;
  hck_unwind_register access_reg;
  void *access_fpreg, *resume, *get_proc_name;
  void *room[8];
} hck_unwind_accessors;

/* A binary search table in the target's memory: words, since older versions have one field less. */
typedef struct hck_unwind_table {
  uint64_t next, previous, start_ip, end_ip, gp;
  int32_t format, pad;
  uint64_t words[8];
} hck_unwind_table;

/* 127 words in the library; room for more. */
typedef struct hck_unwind_cursor {
  uint64_t opaque[256];
} hck_unwind_cursor;

typedef hck_unwind_space (*hck_unwind_create_fn)(hck_unwind_accessors *, int byte_order);
typedef void (*hck_unwind_destroy_fn)(hck_unwind_space);
typedef int (*hck_unwind_caching_fn)(hck_unwind_space, int policy);
typedef int (*hck_unwind_init_fn)(hck_unwind_cursor *, hck_unwind_space, void *);
typedef int (*hck_unwind_step_fn)(hck_unwind_cursor *);
typedef int (*hck_unwind_reg_fn)(hck_unwind_cursor *, int number, uint64_t *);
typedef int (*hck_unwind_search_fn)(
    hck_unwind_space, uint64_t ip, hck_unwind_table *, hck_unwind_procedure *, int need_info,
    void *);

/* Exported by the Swift runtime, without a header. Both return text from malloc. */
char *swift_demangle(const char *, size_t, char *, size_t *, uint32_t flags);
char *_swift_backtrace_demangle(const char *, size_t, char *, size_t *);
