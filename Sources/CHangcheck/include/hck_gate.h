// A fork must not fall into the watchdog's work: its child would inherit the locks of the loader
// and of the Swift runtime, held by a thread that it does not have. Fork handlers are C's, and run
// in the forking thread.
#ifndef HCK_GATE_H
#define HCK_GATE_H

// Around the watchdog's work. Whoever forks meanwhile waits, for a second at most.
void hck_gate_enter(void);
void hck_gate_leave(void);

#endif
