#include "text/vocabulary.h"

#include <string.h>

#include "text/utf8.h"

/* ---------------------------------------------------------------- what can be looked up */

static bool is_one_character(const ml_mlt_token *token) {
  size_t n;
  return token->size > 0 && ml_utf8_judge(token->bytes, token->size, &n) == ML_UTF8_VALID && n == token->size;
}

static bool can_be_found(const ml_mlt *mlt, const ml_mlt_token *token) {
  if (mlt->kind == ML_MLT_SENTENCEPIECE) return token->attr != ML_MLT_BYTE && is_one_character(token);
  return (mlt->flags & ML_MLT_IGNORE_MERGES) != 0 && (token->attr & ML_MLT_ADDED) == 0;
}

static uint32_t count_findable(const ml_mlt *mlt) {
  uint32_t n = 0;
  const uint8_t *at = mlt->tokens;
  for (uint32_t id = 0; id < mlt->n_vocab; id++) {
    ml_mlt_token token;
    at = ml_mlt_next_token(at, &token);
    n += can_be_found(mlt, &token);
  }
  return n;
}

/* ---------------------------------------------------------------- the index */

static uint32_t bucket_of(const ml_vocabulary *v, const uint8_t *bytes, size_t size) {
  uint32_t hash = 0x811c9dc5u; /* FNV-1a, the high bits folded in */
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x01000193u;
  return (hash ^ hash >> 15) & (v->n_buckets - 1);
}

static int compare_bytes(const uint8_t *a, uint32_t a_size, const uint8_t *b, uint32_t b_size) {
  if (a_size != b_size) return a_size < b_size ? -1 : 1;
  return a_size ? memcmp(a, b, a_size) : 0;
}

/* Whether token `a` stands before `b` in a bucket: by bytes, then ordinary before added, then by id. */
static bool goes_before(const ml_vocabulary *v, uint32_t a, uint32_t b) {
  uint32_t a_size, b_size;
  const uint8_t *a_bytes = ml_vocabulary_get(v, a, &a_size), *b_bytes = ml_vocabulary_get(v, b, &b_size);
  int order = compare_bytes(a_bytes, a_size, b_bytes, b_size);
  if (order == 0) order = (v->attr[a] & ML_MLT_ADDED) - (v->attr[b] & ML_MLT_ADDED);
  return order < 0 || (order == 0 && a < b);
}

static void sift_down(const ml_vocabulary *v, uint32_t *ids, uint32_t n, uint32_t at) {
  for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && goes_before(v, ids[child], ids[child + 1])) child++;
    if (!goes_before(v, ids[at], ids[child])) return;
    uint32_t held = ids[at];
    ids[at] = ids[child];
    ids[child] = held;
  }
}

/* Heap sort: buckets hold one or two ids, but a file can be made so that one bucket holds them all. */
static void sort_bucket(const ml_vocabulary *v, uint32_t *ids, uint32_t n) {
  for (uint32_t i = n / 2; i-- > 0;) sift_down(v, ids, n, i);
  for (uint32_t last = n; last-- > 1;) {
    uint32_t largest = ids[0];
    ids[0] = ids[last];
    ids[last] = largest;
    sift_down(v, ids, last, 0);
  }
}

static void fill_index(ml_vocabulary *v, const ml_mlt *mlt) {
  memset(v->bucket, 0, ((size_t)v->n_buckets + 1) * sizeof *v->bucket);
  ml_mlt_token token;
  const uint8_t *at = mlt->tokens;
  for (uint32_t id = 0; id < v->n_tokens; id++) {
    at = ml_mlt_next_token(at, &token);
    if (can_be_found(mlt, &token)) v->bucket[bucket_of(v, token.bytes, token.size)]++;
  }
  /* Sizes to ends; placing each id before the end of its bucket then turns ends to starts. */
  for (uint32_t b = 0; b < v->n_buckets; b++) v->bucket[b + 1] += v->bucket[b];
  at = mlt->tokens;
  for (uint32_t id = 0; id < v->n_tokens; id++) {
    at = ml_mlt_next_token(at, &token);
    if (can_be_found(mlt, &token)) v->found[--v->bucket[bucket_of(v, token.bytes, token.size)]] = id;
  }
  for (uint32_t b = 0; b < v->n_buckets; b++)
    sort_bucket(v, v->found + v->bucket[b], v->bucket[b + 1] - v->bucket[b]);
}

uint32_t ml_vocabulary_find(const ml_vocabulary *v, const uint8_t *bytes, size_t size) {
  if (v->n_buckets == 0 || size > UINT32_MAX) return ML_NO_TOKEN;
  uint32_t b = bucket_of(v, bytes, size);
  uint32_t low = v->bucket[b], end = v->bucket[b + 1], high = end;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2, other_size;
    const uint8_t *other = ml_vocabulary_get(v, v->found[middle], &other_size);
    if (compare_bytes(other, other_size, bytes, (uint32_t)size) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == end) return ML_NO_TOKEN;
  uint32_t found_size;
  const uint8_t *found = ml_vocabulary_get(v, v->found[low], &found_size);
  return compare_bytes(found, found_size, bytes, (uint32_t)size) == 0 ? v->found[low] : ML_NO_TOKEN;
}

/* ---------------------------------------------------------------- filling in */

/* The byte's symbol: byte-level any token of one byte, SentencePiece a byte token. */
static bool stands_for_byte(const ml_mlt *mlt, const ml_mlt_token *token) {
  return token->size == 1 && (mlt->kind == ML_MLT_BYTE_LEVEL || token->attr == ML_MLT_BYTE);
}

static void fill_tokens(ml_vocabulary *v, const ml_mlt *mlt) {
  const uint8_t *at = mlt->tokens;
  v->start[0] = 0;
  for (int b = 0; b < 256; b++) v->of_byte[b] = ML_NO_TOKEN;
  for (uint32_t id = 0; id < v->n_tokens; id++) {
    ml_mlt_token token;
    at = ml_mlt_next_token(at, &token);
    if (token.size) memcpy(v->bytes + v->start[id], token.bytes, token.size);
    v->start[id + 1] = v->start[id] + token.size;
    v->attr[id] = token.attr;
    if (!stands_for_byte(mlt, &token)) continue;
    uint32_t *symbol = &v->of_byte[token.bytes[0]];
    bool better = *symbol == ML_NO_TOKEN || (v->attr[*symbol] & ML_MLT_ADDED) > (token.attr & ML_MLT_ADDED);
    if (better) *symbol = id;
  }
}

void ml_vocabulary_place(ml_vocabulary *v, const ml_mlt *mlt, ml_arena *arena) {
  uint32_t n_findable = count_findable(mlt);
  v->n_tokens = mlt->n_vocab;
  v->n_buckets = n_findable ? 1 : 0;
  while (v->n_buckets < n_findable) v->n_buckets *= 2;
  v->start = ml_arena_take(arena, (uint64_t)v->n_tokens + 1, sizeof *v->start);
  v->bytes = ml_arena_take(arena, mlt->token_bytes, 1);
  v->attr = ml_arena_take(arena, v->n_tokens, sizeof *v->attr);
  v->bucket = ml_arena_take(arena, (uint64_t)v->n_buckets + 1, sizeof *v->bucket);
  v->found = ml_arena_take(arena, n_findable, sizeof *v->found);
  if (!v->start) return;
  fill_tokens(v, mlt);
  fill_index(v, mlt);
}
