/* loader.c - the public loader: bytes through the format's parser into their final places. */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "kernels/dequantize.h"
#include "model/bind.h"
#include "model/fill.h"

enum { MAGIC_SIZE = 4 };

struct ml_loader {
  ml_allocator allocator;
  uint64_t total_size, memory_limit;
  const uint8_t *mapped; /* the whole file, when arrays may stay in it */
  bool planning;         /* weights are counted, not kept */
  bool f16_body;

  /* the format, which the first bytes tell */
  enum { UNKNOWN_FORMAT, MLB, TINYLOOP } format;
  uint8_t magic[MAGIC_SIZE];
  size_t n_magic;
  ml_mlb_parser mlb;
  ml_tinyloop_parser tinyloop;

  ml_binding binding;
  ml_model *model;  /* NULL until the header is checked */
  ml_arena staging; /* one quantized matrix on its way to halves */
  ml_matrix staged; /* it, its arrays in `staging` */
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

/* ---------------------------------------------------------------- the file's arrays */

typedef struct any_walk {
  ml_mlb_walk mlb;
  ml_tinyloop_walk tinyloop;
} any_walk;

static bool next_of_mlb(void *walk, ml_array *array) { return ml_mlb_walk_next(walk, array); }
static bool next_of_tinyloop(void *walk, ml_array *array) { return ml_tinyloop_walk_next(walk, array); }

/* From the first one on. Only once the header is checked. */
static ml_array_source arrays_of(const ml_loader *loader, any_walk *walk) {
  if (loader->format == MLB) {
    walk->mlb = ml_mlb_walk_begin(&loader->mlb.header, loader->mlb.flags);
    return (ml_array_source){next_of_mlb, &walk->mlb};
  }
  walk->tinyloop = ml_tinyloop_walk_begin(&loader->tinyloop.header);
  return (ml_array_source){next_of_tinyloop, &walk->tinyloop};
}

/* ---------------------------------------------------------------- making the model */

static void describe(ml_loader *loader) {
  ml_model *model = loader->model;
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
                          .n_loops = c->n_loops,
                          .embed_factor_dim = c->embed_factor_dim};
  for (uint32_t i = 0; i < c->n_layers; i++)
    if (model->layers[i].window) info->n_window_layers++;
  any_walk walk;
  ml_array_source source = arrays_of(loader, &walk);
  ml_array array;
  while (source.next(source.walk, &array))
    if (array.element != ML_ELEMENT_U8 && !ml_is_scales(array.element))
      info->n_parameters += (uint64_t)array.rows * array.cols;
  if (loader->format == MLB) {
    const ml_mlb_header *header = &loader->mlb.header;
    info->sliding_window = header->sliding_window;
    info->weight_type = header->wtype == ML_MLB_Q8_0 ? "Q8_0" : header->q8_mask ? "Q4_0+Q8_0" : "Q4_0";
    info->file_bytes = ml_mlb_file_size(header, loader->mlb.flags);
  } else {
    info->weight_type = loader->tinyloop.header.bits == 2 ? "INT2" : "INT4";
    info->file_bytes = ml_tinyloop_file_size(&loader->tinyloop.header);
  }
}

/* The largest matrix that becomes halves, whose quants and scales wait in `staging` until all are there. */
static uint64_t staging_size(const ml_loader *loader) {
  any_walk walk;
  ml_array_source source = arrays_of(loader, &walk);
  ml_array array;
  uint64_t largest = 0, quants = 0;
  while (source.next(source.walk, &array)) {
    if (!ml_becomes_f16(&loader->binding, &array)) continue;
    uint64_t size = ml_round_up(ml_fill_size(&array, loader->binding.layout), ML_ALIGNMENT);
    if (ml_is_quants(array.element)) quants = size;
    if (ml_is_scales(array.element) && quants + size > largest) largest = quants + size;
  }
  return largest;
}

