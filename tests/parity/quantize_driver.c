/* quantize_driver NAME: quantizes blocks of 32 floats from standard input with the kernels called NAME. For each block
 * it writes 1 byte (1: all finite), 4 bytes of scale, 4 of where products start (-8 * sum), 32 of quants; little-endian,
 * as the machine is. */
#include <stdio.h>

#include "kernels/kernels.h"

int main(int argc, char **argv) {
  const ml_kernels *kernels = argc == 2 ? ml_kernels_find(argv[1]) : NULL;
  if (!kernels) {
    fprintf(stderr, "usage: quantize_driver NAME, where `ml_run --isa list` shows the names\n");
    return 2;
  }
  float x[ML_BLOCK];
  while (fread(x, sizeof x, 1, stdin) == 1) {
    int8_t q[ML_BLOCK] = {0};
    float d = 0;
    int32_t start = 0;
    unsigned char finite = kernels->quantize(q, &d, &start, x, ML_BLOCK);
    if (fwrite(&finite, 1, 1, stdout) != 1 || fwrite(&d, sizeof d, 1, stdout) != 1 ||
        fwrite(&start, sizeof start, 1, stdout) != 1 || fwrite(q, sizeof q, 1, stdout) != 1)
      return 1;
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
