#include "include/hck_dispatch_objects.h"

#include <string.h>

hck_dispatch_layout hck_dispatch;

// Indices in dispatch_queue_offsets, which only ever grows.
enum { OFFSET_LABEL = 1, OFFSET_SERIAL = 5, OFFSET_WIDTH = 7, OFFSET_TARGET = 13 };

int hck_dispatch_layout_begin(const void *offsets, const void *main_queue) {
  if (hck_dispatch.known) { return 1; }
  if (!offsets || !main_queue) { return 0; }
  const uint16_t *table = offsets;
  hck_dispatch_layout found = {
    1, table[OFFSET_TARGET], (uint32_t)table[OFFSET_SERIAL] - 8, table[OFFSET_WIDTH], table[OFFSET_LABEL]};
  // The state is not in the table: it lies before the serial number. Another order of the fields
  // is another libdispatch.
  if (found.target != 24 || found.state != 56 || found.label != 72 || found.width != 80) { return 0; }
  const char *q = main_queue;
  const char *label = *(const char *const *)(q + found.label);
  if (*(const uint16_t *)(q + found.width) != 1 || !label || strcmp(label, "com.apple.main-thread") != 0) {
    return 0;
  }
  hck_dispatch = found;
  return 1;
}