static void bind_arrays(const ml_loader *loader, ml_arena *arena) {
  any_walk walk;
  ml_bind_arrays(loader->model, arrays_of(loader, &walk), &loader->binding, arena);
}

static bool next_of_shared(void *walk, ml_array *array) {
  ml_tinyloop_walk *all = walk;
  while (ml_tinyloop_walk_next(all, array))
    if (array->layer == (int32_t)all->header->n_pre_blocks) return true;
  return false;
}

/* What the layer that is run several times takes in memory. */
static uint64_t loop_bytes(const ml_loader *loader) {
  if (loader->format != TINYLOOP) return 0;
  ml_tinyloop_walk walk = ml_tinyloop_walk_begin(&loader->tinyloop.header);
  ml_arena plan = ml_arena_measure();
  ml_bind_arrays(loader->model, (ml_array_source){next_of_shared, &walk}, &loader->binding, &plan);
  return plan.taken;
}

static ml_status open_arrays(ml_loader *loader, ml_error *error) {
  ml_model *model = loader->model;
  ml_arena plan = ml_arena_measure();
  bind_arrays(loader, &plan);
  uint64_t staging = staging_size(loader);
  /* the limit is on all together */
  uint64_t needed = ml_add_sizes(ml_add_sizes(model->structs.size, plan.taken), staging);
  if (loader->memory_limit && needed > loader->memory_limit)
    return ml_fail(error, ML_E_NOMEM, "model", ml_uint(needed), "bytes needed, the limit is",
                   ml_uint(loader->memory_limit), ML_NO_OFFSET);
  if (loader->planning) {
    model->planned = true;
    model->arrays.size = plan.taken; /* of an arena without a block */
    return ML_OK;
  }
  if (staging) ML_TRY(ml_arena_open(&loader->staging, &loader->allocator, staging, 0, "one matrix", error));
  ML_TRY(ml_arena_open(&model->arrays, &loader->allocator, plan.taken, 0, "weights", error));
  bind_arrays(loader, &model->arrays);
  if (!model->wcls.rows) model->wcls = model->tok_emb; /* shared */
  return ML_OK;
}

/* A model with zeroed layers, which ml_loader_free gives back from now on. */
static ml_status new_model(ml_loader *loader, uint32_t n_layers, ml_error *error) {
  ml_model *model = allocate_zeroed(&loader->allocator, sizeof *model, "model", error);
  if (!model) return ML_E_NOMEM;
  loader->model = model;
  model->allocator = loader->allocator;
  uint64_t structs = ml_mul_sizes(n_layers, sizeof(ml_layer));
  ML_TRY(ml_arena_open(&model->structs, &loader->allocator, ml_round_up(structs, ML_ALIGNMENT),
                       loader->memory_limit, "layer table", error));
  model->layers = ml_arena_take(&model->structs, n_layers, sizeof(ml_layer));
  memset(model->layers, 0, (size_t)structs);
  return ML_OK;
}

static ml_status begin_weights(ml_loader *loader, const uint8_t *mapped, ml_error *error) {
  loader->binding = (ml_binding){mapped, mapped ? ML_LAYOUT_ROWS : ML_LAYOUT_PACKED, loader->f16_body};
  ML_TRY(open_arrays(loader, error));
  describe(loader);
  ml_model *model = loader->model;
  model->info.weight_bytes = model->structs.size + model->arrays.size + (mapped ? model->info.file_bytes : 0);
  model->info.loop_bytes = loop_bytes(loader);
  return ML_OK;
}

static ml_status begin_mlb(void *user, const ml_mlb_header *header, const uint8_t *flags, ml_error *error) {
  ml_loader *loader = user;
  if (header->lin_channels > UINT32_MAX) /* the format allows it; the file would exceed 100 GB */
    return ml_fail(error, ML_E_NOMEM, "linear attention channels", ml_uint(header->lin_channels),
                   "this build can address", ml_uint(UINT32_MAX), ML_NO_OFFSET);
  ML_TRY(new_model(loader, header->n_layers, error));
  ml_config_from_mlb(&loader->model->config, header, flags);
  ml_layers_from_mlb(loader->model->layers, header, flags);
  return begin_weights(loader, loader->mapped, error);
}

