/* A tokenizer and a model that do not belong together. */
#include "test.h"
#include "tiny_file.h"
#include "tiny_tokenizer.h"

TEST(tokenizer_must_not_have_more_tokens_than_the_model) {
  uint8_t header[ML_MLB_HEADER_SIZE];
  tiny_header(header); /* vocab 5 */
  tiny_file file = tiny_build(header, NULL);
  ml_model *model = NULL;
  REQUIRE(ml_model_open(&model, file.bytes, file.size, NULL, NULL) == ML_OK);
  for (uint32_t n = 4; n <= 6; n++) {
    tiny_mlt made = tiny_mlt_new(ML_MLT_BYTE_LEVEL, 0);
    for (uint32_t id = 0; id < n; id++) tiny_mlt_token(&made, 0, "x");
    ml_tokenizer *tokenizer = tiny_mlt_open(&made);
    REQUIRE(tokenizer != NULL);
    CHECK_EQ_U64(ml_tokenizer_get_info(tokenizer)->n_vocab, n);
    ml_error error = {0};
    CHECK_EQ_I64(ml_tokenizer_check_model(tokenizer, model, &error), n <= 5 ? ML_OK : ML_E_SHAPE);
    CHECK_EQ_TEXT(error.message,
                  n <= 5 ? "" : "n_vocab of the tokenizer = 6: must be at most the model's vocab 5");
    ml_tokenizer_free(tokenizer);
    tiny_mlt_free(&made);
  }
  ml_model_free(model);
  tiny_free(&file);
}
