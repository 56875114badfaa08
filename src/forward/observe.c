/* observe.c - one hook behind every stage, for the trace and the importance matrix. */
#include "forward/forward.h"

static const char *const stage_names[ML_N_STAGES] = {"embed",   "block_in", "q",         "k",      "v",
                                                     "conv",    "mixed",    "block_out", "ffn_in", "ffn_mid",
                                                     "ffn_out", "layer",    "final",     "logits"};

const char *ml_stage_name(ml_stage stage) { return stage_names[stage]; }

/* All runs of a layer add to its sums. */
static void add_importance(ml_forward *f, ml_stage stage, int32_t run, const float *x, uint32_t n) {
  uint32_t layer =
      run < 0 ? 0 : ml_layer_index(f->model, (uint32_t)run); /* outside the layers it is not used */
  switch (stage) {
    case ML_STAGE_BLOCK_IN: ml_importance_add(f->imatrix, layer, ML_IMPORTANCE_BLOCK_IN, x, n); break;
    case ML_STAGE_MIXED: ml_importance_add(f->imatrix, layer, ML_IMPORTANCE_MIXED, x, n); break;
    case ML_STAGE_FFN_IN: ml_importance_add(f->imatrix, layer, ML_IMPORTANCE_FFN_IN, x, n); break;
    case ML_STAGE_FFN_MID: ml_importance_add(f->imatrix, layer, ML_IMPORTANCE_FFN_MID, x, n); break;
    case ML_STAGE_FINAL: ml_importance_add_classifier(f->imatrix, x); break;
    default: break; /* not the input of a matrix */
  }
}

void ml_observe(ml_forward *f, ml_stage stage, int32_t layer, uint32_t first, const float *x, uint32_t n,
                uint32_t cols) {
  if (f->imatrix) add_importance(f, stage, layer, x, n);
  if (!f->trace) return;
  for (uint32_t t = 0; t < n; t++)
    f->trace(f->trace_user, ml_stage_name(stage), layer, first + t, x + (size_t)t * cols, cols);
}
