/* splitmix.h - random numbers of the test programs: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014. */
#ifndef SPLITMIX_H
#define SPLITMIX_H

#include <stdint.h>

static inline uint64_t splitmix64(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Where a test begins, so that its numbers are the same whether it runs alone or among others: FNV-1a of its name, moved
 * by the seed. */
static inline uint64_t splitmix_state(const char *title, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *title; title++) hash = (hash ^ (uint8_t)*title) * 0x100000001b3u;
  return hash ^ seed * 0x9e3779b97f4a7c15u;
}

#endif
