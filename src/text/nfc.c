/* nfc.c - normalization in clusters.
 *
 * A cluster is a character and all that follow it and "join": only these can change places or compose with each other,
 * so each cluster is normalized by itself. Nearly all are one character that is its own NFC, and are copied. */
#include "text/nfc.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "text/utf8.h"

/* The Unicode Standard, section 3.12: Hangul syllables are composed by arithmetic. */
enum {
  L_BASE = 0x1100,
  V_BASE = 0x1161,
  T_BASE = 0x11A7, /* one before the first T: "no T" is number 0 */
  S_BASE = 0xAC00,
  N_L = 19,
  N_V = 21,
  N_T = 28,
  N_S = N_L * N_V * N_T
};

/* A character at work: its code point, and above it 1 + the rank of its combining class, or 0 for a starter. */
enum {
  CODE_POINT_MASK = 0xFFFFFF,
  CLASS_SHIFT = 24,
  MAX_PARTS = 4 /* of one code point, fully decomposed */
};

static uint32_t class_of(uint32_t item) { return item >> CLASS_SHIFT; }
static uint32_t code_point_of(uint32_t item) { return item & CODE_POINT_MASK; }

static uint32_t make_item(const ml_unicode *unicode, uint32_t code_point) {
  uint32_t value = ml_unicode_value(unicode, code_point);
  uint32_t combining = value < ML_CHAR_NON_STARTER ? 0 : value - ML_CHAR_NON_STARTER + 1;
  return combining << CLASS_SHIFT | code_point;
}

/* ---------------------------------------------------------------- decompose */

/* Appends the full decomposition of a code point and gives its length, at most MAX_PARTS. */
static size_t decompose(const ml_unicode *unicode, uint32_t code_point, uint32_t *out) {
  uint32_t syllable = code_point - S_BASE; /* wraps to a large number below S_BASE */
  if (syllable < N_S) {
    out[0] = L_BASE + syllable / (N_V * N_T);
    out[1] = V_BASE + syllable / N_T % N_V;
    out[2] = T_BASE + syllable % N_T;
    return syllable % N_T ? 3 : 2;
  }
  /* Only first halves decompose further, so the second ones come out last to first. */
  uint32_t tails[MAX_PARTS];
  size_t n_tails = 0, n = 0;
  for (const ml_decomposition *step; (step = ml_unicode_decompose(unicode, code_point)) != NULL;) {
    if (step->second) tails[n_tails++] = step->second;
    code_point = step->first;
  }
  out[n++] = make_item(unicode, code_point);
  while (n_tails) out[n++] = make_item(unicode, tails[--n_tails]);
  assert(n <= MAX_PARTS);
  return n;
}

/* ---------------------------------------------------------------- order */

