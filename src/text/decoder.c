/* decoder.c - ids to text, a piece for each id, so that the pieces together are what the tokenizers library decodes from
 * all ids at once.
 *
 * Two things are held back because later ids can change them:
 *
 *   - the beginning of a character: the rest of it may come, or not, and then it is one U+FFFD;
 *   - SentencePiece: a run of byte tokens. The library decodes each run as a whole: to the text that its bytes spell if
 *     they are UTF-8 from the first to the last, otherwise to one U+FFFD for each byte. So a run that is right so far is
 *     certain only when it ends, and one that has gone wrong is certain at once.
 *
 * A family that puts a ▁ before the text loses one leading space of the decoded text. */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

struct ml_decoder {
  ml_arena arena; /* holds this struct */
  const ml_tokenizer *t;
  ml_buffer text; /* of this call; always has room for what finishing would give */
  size_t text_size;
  bool drop_space; /* the next character goes if it is a space */

  uint8_t tail[ML_UTF8_MAX]; /* the beginning of a character */
  size_t tail_size;

  ml_buffer run;    /* bytes of byte tokens, undecided */
  size_t run_size;  /* of which the */
  size_t run_valid; /* first are whole characters */
  bool run_broken;  /* the run went wrong: it has been given out, and its further bytes are too */
};

/* ---------------------------------------------------------------- putting text together */

/* Appends valid UTF-8, into memory that has been reserved. */
static void put(ml_decoder *d, const uint8_t *bytes, size_t size) {
  if (size == 0) return;
  bool drop = d->drop_space && bytes[0] == ' ';
  d->drop_space = false;
  memcpy((uint8_t *)d->text.memory + d->text_size, bytes + drop, size - drop);
  d->text_size += size - drop;
}

static void put_replacements(ml_decoder *d, size_t n) {
  while (n-- > 0) put(d, (const uint8_t *)ML_REPLACEMENT, ML_REPLACEMENT_SIZE);
}

static void give_up_tail(ml_decoder *d) {
  put_replacements(d, d->tail_size > 0);
  d->tail_size = 0;
}

/* Takes bytes until the character that has begun is whole or broken, and gives the number taken. A byte that breaks it
 * is left, since it may begin another one. */
static size_t complete_tail(ml_decoder *d, const uint8_t *bytes, size_t size) {
  size_t taken = 0, n;
  while (d->tail_size > 0 && taken < size) {
    d->tail[d->tail_size] = bytes[taken];
    ml_utf8_kind kind = ml_utf8_judge(d->tail, d->tail_size + 1, &n);
    if (kind == ML_UTF8_BROKEN) {
      give_up_tail(d);
      break;
    }
    d->tail_size++;
    taken++;
    if (kind == ML_UTF8_UNFINISHED) continue;
    put(d, d->tail, d->tail_size);
    d->tail_size = 0;
  }
  return taken;
}

/* Appends bytes of any sort, the replacement for what is broken, and holds the beginning of a character back. */
static void put_bytes(ml_decoder *d, const uint8_t *bytes, size_t size) {
  size_t at = complete_tail(d, bytes, size), n;
  while (at < size) {
    size_t valid = ml_utf8_valid_prefix(bytes + at, size - at);
    put(d, bytes + at, valid);
    at += valid;
    if (at == size) return;
    if (ml_utf8_judge(bytes + at, size - at, &n) == ML_UTF8_UNFINISHED) {
      memcpy(d->tail, bytes + at, n);
      d->tail_size = n;
      return;
    }
    put_replacements(d, 1);
    at += n;
  }
}

/* ---------------------------------------------------------------- SentencePiece */

static void end_run(ml_decoder *d) {
  if (d->run_valid == d->run_size)
    put(d, d->run.memory, d->run_size);
  else
    put_replacements(d, d->run_size);
  d->run_size = d->run_valid = 0;
  d->run_broken = false;
}

static void put_byte_token(ml_decoder *d, uint8_t byte) {
  give_up_tail(d);
  if (d->run_broken) {
    put_replacements(d, 1);
    return;
  }
  uint8_t *run = d->run.memory;
  run[d->run_size++] = byte;
  size_t n;
  switch (ml_utf8_judge(run + d->run_valid, d->run_size - d->run_valid, &n)) {
    case ML_UTF8_VALID: d->run_valid = d->run_size; break;
    case ML_UTF8_UNFINISHED: break;
    case ML_UTF8_BROKEN:
      end_run(d);
      d->run_broken = true;
      break;
  }
}

