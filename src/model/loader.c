/* loader.c - the public loader: bytes through the format's parser into their final places. */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "model/bind.h"
#include "model/fill.h"

struct ml_loader {
  ml_allocator allocator;
  uint64_t memory_limit;
  const uint8_t *mapped; /* the whole file, when arrays may stay in it */
  bool planning;         /* weights are counted, not kept */
  ml_mlb_parser parser;
  ml_model *model;  /* NULL until the header is checked */
  uint8_t *place;   /* of the array that is coming in */
  ml_error failure; /* the first one, returned again by later calls */
};

static void *allocate_zeroed(const ml_allocator *allocator, size_t size, const char *what, ml_error *error) {
  void *memory = allocator->allocate(allocator->user, size);
  if (memory)
    memset(memory, 0, size);
  else
    ml_fail(error, ML_E_NOMEM, what, ml_uint(size), "bytes needed, the allocator has", ml_text("none"),
            ML_NO_OFFSET);
  return memory;
}

/* ---------------------------------------------------------------- making the model */

static void describe(ml_model *model, const ml_mlb_header *header, const uint8_t *flags) {
  const ml_config *c = &model->config;
  ml_model_info *info = &model->info;
  *info = (ml_model_info){.dim = c->dim,
                          .n_layers = c->n_layers,
                          .n_heads = c->n_heads,
                          .n_kv_heads = c->n_kv_heads,
                          .head_dim = c->head_dim,
                          .hidden_dim = c->hidden_dim,
                          .vocab = c->vocab,
                          .max_seq = c->max_seq,
                          .n_linear_layers = c->n_linear_layers,
                          .sliding_window = header->sliding_window,
                          .weight_type = header->wtype == ML_MLB_Q8_0 ? "Q8_0"
                                         : header->q8_mask            ? "Q4_0+Q8_0"
                                                                      : "Q4_0",
                          .file_bytes = ml_mlb_file_size(header, flags)};
  for (uint32_t i = 0; i < c->n_layers; i++)
    if (model->layers[i].window) info->n_window_layers++;
  ml_mlb_walk walk = ml_mlb_walk_begin(header, flags);
  ml_mlb_array array;
  while (ml_mlb_walk_next(&walk, &array))
    if (array.element == ML_MLB_F32 || array.element == ML_MLB_Q8 || array.element == ML_MLB_Q4)
      info->n_parameters += (uint64_t)array.rows * array.cols;
}

static ml_status open_arrays(ml_loader *loader, const ml_mlb_header *header, const uint8_t *flags,
                             ml_error *error) {
  ml_model *model = loader->model;
  ml_arena plan = ml_arena_measure();
  ml_bind_arrays(model, header, flags, loader->mapped, &plan);
  uint64_t needed = ml_add_sizes(model->structs.size, plan.taken); /* the limit is on both together */
  if (loader->memory_limit && needed > loader->memory_limit)
    return ml_fail(error, ML_E_NOMEM, "model", ml_uint(needed), "bytes needed, the limit is",
                   ml_uint(loader->memory_limit), ML_NO_OFFSET);
  if (loader->planning) {
    model->planned = true;
    model->arrays.size = plan.taken; /* of an arena without a block */
    return ML_OK;
  }
  ML_TRY(ml_arena_open(&model->arrays, &loader->allocator, plan.taken, 0, "weights", error));
  ml_bind_arrays(model, header, flags, loader->mapped, &model->arrays);
  return ML_OK;
}

static ml_status begin_model(void *user, const ml_mlb_header *header, const uint8_t *flags, ml_error *error) {
  ml_loader *loader = user;
  if (header->lin_channels > UINT32_MAX) /* the format allows it; the file would exceed 100 GB */
    return ml_fail(error, ML_E_NOMEM, "linear attention channels", ml_uint(header->lin_channels),
                   "this build can address", ml_uint(UINT32_MAX), ML_NO_OFFSET);
  ml_model *model = allocate_zeroed(&loader->allocator, sizeof *model, "model", error);
  if (!model) return ML_E_NOMEM;
  loader->model = model; /* from here on ml_loader_free gives it back */
  model->allocator = loader->allocator;
  ml_config_from_mlb(&model->config, header, flags);
  uint64_t structs = ml_mul_sizes(header->n_layers, sizeof(ml_layer));
  ML_TRY(ml_arena_open(&model->structs, &loader->allocator, ml_round_up(structs, ML_ALIGNMENT),
                       loader->memory_limit, "layer table", error));
  model->layers = ml_arena_take(&model->structs, header->n_layers, sizeof(ml_layer));
  memset(model->layers, 0, (size_t)structs);
  ml_layers_from_mlb(model->layers, header, flags);
  ML_TRY(open_arrays(loader, header, flags, error));
  describe(model, header, flags);
  model->info.weight_bytes =
      model->structs.size + model->arrays.size + (loader->mapped ? model->info.file_bytes : 0);
  return ML_OK;
}

