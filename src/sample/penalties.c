#include "sample/penalties.h"

#include <float.h>

#include "base/error.h"

static bool is_finite(float x) { return x >= -FLT_MAX && x <= FLT_MAX; }

static ml_status check_finite(const char *field, float value, ml_error *error) {
  if (is_finite(value)) return ML_OK;
  return ml_fail(error, ML_E_ARG, field, ml_real(value), "must be finite", ml_none(), ML_NO_OFFSET);
}

ml_status ml_penalties_read(ml_penalties *out, const ml_sampler_options *options, ml_error *error) {
  float repetition = options->repetition_penalty;
  if (!is_finite(repetition) || repetition < 0)
    return ml_fail(error, ML_E_ARG, "repetition_penalty", ml_real(repetition),
                   "must be finite and above 0, or 0 for none", ml_none(), ML_NO_OFFSET);
  ML_TRY(check_finite("presence_penalty", options->presence_penalty, error));
  ML_TRY(check_finite("frequency_penalty", options->frequency_penalty, error));
  out->repetition = repetition > 0 ? repetition : 1;
  out->presence = options->presence_penalty;
  out->frequency = options->frequency_penalty;
  return ML_OK;
}

bool ml_penalties_are_on(const ml_penalties *penalties) {
  return penalties->repetition != 1 || penalties->presence != 0 || penalties->frequency != 0;
}

float ml_penalties_apply(const ml_penalties *penalties, float logit, uint32_t count) {
  if (count == 0 || logit < -FLT_MAX) return logit;
  logit = logit > 0 ? logit / penalties->repetition : logit * penalties->repetition;
  logit -= penalties->presence;
  return logit - (float)count * penalties->frequency;
}
