#include "text/added.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "text/utf8.h"

/* ---------------------------------------------------------------- building */

static uint32_t find_child(const ml_added *added, uint32_t node, uint8_t byte) {
  if (node == 0) return added->child_of_root[byte];
  uint32_t child = added->nodes[node].first_child;
  while (child && added->nodes[child].byte != byte) child = added->nodes[child].next_sibling;
  return child;
}

static uint32_t add_child(ml_added *added, uint32_t node, uint8_t byte) {
  uint32_t child = added->n_nodes++;
  added->nodes[child] = (ml_added_node){0, added->nodes[node].first_child, 0, ML_NO_TOKEN, byte};
  added->nodes[node].first_child = child;
  if (node == 0) added->child_of_root[byte] = child;
  return child;
}

/* Tokens that are not whole characters are left out: they could match half of one. */
static void add_token(ml_added *added, uint32_t id, const uint8_t *bytes, uint32_t size) {
  if (ml_utf8_valid_prefix(bytes, size) < size) return;
  uint32_t node = 0;
  for (uint32_t i = size; i-- > 0;) {
    uint32_t child = find_child(added, node, bytes[i]);
    node = child ? child : add_child(added, node, bytes[i]);
  }
  if (node != 0 && added->nodes[node].token == ML_NO_TOKEN) added->nodes[node].token = id;
}

/* The node for a string with one more byte in front, or for the longest beginning of that which is a node. */
static uint32_t step(const ml_added *added, uint32_t node, uint8_t byte) {
  for (;;) {
    uint32_t child = find_child(added, node, byte);
    if (child || node == 0) return child;
    node = added->nodes[node].fallback;
  }
}

/* Fallbacks in the order of length, since each is found by those of shorter strings. `queue` holds all nodes. */
static void link_fallbacks(ml_added *added, uint32_t *queue) {
  uint32_t n = 0;
  queue[n++] = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t node = queue[i];
    for (uint32_t child = added->nodes[node].first_child; child; child = added->nodes[child].next_sibling) {
      ml_added_node *entry = &added->nodes[child];
      entry->fallback = node ? step(added, added->nodes[node].fallback, entry->byte) : 0;
      if (entry->token == ML_NO_TOKEN) entry->token = added->nodes[entry->fallback].token;
      queue[n++] = child;
    }
  }
}

static void fill(ml_added *added, const ml_vocabulary *vocabulary, uint32_t *queue) {
  added->n_nodes = 1;
  added->nodes[0] = (ml_added_node){0, 0, 0, ML_NO_TOKEN, 0};
  memset(added->child_of_root, 0, sizeof added->child_of_root);
  for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
    uint32_t size;
    const uint8_t *bytes = ml_vocabulary_get(vocabulary, id, &size);
    if (vocabulary->attr[id] & ML_MLT_ADDED) add_token(added, id, bytes, size);
  }
  link_fallbacks(added, queue);
}

/* At most one node for each byte, and the root. */
static uint64_t most_nodes(const ml_mlt *mlt) {
  uint64_t n = 1;
  const uint8_t *at = mlt->tokens;
  for (uint32_t id = 0; id < mlt->n_vocab; id++) {
    ml_mlt_token token;
    at = ml_mlt_next_token(at, &token);
    if (token.attr & ML_MLT_ADDED) n += token.size;
  }
  return n;
}

void ml_added_place(ml_added *added, const ml_mlt *mlt, const ml_vocabulary *vocabulary, ml_arena *arena) {
  uint64_t n = mlt->n_added ? most_nodes(mlt) : 0;
  added->n_nodes = 0;
  added->nodes = ml_arena_take(arena, n, sizeof *added->nodes);
  uint32_t *queue = ml_arena_take(arena, n, sizeof *queue);
  if (n && added->nodes) fill(added, vocabulary, queue);
}

/* ---------------------------------------------------------------- searching */

ml_status ml_added_find(const ml_added *added, const uint8_t *text, size_t size, ml_buffer *found,
                        size_t *n_found, ml_error *error) {
  *n_found = 0;
  if (added->n_nodes == 0) return ML_OK;
  uint32_t node = 0;
  for (size_t at = size; at-- > 0;) {
    node = step(added, node, text[at]);
    uint32_t token = added->nodes[node].token;
    if (token == ML_NO_TOKEN) continue;
    uint64_t needed = ml_mul_sizes((uint64_t)*n_found + 1, sizeof(ml_added_match));
    ML_TRY(ml_buffer_reserve(found, needed, *n_found * sizeof(ml_added_match), "added tokens in the text",
                             error));
    ((ml_added_match *)found->memory)[(*n_found)++] = (ml_added_match){at, token};
  }
  return ML_OK;
}
