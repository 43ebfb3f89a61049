/* Checks a placement using the caller's own numbers, with a method that has nothing in common with how the placement
 * was found.
 *
 * All buffers are ranked by offset. Then time is swept from start to end: a buffer's rank enters a set when it is born
 * and leaves it when it dies. When it enters, its neighbours in the set are the live buffers just below and just above
 * it; if it overlaps neither, it overlaps no live buffer at all, because those do not overlap each other. The set is a
 * bitmap with summaries (each word of a level says which words of the level below are not empty), so each step examines
 * a handful of words, whatever the number of live buffers. */
#include "plan/pack/check.h"

#include <string.h>

#include "plan/pack/sort.h"

enum {
  WORD = 64,
  MAX_LEVELS = 6,
  NO_RANK = -1
};

typedef struct rank_set {
  uint64_t *level[MAX_LEVELS]; /* level 0 has one bit per rank */
  unsigned n_levels;
  size_t words; /* on all levels */
} rank_set;

typedef struct sweep {
  const berth_pack_buffer *buffers;
  const uint64_t *offsets;
  uint32_t *by_offset; /* rank -> buffer */
  uint32_t *rank;      /* position in the list of live buffers -> rank */
  uint32_t *by_birth, *by_death, *scratch;
  uint32_t *live; /* the buffers with a size and a lifetime */
  uint64_t *key;
  size_t n;
  rank_set set;
} sweep;

static unsigned lowest_bit(uint64_t x) {
  unsigned at = 0;
  for (unsigned step = 32; step > 0; step /= 2) {
    if ((x & ((UINT64_C(1) << step) - 1)) == 0) {
      x >>= step;
      at += step;
    }
  }
  return at;
}

static unsigned highest_bit(uint64_t x) {
  unsigned at = 0;
  for (unsigned step = 32; step > 0; step /= 2) {
    if ((x >> step) != 0) {
      x >>= step;
      at += step;
    }
  }
  return at;
}

static void set_layout(rank_set *set, size_t n) {
  set->n_levels = 0;
  set->words = 0;
  do {
    n = (n + WORD - 1) / WORD;
    set->words += n;
    set->n_levels++;
  } while (n > 1 && set->n_levels < MAX_LEVELS);
}

static void set_place(rank_set *set, uint64_t *memory, size_t n) {
  for (unsigned k = 0; k < set->n_levels; k++) {
    n = (n + WORD - 1) / WORD;
    set->level[k] = memory;
    memory += n;
  }
}

static void set_insert(rank_set *set, size_t rank) {
  for (unsigned k = 0; k < set->n_levels; k++) {
    set->level[k][rank / WORD] |= UINT64_C(1) << (rank % WORD);
    rank /= WORD;
  }
}

static void set_remove(rank_set *set, size_t rank) {
  for (unsigned k = 0; k < set->n_levels; k++) {
    set->level[k][rank / WORD] &= ~(UINT64_C(1) << (rank % WORD));
    if (set->level[k][rank / WORD] != 0) return;
    rank /= WORD;
  }
}

/* From a bit of level k down to the lowest (or highest) rank below it. */
static int64_t set_descend(const rank_set *set, unsigned k, size_t at, int low) {
  while (k-- > 0) {
    uint64_t word = set->level[k][at];
    at = at * WORD + (low ? lowest_bit(word) : highest_bit(word));
  }
  return (int64_t)at;
}

static int64_t set_below(const rank_set *set, size_t rank) {
  for (unsigned k = 0; k < set->n_levels; k++) {
    uint64_t word = set->level[k][rank / WORD] & ((UINT64_C(1) << (rank % WORD)) - 1);
    if (word != 0) return set_descend(set, k, rank / WORD * WORD + highest_bit(word), 0);
    rank /= WORD;
  }
  return NO_RANK;
}

static int64_t set_above(const rank_set *set, size_t rank) {
  for (unsigned k = 0; k < set->n_levels; k++) {
    uint64_t word = set->level[k][rank / WORD] & ~((UINT64_C(2) << (rank % WORD)) - 1);
    if (word != 0) return set_descend(set, k, rank / WORD * WORD + lowest_bit(word), 1);
    rank /= WORD;
  }
  return NO_RANK;
}

static void pack_check_report(berth__pack_verdict *verdict, uint32_t a, uint32_t b) {
  verdict->clash = 1;
  verdict->first = a < b ? a : b;
  verdict->second = a < b ? b : a;
}

