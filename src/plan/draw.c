#include "plan/draw.h"

#include "base/math.h"
#include "plan/draw_facts.h"
#include "plan/pack/sort.h"

const char *const berth__draw_group_names[BERTH__DRAW_GROUPS] = {"activation", "weights",  "input", "output",
                                                                 "scratch",    "constant", "guard", "state"};

/* ---- The numbers for a picture --------------------------------------------------------------------------------- */

static berth_status check_rect(const berth__drawing *d, size_t index, berth_error *err) {
  const berth__draw_rect *r = &d->rects[index];
  uint64_t end;
  if ((unsigned)r->group >= BERTH__DRAW_GROUPS) {
    return berth__fail(err, BERTH_INVALID, "rectangle %zu has no valid group", index);
  }
  if (!berth__add_u64(r->offset, r->size, &end) || end > d->arena_size) {
    return berth__fail(err, BERTH_INVALID, "rectangle %zu ends outside the arena of %llu bytes", index,
                       (unsigned long long)d->arena_size);
  }
  if (r->birth > r->death || (r->birth < r->death && (r->birth < d->begin || r->death > d->end))) {
    return berth__fail(err, BERTH_INVALID, "rectangle %zu lives over [%lld, %lld), outside the steps [%lld, %lld)",
                       index, (long long)r->birth, (long long)r->death, (long long)d->begin, (long long)d->end);
  }
  return BERTH_OK;
}

static bool rests_at_the_bottom(berth__draw_group group) {
  return group == BERTH__DRAW_WEIGHTS || group == BERTH__DRAW_CONSTANT || group == BERTH__DRAW_STATE;
}

static berth_status plan_draw_add_up(berth__draw_facts *facts, berth_error *err) {
  const berth__drawing *d = facts->drawing;
  uint64_t all = 0;
  facts->floor = d->arena_size;
  for (size_t i = 0; i < d->n_rects; i++) {
    const berth__draw_rect *r = &d->rects[i];
    BERTH__TRY(check_rect(d, i, err));
    if (!berth__add_u64(all, r->size, &all)) {
      return berth__fail(err, BERTH_INVALID, "the sizes of the rectangles together do not fit in 64 bits");
    }
    facts->count[r->group]++;
    facts->bytes[r->group] += r->size;
    if (berth__draw_visible(r) && !rests_at_the_bottom(r->group) && r->offset < facts->floor) facts->floor = r->offset;
  }
  facts->unshared = d->total_unshared != 0 ? d->total_unshared : all - facts->bytes[BERTH__DRAW_GUARD];
  return BERTH_OK;
}

/* Births and deaths in order of time; event 2 i is the birth of rectangle i, 2 i + 1 its death. */
static void walk_events(berth__draw_facts *facts, const uint32_t *order, size_t n) {
  const berth__drawing *d = facts->drawing;
  berth__draw_point now = {d->begin, 0};
  facts->n_load = 0;
  for (size_t k = 0; k < n; k++) {
    const berth__draw_rect *r = &d->rects[order[k] / 2];
    bool death = order[k] % 2 != 0;
    int64_t at = death ? r->death : r->birth;
    if (r->birth == r->death) continue;
    if (at != now.at) {
      facts->load[facts->n_load++] = now;
      if (now.bytes > facts->peak) facts->peak = now.bytes;
      now.at = at;
    }
    now.bytes = death ? now.bytes - r->size : now.bytes + r->size;
  }
  facts->load[facts->n_load++] = now;
  if (now.at != d->end) facts->load[facts->n_load++] = (berth__draw_point){d->end, 0};
}

/* Bytes alive over time. */
static berth_status find_load(berth_context *ctx, berth__draw_facts *facts, berth_error *err) {
  const berth__drawing *d = facts->drawing;
  size_t n = 2 * d->n_rects;
  berth_status status = BERTH_OK;
  uint64_t *keys = berth__alloc_array(ctx, n, sizeof *keys);
  uint32_t *order = berth__alloc_array(ctx, n, 2 * sizeof *order);
  facts->load = berth__alloc_array(ctx, n + 2, sizeof *facts->load);
  if (keys == NULL || order == NULL || facts->load == NULL) {
    status = berth__fail_nomem(err, "the load of a picture");
  } else {
    for (size_t i = 0; i < n; i++) {
      order[i] = (uint32_t)i;
      keys[i] = berth__pack_key_signed(i % 2 != 0 ? d->rects[i / 2].death : d->rects[i / 2].birth);
    }
    berth__pack_sort(order, n, keys, order + n);
    walk_events(facts, order, n);
  }
  berth__free(ctx, keys);
  berth__free(ctx, order);
  return status;
}

