#include "text/seams.h"

#include <string.h>

#include "text/utf8.h"

static bool label_at(const uint8_t *at, size_t size, bool to_the_end, uint8_t *label) {
  size_t n;
  if (ml_utf8_judge(at, size, &n) != ML_UTF8_VALID || (to_the_end && n != size)) return false;
  *label = ml_seams_label(ml_utf8_next(&at));
  return true;
}

static ml_seams_ends find_ends(const ml_vocabulary *vocabulary, uint32_t id) {
  static const ml_seams_ends unknown = {ML_LABEL_NONE, ML_LABEL_NONE};
  if (vocabulary->attr[id] == ML_MLT_BYTE) return (ml_seams_ends){ML_LABEL_BYTE, ML_LABEL_BYTE};
  uint32_t size, back = 1;
  const uint8_t *bytes = ml_vocabulary_get(vocabulary, id, &size);
  if (size == 0) return unknown;
  while (back < size && back < ML_UTF8_MAX && (bytes[size - back] & 0xC0) == 0x80) back++;
  ml_seams_ends ends;
  bool known =
      label_at(bytes, size, false, &ends.first) && label_at(bytes + size - back, back, true, &ends.last);
  return known ? ends : unknown;
}

/* Enters one rule; false if its tokens do not fit each other. */
static bool join(ml_seams *seams, const ml_seams_ends *ends, ml_mlt_merge merge) {
  ml_seams_ends left = ends[merge.left], right = ends[merge.right], merged = ends[merge.merged];
  if (left.last == ML_LABEL_NONE || right.first == ML_LABEL_NONE) return false;
  if (merged.first != left.first || merged.last != right.last) return false;
  seams->joined[left.last][right.first / 8] |= (uint8_t)(1u << right.first % 8);
  return true;
}

static void fill(ml_seams *seams, ml_seams_ends *ends, const ml_mlt *mlt, const ml_vocabulary *vocabulary) {
  for (uint32_t id = 0; id < mlt->n_vocab; id++) ends[id] = find_ends(vocabulary, id);
  memset(seams->joined, 0, sizeof seams->joined);
  bool trusted = true;
  for (uint32_t rank = 0; trusted && rank < mlt->n_merges; rank++)
    trusted = join(seams, ends, ml_mlt_get_merge(mlt, rank));
  if (!trusted) memset(seams->joined, 0xFF, sizeof seams->joined); /* no seams at all */
}

ml_seams *ml_seams_place(const ml_mlt *mlt, const ml_vocabulary *vocabulary, ml_arena *arena) {
  ml_seams *seams = ml_arena_take(arena, 1, sizeof *seams);
  ml_seams_ends *ends = ml_arena_take(arena, mlt->n_vocab, sizeof *ends);
  if (seams) fill(seams, ends, mlt, vocabulary);
  return seams;
}
