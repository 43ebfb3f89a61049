#include "text/vocab.h"

#include <string.h>

static int sorted_compare(const berth__tokenizer *t, uint32_t a, uint32_t b) {
  const berth__span left = berth__vocab_text(t, a), right = berth__vocab_text(t, b);
  const int order = memcmp(left.data, right.data, left.size < right.size ? left.size : right.size);
  if (order != 0) return order;
  return left.size < right.size ? -1 : left.size > right.size;
}

/* Merges the sorted halves of from[0..n) into `to`. */
static void sorted_merge(const berth__tokenizer *t, const uint32_t *from, uint32_t *to, size_t middle, size_t n) {
  size_t a = 0, b = middle;
  for (size_t i = 0; i < n; i++) {
    const bool take_left = b == n || (a < middle && sorted_compare(t, from[a], from[b]) <= 0);
    to[i] = take_left ? from[a++] : from[b++];
  }
}

/* Stable, bottom up; the result is in ids again. */
static void sorted_sort(const berth__tokenizer *t, uint32_t *ids, uint32_t *other, size_t n) {
  uint32_t *from = ids, *to = other;
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t at = 0; at < n; at += 2 * width) {
      const size_t size = n - at < 2 * width ? n - at : 2 * width;
      sorted_merge(t, from + at, to + at, size < width ? size : width, size);
    }
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != ids) memcpy(ids, from, n * sizeof *ids);
}

berth_status berth__sorted_make(const berth__tokenizer *t, uint32_t attributes, berth__sorted *out, berth_error *err) {
  size_t n = 0;
  for (uint32_t id = 0; id < t->count; id++)
    n += (t->attributes[id] & attributes) != 0 && berth__vocab_text(t, id).size;
  out->ids = berth__alloc_array(t->ctx, n, sizeof *out->ids);
  uint32_t *other = berth__alloc_array(t->ctx, n, sizeof *other);
  if (out->ids == NULL || other == NULL) {
    berth__free(t->ctx, other);
    return berth__fail_nomem(err, "the sorted vocabulary");
  }
  for (uint32_t id = 0; id < t->count; id++) {
    if ((t->attributes[id] & attributes) != 0 && berth__vocab_text(t, id).size != 0) out->ids[out->count++] = id;
  }
  sorted_sort(t, out->ids, other, n);
  berth__free(t->ctx, other);
  uint32_t at = 0;
  for (uint32_t byte = 0; byte <= 256; byte++) {
    while (at < out->count && (uint8_t)berth__vocab_text(t, out->ids[at]).data[0] < byte) at++;
    out->first[byte] = at;
  }
  return BERTH_OK;
}

/* The first token from low on whose byte at this depth is at least `byte`. Tokens that end before it come first. */
static uint32_t sorted_bound(const berth__tokenizer *t, const berth__sorted *sorted, uint32_t low, uint32_t high,
                             size_t depth, uint32_t byte) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const berth__span text = berth__vocab_text(t, sorted->ids[middle]);
    if (text.size <= depth || (uint8_t)text.data[depth] < byte) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool berth__walk_step(const berth__tokenizer *t, const berth__sorted *sorted, berth__walk *walk, char byte) {
  const uint32_t value = (uint8_t)byte;
  if (walk->depth == 0) {
    walk->low = sorted->first[value];
    walk->high = sorted->first[value + 1];
  } else {
    walk->low = sorted_bound(t, sorted, walk->low, walk->high, walk->depth, value);
    walk->high = sorted_bound(t, sorted, walk->low, walk->high, walk->depth, value + 1);
  }
  walk->depth++;
  return walk->low < walk->high;
}

int32_t berth__walk_token(const berth__tokenizer *t, const berth__sorted *sorted, const berth__walk *walk) {
  if (walk->low >= walk->high) return BERTH__NO_TOKEN;
  const uint32_t id = sorted->ids[walk->low];
  return berth__vocab_text(t, id).size == walk->depth ? (int32_t)id : BERTH__NO_TOKEN;
}
