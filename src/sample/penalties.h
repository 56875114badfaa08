/* penalties.h - how often each token was seen, and what that takes from its logit. */
#ifndef ML_SAMPLE_PENALTIES_H
#define ML_SAMPLE_PENALTIES_H

#include "ml.h"

typedef struct ml_penalties {
  float repetition; /* 1: none. Seen: positive logits are divided by it, others multiplied */
  float presence;   /* 0: none. Seen: subtracted once */
  float frequency;  /* 0: none. Seen: subtracted for every time */
} ml_penalties;

/* Checks the three options and translates them. ML_E_ARG with field and value. */
ml_status ml_penalties_read(ml_penalties *out, const ml_sampler_options *options, ml_error *error);

bool ml_penalties_are_on(const ml_penalties *penalties);

/* The logit of a token that was seen `count` times. The repetition penalty comes first, as in Hugging Face's
 * RepetitionPenaltyLogitsProcessor; the other two are those of the OpenAI API. A logit of -infinity stays.
 * The result may be infinite or NaN when extreme numbers meet: the caller checks. */
float ml_penalties_apply(const ml_penalties *penalties, float logit, uint32_t count);

#endif
