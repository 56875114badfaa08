/* ml.h - the public C API of krafla-web. Programs, the wasm exports and most tests see only this file.
 *
 * The design in one breath:
 *
 *   bytes --loader--> ml_model --+
 *                                +--> ml_session: ids --eval--> logits --sampler--> id
 *                    options  ---+
 *
 *   ml_model    Immutable: configuration and weights. May serve any number of sessions, from any thread.
 *   ml_session  One mutable timeline of tokens over one model. Owns the KV cache, the recurrent state and
 *               the logits. Used by one thread at a time (it has worker threads of its own).
 *   ml_sampler  Turns logits into one token id. Owns its random state.
 *   *_options   The caller's wishes. A zeroed struct means the defaults.
 *
 * Nothing is global and nothing here ends the process. Every call that can fail returns an ml_status and,
 * when `error` is not NULL, fills it with one line that names the field, its value, the rule it breaks and
 * its byte offset. After a failure every object that existed before the call is still usable, and `*out` is
 * untouched. Files are hostile: all sizes are checked before memory is asked for.
 *
 * The output is a function of the weights, the ids and the options alone: instruction set, thread count,
 * batch size and build do not change a bit of it (docs/NUMERICS.md).
 */
#ifndef ML_H
#define ML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- status and errors */

typedef enum ml_status {
  ML_OK = 0,
  ML_E_IO = 1,      /* a file cannot be opened, read or written */
  ML_E_FORMAT = 2,  /* bytes that are not a valid file of the format */
  ML_E_SHAPE = 3,   /* a dimension that is zero, over its limit, or at odds with another one */
  ML_E_NOMEM = 4,   /* memory could not be had, or would not fit the address space */
  ML_E_ARG = 5,     /* an argument out of range, for example a token id that the model lacks */
  ML_E_CONTEXT = 6, /* more tokens than the context holds */
  ML_E_NUMERIC = 7, /* an activation or logit became infinite or NaN */
  ML_E_STATE = 8    /* the call does not fit what happened before, for example sampling before any token */
} ml_status;

/* "ML_E_FORMAT" and so on; "ML_E_UNKNOWN" for a number that is none of them. Never NULL. */
const char *ml_status_name(ml_status status);

#define ML_NO_OFFSET UINT64_MAX

typedef struct ml_error {
  ml_status status;
  uint64_t offset;   /* byte offset in the file, or ML_NO_OFFSET */
  char message[240]; /* one line of UTF-8, always terminated */
} ml_error;

/* ---------------------------------------------------------------- memory */

/* Where an object's memory comes from. `allocate` returns NULL when there is none; the result need not be
 * aligned beyond max_align_t, nor zeroed. Copied by the object, which uses it until it is freed. */
typedef struct ml_allocator {
  void *(*allocate)(void *user, size_t size);
  void (*release)(void *user, void *memory);
  void *user;
} ml_allocator;

/* ---------------------------------------------------------------- model */

typedef struct ml_model ml_model;
typedef struct ml_loader ml_loader; /* of .mlb and .tinyloop files: their first four bytes tell which */

typedef struct ml_load_options {
  const ml_allocator *allocator; /* NULL: malloc and free */
  uint64_t total_size;           /* bytes that the source holds, 0 when unknown (ml_loader_* only) */
  uint64_t memory_limit;         /* refuse with ML_E_NOMEM a model that needs more bytes; 0: no limit */
  bool
      f16_body; /* keep the layers' matrices as half-precision floats instead of as stored: more memory, and inputs are
                    not quantized, so that results are others (docs/TINYLOOP.md has figures); native builds only */
} ml_load_options;

/* Streaming: make a loader, push the file's bytes in pieces of any size, finish. Each array goes straight to
 * its final place, so peak memory is the weights. The header is checked as soon as its 256 bytes are there,
 * and before any weight memory is asked for. The first failure is final: later calls return it again.
 * ml_loader_finish hands over the model and leaves a loader that can only be freed. */
ml_status ml_loader_new(ml_loader **out, const ml_load_options *options, ml_error *error);
ml_status ml_loader_push(ml_loader *loader, const void *bytes, size_t size, ml_error *error);
ml_status ml_loader_finish(ml_loader *loader, ml_model **out, ml_error *error);
void ml_loader_free(ml_loader *loader); /* NULL is allowed */

