/* bind.h - from a checked .mlb header to a model with a place for every array. */
#ifndef ML_MODEL_BIND_H
#define ML_MODEL_BIND_H

#include "format/mlb.h"
#include "model/weights.h"

void ml_config_from_mlb(ml_config *config, const ml_mlb_header *header, const uint8_t *flags);

/* Fills what the layers are (not their arrays) from header and flags. `layers` is zeroed memory. */
void ml_layers_from_mlb(ml_layer *layers, const ml_mlb_header *header, const uint8_t *flags);

/* Gives every array of the file its place: in `mapped` (the whole file, 64-byte aligned) where its bytes can be used as
 * they are, else in `arena`. Matrices are packed, but as in the file when it is mapped. On a measuring arena it only
 * counts, and `model` stays as it was. */
void ml_bind_arrays(ml_model *model, const ml_mlb_header *header, const uint8_t *flags, const uint8_t *mapped,
                    ml_arena *arena);

/* The place that ml_bind_arrays gave to an array. */
void *ml_array_place(const ml_model *model, const ml_mlb_array *array);

#endif
