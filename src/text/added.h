/* added.h - finds added tokens spelled in a text: the leftmost match first, at one place the longest.
 *
 * Tokens are kept backwards in an Aho-Corasick automaton, and the text is read from its end. Whatever token the
 * automaton has just completed then begins at the byte just read, so for every place the longest token that begins
 * there is known after one pass, in time by the length of the text alone; the choice from left to right is a second
 * pass over what was found. (Forwards, the longest match can need a look-ahead as long as the longest token for each
 * byte.) */
#ifndef ML_TEXT_ADDED_H
#define ML_TEXT_ADDED_H

#include "base/arena.h"
#include "text/buffer.h"
#include "text/vocabulary.h"

/* A node is a string that some token ends with; node 0 is the empty one. */
typedef struct ml_added_node {
  uint32_t first_child, next_sibling; /* 0: none */
  uint32_t fallback; /* the longest proper beginning (in the text: end) of this string among nodes */
  uint32_t token;    /* the longest token that this string begins with, or ML_NO_TOKEN */
  uint8_t byte;      /* that the parent's string got in front */
} ml_added_node;

typedef struct ml_added {
  ml_added_node *nodes;
  uint32_t n_nodes; /* 0: there are no added tokens */
  uint32_t child_of_root[256];
} ml_added;

/* Takes the nodes from an arena and, where it is a real one, puts in the tokens with attr ML_MLT_ADDED. Empty ones,
 * and those that are not UTF-8, never match. */
void ml_added_place(ml_added *added, const ml_mlt *mlt, const ml_vocabulary *vocabulary, ml_arena *arena);

typedef struct ml_added_match {
  size_t at; /* in the text */
  uint32_t token;
} ml_added_match;

/* Sets *n_found, and `found` to that many matches: for each place where a token begins the longest, by falling place.
 * They may overlap. */
ml_status ml_added_find(const ml_added *added, const uint8_t *text, size_t size, ml_buffer *found,
                        size_t *n_found, ml_error *error);

#endif