/* A whole file in memory. ml_model_open copies the weights; `bytes` may go away afterwards.
 * ml_model_map points into `bytes` wherever the format allows it (f16 scales, convolutions and all of a .tinyloop file
 * are copied);
 * `bytes` must be 64-byte aligned, stay unchanged and outlive the model. Both give the same results. */
ml_status ml_model_open(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                        ml_error *error);
ml_status ml_model_map(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                       ml_error *error);
/* What a file will need, before it is fetched: a model without weights from the file's first `size` bytes, of which the
 * header and its layer flags must be among them (256 + n_layers bytes are enough, 44 of a .tinyloop file, more do no
 * harm). It answers
 * ml_model_get_info and ml_session_memory as the whole file's would (which ml_model_open takes in), and a session of it is
 * refused with ML_E_STATE. */
ml_status ml_model_plan(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                        ml_error *error);
void ml_model_free(ml_model *model); /* NULL is allowed; no session of it may be left */

/* What a model is. Sizes in elements unless the name says bytes. */
typedef struct ml_model_info {
  uint32_t dim, n_layers, n_heads, n_kv_heads, head_dim, hidden_dim;
  uint32_t vocab;
  uint32_t max_seq;         /* longest context that the model allows */
  uint32_t n_linear_layers; /* of n_layers: gated delta rule instead of attention */
  uint32_t n_window_layers; /* of n_layers: behind the sliding window */
  uint32_t sliding_window;  /* positions, 0: none */
  uint32_t n_loops; /* of a looped model: how often the last of its layers is run by default; else 0 */
  uint32_t embed_factor_dim; /* columns of a factored embedding, 0: it is not */
  const char *weight_type;   /* "Q8_0", "Q4_0" or "Q4_0+Q8_0"; "INT2" or "INT4" of a .tinyloop file */
  uint64_t n_parameters;     /* weights of all arrays */
  uint64_t file_bytes;       /* that the header implies, without the padding after the last array */
  uint64_t trailing_bytes;   /* bytes of the source after the last array and its padding */
  uint64_t weight_bytes;     /* memory that the model holds, what ml_model_map borrows included */
  uint64_t loop_bytes;   /* of weight_bytes: a looped model's layer that is run n_loops times; 0 in others */
  uint64_t n_non_finite; /* NaN or infinite values among f32 weights and scales: any scale is valid in a file,
                                 but such a model cannot give sensible output */
} ml_model_info;

const ml_model_info *ml_model_get_info(const ml_model *model);

/* ---------------------------------------------------------------- session */

typedef struct ml_session ml_session;
typedef struct ml_imatrix ml_imatrix;

/* Sees a stage's output as it is computed: `values` are the `n` floats of one `position` (0-based) after
 * `stage` of `layer` (-1 outside the layers). Called on the caller's thread. `values` is gone afterwards.
 * Stages are listed in docs/NUMERICS.md. */
typedef void ml_trace_fn(void *user, const char *stage, int32_t layer, uint32_t position, const float *values,
                         size_t n);

/* How keys and values of earlier positions are kept. */
typedef enum ml_kv_type {
  ML_KV_F32,
  ML_KV_Q8 /* bytes in blocks of 32 with a scale each, by the rule for activations: 28 % of the memory where heads
              are a multiple of 32 wide. Changes results a little (docs/NUMERICS.md) */
} ml_kv_type;

typedef struct ml_session_options {
  uint32_t n_ctx; /* positions to keep room for; 0: the smaller of max_seq and 4096 */
  uint32_t
      n_batch; /* prompt tokens per pass; 0: 64. Clamped to 1024. Changes speed and memory, never results */
  uint32_t n_threads; /* 0: 1. Clamped to 64 */
  uint32_t
      n_loops; /* of a looped model: how often its shared layer is run, 1 ... ML_MAX_LOOPS; 0: as the model says */
  ml_kv_type kv;
  bool exact;      /* weights dequantized, activations not quantized, double accumulation: slow, for proof */
  const char *isa; /* kernel implementation by name (ml_isa_name), NULL: the best for this machine */
  const ml_allocator *allocator; /* NULL: malloc and free */
  ml_imatrix *imatrix;           /* gathers sums of squared inputs of the matrices; NULL: none */
  ml_trace_fn *trace;            /* NULL: none */
  void *trace_user;
} ml_session_options;

#define ML_MAX_LOOPS 64

/* Bytes that ml_session_new would ask for, or 0 when the options are refused. */
uint64_t ml_session_memory(const ml_model *model, const ml_session_options *options);

ml_status ml_session_new(ml_session **out, const ml_model *model, const ml_session_options *options,
                         ml_error *error);
