/* bind.h - from a checked header to a model with a place for every array. */
#ifndef ML_MODEL_BIND_H
#define ML_MODEL_BIND_H

#include "format/mlb.h"
#include "format/tinyloop.h"
#include "model/weights.h"

void ml_config_from_mlb(ml_config *config, const ml_mlb_header *header, const uint8_t *flags);

/* Fills what the layers are (not their arrays) from header and flags. `layers` is zeroed memory. */
void ml_layers_from_mlb(ml_layer *layers, const ml_mlb_header *header, const uint8_t *flags);

/* The same of a .tinyloop file: its blocks are the layers, and the last one is the shared one. */
void ml_config_from_tinyloop(ml_config *config, const ml_tinyloop_header *header);
void ml_layers_from_tinyloop(ml_layer *layers, const ml_tinyloop_header *header);

/* How the arrays of a file become a model's. */
typedef struct ml_binding {
  const uint8_t *mapped; /* the whole file, 64-byte aligned, when arrays may stay in it; else NULL */
  ml_layout layout;      /* of quantized matrices: as in the file if it is mapped, else packed */
  bool f16_body;         /* quantized matrices of layers become halves */
} ml_binding;

/* Is the array one of a matrix that becomes halves? Its bytes are then kept elsewhere until all are there. Never in wasm:
 * a page would download code for what makes it slower. */
static inline bool ml_becomes_f16(const ml_binding *binding, const ml_array *array) {
#if defined(__wasm__)
  (void)binding, (void)array;
  return false;
#else
  return binding->f16_body && array->layer >= 0 &&
         (ml_is_quants(array->element) || ml_is_scales(array->element));
#endif
}

/* The layout that an array's bytes are put into. */
ml_layout ml_array_layout(const ml_binding *binding, const ml_array *array);

/* Of quants or halves. */
ml_weight_type ml_weight_type_of(ml_element element);

/* Gives every array of the file its place: in the mapped file where its bytes can be used as they are, else in `arena`.
 * On a measuring arena it only counts, and `model` stays as it was. */
void ml_bind_arrays(ml_model *model, ml_array_source source, const ml_binding *binding, ml_arena *arena);

/* The place that ml_bind_arrays gave to an array. */
void *ml_array_place(const ml_model *model, const ml_array *array);

/* The matrix of an array of quants, scales or halves. */
ml_matrix *ml_array_matrix(ml_model *model, const ml_array *array);

#endif
