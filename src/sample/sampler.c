/* sampler.c - logits to one token id.
 *
 *   logits --penalties--> candidates by falling logit --top_k, top_p, min_p--> kept --random--> id
 *
 * Probabilities are exp((logit - best) / temperature) in double: the best token weighs 1, nothing overflows
 * at any temperature, and a sum over all tokens is needed by top_p and by the unfiltered draw only. All three
 * filters keep a prefix of the falling order, so they look at no more than the first few candidates. */
#include <float.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "kernels/fmath.h"
#include "sample/candidates.h"
#include "sample/penalties.h"
#include "sample/rng.h"

struct ml_sampler {
  ml_arena arena; /* holds everything, this struct included */
  uint32_t vocab;
  ml_sampler_options options;
  ml_penalties penalties;
  ml_rng rng;
  ml_candidate *items; /* (vocab) scratch of one call */
  uint32_t *counts;    /* (vocab) times that each token was seen; NULL without penalties */
};

/* ---------------------------------------------------------------- making */

/* In [low, high], and not NaN. */
static ml_status check_range(const char *field, float value, float low, float high, const char *rule,
                             ml_error *error) {
  if (value >= low && value <= high) return ML_OK;
  return ml_fail(error, ML_E_ARG, field, ml_real(value), rule, ml_none(), ML_NO_OFFSET);
}

static ml_status check_options(uint32_t vocab, const ml_sampler_options *options, ml_error *error) {
  if (vocab == 0 || vocab > INT32_MAX)
    return ml_fail(error, ML_E_ARG, "vocab", ml_uint(vocab), "must be from 1 to", ml_int(INT32_MAX),
                   ML_NO_OFFSET);
  ML_TRY(check_range("temperature", options->temperature, 0, FLT_MAX, "must be finite and 0 or more", error));
  ML_TRY(check_range("top_p", options->top_p, 0, 1, "must be above 0 and at most 1, or 0 for none", error));
  return check_range("min_p", options->min_p, 0, 1, "must be from 0 to 1", error);
}

/* Takes the sampler's memory; NULL while measuring. */
static ml_sampler *lay_out(ml_arena *arena, uint32_t vocab, bool with_counts) {
  ml_sampler *sampler = ml_arena_take(arena, 1, sizeof *sampler);
  ml_candidate *items = ml_arena_take(arena, vocab, sizeof *items);
  uint32_t *counts = with_counts ? ml_arena_take(arena, vocab, sizeof *counts) : NULL;
  if (!sampler) return NULL;
  sampler->vocab = vocab;
  sampler->items = items;
  sampler->counts = counts;
  return sampler;
}

ml_status ml_sampler_new(ml_sampler **out, uint32_t vocab, const ml_sampler_options *options,
                         const ml_allocator *allocator, ml_error *error) {
  static const ml_sampler_options defaults; /* zeroed */
  if (!options) options = &defaults;
  ml_penalties penalties;
  ML_TRY(check_options(vocab, options, error));
  ML_TRY(ml_penalties_read(&penalties, options, error));
  bool with_counts = ml_penalties_are_on(&penalties);

  ml_arena measure = ml_arena_measure();
  lay_out(&measure, vocab, with_counts);
  ml_arena arena;
  ML_TRY(ml_arena_open(&arena, allocator, measure.taken, 0, "sampler", error));
  ml_sampler *sampler = lay_out(&arena, vocab, with_counts);

  sampler->arena = arena;
  sampler->options = *options;
  sampler->penalties = penalties;
  sampler->rng = ml_rng_new(options->seed);
  if (with_counts) memset(sampler->counts, 0, vocab * sizeof *sampler->counts);
  *out = sampler;
  return ML_OK;
}

void ml_sampler_free(ml_sampler *sampler) {
  if (!sampler) return;
  ml_arena arena = sampler->arena; /* the struct goes away with its arena */
  ml_arena_close(&arena);
}

ml_status ml_sampler_accept(ml_sampler *sampler, int32_t id, ml_error *error) {
  if (id < 0 || (uint32_t)id >= sampler->vocab)
    return ml_fail(error, ML_E_ARG, "token id", ml_int(id), "must be 0 or more and below",
                   ml_uint(sampler->vocab), ML_NO_OFFSET);
  if (sampler->counts && sampler->counts[id] < UINT32_MAX) sampler->counts[id]++;
  return ML_OK;
}

/* ---------------------------------------------------------------- candidates */

static ml_status fail_at_logit(const char *field, float logit, uint32_t id, ml_error *error) {
  return ml_fail(error, ML_E_NUMERIC, field, ml_real(logit), "must be a number below infinity, for token id",
                 ml_uint(id), ML_NO_OFFSET);
}

