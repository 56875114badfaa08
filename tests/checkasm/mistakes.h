/* mistakes.h - an implementation that is scalar with one mistake: proof that the checks of every kernel find it. */
#ifndef MISTAKES_H
#define MISTAKES_H

#include "kernels/kernels.h"

typedef enum mistake {
  EVERY_LAST_BIT, /* the lowest bit of the last element of an output, in every call */
  A_RARE_BIT,     /* some bit of some byte of an output, in one call of thirteen */
  BYTE_BEHIND,    /* the byte behind an output */
  BYTE_BEFORE,    /* the byte before an output */
  AN_INPUT,       /* the first byte of an input, instead of an output */
  N_MISTAKES
} mistake;

enum { MAX_OUTPUTS = 3 }; /* of a kernel */

const char *mistake_name(mistake m);

/* Chooses the mistake, and which output of each kernel it strikes. */
void mistakes_begin(mistake m, int output);
/* How often it was made since then: 0 where a kernel has fewer outputs, or no such input. */
uint64_t mistakes_made(void);

extern const ml_kernels mistaken_kernels;

#endif
