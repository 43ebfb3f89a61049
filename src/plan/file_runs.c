#include "plan/file_runs.h"

#include <stdlib.h>

#include "base/blocks.h"
#include "base/math.h"

#define LEAST ((uint64_t)1 << 20) /* bytes in blocks that are worth reserving a page */
#define MORE 30                   /* 2^MORE bytes are worth one more */
#define PAGE 4096u

typedef struct file_weight {
  uintptr_t at; /* address of the mapped file contents */
  berth__buffer *buffer;
} file_weight;

typedef struct file_run {
  const file_weight *weights;
  size_t n;
  uint64_t room; /* bytes of the weights one after the other: at least their bytes in the file */
  bool has_blocks;
} file_run;

static const berth__value *file_runs_value(const berth_plan *plan, const berth__buffer *buffer) {
  return &plan->graph->values[buffer->owner];
}

/* ---- Reserved pages ---- */

static berth_status file_runs_add(uint64_t *sum, uint64_t size, uint64_t align, berth_error *err) {
  if (berth__align_up(size, align, &size) && berth__add_u64(*sum, size, sum)) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "the weights do not fit in 64 bits");
}

/* Bytes of all params, one after the other, and the pages that may be inserted between them. */
static berth_status file_runs_measure(const berth_plan *plan, uint64_t *bytes, uint64_t *pages, berth_error *err) {
  uint64_t in_blocks = 0;
  *bytes = 0;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (buffer->kind != BERTH__BUFFER_PARAM) continue;
    BERTH__TRY(file_runs_add(bytes, buffer->size, plan->align, err));
    if (berth__type_is_block(file_runs_value(plan, buffer)->type)) in_blocks += buffer->size;
  }
  *pages = plan->is_tight && in_blocks >= LEAST ? 1 + (in_blocks >> MORE) : 0;
  return BERTH_OK;
}

/* ---- Runs ---- */

static int file_runs_by_address(const void *a, const void *b) {
  const file_weight *x = a, *y = b;
  return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->buffer < y->buffer ? -1 : x->buffer > y->buffer);
}

static int file_runs_by_size(const void *a, const void *b) {
  const file_run *x = a, *y = b;
  if (x->has_blocks != y->has_blocks) return x->has_blocks ? -1 : 1;
  return x->room != y->room ? (x->room > y->room ? -1 : 1) : (x->weights < y->weights ? -1 : x->weights > y->weights);
}

/* Whether it is in memory that the graph keeps, byte for byte as the arena needs it. */
static bool file_runs_takes(const berth_plan *plan, const berth__buffer *buffer) {
  uint64_t size = 0;
  if (buffer->kind != BERTH__BUFFER_PARAM || buffer->guard != 0) return false;
  const berth__value *value = file_runs_value(plan, buffer);
  return value->data != NULL && value->blob == NULL && (uintptr_t)value->data % BERTH__FILE_ALIGN == 0 &&
         berth__value_size(value, &size) && size == buffer->size && size != 0;
}

static size_t file_runs_collect(const berth_plan *plan, file_weight *weights) {
  size_t n = 0;
  for (size_t i = 0; i < plan->n_buffers; i++)
    if (file_runs_takes(plan, &plan->buffers[i]))
      weights[n++] = (file_weight){(uintptr_t)file_runs_value(plan, &plan->buffers[i])->data, &plan->buffers[i]};
  qsort(weights, n, sizeof *weights, file_runs_by_address);
  return n;
}

/* The run that begins with the first of these: measuring has shown that no sum overflows. */
static file_run file_runs_begin(const berth_plan *plan, const file_weight *weights, size_t n) {
  file_run run = {.weights = weights};
  for (; run.n < n; run.n++) {
    const berth__buffer *buffer = weights[run.n].buffer;
    const uint64_t from = weights[run.n].at - weights[0].at;
    const uint64_t end = run.n > 0 ? weights[run.n - 1].at - weights[0].at + weights[run.n - 1].buffer->size : 0;
    if (from < end || from > run.room) break;
    run.room += (buffer->size + plan->align - 1) & ~(plan->align - 1);
    run.has_blocks = run.has_blocks || berth__type_is_block(file_runs_value(plan, buffer)->type);
  }
  return run;
}

static uint64_t file_runs_put(const berth_plan *plan, const file_run *run, uint64_t at) {
  const uint64_t start = at + (run->weights[0].at - at) % PAGE;
  const file_weight *last = &run->weights[run->n - 1];
  for (size_t i = 0; i < run->n; i++)
    run->weights[i].buffer->offset = start + (run->weights[i].at - run->weights[0].at);
  const uint64_t end = last->buffer->offset + last->buffer->size;
  return (end + plan->align - 1) & ~(plan->align - 1); /* at most a page and run->room after `at` */
}

/* The longest `most` of the runs. */
static uint64_t file_runs_choose(const berth_plan *plan, const file_weight *weights, size_t n, file_run *runs,
                                 uint64_t most, uint64_t at) {
  size_t n_runs = 0;
  for (size_t i = 0; i < n; i += runs[n_runs++].n) runs[n_runs] = file_runs_begin(plan, weights + i, n - i);
  qsort(runs, n_runs, sizeof *runs, file_runs_by_size);
  for (size_t i = 0; i < n_runs && i < most && runs[i].has_blocks; i++) at = file_runs_put(plan, &runs[i], at);
  return at;
}

berth_status berth__file_runs_place(berth_plan *plan, uint64_t *at, berth_error *err) {
  uint64_t bytes, pages, next = *at;
  BERTH__TRY(file_runs_measure(plan, &bytes, &pages, err));
  BERTH__TRY(file_runs_add(at, bytes, plan->align, err));
  BERTH__TRY(file_runs_add(at, pages * PAGE, plan->align, err));
  for (size_t i = 0; i < plan->n_buffers; i++)
    if (plan->buffers[i].kind == BERTH__BUFFER_PARAM) plan->buffers[i].offset = BERTH_OFFSET_NONE;
  if (pages != 0) {
    file_weight *weights = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *weights);
    file_run *runs = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *runs);
    if (weights != NULL && runs != NULL)
      next = file_runs_choose(plan, weights, file_runs_collect(plan, weights), runs, pages, next);
    const bool has_memory = weights != NULL && runs != NULL;
    berth__free(plan->ctx, weights);
    berth__free(plan->ctx, runs);
    if (!has_memory) return berth__fail_nomem(err, "a layout");
  }
  for (size_t i = 0; i < plan->n_buffers; i++) {
    berth__buffer *buffer = &plan->buffers[i];
    if (buffer->kind != BERTH__BUFFER_PARAM || buffer->offset != BERTH_OFFSET_NONE) continue;
    buffer->offset = next;
    next += (buffer->size + plan->align - 1) & ~(plan->align - 1);
  }
  return BERTH_OK;
}
