/* tokenizer.c - from a .mlt file to a tokenizer: everything that encoding and decoding look up, in one arena. */
#include "text/tokenizer.h"

#include <string.h>

#include "base/error.h"
#include "text/utf8.h"

static bool is_byte_level(const ml_mlt *mlt) { return mlt->kind == ML_MLT_BYTE_LEVEL; }

/* The tokenizer's pieces of an arena, filled where they have memory. `t` is one on the stack while measuring. */
static void place_parts(ml_tokenizer *t, const ml_mlt *mlt, ml_arena *arena) {
  ml_vocabulary_place(&t->vocabulary, mlt, arena);
  ml_merges_place(&t->merges, mlt, arena);
  ml_added_place(&t->added, mlt, &t->vocabulary, arena);
  t->is_control = ml_arena_take(arena, mlt->n_vocab, 1);
  t->unicode = is_byte_level(mlt) ? ml_unicode_place(arena) : NULL;
  t->seams = is_byte_level(mlt) ? NULL : ml_seams_place(mlt, &t->vocabulary, arena);
}

/* An added token is ordinary text, too, if it can come from text in which none are looked for: as a symbol or by a
 * merge (the runs of newlines that Gemma has among its added tokens). The others control. */
static void mark_controls(ml_tokenizer *t, const ml_mlt *mlt) {
  for (uint32_t id = 0; id < mlt->n_vocab; id++) {
    uint32_t size;
    const uint8_t *bytes = ml_vocabulary_get(&t->vocabulary, id, &size);
    bool symbol = is_byte_level(mlt) ? size == 1 && t->vocabulary.of_byte[bytes[0]] == id
                                     : ml_vocabulary_find(&t->vocabulary, bytes, size) == id;
    t->is_control[id] = (t->vocabulary.attr[id] & ML_MLT_ADDED) != 0 && !symbol;
  }
  for (uint32_t rank = 0; rank < mlt->n_merges; rank++) t->is_control[t->merges.merged[rank]] = 0;
}

static void find_ascii_symbols(ml_tokenizer *t) {
  for (uint32_t c = 0; c < 128; c++) {
    uint8_t text[ML_UTF8_MAX];
    size_t size = ml_utf8_put(text, c == ' ' ? ML_SPACE_SYMBOL : c);
    t->ascii_symbols[c] = ml_vocabulary_find(&t->vocabulary, text, size);
  }
}

static void fill(ml_tokenizer *t, const ml_mlt *mlt) {
  t->info = (ml_tokenizer_info){mlt->kind, mlt->n_vocab, mlt->n_merges, mlt->n_added,
                                mlt->bos,  mlt->eos,     mlt->flags};
  t->longest_token = mlt->longest_token;
  mark_controls(t, mlt);
  if (!t->seams) return;
  find_ascii_symbols(t);
}

static uint64_t measure(const ml_mlt *mlt) {
  ml_arena plan = ml_arena_measure();
  ml_tokenizer draft;
  ml_arena_take(&plan, 1, sizeof draft);
  place_parts(&draft, mlt, &plan);
  return plan.taken;
}

uint64_t ml_tokenizer_memory(const void *bytes, size_t size) {
  ml_mlt mlt;
  return ml_mlt_read(&mlt, bytes, size, NULL) == ML_OK ? measure(&mlt) : 0;
}

ml_status ml_tokenizer_open(ml_tokenizer **out, const void *bytes, size_t size, const ml_allocator *allocator,
                            ml_error *error) {
  ml_mlt mlt;
  ML_TRY(ml_mlt_read(&mlt, bytes, size, error));

  ml_arena arena;
  ML_TRY(ml_arena_open(&arena, allocator, measure(&mlt), 0, "tokenizer", error));

  ml_tokenizer *t = ml_arena_take(&arena, 1, sizeof *t);
  memset(t, 0, sizeof *t);
  place_parts(t, &mlt, &arena);
  fill(t, &mlt);
  t->allocator = arena.allocator;
  t->arena = arena;
  *out = t;
  return ML_OK;
}

void ml_tokenizer_free(ml_tokenizer *tokenizer) {
  if (!tokenizer) return;
  ml_arena arena = tokenizer->arena; /* the struct goes away with its arena */
  ml_arena_close(&arena);
}

const ml_tokenizer_info *ml_tokenizer_get_info(const ml_tokenizer *tokenizer) { return &tokenizer->info; }

int32_t ml_tokenizer_next_control(const ml_tokenizer *tokenizer, int32_t after, const char **text,
                                  size_t *size) {
  uint32_t n_bytes, id = after < 0 ? 0 : (uint32_t)after + 1;
  while (id < tokenizer->info.n_vocab && !tokenizer->is_control[id]) id++;
  if (id >= tokenizer->info.n_vocab) return -1;
  *text = (const char *)ml_vocabulary_get(&tokenizer->vocabulary, id, &n_bytes);
  *size = n_bytes;
  return (int32_t)id;
}

ml_status ml_tokenizer_check_model(const ml_tokenizer *tokenizer, const ml_model *model, ml_error *error) {
  uint32_t n_vocab = tokenizer->info.n_vocab, vocab = ml_model_get_info(model)->vocab;
  if (n_vocab <= vocab) return ML_OK;
  return ml_fail(error, ML_E_SHAPE, "n_vocab of the tokenizer", ml_uint(n_vocab),
                 "must be at most the model's vocab", ml_uint(vocab), ML_NO_OFFSET);
}
