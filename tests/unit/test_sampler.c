/* The sampler: fixed cases, refusals, distributions, and equality with a plain second implementation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ml.h"
#include "sample/candidates.h"
#include "sample/penalties.h"
#include "sample/rng.h"
#include "test.h"

static ml_sampler *sampler_of(uint32_t vocab, ml_sampler_options options) {
  ml_sampler *sampler = NULL;
  ml_error error = {0};
  if (ml_sampler_new(&sampler, vocab, &options, NULL, &error) != ML_OK) CHECK_EQ_TEXT(error.message, "");
  return sampler;
}

/* The picked id, or -status. */
static int32_t pick(ml_sampler *sampler, const float *logits) {
  int32_t id = -100;
  ml_status status = ml_sampler_sample(sampler, logits, &id, NULL);
  return status == ML_OK ? id : -(int32_t)status;
}

/* ---------------------------------------------------------------- the plain second implementation */

typedef struct token {
  double logit, probability;
  int32_t id;
} token;

static int compare_tokens(const void *a, const void *b) {
  const token *x = a, *y = b;
  if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

static void normalize(token *tokens, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += tokens[i].probability;
  for (size_t i = 0; i < n; i++) tokens[i].probability /= sum;
}

/* Everything sorted, every step on normalised probabilities, in the words of the options' documentation. */
static int32_t reference_pick(const float *logits, const uint32_t *counts, uint32_t vocab,
                              const ml_sampler_options *options, double random) {
  token *tokens = malloc(vocab * sizeof *tokens);
  for (uint32_t i = 0; i < vocab; i++) {
    float x = logits[i];
    if (counts[i] && isfinite(x)) {
      if (options->repetition_penalty != 0)
        x = x > 0 ? x / options->repetition_penalty : x * options->repetition_penalty;
      x -= options->presence_penalty;
      x -= (float)counts[i] * options->frequency_penalty;
    }
    tokens[i] = (token){x, 0, (int32_t)i};
  }
  qsort(tokens, vocab, sizeof *tokens, compare_tokens);
  size_t n = vocab;
  if (options->temperature == 0) n = 1;
  double temperature = options->temperature == 0 ? 1 : options->temperature;
  for (size_t i = 0; i < n; i++)
    tokens[i].probability = exp((tokens[i].logit - tokens[0].logit) / temperature);
  if (options->top_k && options->top_k < n) n = options->top_k;
  normalize(tokens, n);
  if (options->top_p != 0 && options->top_p < 1) {
    double sum = 0;
    size_t kept = 0;
    while (kept < n && sum < options->top_p) sum += tokens[kept++].probability;
    n = kept;
    normalize(tokens, n);
  }
  size_t kept = 1;
  while (kept < n && tokens[kept].probability >= options->min_p * tokens[0].probability) kept++;
  n = kept;
  normalize(tokens, n);
  size_t chosen = 0;
  for (double sum = tokens[0].probability; chosen + 1 < n && sum <= random;)
    sum += tokens[++chosen].probability;
  int32_t id = tokens[chosen].id;
  free(tokens);
  return id;
}

static float one_of(const float *values, uint32_t n) { return values[test_random_below(n)]; }

static ml_sampler_options random_options(void) {
  static const float temperatures[] = {0, 0.3f, 0.7f, 1, 1.5f, 10}, top_ps[] = {0, 0, 0.1f, 0.5f, 0.9f, 1};
  static const float min_ps[] = {0, 0, 0.02f, 0.1f, 0.6f}, repetitions[] = {0, 1, 1.1f, 1.5f, 0.8f};
  static const float presences[] = {0, 0, 0.5f, -0.5f};
  static const uint32_t top_ks[] = {0, 0, 1, 2, 5, 40, 100000};
  return (ml_sampler_options){.temperature = one_of(temperatures, 6),
                              .top_k = top_ks[test_random_below(7)],
                              .top_p = one_of(top_ps, 6),
                              .min_p = one_of(min_ps, 5),
                              .repetition_penalty = one_of(repetitions, 5),
                              .presence_penalty = one_of(presences, 4),
                              .frequency_penalty = one_of(presences, 4),
                              .seed = test_random_u64()};
}

/* Logits on a coarse grid have many ties; some tokens are forbidden. */
static void random_logits(float *logits, uint32_t vocab) {
  bool coarse = test_random_below(3) == 0, forbidding = test_random_below(3) == 0;
  for (uint32_t i = 0; i < vocab; i++) {
    logits[i] = test_random_f32(-6, 6);
    if (coarse) logits[i] = floorf(logits[i]);
    if (forbidding && i && test_random_below(3) == 0) logits[i] = -INFINITY;
  }
}

TEST(sampler_equals_the_plain_implementation) {
  static float logits[9000];
  static uint32_t counts[9000];
  for (int round = 0; round < 400; round++) {
    uint32_t vocab = round % 4 ? 1 + test_random_below(60) : 1 + test_random_below(9000);
    ml_sampler_options options = random_options();
    ml_sampler *sampler = sampler_of(vocab, options);
    REQUIRE(sampler);
    memset(counts, 0, sizeof counts);
    ml_rng twin = ml_rng_new(options.seed);
    for (int step = 0; step < 10; step++) {
      random_logits(logits, vocab);
      double random = options.temperature == 0 ? 0 : (double)ml_rng_uniform(&twin);
      int32_t expected = reference_pick(logits, counts, vocab, &options, random);
      CHECK_EQ_I64(pick(sampler, logits), expected);
      CHECK_EQ_I64(ml_sampler_accept(sampler, expected, NULL), ML_OK);
      counts[expected]++;
    }
    ml_sampler_free(sampler);
  }
}

/* ---------------------------------------------------------------- the order of candidates */

/* Logits of many kinds, for arrays large enough to have a rest set aside: spread, in steps with many ties,
 * nearly all far below the best, or so large that differences overflow. */
static float logit_of_kind(int kind) {
  switch (kind) {
    case 0: return test_random_f32(-20, 20);
    case 1: return floorf(test_random_f32(-5, 5));
    case 2: return test_random_below(1000) ? test_random_f32(-90, -60) : test_random_f32(0, 1);
    case 3: return test_random_f32(-1, 1) * 3e38f;
    default: return test_random_below(2) ? 0.0f : -0.0f; /* equal: only the id decides */
  }
}

TEST(candidates_come_by_falling_logit_then_rising_id) {
  enum { MOST = 60000 };
  static ml_candidate items[MOST];
  static token sorted[MOST];
  for (int kind = 0; kind < 5; kind++)
    for (uint32_t n = 1; n <= MOST; n += 1 + n / 2) {
      float best = -INFINITY;
      for (uint32_t i = 0; i < n; i++) {
        float logit = logit_of_kind(kind);
        items[i] = (ml_candidate){logit, (int32_t)i};
        sorted[i] = (token){logit, 0, (int32_t)i};
        best = fmaxf(best, logit);
      }
      qsort(sorted, n, sizeof *sorted, compare_tokens);
      ml_candidates candidates = ml_candidates_new(items, n, best);
      uint32_t wrong = 0;
      CHECK_EQ_I64(ml_candidates_at(&candidates, n / 3).id, sorted[n / 3].id);
      for (uint32_t rank = 0; rank < n; rank++)
        wrong += ml_candidates_at(&candidates, rank).id != sorted[rank].id;
      CHECK_EQ_U64(wrong, 0);
    }
}

/* ---------------------------------------------------------------- temperature */

TEST(sampler_temperature_zero_takes_the_lowest_id_of_the_largest) {
  static const float logits[] = {1, 2, 2};
  for (uint64_t seed = 0; seed < 20; seed++) {
    ml_sampler *sampler = sampler_of(3, (ml_sampler_options){.seed = seed, .top_k = 2, .top_p = 0.5f});
    REQUIRE(sampler);
    for (int i = 0; i < 5; i++) CHECK_EQ_I64(pick(sampler, logits), 1);
    ml_sampler_free(sampler);
  }
}

TEST(sampler_survives_extreme_temperatures_and_logits) {
  static const float temperatures[] = {1e-9f, 1e-45f, 1e-30f, 1e30f, 3e38f};
  static const float gentle[] = {1, 2, 1.5f}, wild[] = {-3e38f, 3e38f, 1};
  for (int t = 0; t < 5; t++) {
    ml_sampler *sampler = sampler_of(3, (ml_sampler_options){.temperature = temperatures[t], .seed = 3});
    REQUIRE(sampler);
    for (int i = 0; i < 50; i++) {
      int32_t a = pick(sampler, gentle), b = pick(sampler, wild);
      CHECK(a >= 0 && a < 3 && b >= 0 && b < 3);
      if (temperatures[t] < 1) CHECK(a == 1 && b == 1);
    }
    ml_sampler_free(sampler);
  }
}

/* ---------------------------------------------------------------- penalties */

TEST(penalties_depend_on_the_sign_of_the_logit) {
  const ml_penalties penalties = {.repetition = 1.5f};
  CHECK_NEAR(ml_penalties_apply(&penalties, 2, 1), 1.33333, 1e-5);
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, -1, 1), -1.5f);
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, 0.5f, 0), 0.5f);
  /* Seen twice is penalised once. */
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, 2, 2), ml_penalties_apply(&penalties, 2, 1));
}

