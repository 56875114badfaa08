/* Encoding by any vocabulary and any rules equals the plainest way to do it: every token is tried at every place, every rule
 * for every pair.
 *
 *   input   kind u8, flags u16, options u8 (1: all bytes are tokens, 2 and 4: flags of the call)
 *           n_tokens u8, for each    attr and length u8, then that many bytes
 *           n_merges u8, for each    left, right, merged u8 each (modulo the vocabulary)
 *           text                     all that is left */
#include "fuzz_tokenizer.h"
#include "text/nfc.h"
#include "text/split.h"

enum { MOST_TOKENS = 48, MOST_MERGES = 64, MOST_TEXT = 160 };

/* ---------------------------------------------------------------- from bytes to a file and a text */

typedef struct input {
  const uint8_t *bytes;
  size_t size;
} input;

static uint8_t take(input *in) {
  if (in->size == 0) return 0;
  in->size--;
  return *in->bytes++;
}

static tiny_mlt take_tokenizer(input *in, unsigned *flags) {
  uint32_t kind = 1 + take(in) % 2u, file_flags = take(in);
  file_flags |= (take(in) & 1u) << 8;
  uint32_t both =
      kind == ML_MLT_SENTENCEPIECE ? ML_MLT_PREFIX_ONCE | ML_MLT_NO_PREFIX : ML_MLT_GPT2 | ML_MLT_MARKS;
  if ((file_flags & both) == both) file_flags ^= both;
  tiny_mlt made = tiny_mlt_new(kind, file_flags);
  uint8_t options = take(in);
  *flags = options >> 1 & 3u;
  if (options & 1) tiny_mlt_bytes(&made);
  uint32_t n_tokens = 1 + take(in) % MOST_TOKENS;
  for (uint32_t i = 0; i < n_tokens; i++) {
    uint8_t head = take(in), attr = head & 3, text[64];
    uint32_t length = attr == ML_MLT_BYTE ? 1 : head >> 2 & 7;
    for (uint32_t b = 0; b < length; b++) text[b] = take(in);
    tiny_mlt_token_of(&made, attr, text, length);
  }
  uint32_t n_merges = take(in) % MOST_MERGES;
  for (uint32_t i = 0; i < n_merges; i++) {
    uint32_t left = take(in), right = take(in), merged = take(in);
    tiny_mlt_merge(&made, left % made.n_vocab, right % made.n_vocab, merged % made.n_vocab);
  }
  made.bos = (int32_t)(take(in) % (made.n_vocab + 1)) - 1;
  return made;
}

/* ---------------------------------------------------------------- the plainest way */

typedef struct naive {
  const tiny_mlt *made;
  const ml_unicode *unicode;
  uint32_t *ids; /* room for all */
  size_t n;
} naive;

enum { ORDINARY = 1, ADDED = 2, BYTE = 4 }; /* sorts of tokens to look among */

static bool is_of(uint8_t attr, int sorts) {
  return (sorts & (attr & ML_MLT_ADDED ? ADDED : attr == ML_MLT_BYTE ? BYTE : ORDINARY)) != 0;
}

/* The first token of some sort with these bytes, or -1. */
static int64_t find(const tiny_mlt *made, int sorts, const uint8_t *bytes, size_t size) {
  const uint8_t *at = made->tokens.data;
  for (uint32_t id = 0; id < made->n_vocab; id++) {
    uint32_t length = ml_read_u32(at + 1);
    if (is_of(at[0], sorts) && length == size && memcmp(at + 5, bytes, size) == 0) return id;
    at += 5 + length;
  }
  return -1;
}

static int64_t find_symbol(const tiny_mlt *made, int sorts, const uint8_t *bytes, size_t size) {
  int64_t ordinary = find(made, sorts & ~ADDED, bytes, size);
  return ordinary >= 0 ? ordinary : find(made, sorts & ADDED, bytes, size);
}

/* The added token at a place, the longest one and of equals the first; -1 if there is none. */
static int64_t find_added(const tiny_mlt *made, const uint8_t *text, size_t size, size_t *length) {
  const uint8_t *at = made->tokens.data;
  int64_t best = -1;
  *length = 0;
  for (uint32_t id = 0; id < made->n_vocab; id++) {
    uint32_t n = ml_read_u32(at + 1);
    bool candidate = (at[0] & ML_MLT_ADDED) && ml_utf8_valid_prefix(at + 5, n) == n;
    if (candidate && n > *length && n <= size && memcmp(at + 5, text, n) == 0) {
      best = id;
      *length = n;
    }
    at += 5 + n;
  }
  return best;
}

static void merge_from(naive *v, size_t begin) {
  v->n = begin + tiny_merge(v->made->merges.data, v->made->n_merges, v->ids + begin, v->n - begin);
}

static void put_if(naive *v, int64_t id) {
  if (id >= 0) v->ids[v->n++] = (uint32_t)id;
}

static void encode_piece(naive *v, const uint8_t *piece, size_t size) {
  int64_t whole = v->made->flags & ML_MLT_IGNORE_MERGES ? find(v->made, ORDINARY | BYTE, piece, size) : -1;
  size_t begin = v->n;
  for (size_t i = 0; whole < 0 && i < size; i++)
    put_if(v, find_symbol(v->made, ORDINARY | BYTE | ADDED, piece + i, 1));
  put_if(v, whole);
  if (whole < 0) merge_from(v, begin);
}

