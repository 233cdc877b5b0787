// Datagrams to the daemons that keep logs. In C for control messages and sockaddr_un, which are
// made of macros and arrays.
#ifndef HCK_SOCKET_H
#define HCK_SOCKET_H

#include <stddef.h>

// Sends one datagram to the socket at `path`, from a socket of its own; never blocks. With `fd` >= 0
// that descriptor goes along. 0 or an errno: EAGAIN where the receiver's queue is full, EMSGSIZE
// where it is too long.
int hck_send_datagram(
  const char *_Nonnull path, const void *_Nullable bytes, size_t length, int fd);
// A memory file of these bytes that nobody can change any more, which the caller closes; -1 and
// `error` where there can be none.
int hck_sealed_file(const void *_Nonnull bytes, size_t length, int *_Nonnull error);

#endif
