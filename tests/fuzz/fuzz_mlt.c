/* Tokenizer files: any bytes open or are refused with a reason; what opens encodes and decodes any text.
 *
 *   input   file bytes ... | text, n bytes | n u8 | failing allocation u8 (0: none) */
#include "fuzz_tokenizer.h"

enum { CONTROL_SIZE = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < CONTROL_SIZE) return 0;
  size -= CONTROL_SIZE;
  size_t text_size = bytes[size] < size ? bytes[size] : size;
  uint8_t failing = bytes[size + 1];
  size -= text_size;
  uint8_t *file = malloc(size + 1); /* of its own, so that a read past its end is seen */
  char *text = malloc(text_size + 1);
  MUST(file && text);
  memcpy(file, bytes, size);
  memcpy(text, bytes + size, text_size);

  ml_tokenizer *tokenizer = NULL;
  ml_error error = {0};
  ml_status status = ml_tokenizer_open(&tokenizer, file, size, NULL, &error);
  MUST(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
  MUST((tokenizer != NULL) == (status == ML_OK));
  must_be_explained(status, &error);
  for (unsigned flags = 0; tokenizer && flags < 4; flags++) {
    size_t n;
    int32_t *ids = must_encode(tokenizer, text, text_size, flags, &n);
    must_decode(tokenizer, ids, n, flags & 1);
    free(ids);
  }
  ml_tokenizer_free(tokenizer);
  if (failing) use_short_of_memory(file, size, text, text_size, failing, status);
  free(file);
  free(text);
  return 0;
}
