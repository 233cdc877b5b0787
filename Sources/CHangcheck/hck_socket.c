#define _GNU_SOURCE
#include "include/hck_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int hck_send_datagram(const char *path, const void *bytes, size_t length, int fd) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) { return ENAMETOOLONG; }
  strcpy(address.sun_path, path);
  struct iovec io = {(void *)bytes, length};
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {0};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  if (length > 0) {
    message.msg_iov = &io;
    message.msg_iovlen = 1;
  }
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) { return errno; }
  int error = sendmsg(s, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
  close(s);
  return error;
}

int hck_sealed_file(const void *bytes, size_t length, int *error) {
  int fd = memfd_create("hangcheck-report", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  if (fd < 0) {
    *error = errno;
    return -1;
  }
  const char *at = bytes;
  while (length > 0) {
    ssize_t size = write(fd, at, length);
    if (size < 0 && errno == EINTR) { continue; }
    if (size <= 0) { break; }
    at += size;
    length -= (size_t)size;
  }
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (length == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0) { return fd; }
  *error = errno ? errno : EIO;
  close(fd);
  return -1;
}