/* A token with a space for each ▁. */
static void put_piece(ml_decoder *d, const uint8_t *bytes, uint32_t size) {
  uint32_t done = 0;
  end_run(d);
  for (uint32_t at = 0; at + ML_SPACE_SYMBOL_SIZE <= size;) {
    if (memcmp(bytes + at, ML_SPACE_SYMBOL_TEXT, ML_SPACE_SYMBOL_SIZE) != 0) {
      at++;
      continue;
    }
    put_bytes(d, bytes + done, at - done);
    put_bytes(d, (const uint8_t *)" ", 1);
    done = at += ML_SPACE_SYMBOL_SIZE;
  }
  put_bytes(d, bytes + done, size - done);
}

/* ---------------------------------------------------------------- the calls */

static void begin(ml_decoder *d) {
  d->tail_size = d->run_size = d->run_valid = 0;
  d->run_broken = false;
  d->drop_space = d->t->info.kind == ML_MLT_SENTENCEPIECE && !(d->t->info.flags & ML_MLT_NO_PREFIX);
}

/* Room for a token of `size` bytes after all that is held back, and to hold back one byte more: a replacement is never
 * more than three times what it replaces. */
static ml_status reserve(ml_decoder *d, uint32_t size, ml_error *error) {
  uint64_t most = ml_add_sizes(d->tail_size + (uint64_t)size + 1, d->run_size);
  ML_TRY(ml_buffer_reserve(&d->text, ml_mul_sizes(most, ML_REPLACEMENT_SIZE), 0, "decoded text", error));
  return ml_buffer_reserve(&d->run, (uint64_t)d->run_size + 1, d->run_size, "byte tokens", error);
}

ml_status ml_decoder_new(ml_decoder **out, const ml_tokenizer *tokenizer, const ml_allocator *allocator,
                         ml_error *error) {
  ml_arena measure = ml_arena_measure(), arena;
  ml_arena_take(&measure, 1, sizeof(ml_decoder));
  ML_TRY(ml_arena_open(&arena, allocator, measure.taken, 0, "decoder", error));
  ml_decoder *d = ml_arena_take(&arena, 1, sizeof *d);
  memset(d, 0, sizeof *d);
  d->arena = arena;
  d->t = tokenizer;
  d->text = ml_buffer_new(&arena.allocator);
  d->run = ml_buffer_new(&arena.allocator);
  begin(d);
  ml_status status = reserve(d, tokenizer->longest_token, error);
  if (status == ML_OK)
    *out = d;
  else
    ml_decoder_free(d);
  return status;
}

void ml_decoder_free(ml_decoder *decoder) {
  if (!decoder) return;
  ml_buffer_free(&decoder->text);
  ml_buffer_free(&decoder->run);
  ml_arena arena = decoder->arena; /* the struct goes away with its arena */
  ml_arena_close(&arena);
}

ml_status ml_decoder_push(ml_decoder *d, int32_t id, bool special, const char **text, size_t *size,
                          ml_error *error) {
  const ml_vocabulary *vocabulary = &d->t->vocabulary;
  if (id < 0 || (uint32_t)id >= vocabulary->n_tokens)
    return ml_fail(error, ML_E_ARG, "token id", ml_int(id), "must be 0 or more and below",
                   ml_uint(vocabulary->n_tokens), ML_NO_OFFSET);
  uint32_t n_bytes;
  const uint8_t *bytes = ml_vocabulary_get(vocabulary, (uint32_t)id, &n_bytes);
  ML_TRY(reserve(d, n_bytes, error));
  d->text_size = 0;
  if (special || !d->t->is_control[id]) {
    if (d->t->info.kind == ML_MLT_BYTE_LEVEL)
      put_bytes(d, bytes, n_bytes);
    else if (vocabulary->attr[id] == ML_MLT_BYTE)
      put_byte_token(d, bytes[0]);
    else
      put_piece(d, bytes, n_bytes);
  }
  *text = d->text.memory;
  *size = d->text_size;
  return ML_OK;
}

void ml_decoder_finish(ml_decoder *d, const char **text, size_t *size) {
  d->text_size = 0;
  give_up_tail(d);
  end_run(d);
  begin(d);
  *text = d->text.memory;
  *size = d->text_size;
}
