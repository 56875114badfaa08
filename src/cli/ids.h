/* ids.h - token ids as people and programs write them: whole numbers between blanks, commas or lines. */
#ifndef ML_CLI_IDS_H
#define ML_CLI_IDS_H

#include <stddef.h>
#include <stdint.h>

typedef struct id_list {
  int32_t *ids; /* from malloc */
  size_t n;
} id_list;

/* `argument` is the list itself, the name of a file that holds it, or "-" for standard input. Something made
 * of digits, signs, dots, commas and blanks alone is a list. `option` names the source in messages. At least
 * one id, each from 0 to 2^31 - 1, or ML_E_ARG with the item's text and place. */
int ids_read(id_list *out, const char *option, const char *argument);

/* ML_E_ARG for the first id that a vocabulary of that size lacks. */
int ids_check_vocab(const id_list *list, const char *option, uint32_t vocab);

void ids_free(id_list *list); /* a zeroed struct is allowed */

/* Ids that are all over the vocabulary, for models whose tokenizer is not at hand. */
int ids_make_up(id_list *out, size_t n, uint32_t vocab);

#endif