static void put_character(naive *v, const uint8_t *bytes, size_t size) {
  int64_t symbol = find_symbol(v->made, ORDINARY | ADDED, bytes, size);
  bool spelled = true;
  for (size_t i = 0; i < size; i++) spelled = spelled && find(v->made, BYTE, bytes + i, 1) >= 0;
  put_if(v, symbol);
  for (size_t i = 0; symbol < 0 && spelled && i < size; i++) put_if(v, find(v->made, BYTE, bytes + i, 1));
}

static void encode_sentencepiece(naive *v, const uint8_t *text, size_t size, bool at_start) {
  static const uint8_t space[] = {0xE2, 0x96, 0x81};
  size_t begin = v->n;
  uint32_t flags = v->made->flags;
  bool begins = text[0] == ' ' || (size >= 3 && memcmp(text, space, 3) == 0);
  if (flags & ML_MLT_PREFIX_ONCE ? at_start && !begins : !(flags & ML_MLT_NO_PREFIX))
    put_character(v, space, 3);
  for (const uint8_t *at = text, *end = text + size; at < end;) {
    const uint8_t *from = at;
    if (ml_utf8_next(&at) == ' ')
      put_character(v, space, 3);
    else
      put_character(v, from, (size_t)(at - from));
  }
  merge_from(v, begin);
}

static void encode_section(naive *v, const uint8_t *text, size_t size, bool at_start) {
  if (size == 0) return;
  if (v->made->kind == ML_MLT_SENTENCEPIECE) {
    encode_sentencepiece(v, text, size, at_start);
    return;
  }
  ml_allocator memory = ml_allocator_or_default(NULL);
  ml_buffer scratch = ml_buffer_new(&memory), out = ml_buffer_new(&memory), again = ml_buffer_new(&memory);
  if (v->made->flags & ML_MLT_NFC) {
    size_t again_size;
    MUST(ml_nfc_normalize(v->unicode, text, size, &scratch, &out, &size, NULL) == ML_OK);
    text = out.memory;
    MUST(ml_nfc_normalize(v->unicode, text, size, &scratch, &again, &again_size, NULL) == ML_OK);
    MUST(again_size == size && memcmp(again.memory, text, size) == 0);
  }
  ml_splitter splitter = ml_split_begin(v->unicode, v->made->flags, text, size);
  const uint8_t *piece, *end = text;
  for (size_t n; ml_split_next(&splitter, &piece, &n); end = piece + n) {
    MUST(piece == end && n > 0 && n <= size - (size_t)(end - text));
    encode_piece(v, piece, n);
  }
  MUST(end == text + size);
  ml_buffer_free(&scratch);
  ml_buffer_free(&out);
  ml_buffer_free(&again);
}

static void encode_naively(naive *v, const uint8_t *text, size_t size, unsigned flags) {
  if ((v->made->flags & ML_MLT_ADD_BOS) && !(flags & ML_ENCODE_NO_BOS)) put_if(v, v->made->bos);
  size_t begin = 0, at = 0, length;
  while (at < size) {
    int64_t added = flags & ML_ENCODE_SPECIAL ? find_added(v->made, text + at, size - at, &length) : -1;
    if (added < 0) {
      at++;
      continue;
    }
    encode_section(v, text + begin, at - begin, begin == 0);
    put_if(v, added);
    begin = at += length;
  }
  encode_section(v, text + begin, size - begin, begin == 0);
}

/* ---------------------------------------------------------------- the comparison */

static void compare(const tiny_mlt *made, const ml_tokenizer *tokenizer, const ml_unicode *unicode,
                    const uint8_t *text, size_t size, unsigned flags) {
  size_t n;
  int32_t *ids = must_encode(tokenizer, (const char *)text, size, flags, &n);
  uint8_t *repaired = malloc(3 * size + 1);
  naive v = {made, unicode, malloc((12 * size + 16) * sizeof(uint32_t)), 0};
  MUST(repaired && v.ids);
  encode_naively(&v, repaired, ml_utf8_repair(repaired, text, size), flags);
  MUST(v.n == n && memcmp(v.ids, ids, n * sizeof *ids) == 0);
  must_decode(tokenizer, ids, n, flags & 1);
  free(ids);
  free(repaired);
  free(v.ids);
}

/* Unpacked once: that takes longer than most inputs. */
static const ml_unicode *tables(void) {
  static ml_arena arena;
  static const ml_unicode *unicode;
  if (unicode) return unicode;
  ml_arena measure = ml_arena_measure();
  ml_unicode_place(&measure);
  MUST(ml_arena_open(&arena, NULL, measure.taken, 0, "tables", NULL) == ML_OK);
  return unicode = ml_unicode_place(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  input in = {bytes, size};
  unsigned flags;
  tiny_mlt made = take_tokenizer(&in, &flags);
  ml_tokenizer *tokenizer = tiny_mlt_open(&made);
  MUST(tokenizer);
  compare(&made, tokenizer, tables(), in.bytes, in.size < MOST_TEXT ? in.size : MOST_TEXT, flags);
  ml_tokenizer_free(tokenizer);
  tiny_mlt_free(&made);
  return 0;
}