void ml_session_free(ml_session *session); /* NULL is allowed */

/* Appends ids[0..n) to the timeline; afterwards ml_session_logits gives the logits of the last one.
 * All ids are checked first: ML_E_ARG for an id outside the vocabulary or n = 0, ML_E_CONTEXT when they do
 * not fit; the session is then as before. After ML_E_NUMERIC the session is as before if its layers allow
 * taking tokens back, and empty otherwise (see ml_session_truncate). */
ml_status ml_session_eval(ml_session *session, const int32_t *ids, size_t n, ml_error *error);

/* The same with the logits of every position: `logits` are `vocab` floats, in exact mode `logits_exact` has
 * them in double too (else NULL). Both are gone when the callback returns. A callback that returns false
 * ends the call with ML_OK; tokens after that position are taken back as by ml_session_truncate. */
typedef bool ml_logits_fn(void *user, uint32_t position, const float *logits, const double *logits_exact);
ml_status ml_session_score(ml_session *session, const int32_t *ids, size_t n, ml_logits_fn *on_logits,
                           void *user, ml_error *error);

/* Logits of the last position, `vocab` floats, NULL while the timeline is empty. Valid until the next call
 * on the session. */
const float *ml_session_logits(const ml_session *session);

uint32_t ml_session_n_past(const ml_session *session); /* tokens in the timeline */
uint32_t ml_session_n_ctx(const ml_session *session);
const char *ml_session_isa(const ml_session *session);    /* kernels in use, for example "scalar" */
uint32_t ml_session_n_threads(const ml_session *session); /* threads that really started */

/* Keeps the first `n_keep` tokens and forgets the rest, if that can be exact; otherwise (a recurrent layer,
 * or a sliding window that has already overwritten what would be needed) forgets everything.
 * Returns the tokens kept: n_keep or 0 (or the present count when that is smaller). The logits are gone
 * unless nothing changed. */
uint32_t ml_session_truncate(ml_session *session, uint32_t n_keep);

/* Runs the shared layer of a looped model `n_loops` times from now on: 1 ... what the session was made with. What the
 * timeline holds belongs to the old number, so that a change forgets all tokens. */
ml_status ml_session_set_loops(ml_session *session, uint32_t n_loops, ml_error *error);
uint32_t ml_session_n_loops(const ml_session *session); /* 0: not a looped model */

/* Names of the kernel implementations that this build and machine can run, best first; NULL past the end. */
const char *ml_isa_name(size_t index);

/* ---------------------------------------------------------------- importance matrix */

/* Sums of squared inputs of every matrix, gathered while sessions run (one session at a time). */
ml_status ml_imatrix_new(ml_imatrix **out, const ml_model *model, const ml_allocator *allocator,
                         ml_error *error);
void ml_imatrix_free(ml_imatrix *imatrix);
uint64_t ml_imatrix_size(const ml_imatrix *imatrix);         /* bytes of its file */
void ml_imatrix_write(const ml_imatrix *imatrix, void *out); /* that many bytes, format MLI1 */
ml_status ml_imatrix_check(const void *bytes, size_t size, ml_error *error); /* is this a valid MLI1 file? */

/* ---------------------------------------------------------------- tokenizer */

typedef struct ml_tokenizer ml_tokenizer;
typedef struct ml_decoder ml_decoder;

typedef struct ml_tokenizer_info {
  uint32_t kind; /* 1: SentencePiece-style BPE, 2: byte-level BPE */
  uint32_t n_vocab, n_merges, n_added;
  int32_t bos, eos; /* -1: none */
  uint32_t flags;   /* as in the file */
} ml_tokenizer_info;

/* Reads a whole .mlt file; `bytes` may go away afterwards. Immutable: serves any number of threads. */
ml_status ml_tokenizer_open(ml_tokenizer **out, const void *bytes, size_t size, const ml_allocator *allocator,
                            ml_error *error);
void ml_tokenizer_free(ml_tokenizer *tokenizer); /* NULL is allowed */
/* Bytes that ml_tokenizer_open would ask for, or 0 when the file is refused. */
uint64_t ml_tokenizer_memory(const void *bytes, size_t size);
const ml_tokenizer_info *ml_tokenizer_get_info(const ml_tokenizer *tokenizer);
/* ML_E_SHAPE if the tokenizer has more tokens than the model's vocabulary. */
ml_status ml_tokenizer_check_model(const ml_tokenizer *tokenizer, const ml_model *model, ml_error *error);

