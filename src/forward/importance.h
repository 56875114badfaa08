/* importance.h - sums of squared inputs of every matrix (the imatrix), gathered while tokens pass. */
#ifndef ML_FORWARD_IMPORTANCE_H
#define ML_FORWARD_IMPORTANCE_H

#include "ml.h"

typedef enum ml_importance_slot {
  ML_IMPORTANCE_BLOCK_IN, /* dim */
  ML_IMPORTANCE_MIXED,    /* q_dim, or lin_value_dim in linear layers */
  ML_IMPORTANCE_FFN_IN,   /* dim */
  ML_IMPORTANCE_FFN_MID,  /* hidden_dim */
  ML_IMPORTANCE_N_SLOTS
} ml_importance_slot;

/* Adds the squares of n rows of a layer's input. The first slot of the first layer counts the tokens. */
void ml_importance_add(ml_imatrix *imatrix, uint32_t layer, ml_importance_slot slot, const float *x,
                       uint32_t n);
/* The same for one row of the classifier's input. */
void ml_importance_add_classifier(ml_imatrix *imatrix, const float *x);

#endif
