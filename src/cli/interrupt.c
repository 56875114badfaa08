#define _POSIX_C_SOURCE 200809L
#include "cli/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"

static volatile sig_atomic_t requested; /* a signal handler has nowhere else to put it */

static void on_interrupt(int signal_number) {
  (void)signal_number;
  if (requested) _exit(INTERRUPTED);
  requested = 1;
}

static void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigemptyset(&action.sa_mask);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, NULL);
}

void interrupt_ignore_broken_pipes(void) { handle(SIGPIPE, SIG_IGN); }

void interrupt_watch(void) { handle(SIGINT, on_interrupt); }

bool interrupt_requested(void) { return requested != 0; }
