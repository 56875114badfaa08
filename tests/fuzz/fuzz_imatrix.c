/* Importance matrix files: any bytes are accepted or refused with a reason. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  ml_error error = {0};
  ml_status status = ml_imatrix_check(bytes, size, &error);
  MUST(status == ML_OK || status == ML_E_FORMAT || status == ML_E_SHAPE);
  must_be_explained(status, &error);
  return 0;
}