/* Always packed: its arrays lie at any offset, and are small. */
static ml_status begin_tinyloop(void *user, const ml_tinyloop_header *header, ml_error *error) {
  ml_loader *loader = user;
  ML_TRY(new_model(loader, header->n_pre_blocks + 1, error));
  ml_config_from_tinyloop(&loader->model->config, header);
  ml_layers_from_tinyloop(loader->model->layers, header);
  return begin_weights(loader, NULL, error);
}

/* ---------------------------------------------------------------- filling it */

/* All of the staged matrix is there: its weights become the halves nearest to them. */
static void write_halves(const ml_loader *loader, const ml_matrix *to) {
  const ml_matrix *from = &loader->staged;
  uint8_t *place = (uint8_t *)(uintptr_t)to->quants; /* ours, and only read by others */
  memset(place, 0, (size_t)ml_layout_rows(ML_LAYOUT_PACKED, to->rows) * to->cols * 2);
  for (uint32_t row = 0; row < from->rows; row++)
    for (size_t block = 0; block < from->cols / ML_BLOCK; block++) {
      float weights[ML_BLOCK];
      ml_dequantize_block(weights, from, row, block);
      for (size_t i = 0; i < ML_BLOCK; i++) {
        uint16_t half = ml_float_to_half(weights[i]);
        memcpy(place + ml_half_offset(to->cols, row, block * ML_BLOCK + i), &half, sizeof half);
      }
    }
}

/* The place in `staging` of a matrix that becomes halves: quants first, scales behind them. */
static uint8_t *stage_array(ml_loader *loader, const ml_array *array) {
  ml_matrix *staged = &loader->staged;
  if (ml_is_scales(array->element)) {
    uint64_t quants = ml_layout_rows(staged->layout, staged->rows) * (staged->cols / ML_BLOCK) *
                      ml_block_bytes(staged->type);
    uint8_t *scales = loader->staging.base + ml_round_up(quants, ML_ALIGNMENT);
    staged->scales = (const float *)(const void *)scales;
    return scales;
  }
  *staged = *ml_array_matrix(loader->model, array);
  staged->type = ml_weight_type_of(array->element);
  staged->layout = loader->binding.layout;
  staged->quants = loader->staging.base;
  return loader->staging.base;
}

static ml_status take_bytes(void *user, const ml_array *array, uint64_t position, const uint8_t *bytes,
                            size_t size, ml_error *error) {
  (void)error;
  ml_loader *loader = user;
  if (loader->planning) return ML_OK;
  const ml_binding *binding = &loader->binding;
  ml_layout layout = ml_array_layout(binding, array);
  bool staged = ml_becomes_f16(binding, array);
  if (position == 0)
    loader->place = staged ? stage_array(loader, array) : ml_array_place(loader->model, array);
  if (!binding->mapped || staged || !ml_fill_as_stored(array, layout))
    ml_fill_bytes(loader->place, array, layout, position, bytes, size);
  if (position + size < array->size) return ML_OK;

  ml_fill_finish(loader->place, array, layout);
  loader->model->info.n_non_finite += ml_fill_count_non_finite(loader->place, array, layout);
  if (staged && ml_is_scales(array->element)) write_halves(loader, ml_array_matrix(loader->model, array));
  return ML_OK;
}

/* ---------------------------------------------------------------- public */