TEST(penalties_of_one_and_zero_change_nothing) {
  ml_penalties penalties;
  ml_sampler_options options = {.repetition_penalty = 1};
  REQUIRE(ml_penalties_read(&penalties, &options, NULL) == ML_OK);
  CHECK(!ml_penalties_are_on(&penalties));
  for (int i = 0; i < 100; i++) {
    float logit = test_random_f32(-20, 20);
    CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, logit, 3), logit);
  }
  options.repetition_penalty = 0;
  REQUIRE(ml_penalties_read(&penalties, &options, NULL) == ML_OK);
  CHECK(!ml_penalties_are_on(&penalties));
}

TEST(penalties_presence_counts_once_and_frequency_every_time) {
  const ml_penalties penalties = {.repetition = 1, .presence = 0.25f, .frequency = 0.5f};
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, 2, 0), 2);
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, 2, 1), 1.25f);
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, 2, 3), 0.25f);
  CHECK_EQ_F32_BITS(ml_penalties_apply(&penalties, -INFINITY, 3), -INFINITY);
}

TEST(sampler_penalises_what_it_was_told_of) {
  static const float logits[] = {2, 1.9f, 1.8f};
  ml_sampler *sampler = sampler_of(3, (ml_sampler_options){.frequency_penalty = 0.15f});
  REQUIRE(sampler);
  static const int32_t expected[] = {0, 1, 0,
                                     2, 1, 0}; /* by hand: after each pick that logit falls by 0.15 */
  for (int i = 0; i < 6; i++) {
    CHECK_EQ_I64(pick(sampler, logits), expected[i]);
    CHECK_EQ_I64(pick(sampler, logits), expected[i]); /* picking alone counts nothing */
    CHECK_EQ_I64(ml_sampler_accept(sampler, expected[i], NULL), ML_OK);
  }
  ml_sampler_free(sampler);
}

