#include "text/seams.h"

#include <string.h>

#include "text/utf8.h"

/* The labels at both ends of a token; false if it has none (it is empty, or no UTF-8 there). */
typedef struct ends {
  uint8_t first, last;
} ends;

static bool label_at(const uint8_t *at, size_t size, bool to_the_end, uint8_t *label) {
  size_t n;
  if (ml_utf8_judge(at, size, &n) != ML_UTF8_VALID || (to_the_end && n != size)) return false;
  *label = ml_seams_label(ml_utf8_next(&at));
  return true;
}

static bool find_ends(const ml_vocabulary *vocabulary, uint32_t id, ends *out) {
  if (vocabulary->attr[id] == ML_MLT_BYTE) {
    *out = (ends){ML_LABEL_BYTE, ML_LABEL_BYTE};
    return true;
  }
  uint32_t size, back = 1;
  const uint8_t *bytes = ml_vocabulary_get(vocabulary, id, &size);
  if (size == 0) return false;
  while (back < size && back < ML_UTF8_MAX && (bytes[size - back] & 0xC0) == 0x80) back++;
  return label_at(bytes, size, false, &out->first) && label_at(bytes + size - back, back, true, &out->last);
}

void ml_seams_fill(ml_seams *seams, const ml_mlt *mlt, const ml_vocabulary *vocabulary) {
  memset(seams->joined, 0, sizeof seams->joined);
  for (uint32_t rank = 0; rank < mlt->n_merges; rank++) {
    ml_mlt_merge merge = ml_mlt_get_merge(mlt, rank);
    ends left, right, merged;
    bool known = find_ends(vocabulary, merge.left, &left) && find_ends(vocabulary, merge.right, &right) &&
                 find_ends(vocabulary, merge.merged, &merged);
    if (!known || merged.first != left.first || merged.last != right.last) {
      memset(seams->joined, 0xFF, sizeof seams->joined); /* no seams at all */
      return;
    }
    seams->joined[left.last][right.first / 8] |= (uint8_t)(1u << right.first % 8);
  }
}