/* Checks each buffer individually, and collects those with a size and a lifetime. */
static void look_at_each(sweep *s, const uint32_t *index, size_t n_index, berth__pack_verdict *verdict) {
  s->n = 0;
  for (size_t k = 0; k < n_index; k++) {
    uint32_t i = index != NULL ? index[k] : (uint32_t)k;
    const berth_pack_buffer *b = &s->buffers[i];
    uint64_t offset = s->offsets[i];
    int moved = b->offset != BERTH_PACK_FREE && b->offset != offset;
    if (moved || (b->align > 1 && offset % b->align != 0)) pack_check_report(verdict, i, i);
    if (b->size == 0) continue;
    if (offset + b->size > verdict->size) verdict->size = offset + b->size;
    if (b->lower < b->upper) s->live[s->n++] = i;
  }
}

/* by_offset, by_birth and by_death hold positions in `live`, sorted. */
static void sort_all(sweep *s) {
  uint32_t n = (uint32_t)s->n;
  for (uint32_t k = 0; k < n; k++) {
    s->by_offset[k] = s->by_birth[k] = s->by_death[k] = k;
    s->key[k] = s->offsets[s->live[k]];
  }
  berth__pack_sort(s->by_offset, n, s->key, s->scratch);
  for (uint32_t k = 0; k < n; k++) s->rank[s->by_offset[k]] = k;
  for (uint32_t k = 0; k < n; k++) s->key[k] = berth__pack_key_signed(s->buffers[s->live[k]].lower);
  berth__pack_sort(s->by_birth, n, s->key, s->scratch);
  for (uint32_t k = 0; k < n; k++) s->key[k] = berth__pack_key_signed(s->buffers[s->live[k]].upper);
  berth__pack_sort(s->by_death, n, s->key, s->scratch);
}

static int pack_check_overlap(const sweep *s, uint32_t a, uint32_t b) {
  uint64_t x = s->offsets[a], y = s->offsets[b];
  return x < y + s->buffers[b].size && y < x + s->buffers[a].size;
}

static void sweep_time(sweep *s, berth__pack_verdict *verdict) {
  size_t dead = 0;
  for (size_t k = 0; k < s->n && !verdict->clash; k++) {
    uint32_t pos = s->by_birth[k], i = s->live[pos];
    for (; s->buffers[s->live[s->by_death[dead]]].upper <= s->buffers[i].lower; dead++)
      set_remove(&s->set, s->rank[s->by_death[dead]]);
    int64_t neighbour[2] = {set_below(&s->set, s->rank[pos]), set_above(&s->set, s->rank[pos])};
    for (int side = 0; side < 2; side++) {
      if (neighbour[side] == NO_RANK) continue;
      uint32_t other = s->live[s->by_offset[neighbour[side]]];
      if (pack_check_overlap(s, i, other)) pack_check_report(verdict, i, other);
    }
    set_insert(&s->set, s->rank[pos]);
  }
}

berth_status berth__pack_check(berth_context *ctx, const berth_pack_buffer *buffers, const uint32_t *index,
                               size_t n_index, const uint64_t *offsets, berth__pack_verdict *verdict,
                               berth_error *err) {
  memset(verdict, 0, sizeof *verdict);
  sweep s = {.buffers = buffers, .offsets = offsets};
  set_layout(&s.set, n_index);
  uint32_t *lists = berth__alloc_array(ctx, n_index * 6, sizeof *lists);
  s.key = berth__alloc_array(ctx, n_index, sizeof *s.key);
  uint64_t *words = berth__alloc_array_zero(ctx, s.set.words + 1, sizeof *words);
  berth_status status = BERTH_OK;
  if (lists == NULL || s.key == NULL || words == NULL) {
    status = berth__fail_nomem(err, "checking a placement");
  } else {
    s.by_offset = lists;
    s.rank = lists + n_index;
    s.by_birth = lists + 2 * n_index;
    s.by_death = lists + 3 * n_index;
    s.scratch = lists + 4 * n_index;
    s.live = lists + 5 * n_index;
    set_place(&s.set, words, n_index);
    look_at_each(&s, index, n_index, verdict);
    sort_all(&s);
    sweep_time(&s, verdict);
  }
  berth__free(ctx, words);
  berth__free(ctx, s.key);
  berth__free(ctx, lists);
  return status;
}
