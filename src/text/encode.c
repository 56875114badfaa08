/* encode.c - text to ids.
 *
 *   text --repair--> valid UTF-8 --added tokens--> sections and ids
 *   byte-level:     section --NFC--> --split--> pieces --bytes--> symbols --merges--> ids
 *   SentencePiece:  section --characters, byte tokens--> symbols --cut at seams--> pieces --merges--> ids */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "text/nfc.h"
#include "text/split.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

/* One call at work. */
typedef struct encoding {
  const ml_tokenizer *t;
  ml_error *error;
  int32_t *ids; /* the caller's, `capacity` of them */
  size_t capacity;
  size_t n_ids; /* that there are, more than capacity perhaps */

  const ml_span *plain; /* no added token may touch these; the first `n_plain` are still ahead */
  size_t n_plain;

  ml_buffer symbols; /* uint32_t: the piece being put together */
  size_t n_symbols;
  ml_buffer merging;    /* scratch of ml_merges_apply */
  ml_buffer normalized; /* a section in NFC */
  ml_buffer clusters;   /* scratch of ml_nfc_normalize */
  ml_buffer matches;    /* ml_added_match */
  ml_buffer repaired;   /* the text, if it was no valid UTF-8 */
} encoding;

static void put_id(encoding *e, uint32_t id) {
  if (e->n_ids < e->capacity) e->ids[e->n_ids] = (int32_t)id;
  e->n_ids++;
}

static ml_status reserve_symbols(encoding *e, size_t n_more) {
  uint64_t needed = ml_mul_sizes(ml_add_sizes(e->n_symbols, n_more), sizeof(uint32_t));
  if (needed <= e->symbols.capacity) return ML_OK;
  return ml_buffer_reserve(&e->symbols, needed, e->n_symbols * sizeof(uint32_t), "symbols", e->error);
}

/* Into memory that has been reserved. */
static void put_symbol(encoding *e, uint32_t symbol) {
  ((uint32_t *)e->symbols.memory)[e->n_symbols++] = symbol;
}

/* Merges the symbols so far to ids. */
static ml_status finish_piece(encoding *e) {
  uint32_t *symbols = e->symbols.memory;
  size_t n;
  ML_TRY(ml_merges_apply(&e->t->merges, symbols, e->n_symbols, &e->merging, &n, e->error));
  for (size_t i = 0; i < n; i++) put_id(e, symbols[i]);
  e->n_symbols = 0;
  return ML_OK;
}

/* ---------------------------------------------------------------- byte-level */

static ml_status encode_piece(encoding *e, const uint8_t *piece, size_t size) {
  const ml_vocabulary *vocabulary = &e->t->vocabulary;
  uint32_t whole = ml_vocabulary_find(vocabulary, piece, size); /* finds nothing without ignore_merges */
  if (whole != ML_NO_TOKEN) {
    put_id(e, whole);
    return ML_OK;
  }
  ML_TRY(reserve_symbols(e, size));
  for (size_t i = 0; i < size; i++)
    if (vocabulary->of_byte[piece[i]] != ML_NO_TOKEN) put_symbol(e, vocabulary->of_byte[piece[i]]);
  return finish_piece(e);
}

static ml_status encode_byte_level(encoding *e, const uint8_t *text, size_t size) {
  const ml_unicode *unicode = e->t->unicode;
  if ((e->t->info.flags & ML_MLT_NFC) && !ml_nfc_is_plain(unicode, text, size)) {
    ML_TRY(ml_nfc_normalize(unicode, text, size, &e->clusters, &e->normalized, &size, e->error));
    text = e->normalized.memory;
  }
  ml_splitter splitter = ml_split_begin(unicode, e->t->info.flags, text, size);
  const uint8_t *piece;
  size_t piece_size;
  while (ml_split_next(&splitter, &piece, &piece_size)) ML_TRY(encode_piece(e, piece, piece_size));
  return ML_OK;
}

/* ---------------------------------------------------------------- SentencePiece */

