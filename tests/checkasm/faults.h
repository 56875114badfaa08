/* faults.h - what a platform does about wrong memory accesses and instructions. Where it can do nothing (WebAssembly),
 * a fault ends the program, after the name of the kernel was printed. */
#ifndef FAULTS_H
#define FAULTS_H

#include <stddef.h>

/* Memory of `bytes`, a multiple of 64 KB, whose end is followed by a page that cannot be touched, or just memory. NULL
 * when there is none. Never given back. */
void *guarded_memory(size_t bytes);

/* Calls run(context). Returns NULL, or what went wrong ("SIGSEGV") if it was left by a fault. */
const char *catch_faults(void (*run)(void *context), void *context);

#endif
