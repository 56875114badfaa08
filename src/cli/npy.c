#include "cli/npy.h"

#include <string.h>

#define HEADER_SIZE 128 /* a multiple of 64 that holds the longest header, so that the data is aligned */
#define PREAMBLE_SIZE 10

static bool is_little_endian(void) {
  const uint16_t one = 1;
  uint8_t first;
  memcpy(&first, &one, 1);
  return first == 1;
}

int npy_write_header(output_file *file, bool is_double, size_t rows, size_t columns) {
  char header[HEADER_SIZE + 1] = "\x93NUMPY\x01";
  header[8] = HEADER_SIZE - PREAMBLE_SIZE; /* u16, below 256 */
  char *text = header + PREAMBLE_SIZE;
  int length = snprintf(text, HEADER_SIZE - PREAMBLE_SIZE,
                        "{'descr': '%cf%c', 'fortran_order': False, 'shape': (%zu, %zu), }",
                        is_little_endian() ? '<' : '>', is_double ? '8' : '4', rows, columns);
  memset(text + length, ' ', (size_t)(HEADER_SIZE - PREAMBLE_SIZE - length));
  header[HEADER_SIZE - 1] = '\n';
  return output_write(file, header, HEADER_SIZE);
}
