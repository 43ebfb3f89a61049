/* Reports of a plan: text, CSV, pictures. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "plan/buffers.h"
#include "plan/draw.h"

/* The name of a buffer: its owner's, or "<node>:scratch". In CSV, characters that would break a line are dropped. */
static void plan_report_print_name(berth__text *text, const berth_plan *plan, const berth__buffer *buffer,
                                   bool for_csv) {
  bool is_scratch = buffer->owner == BERTH_VALUE_NONE;
  berth_value value = is_scratch ? plan->graph->nodes[plan->order[buffer->step]].out[0] : buffer->owner;
  const char *name = plan->graph->values[value].name;
  const char *avoid = for_csv ? ",\"\r\n" : "\t\r\n";
  bool changed = false;
  for (; *name != '\0'; name++) {
    bool bad = strchr(avoid, *name) != NULL;
    berth__text_add(text, bad ? "_" : name, 1);
    changed = changed || bad;
  }
  if (is_scratch) berth__text_printf(text, ":scratch");
  if (changed) berth__text_printf(text, "#%zu", (size_t)(buffer - plan->buffers)); /* keeps ids unique */
}

/* Names and details of all buffers in one text, consecutive and zero-terminated. */
static berth_status collect_strings(const berth_plan *plan, berth__text *text, berth_error *err) {
  berth__text_init(text, plan->ctx, NULL, NULL);
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    plan_report_print_name(text, plan, buffer, false);
    berth__text_add(text, "", 1);
    if (buffer->owner != BERTH_VALUE_NONE) {
      const berth__value *value = &plan->graph->values[buffer->owner];
      char shape[BERTH__SHAPE_TEXT];
      if (value->kind == BERTH_VALUE_NODE) berth__text_printf(text, "%s ", plan->graph->nodes[value->node].op->name);
      const berth_type stored = plan->places[buffer->owner].storage.type;
      berth__text_printf(text, "%s%s", berth_type_name(value->type), berth__shape_text(&value->shape, shape));
      if (stored != value->type) berth__text_printf(text, " as %s", berth_type_name(stored));
    }
    berth__text_add(text, "", 1);
  }
  return berth__text_finish(text, err);
}

/* The next name and detail in such a text. */
static const char *next_name(const char **strings, const char **detail) {
  const char *name = *strings;
  *detail = name + strlen(name) + 1;
  *strings = *detail + strlen(*detail) + 1;
  return name;
}

typedef struct row {
  const berth__buffer *buffer;
  const char *name;
} row;

static int by_place(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (x->buffer->offset != y->buffer->offset) return x->buffer->offset < y->buffer->offset ? -1 : 1;
  if (x->buffer->size != y->buffer->size) return x->buffer->size < y->buffer->size ? -1 : 1;
  return strcmp(x->name, y->name);
}

static void print_rows(const berth_plan *plan, const row *rows, berth__text *text) {
  berth__text_printf(text, "# arena_size=%llu total_unshared=%llu saved=%llu",
                     (unsigned long long)plan->info.arena_size, (unsigned long long)plan->info.total_unshared,
                     (unsigned long long)plan->info.saved);
  if (plan->graph->n_states != 0)
    berth__text_printf(text, " state_size=%llu", (unsigned long long)plan->info.state_size);
  berth__text_printf(text, "\n# offset\tsize\tnode\n");
  for (size_t i = 0; i < plan->n_buffers; i++)
    berth__text_printf(text, "%llu\t%llu\t%s\n", (unsigned long long)rows[i].buffer->offset,
                       (unsigned long long)rows[i].buffer->size, rows[i].name);
}

static berth_status report_text(const berth_plan *plan, berth__text *text, berth_error *err) {
  berth__text strings;
  row *rows = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *rows);
  berth_status status = collect_strings(plan, &strings, err);
  if (status == BERTH_OK && rows == NULL) status = berth__fail_nomem(err, "a report");
  if (status == BERTH_OK) {
    const char *at = strings.data, *detail;
    for (size_t i = 0; i < plan->n_buffers; i++) rows[i] = (row){&plan->buffers[i], next_name(&at, &detail)};
    qsort(rows, plan->n_buffers, sizeof *rows, by_place);
    print_rows(plan, rows, text);
  }
  berth__text_free(&strings);
  berth__free(plan->ctx, rows);
  return status;
}

static void report_csv(const berth_plan *plan, berth__text *text) {
  berth__text_printf(text, "id,lower,upper,size,offset\n");
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    plan_report_print_name(text, plan, buffer, true);
    berth__text_printf(text, ",%u,%u,%llu,%llu\n", buffer->birth, buffer->death,
                       (unsigned long long)berth__buffer_room(plan, buffer), (unsigned long long)buffer->offset);
  }
}

