/*
 * signals.c: where the program's signal handlers run.
 *
 * A goroutine has a stack of a few KiB. A handler that was installed without
 * SA_ONSTACK runs on the stack of whatever it interrupts: in the middle of Go
 * its frame, which holds all vector registers (2.7 KB with AVX-512), goes over
 * the end of that stack and into other memory. Go itself interrupts its
 * threads by SIGURG, so a program that takes SIGURG is hit soon.
 *
 * Go gives the flag to the handlers that it finds when it is loaded. Here it is
 * done again for those that came later, whenever something is made that Go will
 * work for, and before Go works without that. Threads of the program have no
 * stack of their own for signals, unless they asked for one, and to them the
 * flag means nothing.
 */
#define _DEFAULT_SOURCE
#include "internal.h"

#include <pthread.h>
#include <signal.h>

void mfi_keep_handlers_off_goroutines(void) {
  struct sigaction action;
  for (int number = 1; number < NSIG; number++) {
    if (sigaction(number, NULL, &action) != 0 || (action.sa_flags & SA_ONSTACK))
      continue; /* none of the C library's own */
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
      continue;
    action.sa_flags |= SA_ONSTACK;
    sigaction(number, &action, NULL);
  }
}

void mfi_look_at_handlers_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, mfi_keep_handlers_off_goroutines);
}