/* ---------------------------------------------------------------- filling it */

static ml_status take_bytes(void *user, const ml_mlb_array *array, uint64_t position, const uint8_t *bytes,
                            size_t size, ml_error *error) {
  (void)error;
  ml_loader *loader = user;
  if (loader->planning) return ML_OK;
  ml_layout layout = loader->mapped ? ML_LAYOUT_ROWS : ML_LAYOUT_PACKED;
  if (position == 0) loader->place = ml_array_place(loader->model, array);
  if (!loader->mapped || !ml_fill_as_stored(array, layout))
    ml_fill_bytes(loader->place, array, layout, position, bytes, size);
  if (position + size < array->size) return ML_OK;

  ml_fill_finish(loader->place, array, layout);
  loader->model->info.n_non_finite += ml_fill_count_non_finite(loader->place, array, layout);
  return ML_OK;
}

/* ---------------------------------------------------------------- public */

ml_status ml_loader_new(ml_loader **out, const ml_load_options *options, ml_error *error) {
  ml_load_options chosen = options ? *options : (ml_load_options){0};
  ml_allocator allocator = ml_allocator_or_default(chosen.allocator);
  ml_loader *loader = allocate_zeroed(&allocator, sizeof *loader, "loader", error);
  if (!loader) return ML_E_NOMEM;
  loader->allocator = allocator;
  loader->memory_limit = chosen.memory_limit;
  ml_mlb_sink sink = {begin_model, take_bytes, loader};
  ml_mlb_parser_init(&loader->parser, &sink, &allocator, chosen.total_size);
  *out = loader;
  return ML_OK;
}

/* Remembers the first failure, and gives it out. */
static ml_status settle(ml_loader *loader, ml_status status, ml_error *error) {
  if (status != ML_OK && error) *error = loader->failure;
  return status;
}

ml_status ml_loader_push(ml_loader *loader, const void *bytes, size_t size, ml_error *error) {
  if (loader->failure.status == ML_OK)
    loader->failure.status = ml_mlb_parser_push(&loader->parser, bytes, size, &loader->failure);
  return settle(loader, loader->failure.status, error);
}

ml_status ml_loader_finish(ml_loader *loader, ml_model **out, ml_error *error) {
  if (loader->failure.status == ML_OK)
    loader->failure.status = ml_mlb_parser_finish(&loader->parser, &loader->failure);
  if (loader->failure.status == ML_OK) {
    loader->model->info.trailing_bytes = ml_mlb_parser_trailing(&loader->parser);
    *out = loader->model;
    loader->model = NULL;
    ml_fail(&loader->failure, ML_E_STATE, "loader", ml_none(),
            "has handed over its model and can only be freed", ml_none(), ML_NO_OFFSET);
    return ML_OK;
  }
  return settle(loader, loader->failure.status, error);
}

void ml_loader_free(ml_loader *loader) {
  if (!loader) return;
  ml_model_free(loader->model);
  ml_mlb_parser_free(&loader->parser);
  loader->allocator.release(loader->allocator.user, loader);
}

static ml_status open_whole(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                            bool in_place, ml_error *error) {
  ml_load_options chosen = options ? *options : (ml_load_options){0};
  ml_loader *loader;
  ML_TRY(ml_loader_new(&loader, &chosen, error));
  loader->parser.total_size = size;
  if (in_place) loader->mapped = bytes;
  ml_status status = ml_loader_push(loader, bytes, size, error);
  if (status == ML_OK) status = ml_loader_finish(loader, out, error);
  ml_loader_free(loader);
  return status;
}

ml_status ml_model_open(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                        ml_error *error) {
  return open_whole(out, bytes, size, options, false, error);
}

ml_status ml_model_map(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                       ml_error *error) {
  if ((uintptr_t)bytes % ML_ALIGNMENT)
    return ml_fail(error, ML_E_ARG, "address of the mapped file", ml_uint((uintptr_t)bytes % ML_ALIGNMENT),
                   "bytes past a multiple of", ml_uint(ML_ALIGNMENT), ML_NO_OFFSET);
  return open_whole(out, bytes, size, options, true, error);
}

/* The loader's beginning, and its model as soon as the header and flags have made one. */
ml_status ml_model_plan(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                        ml_error *error) {
  ml_loader *loader;
  ML_TRY(ml_loader_new(&loader, options, error));
  loader->planning = true;
  ml_status status = ml_loader_push(loader, bytes, size, error);
  if (status == ML_OK && !loader->model)
    status = ml_loader_finish(loader, out, error); /* says what is missing */
  if (status == ML_OK) {
    *out = loader->model;
    loader->model = NULL;
  }
  ml_loader_free(loader);
  return status;
}

void ml_model_free(ml_model *model) {
  if (!model) return;
  ml_arena_close(&model->arrays);
  ml_arena_close(&model->structs);
  model->allocator.release(model->allocator.user, model);
}

const ml_model_info *ml_model_get_info(const ml_model *model) { return &model->info; }
