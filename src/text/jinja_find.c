/* Searching for a text in a text, in linear time for all inputs, since templates are untrusted: the two-way algorithm
 * of Crochemore and Perrin (1991), which needs no memory. */
#include <string.h>

#include "text/jinja.h"

typedef struct find_cut {
  size_t at;        /* the part from here on is compared first, forwards; then the part before it, backwards */
  size_t shift;     /* when the whole first part has matched */
  bool is_periodic; /* shift is the period of the whole text: what has matched still matches after shifting */
} find_cut;

/* Where the largest suffix begins, in byte order or its reverse, and the period of that suffix. */
static size_t find_suffix(const unsigned char *text, size_t size, bool reverse, size_t *period) {
  size_t best = 0, other = 1, same = 0;
  *period = 1;
  while (other + same < size) {
    const unsigned char a = text[other + same], b = text[best + same];
    if (a == b) {
      same++;
      if (same < *period) continue;
      other += *period;
      same = 0;
    } else if (reverse ? a > b : a < b) {
      other += same + 1;
      same = 0;
      *period = other - best;
    } else {
      best = other++;
      same = 0;
      *period = 1;
    }
  }
  return best;
}

static find_cut find_cut_of(const unsigned char *what, size_t size) {
  size_t period, reverse_period;
  const size_t one = find_suffix(what, size, false, &period), two = find_suffix(what, size, true, &reverse_period);
  find_cut cut = {one > two ? one : two, one > two ? period : reverse_period, true};
  if (memcmp(what, what + cut.shift, cut.at) == 0) return cut;
  const size_t longer = cut.at > size - cut.at ? cut.at : size - cut.at;
  return (find_cut){cut.at, longer + 1, false};
}

static bool find_two_way(const unsigned char *in, size_t in_size, const unsigned char *what, size_t size, size_t from,
                         size_t *at) {
  const find_cut cut = find_cut_of(what, size);
  for (size_t known = 0; from <= in_size && in_size - from >= size;) { /* the first `known` bytes match */
    const unsigned char *text = in + from;
    size_t i = cut.at > known ? cut.at : known;
    while (i < size && what[i] == text[i]) i++;
    if (i < size) {
      from += i - cut.at + 1;
      known = 0;
      continue;
    }
    i = cut.at;
    while (i > known && what[i - 1] == text[i - 1]) i--;
    if (i <= known) {
      *at = from;
      return true;
    }
    from += cut.shift;
    known = cut.is_periodic ? size - cut.shift : 0;
  }
  return false;
}

bool berth__jinja_find(berth__jinja_string in, berth__jinja_string what, size_t from, size_t *at) {
  if (what.size == 0) {
    *at = from;
    return from <= in.size;
  }
  /* The C library is faster where few positions have a common beginning, so it is used as long as that is so. */
  const size_t begin = from;
  for (size_t spent = 0; from < in.size && in.size - from >= what.size; from++) {
    const char *first = memchr(in.data + from, what.data[0], in.size - from - what.size + 1);
    if (first == NULL) return false;
    from = (size_t)(first - in.data);
    spent += what.size + 16;
    if (spent > 64 + 2 * (from - begin) && what.size > 1)
      return find_two_way((const unsigned char *)in.data, in.size, (const unsigned char *)what.data, what.size, from,
                          at);
    if (memcmp(first, what.data, what.size) == 0) {
      *at = from;
      return true;
    }
  }
  return false;
}
