/* Index arithmetic: i32 results are kept as sums of multiples, so that an index which a reshape splits and joins again
 * is recognised as the same. Sums are modulo 2^32; quotients and remainders are changed only if nothing can wrap. */
#include "base/math.h"
#include "kernel/maker.h"

#define TERMS 10u

/* The sum of factor * x, plus constant. */
typedef struct sum {
  struct {
    berth__x x;
    int64_t factor;
  } terms[TERMS];
  uint32_t n;
  uint32_t n_gathered; /* terms added before equal ones were merged */
  int64_t constant;
  bool is_full; /* something did not fit */
} sum;

static bool kernel_index_fits(int64_t value) { return value >= -((int64_t)1 << 31) && value < ((int64_t)1 << 31); }

static void remove_term(sum *s, uint32_t i) { s->terms[i] = s->terms[--s->n]; }

static void add_term(sum *s, berth__x x, int64_t factor) {
  s->n_gathered += 1;
  for (uint32_t i = 0; i < s->n; ++i) {
    if (s->terms[i].x != x) continue;
    s->terms[i].factor += factor;
    if (!kernel_index_fits(s->terms[i].factor)) s->is_full = true;
    if (s->terms[i].factor == 0) remove_term(s, i);
    return;
  }
  if (s->n == TERMS || !kernel_index_fits(factor)) {
    s->is_full = true;
    return;
  }
  s->terms[s->n].x = x;
  s->terms[s->n++].factor = factor;
}

/* The flat index of a thread in the grid is kept in one piece, because what is computed from it is joined again. */
static bool is_flat_index(const berth__kernel *k, const berth__inst *add) {
  const berth__inst *thread = &k->insts[add->in[0]], *groups = &k->insts[add->in[1]];
  if (thread->code != BERTH__INST_thread) {
    const berth__inst *other = thread;
    thread = groups;
    groups = other;
  }
  return thread->code == BERTH__INST_thread && groups->code == BERTH__INST_mul &&
         k->insts[groups->in[0]].code == BERTH__INST_group && k->insts[groups->in[1]].low == (int64_t)k->group_size;
}

static void kernel_index_gather(const berth__kernel *k, sum *s, berth__x x, int64_t factor) {
  const berth__inst *inst = &k->insts[x];
  if (s->is_full) return;
  if (inst->low == inst->high) {
    s->constant += factor * inst->low;
    s->is_full = !kernel_index_fits(s->constant);
  } else if (inst->code == BERTH__INST_add && !is_flat_index(k, inst)) {
    kernel_index_gather(k, s, inst->in[0], factor);
    kernel_index_gather(k, s, inst->in[1], factor);
  } else if (inst->code == BERTH__INST_sub) {
    kernel_index_gather(k, s, inst->in[0], factor);
    kernel_index_gather(k, s, inst->in[1], -factor);
  } else if (inst->code == BERTH__INST_mul && k->insts[inst->in[1]].code == BERTH__INST_constant) {
    int64_t product = factor * k->insts[inst->in[1]].low;
    if (!kernel_index_fits(product)) {
      s->is_full = true;
    } else {
      kernel_index_gather(k, s, inst->in[0], product);
    }
  } else {
    add_term(s, x, factor);
  }
}

/* x is y / by, or y % by, of y >= 0, in either form. */
static bool is_quotient(const berth__kernel *k, berth__x x, berth__x *y, int64_t *by) {
  const berth__inst *inst = &k->insts[x];
  bool is_div = inst->code == BERTH__INST_div, is_shr = inst->code == BERTH__INST_shr;
  if ((!is_div && !is_shr) || k->insts[inst->in[1]].code != BERTH__INST_constant || k->insts[inst->in[0]].low < 0)
    return false;
  *y = inst->in[0];
  *by = is_div ? k->insts[inst->in[1]].low : (int64_t)1 << k->insts[inst->in[1]].low;
  return *by > 0;
}

static bool is_remainder(const berth__kernel *k, berth__x x, berth__x *y, int64_t *by) {
  const berth__inst *inst = &k->insts[x];
  bool is_rem = inst->code == BERTH__INST_rem, is_and = inst->code == BERTH__INST_and;
  if ((!is_rem && !is_and) || k->insts[inst->in[1]].code != BERTH__INST_constant || k->insts[inst->in[0]].low < 0)
    return false;
  *y = inst->in[0];
  *by = k->insts[inst->in[1]].low + (is_and ? 1 : 0);
  return *by > 0 && (is_rem || berth__is_power_of_two((uint64_t)*by));
}