static bool has_byte_tokens(const ml_vocabulary *vocabulary, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (vocabulary->of_byte[bytes[i]] == ML_NO_TOKEN) return false;
  return true;
}

/* Appends a character, which is `size` bytes, to the piece, or begins a new piece with it where there is a seam. One that
 * has neither a symbol nor all byte tokens is dropped as if it had never been there. `last_label` is that of the piece's
 * last symbol. */
static ml_status put_character(encoding *e, uint32_t symbol, uint8_t label, const uint8_t *bytes, size_t size,
                               uint8_t *last_label) {
  const ml_vocabulary *vocabulary = &e->t->vocabulary;
  if (symbol == ML_NO_TOKEN) {
    if (!has_byte_tokens(vocabulary, bytes, size)) return ML_OK;
    label = ML_LABEL_BYTE;
  }
  if (e->n_symbols && ml_seams_between(e->t->seams, *last_label, label)) ML_TRY(finish_piece(e));
  ML_TRY(reserve_symbols(e, ML_UTF8_MAX));
  if (symbol != ML_NO_TOKEN)
    put_symbol(e, symbol);
  else
    for (size_t i = 0; i < size; i++) put_symbol(e, vocabulary->of_byte[bytes[i]]);
  *last_label = label;
  return ML_OK;
}

static ml_status put_space(encoding *e, uint8_t *last_label) {
  return put_character(e, e->t->ascii_symbols[' '], ML_LABEL_SPACE_SYMBOL,
                       (const uint8_t *)ML_SPACE_SYMBOL_TEXT, ML_SPACE_SYMBOL_SIZE, last_label);
}

static bool begins_with_space(const uint8_t *text, size_t size) {
  return text[0] == ' ' ||
         (size >= ML_SPACE_SYMBOL_SIZE && memcmp(text, ML_SPACE_SYMBOL_TEXT, ML_SPACE_SYMBOL_SIZE) == 0);
}

static bool needs_prefix(const encoding *e, const uint8_t *text, size_t size, bool at_start) {
  uint32_t flags = e->t->info.flags;
  if (size == 0 || (flags & ML_MLT_NO_PREFIX)) return false;
  if (flags & ML_MLT_PREFIX_ONCE) return at_start && !begins_with_space(text, size);
  return true;
}

static ml_status encode_sentencepiece(encoding *e, const uint8_t *text, size_t size, bool at_start) {
  uint8_t last_label = 0;
  if (needs_prefix(e, text, size, at_start)) ML_TRY(put_space(e, &last_label));
  for (const uint8_t *at = text, *end = text + size; at < end;) {
    const uint8_t *begin = at;
    uint32_t character = ml_utf8_next(&at), symbol;
    size_t n_bytes = (size_t)(at - begin);
    if (character == ' ') {
      ML_TRY(put_space(e, &last_label));
      continue;
    }
    symbol = character < 128 ? e->t->ascii_symbols[character]
                             : ml_vocabulary_find(&e->t->vocabulary, begin, n_bytes);
    ML_TRY(put_character(e, symbol, ml_seams_label(character), begin, n_bytes, &last_label));
  }
  return finish_piece(e);
}

/* ---------------------------------------------------------------- sections */

static ml_status encode_section(encoding *e, const uint8_t *text, size_t size, bool at_start) {
  if (size == 0) return ML_OK;
  if (e->t->unicode) return encode_byte_level(e, text, size);
  return encode_sentencepiece(e, text, size, at_start);
}

/* Whether some of [begin, end) is in a plain span, or one that is empty lies inside it. `begin` never falls from call to
 * call. */
static bool touches_plain(encoding *e, size_t begin, size_t end) {
  while (e->n_plain > 0 && e->plain->end <= begin) {
    e->plain++;
    e->n_plain--;
  }
  return e->n_plain > 0 && e->plain->begin < end;
}

