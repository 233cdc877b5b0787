// libdispatch's own functions and objects, under names that no other header declares: the drop-ins
// call them without the way through the overlay's classes. Only who calls them needs the library.
#ifndef HCK_DISPATCH_LINKED_H
#define HCK_DISPATCH_LINKED_H

#include "hck_dispatch_memory.h"

extern void hck_dispatch_group_enter(void *_Nonnull group) __asm__("dispatch_group_enter");
extern void hck_dispatch_group_leave(void *_Nonnull group) __asm__("dispatch_group_leave");
extern void *_Nullable hck_dispatch_get_context(void *_Nonnull object) __asm__("dispatch_get_context");
extern void hck_dispatch_set_context(void *_Nonnull object, void *_Nullable context)
  __asm__("dispatch_set_context");
extern const uint16_t hck_dispatch_offsets __asm__("dispatch_queue_offsets");
extern char hck_dispatch_main_queue __asm__("_dispatch_main_q");

HCK_INLINE const void *_Nonnull hck_main_queue(void) { return &hck_dispatch_main_queue; }
// Whether queues look like those of the libdispatch that this was written for.
HCK_INLINE int hck_linked_queues_known(void) {
  const char *label = hck_queue_offsets_known(&hck_dispatch_offsets) ? hck_queue_label(hck_main_queue()) : NULL;
  return label && __builtin_strcmp(label, "com.apple.main-thread") == 0 && hck_queue_width(hck_main_queue()) == 1;
}

#endif
