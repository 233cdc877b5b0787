#define _GNU_SOURCE
#include "include/hck_system.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

uint32_t hck_unix_peer(uint32_t inode) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) { return 0; }
  struct {
    struct nlmsghdr head;
    struct unix_diag_req ask;
  } message = {
      {.nlmsg_len = sizeof message, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
      {.sdiag_family = AF_UNIX, .udiag_states = ~0u, .udiag_ino = inode, .udiag_show = UDIAG_SHOW_PEER, .udiag_cookie = {~0u, ~0u}},
  };
  uint32_t peer = 0;
  union {
    struct nlmsghdr head;
    char bytes[4096];
  } answer;
  struct timeval patience = {0, 100000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ssize_t got = -1;
  if (send(fd, &message, sizeof message, 0) == (ssize_t)sizeof message) { got = recv(fd, &answer, sizeof answer, 0); }
  close(fd);
  if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || answer.head.nlmsg_len > (size_t)got ||
      answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY) {
    return 0;
  }
  const struct unix_diag_msg *found = NLMSG_DATA(&answer.head);
  if (found->udiag_ino != inode) { return 0; }
  int left = (int)(answer.head.nlmsg_len - NLMSG_LENGTH(sizeof *found));
  for (const struct rtattr *part = (const struct rtattr *)(found + 1); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
    if (part->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(part) >= sizeof peer) { memcpy(&peer, RTA_DATA(part), sizeof peer); }
  }
  return peer;
}
