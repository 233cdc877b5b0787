// Processes that wait for each other in the kernel: over pipes, and for the end of a child.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char much[200000];

// The parent waits for a child that writes more than a pipe holds.
static void full(int own[2], int other[2]) {
  (void)other;
  pid_t child = fork();
  if (child == 0) {
    close(own[0]);
    _exit(write(own[1], much, sizeof much) < 0); // WAITS(full:main)
  }
  close(own[1]);
  waitpid(child, NULL, 0); // WAITS(full:main)
}

// Each waits for the other's first word.
static void crossed(int own[2], int other[2]) {
  pid_t child = fork();
  char word;
  if (child == 0) {
    close(own[0]);
    close(other[1]);
    _exit(read(other[0], &word, 1) < 0); // WAITS(crossed:main)
  }
  close(own[1]);
  close(other[0]);
  if (read(own[0], &word, 1) < 0) { puts("not read"); } // WAITS(crossed:main)
  waitpid(child, NULL, 0);
}

// The parent is slow, and reads all the same.
static void late(int own[2], int other[2]) {
  (void)other;
  pid_t child = fork();
  if (child == 0) {
    close(own[0]);
    for (size_t done = 0; done < sizeof much;) {
      ssize_t now = write(own[1], much + done, sizeof much - done);
      if (now < 0) { _exit(1); }
      done += (size_t)now;
    }
    _exit(0);
  }
  close(own[1]);
  sleep(3);
  size_t all = 0;
  for (ssize_t now; (now = read(own[0], much, sizeof much)) > 0;) { all += (size_t)now; }
  printf("%zu\n", all);
  waitpid(child, NULL, 0);
}

// The child takes its time, and ends.
static void patient(int own[2], int other[2]) {
  (void)own;
  (void)other;
  pid_t child = fork();
  if (child == 0) {
    sleep(3);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(int count, char **words) {
  int own[2], other[2];
  if (count < 2 || pipe(own) != 0 || pipe(other) != 0) { return 64; }
  if (!strcmp(words[1], "full")) { full(own, other); }
  if (!strcmp(words[1], "crossed")) { crossed(own, other); }
  if (!strcmp(words[1], "late")) { late(own, other); }
  if (!strcmp(words[1], "patient")) { patient(own, other); }
  puts("DONE");
  return 0;
}
