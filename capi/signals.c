/*
 * signals.c: keeps the program's signal handlers off the stacks of goroutines.
 *
 * A goroutine has a stack of a few KiB. A handler without SA_ONSTACK runs on the stack
 * that it interrupts. Its frame holds all vector registers (2.7 KB with AVX-512). On the
 * stack of a goroutine it overwrites other memory. The Go scheduler sends SIGURG to its
 * threads, so a program that handles SIGURG fails soon.
 *
 * When Go is loaded, it adds the flag to existing handlers. The functions below repeat
 * this for handlers that were installed later: whenever an object is created, and before
 * the first call that needs no object. Threads of the program without a signal stack
 * ignore the flag.
 */
#define _DEFAULT_SOURCE
#include "internal.h"

#include <pthread.h>
#include <signal.h>

void mfi_keep_handlers_off_goroutines(void) {
  struct sigaction action;
  for (int number = 1; number < NSIG; number++) {
    if (sigaction(number, NULL, &action) != 0 || (action.sa_flags & SA_ONSTACK))
      continue; /* sigaction fails for signals that the C library reserves */
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
      continue;
    action.sa_flags |= SA_ONSTACK;
    sigaction(number, &action, NULL);
  }
}

void mfi_check_handlers_once(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, mfi_keep_handlers_off_goroutines);
}