enum {
  ML_ENCODE_SPECIAL = 1, /* added tokens spelled in the text become their ids; else they are plain text */
  ML_ENCODE_NO_BOS = 2   /* do not prepend BOS even if the tokenizer does (the text has it, or goes on) */
};

/* Encodes `size` bytes of UTF-8 (NUL is a character like any other; invalid bytes count as U+FFFD each).
 * Writes the first `capacity` ids and sets *n_ids to the number there are: if that is more, call again with
 * room for all. `size` + 16 is enough for nearly every text. */
ml_status ml_tokenizer_encode(const ml_tokenizer *tokenizer, const char *text, size_t size, unsigned flags,
                              int32_t *ids, size_t capacity, size_t *n_ids, ml_error *error);

/* Bytes [begin, end) of a text. */
typedef struct ml_span {
  size_t begin, end;
} ml_span;

/* The same for a text that was put together, as by a chat template: with ML_ENCODE_SPECIAL, no added token is found that
 * touches one of the plain spans, which hold what others wrote. (It is touched by an empty one inside it.) They rise and do
 * not overlap, and the text must be UTF-8; ML_E_ARG otherwise. */
ml_status ml_tokenizer_encode_spans(const ml_tokenizer *tokenizer, const char *text, size_t size,
                                    const ml_span *plain, size_t n_plain, unsigned flags, int32_t *ids,
                                    size_t capacity, size_t *n_ids, ml_error *error);

/* The first token above `after` (-1: of all) that controls: an added one that no plain text gives, and that ml_decoder_push
 * leaves out without `special`. Its spelling is *size bytes at *text, for as long as the tokenizer is there. -1, and nothing
 * else, when there are no more. */
int32_t ml_tokenizer_next_control(const ml_tokenizer *tokenizer, int32_t after, const char **text,
                                  size_t *size);

/* Turns ids back into text one by one, never giving out half a character; all pieces together equal the text
 * of the whole sequence, as the tokenizers library decodes it. One timeline per decoder. */
ml_status ml_decoder_new(ml_decoder **out, const ml_tokenizer *tokenizer, const ml_allocator *allocator,
                         ml_error *error);
void ml_decoder_free(ml_decoder *decoder);
/* Takes an id and gives the text that is certain by now, *size bytes, maybe 0, valid until the next call.
 * With `special` false, added tokens that are not ordinary text give nothing. ML_E_ARG for an unknown id. */
ml_status ml_decoder_push(ml_decoder *decoder, int32_t id, bool special, const char **text, size_t *size,
                          ml_error *error);
/* The end of the sequence: gives what was held back (U+FFFD for unfinished bytes) and begins anew. */
void ml_decoder_finish(ml_decoder *decoder, const char **text, size_t *size);

/* ---------------------------------------------------------------- sampler */

typedef struct ml_sampler ml_sampler;

/* Applied in this order: penalties, temperature, top_k, top_p, min_p (as Hugging Face transformers does).
 * A zero switches a step off; temperature 0 takes the largest logit (the lowest id among equals). */
typedef struct ml_sampler_options {
  float temperature;        /* >= 0, finite */
  uint32_t top_k;           /* keep the k likeliest */
  float top_p;              /* 0 or in (0, 1]: keep the likeliest until their probability reaches this */
  float min_p;              /* in [0, 1]: drop what is less likely than this share of the likeliest */
  float repetition_penalty; /* 0 or > 0: seen tokens: positive logits are divided by it, others multiplied */
  float presence_penalty;   /* finite: subtracted once from the logit of a seen token */
  float frequency_penalty;  /* finite: subtracted for every time a token was seen */
  uint64_t seed;            /* every value is a seed of its own */
} ml_sampler_options;

ml_status ml_sampler_new(ml_sampler **out, uint32_t vocab, const ml_sampler_options *options,
                         const ml_allocator *allocator, ml_error *error);
void ml_sampler_free(ml_sampler *sampler);
/* Tells the sampler of a token in the timeline (prompt or generated), for the penalties. */
ml_status ml_sampler_accept(ml_sampler *sampler, int32_t id, ml_error *error);
/* Picks from `logits` (`vocab` floats, not changed). ML_E_NUMERIC if one of them is NaN or +infinity
 * (-infinity means never). Does not accept the token by itself. */
ml_status ml_sampler_sample(ml_sampler *sampler, const float *logits, int32_t *id, ml_error *error);

#ifdef __cplusplus
}
#endif

#endif