/* ---------------------------------------------------------------- filters */

/* Which ids of `vocab` appear in many draws, as bits. */
static uint32_t support(const float *logits, uint32_t vocab, ml_sampler_options options) {
  uint32_t seen = 0;
  ml_sampler *sampler = sampler_of(vocab, options);
  for (int i = 0; sampler && i < 4000; i++) seen |= 1u << pick(sampler, logits);
  ml_sampler_free(sampler);
  return seen;
}

/* Probabilities 0.4 0.3 0.2 0.1 for ids 2 0 3 1. */
static const float four[] = {-1.2039728f, -2.3025851f, -0.91629073f, -1.6094379f};

TEST(sampler_filters_keep_what_they_say) {
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1}), 15);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_k = 1}), 1 << 2);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_k = 3}), 13);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_k = 9}), 15);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_p = 0.39f}), 1 << 2);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_p = 0.41f}), 5);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_p = 0.85f}), 13);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_p = 1}), 15);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .min_p = 0.49f}), 13);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .min_p = 0.6f}), 5);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .min_p = 1}), 1 << 2);
}

/* Each filter sees what the one before it left: top_k 2 leaves 4/7 and 3/7, so top_p 0.55 keeps one of them,
 * where the probabilities over all four (0.4, 0.7) would keep two. Temperature comes first: 0.5 squares the
 * probabilities to 16 9 4 1 of 30, and 0.53 is then reached by the first alone. */
