// SIGQUIT as a wish for a picture of all threads. In C for struct sigaction, and since a handler may
// not touch the Swift runtime.
#ifndef HCK_QUIT_H
#define HCK_QUIT_H

// Takes the signal where nobody handles it but a catcher of crashes, such as the Swift runtime's: 0,
// EBUSY where the program has a handler of its own for it, which keeps it, or an errno.
int hck_quit_begin(void);
// Gives it back to what was there before, unless somebody else has taken it since.
void hck_quit_end(void);
// Whether it has come since the last time that this was asked.
int hck_quit_has_come(void);
// Whether it is ours.
int hck_quit_is_taken(void);

#endif
