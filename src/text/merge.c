/* Merging the characters of a text, as in SPM and BPE: among all adjacent pieces that may merge, those that merge first
 * are found with a heap, so that a long word takes n log n steps. */
#include <string.h>

#include "text/unicode.h"
#include "text/vocab.h"

berth_status berth__encoder_add_text(berth__encoder *e, const char *bytes, size_t size, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(e->t->ctx, e->text, e->text_capacity, e->n_text + size, err));
  if (size != 0) memcpy(e->text + e->n_text, bytes, size);
  e->n_text += size;
  return BERTH_OK;
}

berth_status berth__encoder_put(berth__encoder *e, uint32_t id, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(e->t->ctx, e->out->ids, e->out->capacity, e->out->count + 1, err));
  e->out->ids[e->out->count++] = id;
  return BERTH_OK;
}

static berth_status merge_push(berth__encoder *e, berth__pair pair, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(e->t->ctx, e->heap, e->heap_capacity, e->n_heap + 1, err));
  size_t at = e->n_heap++;
  while (at > 0 && e->heap[(at - 1) / 2].order > pair.order) {
    e->heap[at] = e->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  e->heap[at] = pair;
  return BERTH_OK;
}

static berth__pair merge_pop(berth__encoder *e) {
  const berth__pair top = e->heap[0], last = e->heap[--e->n_heap];
  size_t at = 0;
  for (size_t child = 1; child < e->n_heap; child = 2 * at + 1) {
    if (child + 1 < e->n_heap && e->heap[child + 1].order < e->heap[child].order) child++;
    if (e->heap[child].order >= last.order) break;
    e->heap[at] = e->heap[child];
    at = child;
  }
  if (e->n_heap != 0) e->heap[at] = last;
  return top;
}

static berth_status merge_try(berth__encoder *e, berth__merge_rank rank, int32_t left, int32_t right,
                              berth_error *err) {
  uint32_t order;
  if (left < 0 || right < 0) return BERTH_OK;
  const berth__symbol *a = &e->symbols[left], *b = &e->symbols[right];
  if (!rank(e->t, e->text + a->begin, a->size, b->size, &order)) return BERTH_OK;
  return merge_push(e, (berth__pair){(uint64_t)order << 32 | (uint32_t)left, (uint32_t)right, a->size + b->size}, err);
}

static berth_status merge_split(berth__encoder *e, berth_error *err) {
  e->n_symbols = 0;
  for (size_t at = 0; at < e->n_text;) {
    const size_t expected = berth__utf8_expected(e->text[at]);
    const size_t size = expected < e->n_text - at ? expected : e->n_text - at;
    BERTH__TRY(BERTH__RESERVE(e->t->ctx, e->symbols, e->symbols_capacity, e->n_symbols + 1, err));
    const int32_t i = (int32_t)e->n_symbols++;
    e->symbols[i] = (berth__symbol){(uint32_t)at, (uint32_t)size, i - 1, at + size < e->n_text ? i + 1 : -1};
    at += size;
  }
  return BERTH_OK;
}

berth_status berth__encoder_merge(berth__encoder *e, berth__merge_rank rank, berth_error *err) {
  BERTH__TRY(merge_split(e, err));
  e->n_heap = 0;
  for (size_t i = 1; i < e->n_symbols; i++) BERTH__TRY(merge_try(e, rank, (int32_t)i - 1, (int32_t)i, err));
  while (e->n_heap != 0) {
    const berth__pair pair = merge_pop(e);
    const int32_t left = (int32_t)(uint32_t)pair.order;
    berth__symbol *a = &e->symbols[left], *b = &e->symbols[pair.right];
    /* One of the two has since become part of another, or has grown. */
    if (a->size == 0 || b->size == 0 || a->size + b->size != pair.size) continue;
    a->size = pair.size;
    b->size = 0;
    a->next = b->next;
    if (b->next >= 0) e->symbols[b->next].prev = left;
    BERTH__TRY(merge_try(e, rank, a->prev, left, err));
    BERTH__TRY(merge_try(e, rank, left, a->next, err));
  }
  return BERTH_OK;
}