TEST(sampler_filters_work_in_order) {
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_p = 0.55f}), 5);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 1, .top_p = 0.55f, .top_k = 2}), 1 << 2);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 0.5f, .top_p = 0.53f}), 1 << 2);
  CHECK_EQ_U64(support(four, 4, (ml_sampler_options){.temperature = 0.5f, .top_p = 0.54f}), 5);
}

TEST(sampler_breaks_ties_by_id) {
  static const float equal[] = {1, 1, 1, 1, 1, 1, 1, 1};
  CHECK_EQ_U64(support(equal, 8, (ml_sampler_options){.temperature = 1, .top_k = 3}), 7);
  CHECK_EQ_U64(support(equal, 8, (ml_sampler_options){.temperature = 1, .top_p = 0.5f}), 15);
  CHECK_EQ_U64(support(equal, 8, (ml_sampler_options){.temperature = 1, .min_p = 1}), 255);
}

/* ---------------------------------------------------------------- distribution */

/* Chi-square of many picks against the `expected` probabilities of the four ids; 3 degrees of freedom: 16.3
 * is exceeded by chance once in a thousand. Fixed seeds: the test passes always or never. */
static double chi_square(const float *logits, ml_sampler_options options, const double *expected) {
  enum { DRAWS = 40000 };
  uint32_t counts[4] = {0};
  ml_sampler *sampler = sampler_of(4, options);
  for (int i = 0; sampler && i < DRAWS; i++) counts[pick(sampler, logits)]++;
  ml_sampler_free(sampler);
  double sum = 0;
  for (int i = 0; i < 4; i++) {
    double want = expected[i] * DRAWS;
    if (want == 0)
      sum += counts[i] ? 1e9 : 0;
    else
      sum += (counts[i] - want) * (counts[i] - want) / want;
  }
  return sum;
}

TEST(sampler_draws_in_proportion) {
  static const double plain[] = {0.3, 0.1, 0.4, 0.2}, hot[] = {0.28179, 0.16270, 0.32539, 0.23009};
  static const double two[] = {3.0 / 7, 0, 4.0 / 7, 0}, three[] = {3.0 / 9, 0, 4.0 / 9, 2.0 / 9};
  for (uint64_t seed = 0; seed < 3; seed++) {
    CHECK(chi_square(four, (ml_sampler_options){.temperature = 1, .seed = seed}, plain) < 16.3);
    CHECK(chi_square(four, (ml_sampler_options){.temperature = 2, .seed = seed}, hot) < 16.3);
    CHECK(chi_square(four, (ml_sampler_options){.temperature = 1, .seed = seed, .top_k = 2}, two) < 16.3);
    CHECK(chi_square(four, (ml_sampler_options){.temperature = 1, .seed = seed, .top_p = 0.6f}, two) < 16.3);
    CHECK(chi_square(four, (ml_sampler_options){.temperature = 1, .seed = seed, .min_p = 0.3f}, three) <
          16.3);
  }
  /* The measure notices a wrong distribution. */
  CHECK(chi_square(four, (ml_sampler_options){.temperature = 1}, hot) > 100);
}

/* ---------------------------------------------------------------- seeds */

