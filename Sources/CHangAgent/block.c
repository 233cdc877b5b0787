// See include/hck_block.h.
#include "include/hck_block.h"

#include <dlfcn.h>

static void copy(hck_item_block *to, const hck_item_block *from) {
  to->inner = hck_block_copy ? hck_block_copy(from->inner) : NULL;
  to->known = 0;
}

static void dispose(hck_item_block *block) {
  if (block->inner && hck_block_release) { hck_block_release(block->inner); }
  hck_item_gone(block);
}

static const struct {
  unsigned long reserved, size;
  void (*copy)(hck_item_block *, const hck_item_block *);
  void (*dispose)(hck_item_block *);
} descriptor = {0, sizeof(hck_item_block), copy, dispose};

void hck_item_invoke(hck_item_block *block) { hck_item_run(block); }

extern __attribute__((visibility("default"))) void *_dispatch_block_create(
  unsigned long flags, void *voucher, unsigned long priority, void *block) {
  void *isa = hck_stack_block_class;
  if (!isa || !block || !hck_block_copy || !hck_block_release || !hck_records_jobs()) {
    return hck_real__dispatch_block_create(flags, voucher, priority, block);
  }
  hck_item_block outer = {isa, 1 << 25, 0, hck_item_invoke, &descriptor, block, NULL, 0, 0, 0, 0};
  return hck_real__dispatch_block_create(flags, voucher, priority, &outer);
}
