#include "forward/importance.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "format/imatrix.h"
#include "model/weights.h"

struct ml_imatrix {
  ml_allocator allocator;
  ml_imatrix_header header;
  ml_arena arena;
  const ml_model *model;
  double **slots;     /* (n_layers, ML_IMPORTANCE_N_SLOTS) */
  double *classifier; /* (dim) */
  double *sums;       /* all of them, in the file's order */
  size_t n_sums;
};

static uint32_t slot_size(const ml_model *model, uint32_t layer, ml_importance_slot slot) {
  const ml_config *c = &model->config;
  switch (slot) {
    case ML_IMPORTANCE_MIXED: return model->layers[layer].linear ? c->lin_value_dim : c->q_dim;
    case ML_IMPORTANCE_FFN_MID: return c->hidden_dim;
    default: return c->dim;
  }
}

/* Slots lie one after the other in the file's order: layers first, the classifier last. */
static void place_slots(ml_imatrix *imatrix) {
  double *next = imatrix->sums;
  uint32_t n_layers = imatrix->model->config.n_layers;
  for (uint32_t i = 0; i < n_layers; i++)
    for (int slot = 0; slot < ML_IMPORTANCE_N_SLOTS; slot++) {
      imatrix->slots[i * ML_IMPORTANCE_N_SLOTS + (uint32_t)slot] = next;
      next += slot_size(imatrix->model, i, (ml_importance_slot)slot);
    }
  imatrix->classifier = next;
}

ml_status ml_imatrix_new(ml_imatrix **out, const ml_model *model, const ml_allocator *allocator,
                         ml_error *error) {
  const ml_config *c = &model->config;
  ml_imatrix_header header = {.n_layers = c->n_layers,
                              .dim = c->dim,
                              .hidden_dim = c->hidden_dim,
                              .q_dim = c->q_dim,
                              .lin_value_dim = c->lin_value_dim};
  uint64_t n_sums = ml_imatrix_n_sums(&header, c->n_linear_layers),
           n_slots = (uint64_t)c->n_layers * ML_IMPORTANCE_N_SLOTS;
  ml_arena plan = ml_arena_measure(), arena;
  ml_arena_take(&plan, 1, sizeof(ml_imatrix));
  ml_arena_take(&plan, n_slots, sizeof(double *));
  ml_arena_take(&plan, n_sums, sizeof(double));
  ML_TRY(ml_arena_open(&arena, allocator, plan.taken, 0, "imatrix", error));
  ml_imatrix *imatrix = ml_arena_take(&arena, 1, sizeof *imatrix);
  memset(imatrix, 0, sizeof *imatrix);
  imatrix->model = model;
  imatrix->header = header;
  imatrix->slots = ml_arena_take(&arena, n_slots, sizeof(double *));
  imatrix->sums = ml_arena_take(&arena, n_sums, sizeof(double));
  imatrix->n_sums = (size_t)n_sums;
  memset(imatrix->sums, 0, (size_t)n_sums * sizeof(double));
  place_slots(imatrix);
  imatrix->arena = arena;
  *out = imatrix;
  return ML_OK;
}

void ml_imatrix_free(ml_imatrix *imatrix) {
  if (!imatrix) return;
  ml_arena arena = imatrix->arena; /* which holds the struct itself */
  ml_arena_close(&arena);
}

/* A row with an infinite or NaN value ends its step with ML_E_NUMERIC right after; in the sums it would stay for
 * ever. False for such a row, which is left out. */
static bool add_squares(double *sums, const float *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (!(fabsf(x[i]) < HUGE_VALF)) return false;
  for (uint32_t i = 0; i < n; i++) sums[i] += (double)x[i] * x[i];
  return true;
}

void ml_importance_add(ml_imatrix *imatrix, uint32_t layer, ml_importance_slot slot, const float *x,
                       uint32_t n) {
  uint32_t size = slot_size(imatrix->model, layer, slot);
  double *sums = imatrix->slots[layer * ML_IMPORTANCE_N_SLOTS + (uint32_t)slot];
  uint32_t n_added = 0;
  for (uint32_t t = 0; t < n; t++) n_added += add_squares(sums, x + (size_t)t * size, size);
  if (layer == 0 && slot == 0) imatrix->header.layer_tokens += n_added;
}

void ml_importance_add_classifier(ml_imatrix *imatrix, const float *x) {
  if (add_squares(imatrix->classifier, x, imatrix->model->config.dim)) imatrix->header.classifier_tokens++;
}

uint64_t ml_imatrix_size(const ml_imatrix *imatrix) {
  return ml_imatrix_header_size(&imatrix->header) + (uint64_t)imatrix->n_sums * sizeof(double);
}

void ml_imatrix_write(const ml_imatrix *imatrix, void *out) {
  uint8_t *bytes = out;
  ml_imatrix_write_header(&imatrix->header, bytes);
  ml_imatrix_write_sums(imatrix->sums, imatrix->n_sums, bytes + ml_imatrix_header_size(&imatrix->header));
}

ml_status ml_imatrix_check(const void *bytes, size_t size, ml_error *error) {
  return ml_imatrix_check_file(bytes, size, error);
}