TEST(sampler_seeds_repeat_and_differ) {
  static const uint64_t seeds[] = {7, 8, 0, (UINT64_C(1) << 32) + 7, UINT64_MAX};
  enum { N_SEEDS = 5, N_TOKENS = 64 };
  int32_t ids[2][N_SEEDS][N_TOKENS];
  for (int run = 0; run < 2; run++)
    for (int s = 0; s < N_SEEDS; s++) {
      ml_sampler *sampler = sampler_of(4, (ml_sampler_options){.temperature = 1, .seed = seeds[s]});
      REQUIRE(sampler);
      for (int t = 0; t < N_TOKENS; t++) ids[run][s][t] = pick(sampler, four);
      ml_sampler_free(sampler);
    }
  for (int s = 0; s < N_SEEDS; s++) {
    CHECK_EQ_BYTES(ids[1][s], ids[0][s], sizeof ids[0][s]);
    for (int t = 0; t < s; t++) CHECK(memcmp(ids[0][s], ids[0][t], sizeof ids[0][s]) != 0);
  }
}

/* ---------------------------------------------------------------- what cannot be sampled */

TEST(sampler_never_picks_minus_infinity) {
  static const float logits[] = {-INFINITY, 1, -INFINITY, 0.5f};
  CHECK_EQ_U64(support(logits, 4, (ml_sampler_options){.temperature = 1}), 10);
  CHECK_EQ_U64(support(logits, 4, (ml_sampler_options){.temperature = 3e38f}), 10);
  CHECK_EQ_U64(support(logits, 4, (ml_sampler_options){.temperature = 1, .top_k = 4, .top_p = 0.999f}), 10);
}

static void check_refused(const float *logits, ml_sampler_options options, const char *message) {
  ml_sampler *sampler = sampler_of(3, options);
  if (!sampler) return;
  ml_error error = {0};
  int32_t id = 77;
  static const float good[] = {1, 5, 3};
  CHECK_EQ_I64(ml_sampler_accept(sampler, 0, NULL), ML_OK);
  CHECK_EQ_I64(ml_sampler_sample(sampler, logits, &id, &error), ML_E_NUMERIC);
  CHECK_EQ_I64(error.status, ML_E_NUMERIC);
  CHECK_EQ_TEXT(error.message, message);
  CHECK_EQ_I64(ml_sampler_sample(sampler, logits, &id, NULL), ML_E_NUMERIC);
  CHECK_EQ_I64(id, 77);
  CHECK_EQ_I64(ml_sampler_sample(sampler, good, &id, NULL), ML_OK); /* still usable */
  ml_sampler_free(sampler);
}

TEST(sampler_refuses_logits_that_are_not_numbers) {
  static const float with_nan[] = {1, NAN, 2}, with_inf[] = {1, 2, INFINITY};
  static const float nothing[] = {-INFINITY, -INFINITY, -INFINITY}, large[] = {3e38f, 0, 0};
  for (int t = 0; t < 2; t++) {
    ml_sampler_options options = {.temperature = (float)t};
    check_refused(with_nan, options, "logit = nan: must be a number below infinity, for token id 1");
    check_refused(with_inf, options, "logit = inf: must be a number below infinity, for token id 2");
    check_refused(nothing, options, "logits: all are -infinity, there is nothing to choose from");
    options.presence_penalty = -3e38f;
    check_refused(large, options,
                  "logit after penalties = inf: must be a number below infinity, for token id 0");
  }
}

TEST(sampler_accepts_ids_of_the_vocabulary_only) {
  ml_sampler *sampler = sampler_of(3, (ml_sampler_options){.repetition_penalty = 1.1f});
  REQUIRE(sampler);
  static const int32_t bad[] = {-1, 3, INT32_MAX, INT32_MIN};
  ml_error error = {0};
  for (int i = 0; i < 4; i++) CHECK_EQ_I64(ml_sampler_accept(sampler, bad[i], &error), ML_E_ARG);
  CHECK_EQ_TEXT(error.message, "token id = -2147483648: must be 0 or more and below 3");
  CHECK_EQ_I64(ml_sampler_accept(sampler, 2, &error), ML_OK);
  ml_sampler_free(sampler);
}

/* ---------------------------------------------------------------- options and memory */

static void check_bad_options(ml_sampler_options options, const char *message) {
  ml_sampler *sampler = NULL;
  ml_error error = {0};
  CHECK_EQ_I64(ml_sampler_new(&sampler, 10, &options, NULL, &error), ML_E_ARG);
  CHECK_EQ_TEXT(error.message, message);
  CHECK(sampler == NULL);
}

