/* Goes on with a text, in C:
 *
 *   make native && cc -Isrc -o build/continue examples/continue.c build/native/libml.a -lm -pthread
 *   build/continue build/models/smollm2-135m-q4 'Once upon a time' */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ml.h"

static ml_error error;

static void check(ml_status status) {
  if (status == ML_OK) return;
  fprintf(stderr, "%s: %s\n", ml_status_name(status), error.message);
  exit(1);
}

static void *read_file(const char *folder, const char *name, size_t *size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size);
  if (!bytes || fread(bytes, 1, *size, file) != *size) exit(1);
  fclose(file);
  return bytes;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: continue PACKAGE TEXT\n"), 2;
  size_t size, n_ids, n_text;
  ml_model *model;
  ml_tokenizer *tokenizer;
  ml_session *session;
  ml_sampler *sampler;
  ml_decoder *decoder;
  void *file = read_file(argv[1], "model.mlb", &size);
  check(ml_model_open(&model, file, size, NULL, &error));
  free(file);
  file = read_file(argv[1], "tokenizer.mlt", &size);
  check(ml_tokenizer_open(&tokenizer, file, size, NULL, &error));
  free(file);
  check(ml_session_new(&session, model, NULL, &error));
  check(ml_sampler_new(&sampler, ml_model_get_info(model)->vocab, NULL, NULL, &error));
  check(ml_decoder_new(&decoder, tokenizer, NULL, &error));

  int32_t ids[1024], id;
  const char *text;
  check(ml_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), 0, ids, 1024, &n_ids, &error));
  check(ml_session_eval(session, ids, n_ids < 1024 ? n_ids : 1024, &error));
  for (int i = 0; i < 40; i++) {
    check(ml_sampler_sample(sampler, ml_session_logits(session), &id, &error));
    if (id == ml_tokenizer_get_info(tokenizer)->eos) break;
    check(ml_decoder_push(decoder, id, false, &text, &n_text, &error));
    fwrite(text, 1, n_text, stdout);
    check(ml_session_eval(session, &id, 1, &error));
  }
  ml_decoder_finish(decoder, &text, &n_text);
  fwrite(text, 1, n_text, stdout);
  putchar('\n');
  ml_decoder_free(decoder);
  ml_sampler_free(sampler);
  ml_session_free(session);
  ml_tokenizer_free(tokenizer);
  ml_model_free(model);
  return 0;
}