ml_status ml_loader_new(ml_loader **out, const ml_load_options *options, ml_error *error) {
  ml_load_options chosen = options ? *options : (ml_load_options){0};
#if defined(__wasm__)
  if (chosen.f16_body)
    return ml_fail(error, ML_E_ARG, "f16_body", ml_none(), "is not part of wasm builds", ml_none(),
                   ML_NO_OFFSET);
#endif
  ml_allocator allocator = ml_allocator_or_default(chosen.allocator);
  ml_loader *loader = allocate_zeroed(&allocator, sizeof *loader, "loader", error);
  if (!loader) return ML_E_NOMEM;
  loader->allocator = allocator;
  loader->memory_limit = chosen.memory_limit;
  loader->total_size = chosen.total_size;
  loader->f16_body = chosen.f16_body;
  *out = loader;
  return ML_OK;
}

static ml_status push_on(ml_loader *loader, const uint8_t *bytes, size_t size, ml_error *error) {
  return loader->format == MLB ? ml_mlb_parser_push(&loader->mlb, bytes, size, error)
                               : ml_tinyloop_parser_push(&loader->tinyloop, bytes, size, error);
}

/* What is not a .tinyloop file is left to the other parser, which says what is wrong with it. */
static ml_status begin_format(ml_loader *loader, ml_error *error) {
  if (loader->n_magic == MAGIC_SIZE && ml_read_u32(loader->magic) == ML_TINYLOOP_MAGIC) {
    ml_tinyloop_sink sink = {begin_tinyloop, take_bytes, loader};
    ml_tinyloop_parser_init(&loader->tinyloop, &sink, loader->total_size);
    loader->format = TINYLOOP;
  } else {
    ml_mlb_sink sink = {begin_mlb, take_bytes, loader};
    ml_mlb_parser_init(&loader->mlb, &sink, &loader->allocator, loader->total_size);
    loader->format = MLB;
  }
  return push_on(loader, loader->magic, loader->n_magic, error);
}

static ml_status push(ml_loader *loader, const uint8_t *bytes, size_t size, ml_error *error) {
  while (loader->format == UNKNOWN_FORMAT && size) {
    loader->magic[loader->n_magic++] = *bytes++;
    size--;
    if (loader->n_magic == MAGIC_SIZE) ML_TRY(begin_format(loader, error));
  }
  return size ? push_on(loader, bytes, size, error) : ML_OK;
}

static ml_status finish(ml_loader *loader, ml_error *error) {
  if (loader->format == UNKNOWN_FORMAT) ML_TRY(begin_format(loader, error));
  return loader->format == MLB ? ml_mlb_parser_finish(&loader->mlb, error)
                               : ml_tinyloop_parser_finish(&loader->tinyloop, error);
}

/* Remembers the first failure, and gives it out. */
static ml_status settle(ml_loader *loader, ml_status status, ml_error *error) {
  if (status != ML_OK && error) *error = loader->failure;
  return status;
}

ml_status ml_loader_push(ml_loader *loader, const void *bytes, size_t size, ml_error *error) {
  if (loader->failure.status == ML_OK) loader->failure.status = push(loader, bytes, size, &loader->failure);
  return settle(loader, loader->failure.status, error);
}

ml_status ml_loader_finish(ml_loader *loader, ml_model **out, ml_error *error) {
  if (loader->failure.status == ML_OK) loader->failure.status = finish(loader, &loader->failure);
  if (loader->failure.status == ML_OK) {
    if (loader->format == MLB) loader->model->info.trailing_bytes = ml_mlb_parser_trailing(&loader->mlb);
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
  if (loader->format == MLB) ml_mlb_parser_free(&loader->mlb);
  ml_arena_close(&loader->staging);
  loader->allocator.release(loader->allocator.user, loader);
}

static ml_status open_whole(ml_model **out, const void *bytes, size_t size, const ml_load_options *options,
                            bool in_place, ml_error *error) {
  ml_load_options chosen = options ? *options : (ml_load_options){0};
  ml_loader *loader;
  ML_TRY(ml_loader_new(&loader, &chosen, error));
  loader->total_size = size;
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