static void insertion_sort(uint32_t *items, size_t n) {
  for (size_t i = 1; i < n; i++) {
    uint32_t item = items[i];
    size_t at = i;
    for (; at > 0 && class_of(items[at - 1]) > class_of(item); at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

/* Stable, and linear: a text may well be nothing but marks. `spare` has room for n items. */
static void counting_sort(uint32_t *items, size_t n, uint32_t *spare) {
  size_t place[257] = {0}; /* place[c + 1] counts class c, then place[c] is where its next item goes */
  for (size_t i = 0; i < n; i++) place[class_of(items[i]) + 1]++;
  for (size_t c = 1; c < 257; c++) place[c] += place[c - 1];
  for (size_t i = 0; i < n; i++) spare[place[class_of(items[i])]++] = items[i];
  memcpy(items, spare, n * sizeof *items);
}

/* Puts every run of non-starters in the order of their classes. */
static void order(uint32_t *items, size_t n, uint32_t *spare) {
  enum { SHORT_RUN = 16 };
  for (size_t at = 0, end; at < n; at = end) {
    end = at + 1;
    if (class_of(items[at]) == 0) continue;
    while (end < n && class_of(items[end]) != 0) end++;
    if (end - at <= SHORT_RUN)
      insertion_sort(items + at, end - at);
    else
      counting_sort(items + at, end - at, spare);
  }
}

/* ---------------------------------------------------------------- compose */

static uint32_t compose_pair(const ml_unicode *unicode, uint32_t first, uint32_t second) {
  if (first - L_BASE < N_L && second - V_BASE < N_V)
    return S_BASE + ((first - L_BASE) * N_V + (second - V_BASE)) * N_T;
  uint32_t syllable = first - S_BASE, t = second - T_BASE;
  if (syllable < N_S && syllable % N_T == 0 && t > 0 && t < N_T) return first + t;
  return ml_unicode_compose(unicode, first, second);
}

/* Composes in place and gives the new length. A character is blocked from the last starter if one with the same or a
 * higher class lies between them; since the marks are in order, that is the one just before. */
static size_t compose(const ml_unicode *unicode, uint32_t *items, size_t n) {
  size_t starter = SIZE_MAX, written = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t item = items[i];
    bool adjacent = written > 0 && starter == written - 1;
    bool blocked = starter == SIZE_MAX || (!adjacent && class_of(items[written - 1]) >= class_of(item));
    uint32_t composite =
        blocked ? 0 : compose_pair(unicode, code_point_of(items[starter]), code_point_of(item));
    if (composite) {
      items[starter] = composite; /* every composite is a starter */
      continue;
    }
    if (class_of(item) == 0) starter = written;
    items[written++] = item;
  }
  return written;
}

/* ---------------------------------------------------------------- clusters */

static bool joins(uint32_t value) { return value >= ML_CHAR_NON_STARTER || (value & ML_CHAR_JOINS) != 0; }
static bool is_plain(uint32_t value) { return !joins(value) && (value & ML_CHAR_CHANGES) == 0; }

bool ml_nfc_is_plain(const ml_unicode *unicode, const uint8_t *text, size_t size) {
  const uint8_t *at = text, *end = text + size;
  while (at < end) {
    if (*at < 0xCC) { /* below U+0300 all is plain */
      at += *at < 0x80 ? 1 : 2;
      continue;
    }
    if (!is_plain(ml_unicode_value(unicode, ml_utf8_next(&at)))) return false;
  }
  return true;
}

typedef struct cluster {
  const uint8_t *end;
  size_t n_chars;
  bool plain; /* its own NFC */
} cluster;

static cluster find_cluster(const ml_unicode *unicode, const uint8_t *at, const uint8_t *end) {
  cluster found = {at, 1, false};
  found.plain = is_plain(ml_unicode_value(unicode, ml_utf8_next(&found.end)));
  while (found.end < end) {
    const uint8_t *next = found.end;
    if (!joins(ml_unicode_value(unicode, ml_utf8_next(&next)))) break;
    found.end = next;
    found.n_chars++;
    found.plain = false;
  }
  return found;
}

/* Writes the NFC of one cluster and gives its size. `items` has room for twice MAX_PARTS for each character, `out` for
 * ML_UTF8_MAX bytes for each of MAX_PARTS. */
static size_t normalize_cluster(const ml_unicode *unicode, const uint8_t *at, const cluster *found,
                                uint32_t *items, uint8_t *out) {
  size_t n = 0, size = 0;
  while (at < found->end) n += decompose(unicode, ml_utf8_next(&at), items + n);
  order(items, n, items + MAX_PARTS * found->n_chars);
  n = compose(unicode, items, n);
  for (size_t i = 0; i < n; i++) size += ml_utf8_put(out + size, code_point_of(items[i]));
  return size;
}

ml_status ml_nfc_normalize(const ml_unicode *unicode, const uint8_t *text, size_t size, ml_buffer *scratch,
                           ml_buffer *out, size_t *out_size, ml_error *error) {
  const uint8_t *at = text, *end = text + size;
  size_t written = 0;
  ML_TRY(ml_buffer_reserve(out, size, 0, "normalized text", error));
  while (at < end) {
    cluster found = find_cluster(unicode, at, end);
    size_t as_is = (size_t)(found.end - at);
    uint64_t room = found.plain ? as_is : ml_mul_sizes(found.n_chars, MAX_PARTS * ML_UTF8_MAX);
    ML_TRY(ml_buffer_reserve(out, ml_add_sizes(written, room), written, "normalized text", error));
    uint8_t *to = (uint8_t *)out->memory + written;
    if (found.plain) {
      memcpy(to, at, as_is);
      written += as_is;
    } else {
      ML_TRY(ml_buffer_reserve(scratch, ml_mul_sizes(found.n_chars, 2 * MAX_PARTS * sizeof(uint32_t)), 0,
                               "normalization", error));
      written += normalize_cluster(unicode, at, &found, scratch->memory, to);
    }
    at = found.end;
  }
  *out_size = written;
  return ML_OK;
}