/* The position of y / by in the sum, which may be written z / (c * by) for y = z / c; TERMS: not found. */
static uint32_t find_quotient(const berth__kernel *k, const sum *s, berth__x y, int64_t by, int64_t factor) {
  berth__x inner = BERTH__X_NONE;
  int64_t more = 0;
  bool is_nested = is_quotient(k, y, &inner, &more);
  for (uint32_t i = 0; i < s->n; ++i) {
    berth__x of;
    int64_t divisor;
    if (s->terms[i].factor != factor || !is_quotient(k, s->terms[i].x, &of, &divisor)) continue;
    if (of == y && divisor == by) return i;
    if (is_nested && of == inner && divisor == by * more) return i;
  }
  return TERMS;
}

/* (y / c) * c + y % c is y. */
static bool rejoin(const berth__kernel *k, sum *s) {
  for (uint32_t i = 0; i < s->n; ++i) {
    berth__x y;
    int64_t by;
    if (!is_remainder(k, s->terms[i].x, &y, &by) || !kernel_index_fits(s->terms[i].factor * by)) continue;
    uint32_t j = find_quotient(k, s, y, by, s->terms[i].factor * by);
    if (j == TERMS) continue;
    int64_t factor = s->terms[i].factor;
    remove_term(s, i > j ? i : j);
    remove_term(s, i > j ? j : i);
    kernel_index_gather(k, s, y, factor);
    return true;
  }
  return false;
}

/* ((y / c) % d) * c + y % c is y % (c * d). */
static bool rejoin_remainders(berth__kernel *k, sum *s) {
  for (uint32_t i = 0; i < s->n; ++i) {
    berth__x y, quotient, of;
    int64_t by, outer, divisor;
    if (!is_remainder(k, s->terms[i].x, &y, &by)) continue;
    for (uint32_t j = 0; j < s->n; ++j) {
      if (s->terms[j].factor != s->terms[i].factor * by || !is_remainder(k, s->terms[j].x, &quotient, &outer)) continue;
      if (!is_quotient(k, quotient, &of, &divisor) || of != y || divisor != by || !kernel_index_fits(by * outer))
        continue;
      int64_t factor = s->terms[i].factor;
      remove_term(s, i > j ? i : j);
      remove_term(s, i > j ? j : i);
      berth__x x = berth__x_rem(k, y, berth__x_i32(k, by * outer));
      if (x == BERTH__X_NONE) s->is_full = true;
      if (!s->is_full) kernel_index_gather(k, s, x, factor);
      return true;
    }
  }
  return false;
}

static bool rejoin_all(berth__kernel *k, sum *s) {
  bool has_joined = false;
  while (!s->is_full && (rejoin(k, s) || rejoin_remainders(k, s))) has_joined = true;
  return has_joined;
}

/* Orders terms by their numbers, so that equal sums are made of equal instructions. */
static berth__x kernel_index_make(berth__kernel *k, sum *s) {
  for (uint32_t i = 1; i < s->n; ++i) {
    for (uint32_t j = i; j > 0 && s->terms[j].x < s->terms[j - 1].x; --j) {
      berth__x x = s->terms[j].x;
      int64_t factor = s->terms[j].factor;
      s->terms[j] = s->terms[j - 1];
      s->terms[j - 1].x = x;
      s->terms[j - 1].factor = factor;
    }
  }
  if (s->n == 0) return berth__x_i32(k, s->constant);
  berth__x total = BERTH__X_NONE;
  for (uint32_t i = 0; i < s->n; ++i) {
    berth__x term = berth__x_mul(k, s->terms[i].x, berth__x_i32(k, s->terms[i].factor));
    total = i == 0 ? term : berth__x_add(k, total, term);
  }
  return berth__x_add(k, total, berth__x_i32(k, s->constant));
}

berth__x berth__index_add(berth__kernel *k, berth__x a, berth__x b, int64_t factor_of_b) {
  sum s = {.n = 0};
  kernel_index_gather(k, &s, a, 1);
  kernel_index_gather(k, &s, b, factor_of_b);
  bool is_shorter = s.n < s.n_gathered;
  if (rejoin_all(k, &s)) is_shorter = true;
  return s.is_full || !is_shorter ? BERTH__X_NONE : kernel_index_make(k, &s);
}

/* The range of the sum in exact arithmetic. */
static void bounds(const berth__kernel *k, const sum *s, int64_t *low, int64_t *high) {
  *low = *high = s->constant;
  for (uint32_t i = 0; i < s->n; ++i) {
    const berth__inst *inst = &k->insts[s->terms[i].x];
    int64_t factor = s->terms[i].factor;
    *low += factor * (factor > 0 ? inst->low : inst->high);
    *high += factor * (factor > 0 ? inst->high : inst->low);
  }
}

/* a = by * multiple + rest. */
typedef struct parts {
  sum multiple, rest;
  int64_t low, high; /* range of the rest */
  bool has_multiple;
} parts;

