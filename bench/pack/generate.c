/* Generates instances for the packer, in the CSV format of `berth pack` and bench_pack.
 *
 *   generate guillotine N SEED [HEIGHT [TIME]]   a strip cut into N pieces: the best packing is exactly HEIGHT
 *   generate dense N SEED [HEIGHT]               random lifetimes, 95 to 100% of HEIGHT alive at every moment
 *   generate random N SEED                       random sizes and short lifetimes, for speed at large N */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct piece {
  int64_t lower, upper;
  uint64_t size;
} piece;

static uint64_t state;

static uint64_t next_random(void) {
  uint64_t z = (state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static double area(const piece *p) { return (double)p->size * (double)(p->upper - p->lower); }

/* A heap with the largest piece at the root. */
static void sift_down(piece *p, size_t n, size_t i) {
  piece moving = p[i];
  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && area(&p[child + 1]) > area(&p[child])) child++;
    if (area(&p[child]) <= area(&moving)) break;
    p[i] = p[child];
  }
  p[i] = moving;
}

static void sift_up(piece *p, size_t i) {
  piece moving = p[i];
  for (; i > 0 && area(&p[(i - 1) / 2]) < area(&moving); i = (i - 1) / 2) p[i] = p[(i - 1) / 2];
  p[i] = moving;
}

/* Cuts the largest piece in two until there are n. */
static size_t guillotine(piece *p, size_t n, uint64_t height, int64_t time) {
  size_t count = 1;
  p[0] = (piece){0, time, height};
  while (count < n) {
    piece a = p[0], b = p[0];
    uint64_t percent = 20 + next_random() % 61;
    int64_t length = a.upper - a.lower;
    if (length < 2 && a.size < 2) break;
    if (length > 1 && (a.size < 2 || next_random() % 2)) {
      int64_t middle = length * (int64_t)percent / 100;
      a.upper = b.lower = a.lower + (middle > 0 ? middle : 1);
    } else {
      uint64_t part = a.size * percent / 100;
      a.size = part > 0 ? part : 1;
      b.size -= a.size;
    }
    p[0] = a;
    sift_down(p, count, 0);
    p[count] = b;
    sift_up(p, count++);
  }
  return count;
}

/* Adds buffers until hardly any fits; the load, not a packing, is kept below HEIGHT. */
static size_t dense(piece *p, size_t n, uint64_t height) {
  size_t time = n / 4 + 8, count = 0;
  uint64_t *load = calloc(time, sizeof *load);
  for (unsigned misses = 0; load != NULL && count < n && misses < 2000;) {
    size_t lower = next_random() % time, upper = lower + 1 + next_random() % 16;
    uint64_t size = 1 + next_random() % (height / 8), most = 0;
    if (upper > time) upper = time;
    for (size_t t = lower; t < upper; t++)
      if (load[t] > most) most = load[t];
    if (most + size > height) {
      misses++;
      continue;
    }
    for (size_t t = lower; t < upper; t++) load[t] += size;
    p[count++] = (piece){(int64_t)lower, (int64_t)upper, size};
  }
  free(load);
  return count;
}

static size_t scatter(piece *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    int64_t lower = (int64_t)(next_random() % (n * 2)), length = 1 + (int64_t)(next_random() % 400);
    p[i] = (piece){lower, lower + length, 16 + 16 * (next_random() % 256)};
  }
  return n;
}

static void write_shuffled(piece *p, size_t n) {
  for (size_t i = n; i > 1; i--) {
    size_t j = next_random() % i;
    piece swap = p[i - 1];
    p[i - 1] = p[j];
    p[j] = swap;
  }
  puts("id,lower,upper,size");
  for (size_t i = 0; i < n; i++)
    printf("%zu,%" PRId64 ",%" PRId64 ",%" PRIu64 "\n", i, p[i].lower, p[i].upper, p[i].size);
}

int main(int argc, char **argv) {
  if (argc < 4) {
    puts("usage: generate guillotine|dense|random N SEED [HEIGHT [TIME]]");
    return argc == 1 ? 0 : 2;
  }
  size_t n = strtoull(argv[2], NULL, 10);
  uint64_t height = argc > 4 ? strtoull(argv[4], NULL, 10) : 1 << 20;
  int64_t time = argc > 5 ? strtoll(argv[5], NULL, 10) : 1 << 20;
  piece *p = malloc((n + 1) * sizeof *p);
  state = strtoull(argv[3], NULL, 10);
  if (p == NULL || n == 0 || height < 8 || time < 1) return 2;
  if (strcmp(argv[1], "guillotine") == 0)
    n = guillotine(p, n, height, time);
  else if (strcmp(argv[1], "dense") == 0)
    n = dense(p, n, height);
  else if (strcmp(argv[1], "random") == 0)
    n = scatter(p, n);
  else
    return 2;
  write_shuffled(p, n);
  free(p);
  return 0;
}
