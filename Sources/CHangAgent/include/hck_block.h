// The block that the agent puts into a block object (a work item) around the program's: the object
// keeps its flags and priority, and what runs is known. In C, for Swift cannot lay out a block.
#ifndef HCK_BLOCK_H
#define HCK_BLOCK_H

#include "hck_dispatch.h"

typedef struct hck_item_block {
  void *_Nonnull isa;
  int32_t flags, reserved;
  void (*_Nonnull invoke)(struct hck_item_block *_Nonnull);
  const void *_Nonnull descriptor;
  void *_Nullable inner; // the program's
  const void *_Nullable item; // the object that it was submitted as last
  uint64_t entered;      // resource words of the group that it leaves,
  uint64_t notifies;     // and of the one whose end it tells of; 0
  uint32_t known;        // clock of whoever submitted it, in the arena of
  uint32_t pid;          // this process
} hck_item_block;

// The agent's block in an object; NULL where there is none.
HCK_INLINE hck_item_block *_Nullable hck_block_of_item(const void *_Nonnull item) {
  if (!hck_is_block_object(item)) { return NULL; }
  hck_item_block *block = (hck_item_block *)HCK_DO(uint64_t, item, 0x48);
  extern void hck_item_invoke(hck_item_block *_Nonnull);
  return block && block->invoke == hck_item_invoke ? block : NULL;
}
// The group that its waiters sleep on.
HCK_INLINE uint64_t hck_group_of_item(const void *_Nonnull item) { return HCK_DO(uint64_t, item, 0x50); }
HCK_INLINE void hck_run_block(const void *_Nonnull block) {
  ((void (*)(const void *))HCK_DO(uint64_t, block, 16))(block);
}
HCK_INLINE uint64_t hck_item_entry(void) {
  extern void hck_item_invoke(hck_item_block *_Nonnull);
  return (uint64_t)hck_item_invoke;
}
// In Swift.
void hck_item_run(hck_item_block *_Nonnull block);
void hck_item_gone(hck_item_block *_Nonnull block);

#endif
