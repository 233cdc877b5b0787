// Finds libdispatch, which may be there from the start, come later, or never.
#include "include/hck_dispatch.h"
#include "hck_order.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

uint64_t hck_dispatch_low, hck_dispatch_bytes, hck_swift_dispatch_low, hck_swift_dispatch_bytes;
int hck_dispatch_queues_known, hck_dispatch_semaphores_known, hck_dispatch_groups_known, hck_dispatch_permits_known;
void *hck_dispatch_block_invoke;
void *(*hck_block_copy)(const void *);
void (*hck_block_release)(const void *);
void *hck_stack_block_class;
uint64_t hck_concurrency_low, hck_concurrency_bytes;
uint64_t hck_foundation_low, hck_foundation_bytes;

static void look_at_libraries(void);

// dlerror's text is left as if nothing had been asked.
static void *find(const char *name, int is_dispatch) {
  int error = errno;
  void *found = dlsym(RTLD_NEXT, name);
  if (!found && is_dispatch) {
    // Loaded privately. The handle stays: so does the library that the pointers lead into.
    static void *library;
    if (!library) { library = dlopen("libdispatch.so", RTLD_LAZY | RTLD_NOLOAD); }
    if (library) { found = dlsym(library, name); }
  }
  if (!found) { (void)dlerror(); }
  if (found && is_dispatch && !hck_dispatch_bytes) { look_at_libraries(); }
  errno = error;
  return found;
}

#define FIRST_VOID(name, parameters, arguments)                               \
  static void first_##name parameters {                                       \
    void *found = find(#name, 1);                                             \
    if (!found) {                                                             \
      without_##name arguments;                                               \
      return;                                                                 \
    }                                                                         \
    __atomic_store_n(&hck_pointer_##name, (__typeof__(hck_pointer_##name))found, __ATOMIC_RELEASE); \
    hck_pointer_##name arguments;                                             \
  }                                                                           \
  void(*hck_pointer_##name) parameters = first_##name;
#define FIRST(type, missing, name, parameters, arguments)                     \
  static type first_##name parameters {                                       \
    void *found = find(#name, #name[0] != 's');                               \
    if (!found) { return (type)missing; }                                     \
    __atomic_store_n(&hck_pointer_##name, (__typeof__(hck_pointer_##name))found, __ATOMIC_RELEASE); \
    return hck_pointer_##name arguments;                                      \
  }                                                                           \
  type(*hck_pointer_##name) parameters = first_##name;

// A program that probes for libdispatch by a weak reference finds the agent's functions. Without
// libdispatch it has no queue to pass, so what it calls does nothing.
#define WITHOUT(name, parameters, arguments) static void without_##name parameters {}
HCK_DISPATCH_VOID(WITHOUT)
HCK_DISPATCH_VOID(FIRST_VOID)
HCK_DISPATCH(FIRST)
HCK_POSIX_SEMAPHORES(FIRST)

void hck_resolve_dispatch(void) {
#define RESOLVE(name)                                                                              \
  {                                                                                                \
    void *found = find(#name, 0);                                                                  \
    if (found) { __atomic_store_n(&hck_pointer_##name, (__typeof__(hck_pointer_##name))found, __ATOMIC_RELEASE); } \
  }
#define RESOLVE_VOID(name, parameters, arguments) RESOLVE(name)
#define RESOLVE_TYPED(type, missing, name, parameters, arguments) RESOLVE(name)
  HCK_POSIX_SEMAPHORES(RESOLVE_TYPED)
  if (!find("dispatch_sync", 0)) { return; }
  HCK_DISPATCH_VOID(RESOLVE_VOID)
  HCK_DISPATCH(RESOLVE_TYPED)
  look_at_libraries();
}

struct range {
  uint64_t inside, low, high;
  const char *name;
};

static int look(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct range *range = data;
  uint64_t low = UINT64_MAX, high = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) { continue; }
    uint64_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    uint64_t end = begin + info->dlpi_phdr[i].p_memsz;
    if (begin < low) { low = begin; }
    if (end > high) { high = end; }
  }
  const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : 0;
  int is_it = range->name ? slash && strcmp(slash + 1, range->name) == 0 : range->inside >= low && range->inside < high;
  if (!is_it) { return 0; }
  range->low = low;
  range->high = high;
  return 1;
}

// Where libdispatch and its Swift part lie, and whether the first is one whose objects are known.
static void look_at_libraries(void) {
  void *library = dlopen("libdispatch.so", RTLD_LAZY | RTLD_NOLOAD);
  void *sync = dlsym(RTLD_NEXT, "dispatch_sync");
  void *from = sync ? RTLD_NEXT : library;
  if (!sync && library) { sync = dlsym(library, "dispatch_sync"); }
  const uint16_t *offsets = sync ? dlsym(from, "dispatch_queue_offsets") : 0;
  void **invoke = sync ? dlsym(from, "_dispatch_block_special_invoke") : 0;
  struct range range = {(uint64_t)sync, 0, 0, 0};
  int found = sync && dl_iterate_phdr(look, &range);
  struct range swift = {0, 0, 0, "libswiftDispatch.so"};
  if (dl_iterate_phdr(look, &swift)) {
    hck_swift_dispatch_low = swift.low;
    hck_swift_dispatch_bytes = swift.high - swift.low;
  }
  struct range tasks = {0, 0, 0, "libswift_Concurrency.so"};
  if (dl_iterate_phdr(look, &tasks)) {
    hck_concurrency_low = tasks.low;
    hck_concurrency_bytes = tasks.high - tasks.low;
    void *library = dlopen("libswift_Concurrency.so", RTLD_LAZY | RTLD_NOLOAD);
    void *executor = library ? dlsym(library, "swift_task_getCurrentExecutor") : 0;
    hck_current_executor_function = (__typeof__(hck_current_executor_function))executor;
  }
  struct range foundation = {0, 0, 0, "libFoundation.so"};
  if (dl_iterate_phdr(look, &foundation)) {
    hck_foundation_low = foundation.low;
    hck_foundation_bytes = foundation.high - foundation.low;
  }
  void *current = sync ? dlsym(from, "dispatch_get_current_queue") : 0;
  void *main_queue = sync ? dlsym(from, "_dispatch_main_q") : 0;
  void *copy = library ? dlsym(library, "_Block_copy") : 0, *release = library ? dlsym(library, "_Block_release") : 0;
  (void)dlerror();
  if (!found) { return; }
  hck_stack_block_class = library ? dlsym(library, "_NSConcreteStackBlock") : 0;
  hck_block_copy = (__typeof__(hck_block_copy))copy;
  hck_block_release = (__typeof__(hck_block_release))release;
  if (hck_queue_offsets_known(offsets)) {
    hck_queue_layout_known = 1;
    hck_current_queue_function = (__typeof__(hck_current_queue_function))current;
    hck_main_queue_address = (uint64_t)main_queue;
  }
  hck_dispatch_low = range.low;
  hck_dispatch_block_invoke = invoke ? *invoke : 0;
  hck_dispatch_queues_known = hck_queue_offsets_known(offsets);
  __atomic_store_n(&hck_dispatch_bytes, range.high - range.low, __ATOMIC_RELEASE);
}