/* False if the sum may wrap or be negative. */
static bool kernel_index_split(const berth__kernel *k, berth__x a, int64_t by, parts *p) {
  sum s = {.n = 0};
  *p = (parts){.low = 0};
  kernel_index_gather(k, &s, a, 1);
  if (s.is_full) return false;
  bounds(k, &s, &p->low, &p->high);
  if (p->low < 0 || p->high > INT32_MAX) return false;
  for (uint32_t i = 0; i < s.n; ++i) {
    int64_t factor = s.terms[i].factor;
    if (factor % by == 0) {
      add_term(&p->multiple, s.terms[i].x, factor / by);
    } else {
      add_term(&p->rest, s.terms[i].x, factor);
    }
  }
  p->rest.constant = s.constant >= 0 ? s.constant % by : (by - -s.constant % by) % by;
  p->multiple.constant = (s.constant - p->rest.constant) / by;
  p->has_multiple = p->multiple.n > 0 || p->multiple.constant != 0;
  bounds(k, &p->rest, &p->low, &p->high);
  return true;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  b = b < 0 ? -b : b;
  while (b != 0) {
    int64_t left = a % b;
    a = b;
    b = left;
  }
  return a;
}

/* The largest proper divisor of `by` for which `a` is a multiple plus a smaller rest; what is left to divide then has
 * fewer terms. 0: none. */
static int64_t find_divisor(const berth__kernel *k, berth__x a, int64_t by, const sum *rest, parts *p) {
  int64_t best = 0;
  for (uint32_t i = 0; i < rest->n; ++i) {
    int64_t divisor = common_divisor(by, rest->terms[i].factor);
    parts candidate;
    if (divisor <= best || divisor <= 1 || divisor == by || !kernel_index_split(k, a, divisor, &candidate)) continue;
    if (candidate.low < 0 || candidate.high >= divisor) continue;
    best = divisor;
    *p = candidate;
  }
  return best;
}

static berth__x divide_parts(berth__kernel *k, berth__x a, int64_t by) {
  parts p, inner;
  if (!kernel_index_split(k, a, by, &p)) return BERTH__X_NONE;
  if (p.low >= 0 && p.high < by) return kernel_index_make(k, &p.multiple);
  if (p.has_multiple && p.low >= 0 && p.high <= INT32_MAX) {
    berth__x left = berth__x_div(k, kernel_index_make(k, &p.rest), berth__x_i32(k, by));
    return berth__x_add(k, kernel_index_make(k, &p.multiple), left);
  }
  int64_t divisor = find_divisor(k, a, by, &p.rest, &inner);
  if (divisor == 0) return BERTH__X_NONE;
  return berth__x_div(k, kernel_index_make(k, &inner.multiple), berth__x_i32(k, by / divisor));
}

static berth__x remain_parts(berth__kernel *k, berth__x a, int64_t by) {
  parts p, inner;
  if (!kernel_index_split(k, a, by, &p)) return BERTH__X_NONE;
  if (p.low >= 0 && p.high < by) return kernel_index_make(k, &p.rest);
  if (p.has_multiple && p.low >= 0 && p.high <= INT32_MAX) {
    return berth__x_rem(k, kernel_index_make(k, &p.rest), berth__x_i32(k, by));
  }
  int64_t divisor = find_divisor(k, a, by, &p.rest, &inner);
  if (divisor == 0 || inner.rest.n == 0) return BERTH__X_NONE;
  berth__x left = berth__x_rem(k, kernel_index_make(k, &inner.multiple), berth__x_i32(k, by / divisor));
  return berth__x_add(k, berth__x_affine(k, left, divisor, 0), kernel_index_make(k, &inner.rest));
}

berth__x berth__index_div(berth__kernel *k, berth__x a, int64_t by) {
  berth__x y;
  int64_t other;
  if (k->insts[a].high < by) return berth__x_i32(k, 0);
  if (is_quotient(k, a, &y, &other)) { /* (y / c) / d */
    if (kernel_index_fits(other * by)) return berth__x_div(k, y, berth__x_i32(k, other * by));
    return berth__x_i32(k, 0);
  }
  if (is_remainder(k, a, &y, &other) && other % by == 0) { /* (y % (c * d)) / d is (y / d) % c */
    return berth__x_rem(k, berth__x_div(k, y, berth__x_i32(k, by)), berth__x_i32(k, other / by));
  }
  return divide_parts(k, a, by);
}

berth__x berth__index_rem(berth__kernel *k, berth__x a, int64_t by) {
  berth__x y;
  int64_t other;
  if (is_remainder(k, a, &y, &other) && other % by == 0) return berth__x_rem(k, y, berth__x_i32(k, by));
  return remain_parts(k, a, by);
}