berth_status berth__draw(berth_context *ctx, const berth__drawing *drawing, berth_report_kind kind,
                         berth_write_fn write, void *user, berth_error *err) {
  berth__draw_facts facts = {.drawing = drawing};
  berth__text out;
  if (kind != BERTH_REPORT_SVG && kind != BERTH_REPORT_HTML) {
    return berth__fail(err, BERTH_INVALID, "a picture is SVG or HTML; report kind %d is neither", (int)kind);
  }
  if (drawing->begin > drawing->end) return berth__fail(err, BERTH_INVALID, "the steps of a picture run backwards");
  if (drawing->n_rects > UINT32_MAX / 2) return berth__fail(err, BERTH_INVALID, "a picture has too many rectangles");
  BERTH__TRY(plan_draw_add_up(&facts, err));
  berth_status status = find_load(ctx, &facts, err);
  if (status != BERTH_OK) goto fail;
  facts.lower_bound = drawing->lower_bound != 0 ? drawing->lower_bound : facts.peak;
  berth__text_init(&out, ctx, write, user);
  if (kind == BERTH_REPORT_SVG) {
    status = berth__draw_svg(ctx, &facts, &out, err);
  } else {
    berth__draw_html(&facts, &out);
  }
  if (status == BERTH_OK) {
    status = berth__text_finish(&out, err);
  } else {
    berth__text_free(&out);
  }
fail:
  berth__free(ctx, facts.load);
  return status;
}

/* ---- Any packing ----------------------------------------------------------------------------------------------- */

static berth_status rect_of_buffer(const berth_pack_buffer *buffer, uint64_t offset, size_t index,
                                   berth__draw_rect *rect, berth_error *err) {
  uint64_t end;
  if (buffer->size > 0 && !berth__add_u64(offset, buffer->size, &end)) {
    return berth__fail(err, BERTH_INVALID, "buffer %zu has no offset, or one that does not fit in 64 bits", index);
  }
  if (buffer->lower > buffer->upper) {
    return berth__fail(err, BERTH_INVALID, "buffer %zu has a reversed lifetime [%lld, %lld)", index,
                       (long long)buffer->lower, (long long)buffer->upper);
  }
  *rect = (berth__draw_rect){.offset = buffer->size > 0 ? offset : 0,
                             .size = buffer->size,
                             .birth = buffer->lower,
                             .death = buffer->upper,
                             .group = BERTH__DRAW_ACTIVATION};
  return BERTH_OK;
}

static void enclose(berth__drawing *drawing, const berth__draw_rect *rect, bool first) {
  if (first || rect->birth < drawing->begin) drawing->begin = rect->birth;
  if (first || rect->death > drawing->end) drawing->end = rect->death;
  if (rect->offset + rect->size > drawing->arena_size) drawing->arena_size = rect->offset + rect->size;
}

berth_status berth_pack_draw(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, const uint64_t *offsets,
                             const char *const *names, berth_report_kind kind, berth_write_fn write, void *user,
                             berth_error *err) {
  if (ctx == NULL || write == NULL || (n > 0 && (buffers == NULL || offsets == NULL))) {
    return berth__fail(err, BERTH_INVALID,
                       "berth_pack_draw needs a context, buffers, their offsets and a write function");
  }
  berth_status status = BERTH_OK;
  berth__drawing drawing = {.title = "Packing", .n_rects = n};
  berth__draw_rect *rects = berth__alloc_array(ctx, n, sizeof *rects);
  if (rects == NULL) return berth__fail_nomem(err, "a picture");
  for (size_t i = 0; i < n && status == BERTH_OK; i++) {
    status = rect_of_buffer(&buffers[i], offsets[i], i, &rects[i], err);
    if (status != BERTH_OK) break;
    rects[i].name = names != NULL ? names[i] : NULL;
    enclose(&drawing, &rects[i], i == 0);
  }
  drawing.rects = rects;
  if (status == BERTH_OK) status = berth__draw(ctx, &drawing, kind, write, user, err);
  berth__free(ctx, rects);
  return status;
}