TEST(sampler_options_are_checked) {
  check_bad_options((ml_sampler_options){.temperature = -1},
                    "temperature = -1: must be finite and 0 or more");
  check_bad_options((ml_sampler_options){.temperature = NAN},
                    "temperature = nan: must be finite and 0 or more");
  check_bad_options((ml_sampler_options){.temperature = INFINITY},
                    "temperature = inf: must be finite and 0 or more");
  check_bad_options((ml_sampler_options){.top_p = 2},
                    "top_p = 2: must be above 0 and at most 1, or 0 for none");
  check_bad_options((ml_sampler_options){.top_p = -1},
                    "top_p = -1: must be above 0 and at most 1, or 0 for none");
  check_bad_options((ml_sampler_options){.top_p = NAN},
                    "top_p = nan: must be above 0 and at most 1, or 0 for none");
  check_bad_options((ml_sampler_options){.min_p = -1}, "min_p = -1: must be from 0 to 1");
  check_bad_options((ml_sampler_options){.min_p = NAN}, "min_p = nan: must be from 0 to 1");
  check_bad_options((ml_sampler_options){.min_p = 3}, "min_p = 3: must be from 0 to 1");
  check_bad_options((ml_sampler_options){.repetition_penalty = -1},
                    "repetition_penalty = -1: must be finite and above 0, or 0 for none");
  check_bad_options((ml_sampler_options){.repetition_penalty = NAN},
                    "repetition_penalty = nan: must be finite and above 0, or 0 for none");
  check_bad_options((ml_sampler_options){.presence_penalty = INFINITY},
                    "presence_penalty = inf: must be finite");
  check_bad_options((ml_sampler_options){.frequency_penalty = NAN},
                    "frequency_penalty = nan: must be finite");
}

TEST(sampler_vocab_is_checked) {
  ml_sampler *sampler = NULL;
  ml_error error = {0};
  CHECK_EQ_I64(ml_sampler_new(&sampler, 0, NULL, NULL, &error), ML_E_ARG);
  CHECK_EQ_TEXT(error.message, "vocab = 0: must be from 1 to 2147483647");
  CHECK_EQ_I64(ml_sampler_new(&sampler, UINT32_MAX, NULL, NULL, NULL), ML_E_ARG);
  CHECK(sampler == NULL);
}

/* Hands out memory filled with rubbish, so many times; counts what is given and taken back. */
typedef struct counter {
  int left, given, returned;
} counter;

static void *counting_allocate(void *user, size_t size) {
  counter *count = user;
  if (count->left-- <= 0) return NULL;
  void *memory = malloc(size);
  if (memory) memset(memory, 0xa5, size);
  count->given++;
  return memory;
}

static void counting_release(void *user, void *memory) {
  ((counter *)user)->returned++;
  free(memory);
}

TEST(sampler_memory_comes_from_the_allocator) {
  const ml_sampler_options options = {.temperature = 1, .repetition_penalty = 1.3f};
  static const float logits[] = {-1, 2, -1};
  for (int budget = 0; budget < 3; budget++) {
    counter count = {.left = budget};
    ml_allocator allocator = {counting_allocate, counting_release, &count};
    ml_sampler *sampler = NULL;
    ml_error error = {0};
    ml_status status = ml_sampler_new(&sampler, 3, &options, &allocator, &error);
    CHECK_EQ_I64(status, budget ? ML_OK : ML_E_NOMEM);
    CHECK((sampler != NULL) == (budget > 0));
    if (sampler) CHECK(pick(sampler, logits) >= 0);
    ml_sampler_free(sampler);
    CHECK_EQ_I64(count.returned, count.given);
  }
  ml_sampler_free(NULL);
}

/* NULL options are the defaults: the largest logit. */
TEST(sampler_defaults_are_greedy) {
  static const float logits[] = {-1, 2, -1};
  ml_sampler *sampler = NULL;
  REQUIRE(ml_sampler_new(&sampler, 3, NULL, NULL, NULL) == ML_OK);
  CHECK_EQ_I64(pick(sampler, logits), 1);
  ml_sampler_free(sampler);
}
