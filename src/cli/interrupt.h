/* interrupt.h - signals: the first Ctrl-C asks for a stop after the running step, the next one leaves. */
#ifndef ML_CLI_INTERRUPT_H
#define ML_CLI_INTERRUPT_H

#include <stdbool.h>

/* A broken pipe becomes a write error, which is then reported, instead of a silent end. */
void interrupt_ignore_broken_pipes(void);

/* From here on Ctrl-C is a request; before, it ends the program. */
void interrupt_watch(void);
bool interrupt_requested(void);

#endif