static ml_status encode_sections(encoding *e, const uint8_t *text, size_t size, bool special) {
  size_t n_matches = 0, done = 0;
  if (special) ML_TRY(ml_added_find(&e->t->added, text, size, &e->matches, &n_matches, e->error));
  while (n_matches-- > 0) { /* they come last to first */
    ml_added_match match = ((const ml_added_match *)e->matches.memory)[n_matches];
    if (match.at < done) continue; /* begins inside the one before */
    uint32_t token_size;
    ml_vocabulary_get(&e->t->vocabulary, match.token, &token_size);
    if (touches_plain(e, match.at, match.at + token_size)) continue;
    ML_TRY(encode_section(e, text + done, match.at - done, done == 0));
    put_id(e, match.token);
    done = match.at + token_size;
  }
  return encode_section(e, text + done, size - done, done == 0);
}

static ml_status encode_text(encoding *e, const uint8_t *text, size_t size, unsigned flags) {
  const ml_tokenizer_info *info = &e->t->info;
  if ((info->flags & ML_MLT_ADD_BOS) && info->bos >= 0 && !(flags & ML_ENCODE_NO_BOS))
    put_id(e, (uint32_t)info->bos);
  if (ml_utf8_valid_prefix(text, size) < size) {
    if (e->n_plain)
      return ml_fail(e->error, ML_E_ARG, "text", ml_none(), "must be UTF-8 where it has plain spans",
                     ml_none(), ml_utf8_valid_prefix(text, size));
    size_t repaired_size = ml_utf8_repair(NULL, text, size);
    ML_TRY(ml_buffer_reserve(&e->repaired, repaired_size, 0, "repaired text", e->error));
    ml_utf8_repair(e->repaired.memory, text, size);
    text = e->repaired.memory;
    size = repaired_size;
  }
  return encode_sections(e, text, size, (flags & ML_ENCODE_SPECIAL) != 0);
}

/* Rising, apart, and inside the text. */
static ml_status check_spans(const ml_span *plain, size_t n_plain, size_t size, ml_error *error) {
  size_t done = 0;
  for (size_t i = 0; i < n_plain; done = plain[i++].end)
    if (plain[i].begin < done || plain[i].end < plain[i].begin || plain[i].end > size)
      return ml_fail(error, ML_E_ARG, "plain span", ml_uint(i),
                     "must not begin before the one before ends, nor end behind the text of", ml_uint(size),
                     ML_NO_OFFSET);
  return ML_OK;
}

ml_status ml_tokenizer_encode_spans(const ml_tokenizer *tokenizer, const char *text, size_t size,
                                    const ml_span *plain, size_t n_plain, unsigned flags, int32_t *ids,
                                    size_t capacity, size_t *n_ids, ml_error *error) {
  if (flags & ~(unsigned)(ML_ENCODE_SPECIAL | ML_ENCODE_NO_BOS))
    return ml_fail(error, ML_E_ARG, "flags", ml_uint(flags), "must have no other bits than those of",
                   ml_uint(ML_ENCODE_SPECIAL | ML_ENCODE_NO_BOS), ML_NO_OFFSET);
  ML_TRY(check_spans(plain, n_plain, size, error));
  if (size == 0) text = ""; /* the caller may have no memory at all */
  ml_buffer none = ml_buffer_new(&tokenizer->allocator);
  encoding e = {tokenizer, error, ids, capacity, 0, plain, n_plain, none, 0, none, none, none, none, none};
  ml_status status = encode_text(&e, (const uint8_t *)text, size, flags);
  ml_buffer *buffers[] = {&e.symbols, &e.merging, &e.normalized, &e.clusters, &e.matches, &e.repaired};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) ml_buffer_free(buffers[i]);
  if (status == ML_OK) *n_ids = e.n_ids;
  return status;
}

ml_status ml_tokenizer_encode(const ml_tokenizer *tokenizer, const char *text, size_t size, unsigned flags,
                              int32_t *ids, size_t capacity, size_t *n_ids, ml_error *error) {
  return ml_tokenizer_encode_spans(tokenizer, text, size, NULL, 0, flags, ids, capacity, n_ids, error);
}
