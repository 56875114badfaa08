/* ids_driver.c - encodes and decodes many texts in one process, for the comparison with other tokenizers.
 *
 *   ids_driver FILE.mlt <requests >answers
 *
 *   request   u8 command, u32 n, then    text commands    n bytes of text
 *                                        id commands      n ids, i32 each
 *     'e'  encode, added tokens become ids       'p'  encode, added tokens are plain text
 *     'b'  as 'e', with BOS where the tokenizer adds it
 *     'd'  decode everything                     's'  decode without added tokens
 *   answer    u32 n, then    text commands    n ids, i32 each
 *                            id commands      n sizes, u32 each, of the pieces given out; then the pieces
 *             or u32 0xFFFFFFFF, u32 status, u32 n, n bytes of message
 *
 * Little-endian, as every machine that this runs on. Exit status 2: a bad request or no tokenizer. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ml.h"

/* Bytes that grow as needed; the driver ends when memory does. */
typedef struct bytes {
  unsigned char *data;
  size_t size, capacity;
} bytes;

static void die(const char *message) {
  fprintf(stderr, "ids_driver: %s\n", message);
  exit(2);
}

static void reserve(bytes *b, size_t size) {
  if (size <= b->capacity) return;
  b->capacity = size + size / 2 + 64;
  b->data = realloc(b->data, b->capacity);
  if (!b->data) die("out of memory");
}

static void append(bytes *b, const void *data, size_t size) {
  reserve(b, b->size + size);
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void write_u32(uint32_t value) { fwrite(&value, sizeof value, 1, stdout); }

static void write_failure(const ml_error *error) {
  uint32_t length = (uint32_t)strlen(error->message);
  write_u32(UINT32_MAX);
  write_u32((uint32_t)error->status);
  write_u32(length);
  fwrite(error->message, 1, length, stdout);
}

/* ---------------------------------------------------------------- commands */

static void encode(const ml_tokenizer *tokenizer, const bytes *text, char command) {
  static bytes ids;
  unsigned flags = (command == 'p' ? 0u : ML_ENCODE_SPECIAL) | (command == 'b' ? 0u : ML_ENCODE_NO_BOS);
  size_t capacity = text->size + 16, n = 0;
  for (;;) {
    ml_error error;
    reserve(&ids, capacity * sizeof(int32_t));
    ml_status status = ml_tokenizer_encode(tokenizer, (const char *)text->data, text->size, flags,
                                           (int32_t *)(void *)ids.data, capacity, &n, &error);
    if (status != ML_OK) {
      write_failure(&error);
      return;
    }
    if (n <= capacity) break;
    capacity = n;
  }
  write_u32((uint32_t)n);
  fwrite(ids.data, sizeof(int32_t), n, stdout);
}

static void keep_piece(bytes *sizes, bytes *text, const char *piece, size_t size) {
  uint32_t short_size = (uint32_t)size;
  append(sizes, &short_size, sizeof short_size);
  append(text, piece, size);
}

static void decode(ml_decoder *decoder, const bytes *request, bool special) {
  static bytes sizes, text;
  sizes.size = text.size = 0;
  const char *piece;
  size_t size;
  for (size_t at = 0; at < request->size; at += sizeof(int32_t)) {
    int32_t id;
    ml_error error;
    memcpy(&id, request->data + at, sizeof id);
    if (ml_decoder_push(decoder, id, special, &piece, &size, &error) != ML_OK) {
      ml_decoder_finish(decoder, &piece, &size);
      write_failure(&error);
      return;
    }
    keep_piece(&sizes, &text, piece, size);
  }
  ml_decoder_finish(decoder, &piece, &size);
  keep_piece(&sizes, &text, piece, size);
  write_u32((uint32_t)(sizes.size / sizeof(uint32_t)));
  fwrite(sizes.data, 1, sizes.size, stdout);
  fwrite(text.data, 1, text.size, stdout);
}

/* ---------------------------------------------------------------- input */

static bytes read_file(const char *path) {
  bytes all = {0};
  FILE *file = fopen(path, "rb");
  if (!file) die("the .mlt file cannot be opened");
  for (size_t got = 1; got;) {
    reserve(&all, all.size + (1u << 16));
    got = fread(all.data + all.size, 1, 1u << 16, file);
    all.size += got;
  }
  fclose(file);
  return all;
}

static bool read_exactly(void *out, size_t size) { return fread(out, 1, size, stdin) == size; }

/* False at the end of the input. */
static bool read_request(char *command, bytes *payload) {
  uint32_t n;
  if (!read_exactly(command, 1)) return false;
  if (!strchr("epbds", *command) || !read_exactly(&n, sizeof n)) die("bad request");
  size_t size = strchr("ds", *command) ? n * sizeof(int32_t) : n;
  reserve(payload, size + 1);
  payload->size = size;
  if (!read_exactly(payload->data, size)) die("request cut short");
  return true;
}

int main(int argc, char **argv) {
  if (argc != 2) die("usage: ids_driver FILE.mlt <requests >answers");
  bytes file = read_file(argv[1]), payload = {0};
  ml_tokenizer *tokenizer;
  ml_decoder *decoder;
  ml_error error;
  if (ml_tokenizer_open(&tokenizer, file.data, file.size, NULL, &error) != ML_OK ||
      ml_decoder_new(&decoder, tokenizer, NULL, &error) != ML_OK)
    die(error.message);
  free(file.data); /* the tokenizer keeps nothing of it */
  char command;
  while (read_request(&command, &payload)) {
    if (command == 'd' || command == 's')
      decode(decoder, &payload, command == 'd');
    else
      encode(tokenizer, &payload, command);
    fflush(stdout); /* somebody may wait for it before asking on */
  }
  ml_decoder_free(decoder);
  ml_tokenizer_free(tokenizer);
  free(payload.data);
  return ferror(stdout) ? 2 : 0;
}