/* Fills `items` with every token that can be chosen, by rising id, penalties applied. `n` is at least 1. */
static ml_status gather(ml_sampler *sampler, const float *logits, uint32_t *n, ml_error *error) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < sampler->vocab; i++) {
    float logit = logits[i];
    if (!(logit <= FLT_MAX)) return fail_at_logit("logit", logit, i, error);
    if (sampler->counts) {
      logit = ml_penalties_apply(&sampler->penalties, logit, sampler->counts[i]);
      if (!(logit <= FLT_MAX)) return fail_at_logit("logit after penalties", logit, i, error);
    }
    if (logit >= -FLT_MAX) sampler->items[count++] = (ml_candidate){logit, (int32_t)i};
  }
  if (count == 0)
    return ml_fail(error, ML_E_NUMERIC, "logits", ml_none(),
                   "all are -infinity, there is nothing to choose from", ml_none(), ML_NO_OFFSET);
  *n = count;
  return ML_OK;
}

/* The largest logit; the first, and so the lowest id, among equals. */
static ml_candidate best_of(const ml_candidate *items, uint32_t n) {
  ml_candidate best = items[0];
  for (uint32_t i = 1; i < n; i++)
    if (items[i].logit > best.logit) best = items[i];
  return best;
}

/* ---------------------------------------------------------------- drawing */

/* Candidates with their weights: probabilities up to a common factor, 1 for the best. */
typedef struct weighted {
  ml_candidates candidates;
  double best;        /* logit */
  double temperature; /* > 0 */
} weighted;

static double weight_of(const weighted *all, ml_candidate candidate) {
  return ml_exp(((double)candidate.logit - all->best) / all->temperature);
}

static double weight_at(weighted *all, uint32_t rank) {
  return weight_of(all, ml_candidates_at(&all->candidates, rank));
}

/* Of the first `n` ranks. All candidates are summed where they lie, so that nothing is sorted for it. */
static double weight_of_first(weighted *all, uint32_t n) {
  double sum = 0;
  if (n == all->candidates.n)
    for (uint32_t i = 0; i < n; i++) sum += weight_of(all, all->candidates.items[i]);
  else
    for (uint32_t rank = 0; rank < n; rank++) sum += weight_at(all, rank);
  return sum;
}

/* How many of the first ranks the filters keep (at least 1), and the sum of their weights. */
static uint32_t filter(weighted *all, const ml_sampler_options *options, double *kept_weight) {
  uint32_t n = all->candidates.n;
  uint32_t limit = options->top_k > 0 && options->top_k < n ? options->top_k : n;
  bool use_top_p = options->top_p > 0 && options->top_p < 1;
  double total = use_top_p || options->min_p == 0 ? weight_of_first(all, limit) : 0;
  if (!use_top_p && options->min_p == 0) {
    *kept_weight = total;
    return limit;
  }
  double sum = 0;
  uint32_t kept = 0;
  while (kept < limit) {
    double weight = weight_at(all, kept);
    if (weight < options->min_p) break; /* never the best one, whose weight is 1 */
    sum += weight;
    kept++;
    if (use_top_p && sum >= options->top_p * total) break;
  }
  *kept_weight = sum;
  return kept;
}

/* The id of a rank below `kept`, each as likely as its share of `kept_weight`. The ranks are walked from the
 * likeliest, so that few are taken from the heap. Rounding may leave a sliver past the last: it gets that. */
static int32_t draw(weighted *all, uint32_t kept, double kept_weight, ml_rng *rng) {
  double target = (double)ml_rng_uniform(rng) * kept_weight;
  double sum = 0;
  for (uint32_t rank = 0; rank < kept; rank++) {
    ml_candidate candidate = ml_candidates_at(&all->candidates, rank);
    sum += weight_of(all, candidate);
    if (sum > target) return candidate.id;
  }
  return ml_candidates_at(&all->candidates, kept - 1).id;
}

ml_status ml_sampler_sample(ml_sampler *sampler, const float *logits, int32_t *id, ml_error *error) {
  uint32_t n = 0;
  ML_TRY(gather(sampler, logits, &n, error));
  ml_candidate best = best_of(sampler->items, n);
  if (sampler->options.temperature == 0) {
    *id = best.id;
    return ML_OK;
  }
  weighted all = {ml_candidates_new(sampler->items, n, best.logit), best.logit, sampler->options.temperature};
  double kept_weight;
  uint32_t kept = filter(&all, &sampler->options, &kept_weight);
  *id = draw(&all, kept, kept_weight, &sampler->rng);
  return ML_OK;
}