static berth__draw_group group_of(const berth__buffer *buffer) {
  switch (buffer->kind) {
    case BERTH__BUFFER_ACTIVATION: return BERTH__DRAW_ACTIVATION;
    case BERTH__BUFFER_PRELUDE:
    case BERTH__BUFFER_PARAM: return BERTH__DRAW_WEIGHTS;
    case BERTH__BUFFER_CONSTANT: return BERTH__DRAW_CONSTANT;
    case BERTH__BUFFER_STATE: return BERTH__DRAW_STATE;
    case BERTH__BUFFER_INPUT: return BERTH__DRAW_INPUT;
    case BERTH__BUFFER_OUTPUT: return BERTH__DRAW_OUTPUT;
    case BERTH__BUFFER_SCRATCH: break;
  }
  return BERTH__DRAW_SCRATCH;
}

/* Buffers, then a rectangle for the guard bytes of each. */
static size_t fill_rects(const berth_plan *plan, const char *strings, berth__draw_rect *rects) {
  size_t n = 0;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    const char *detail, *name = next_name(&strings, &detail);
    rects[n++] = (berth__draw_rect){.name = name,
                                    .detail = detail,
                                    .offset = buffer->offset,
                                    .size = buffer->size,
                                    .birth = buffer->birth,
                                    .death = buffer->death,
                                    .group = group_of(buffer)};
    if (buffer->guard == 0) continue;
    rects[n] = rects[n - 1];
    rects[n].offset += buffer->size;
    rects[n].size = buffer->guard;
    rects[n++].group = BERTH__DRAW_GUARD;
  }
  return n;
}

static berth_status plan_report_draw(const berth_plan *plan, const berth__draw_rect *rects, size_t n_rects,
                                     const char **labels, berth_report_kind kind, berth_write_fn write, void *user,
                                     berth_error *err) {
  for (uint32_t step = 0; step < plan->n_steps; step++)
    labels[step] = plan->graph->values[plan->graph->nodes[plan->order[step]].out[0]].name;
  berth__drawing drawing = {.title = plan->graph->name,
                            .rects = rects,
                            .n_rects = n_rects,
                            .arena_size = plan->info.arena_size,
                            .lower_bound = plan->info.optimal ? plan->info.arena_size : 0,
                            .total_unshared = plan->info.total_unshared,
                            .begin = 0,
                            .end = berth__plan_end(plan->n_steps),
                            .step_labels = plan->n_steps != 0 ? labels : NULL};
  return berth__draw(plan->ctx, &drawing, kind, write, user, err);
}

static berth_status report_picture(const berth_plan *plan, berth_report_kind kind, berth_write_fn write, void *user,
                                   berth_error *err) {
  berth__text strings;
  berth__draw_rect *rects = berth__alloc_array(plan->ctx, 2 * plan->n_buffers, sizeof *rects);
  const char **labels = berth__alloc_array(plan->ctx, plan->n_steps, sizeof *labels);
  berth_status status = collect_strings(plan, &strings, err);
  if (status == BERTH_OK && (rects == NULL || labels == NULL)) status = berth__fail_nomem(err, "a picture");
  if (status == BERTH_OK) {
    size_t n = fill_rects(plan, strings.data, rects);
    status = plan_report_draw(plan, rects, n, labels, kind, write, user, err);
  }
  berth__text_free(&strings);
  berth__free(plan->ctx, rects);
  berth__free(plan->ctx, labels);
  return status;
}

berth_status berth_plan_report(const berth_plan *plan, berth_report_kind kind, berth_write_fn write, void *user,
                               berth_error *err) {
  berth__text text;
  berth_status status = BERTH_OK;
  if (plan == NULL || write == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_plan_report needs a plan and a write function");
  if (kind == BERTH_REPORT_SVG || kind == BERTH_REPORT_HTML) return report_picture(plan, kind, write, user, err);
  if (kind != BERTH_REPORT_TEXT && kind != BERTH_REPORT_CSV)
    return berth__fail(err, BERTH_INVALID, "there is no report of kind %d", (int)kind);
  berth__text_init(&text, plan->ctx, write, user);
  if (kind == BERTH_REPORT_CSV)
    report_csv(plan, &text);
  else
    status = report_text(plan, &text, err);
  if (status == BERTH_OK) return berth__text_finish(&text, err);
  berth__text_free(&text);
  return status;
}
