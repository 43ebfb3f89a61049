#include "fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format.h"

enum {
  unknown_ctx = 4096, /* if the file does not say */
  default_chunk = 64,
  most_chunk = 512,
  most_straight = 12 /* probes by linear interpolation, before bisection */
};

/* Chunks to try if none is requested. Smaller ones leave more room for the context, but prompts are read more slowly;
 * token by token, at a fraction of the speed. */
static const uint64_t chunks[] = {default_chunk, 32, 16, 8, 1};
enum {
  n_chunks = sizeof(chunks) / sizeof(chunks[0])
};

/* Cache types to try if none is requested, the most precise first. */
static const char *const kinds[] = {"f32", "f16", "q8_0"};
enum {
  n_kinds = sizeof(kinds) / sizeof(kinds[0])
};

typedef struct search {
  const fit_request *wanted;
  berth_graph *graph; /* with the current cache type */
  const char *kv;
  uint64_t most; /* tokens */
  berth_error err;
} search;

/* ---- One cache ---- */

static berth_status fit_probe(search *s, uint64_t ctx, uint64_t chunk, uint64_t *size) {
  generation plans;
  const berth_status status =
      generation_plan(s->graph, s->wanted->desc, (int64_t)ctx, (int64_t)(chunk < ctx ? chunk : ctx), &plans, &s->err);
  if (status != BERTH_OK) return status;
  *size = plans.arena_size;
  generation_close(&plans);
  return BERTH_OK;
}

/* The largest context for a chunk; 0: none. The arena grows with the context, almost linearly. */
static berth_status fit_context(search *s, uint64_t chunk, uint64_t *out, uint64_t *out_size) {
  uint64_t low = 1, high = s->most, low_size, high_size, size;
  const uint64_t bytes = s->wanted->bytes;
  *out = 0;
  berth_status status = fit_probe(s, high, chunk, &high_size);
  if (status != BERTH_OK) return status;
  if (high_size <= bytes) {
    *out = high;
    *out_size = high_size;
    return BERTH_OK;
  }
  status = fit_probe(s, low, chunk, &low_size);
  if (status != BERTH_OK || low_size > bytes) return status;
  for (int i = 0; high - low > 1; i++) { /* low fits, high does not */
    double at = (double)(bytes - low_size) / (double)(high_size - low_size) * (double)(high - low);
    if (i >= most_straight) at = (double)(high - low) / 2;
    uint64_t middle = low + (uint64_t)at;
    if (middle <= low) middle = low + 1;
    if (middle >= high) middle = high - 1;
    status = fit_probe(s, middle, chunk, &size);
    if (status != BERTH_OK) return status;
    if (size <= bytes)
      low = middle, low_size = size;
    else
      high = middle, high_size = size;
  }
  *out = low;
  *out_size = low_size;
  return BERTH_OK;
}

/* Takes an answer if it is better: more tokens, or as many found earlier. */
static void fit_take(const search *s, uint64_t ctx, uint64_t chunk, uint64_t size, fit_answer *best) {
  if (ctx == 0 || (best->fits && (int64_t)ctx <= best->ctx)) return;
  *best = (fit_answer){.fits = true,
                       .ctx = (int64_t)ctx,
                       .chunk = (int64_t)(chunk < ctx ? chunk : ctx),
                       .kv = s->kv,
                       .arena_size = size};
}

/* Tries larger chunks, as long as they cost no tokens. */
static berth_status fit_grow(search *s, fit_answer *best) {
  uint64_t size;
  for (uint64_t chunk = 2 * default_chunk; chunk <= most_chunk && chunk <= s->most; chunk *= 2) {
    const berth_status status = fit_probe(s, s->most, chunk, &size);
    if (status != BERTH_OK) return status;
    if (size > s->wanted->bytes) break;
    best->chunk = (int64_t)chunk, best->arena_size = size;
  }
  return BERTH_OK;
}

/* With a chunk: the whole context, or with `is_part`, as much of it as fits. */
static berth_status fit_cache(search *s, uint64_t chunk, bool is_part, fit_answer *best) {
  uint64_t ctx = s->most, size = 0;
  berth_status status = is_part ? fit_context(s, chunk, &ctx, &size) : fit_probe(s, ctx, chunk, &size);
  if (status != BERTH_OK || size > s->wanted->bytes) return status;
  fit_take(s, ctx, chunk, size, best);
  const bool may_grow = s->wanted->want_chunk == 0 && chunk == default_chunk && ctx == s->most;
  return may_grow ? fit_grow(s, best) : BERTH_OK;
}

/* ---- The search ---- */

static berth_status fit_load(search *s, const char *kv) {
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  desc.kv = berth_type_from_name(kv);
  s->kv = kv;
  return berth_graph_load_with(s->wanted->ctx, s->wanted->model->path, &desc, &s->graph, &s->err);
}

/* The minimum that is needed at all. */
static berth_status fit_least(search *s, fit_answer *best) {
  uint64_t size;
  const uint64_t chunk = s->wanted->want_chunk != 0 ? s->wanted->want_chunk : 1;
  const uint64_t ctx = s->wanted->want_ctx != 0 ? s->wanted->want_ctx : 1;
  const berth_status status = fit_probe(s, ctx, chunk, &size);
  if (status == BERTH_OK && (best->arena_size == 0 || size < best->arena_size))
    *best = (fit_answer){
        .ctx = (int64_t)ctx, .chunk = (int64_t)(chunk < ctx ? chunk : ctx), .kv = s->kv, .arena_size = size};
  return status;
}

typedef struct way { /* one way to search, applied to each cache type */
  bool is_least, is_part;
  uint64_t chunk;
} way;

/* A cache type that berth or the device does not support is skipped. */
static berth_status fit_try(search *s, const char *kv, way w, fit_answer *best, bool *has_any) {
  berth_status status = fit_load(s, kv);
  if (status == BERTH_OK) status = w.is_least ? fit_least(s, best) : fit_cache(s, w.chunk, w.is_part, best);
  berth_graph_destroy(s->graph);
  s->graph = NULL;
  if (status == BERTH_OK) *has_any = true;
  return status == BERTH_UNSUPPORTED && !s->wanted->want_kv ? BERTH_OK : status;
}

/* The most precise cache type with room for all tokens; otherwise the one with room for the most. */
static berth_status fit_all(search *s, way w, fit_answer *best) {
  bool has_any = false;
  berth_status status = BERTH_OK;
  if (s->wanted->want_kv) return fit_try(s, s->wanted->want_kv, w, best, &has_any);
  for (size_t i = 0; i < n_kinds && status == BERTH_OK; i++) {
    if (best->fits && (uint64_t)best->ctx == s->most) break;
    status = fit_try(s, kinds[i], w, best, &has_any);
  }
  return status == BERTH_OK && !has_any ? s->err.status : status;
}

/* The whole context, with the largest chunk that leaves room for it. Otherwise the largest context: a smaller chunk
 * never leaves less room, so it uses the second smallest, or the smallest if that leaves room for twice as many
 * tokens. */
static berth_status fit_best(search *s, fit_answer *best) {
  const uint64_t want_chunk = s->wanted->want_chunk;
  const bool is_part = s->wanted->want_ctx == 0; /* or the requested number */
  if (want_chunk != 0) return fit_all(s, (way){.is_part = is_part, .chunk = want_chunk}, best);
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < n_chunks - 1 && status == BERTH_OK && !best->fits; i++)
    status = fit_all(s, (way){.is_part = is_part && i == n_chunks - 2, .chunk = chunks[i]}, best);
  if (status != BERTH_OK || (best->fits && (uint64_t)best->ctx > s->most / 2)) return status;
  fit_answer slow = {.fits = false};
  status = fit_all(s, (way){.is_part = is_part, .chunk = chunks[n_chunks - 1]}, &slow);
  if (status == BERTH_OK && slow.fits && slow.ctx >= 2 * best->ctx) *best = slow;
  return status;
}

int fit_search(const fit_request *wanted, fit_answer *out) {
  search s = {.wanted = wanted, .err = {BERTH_OK, ""}};
  s.most = wanted->want_ctx != 0 ? wanted->want_ctx : wanted->made_with != 0 ? wanted->made_with : unknown_ctx;
  if (s.most > INT32_MAX) s.most = INT32_MAX;
  *out = (fit_answer){.fits = false};
  berth_status status = fit_best(&s, out);
  if (status == BERTH_OK && !out->fits) status = fit_all(&s, (way){.is_least = true}, out);
  return status == BERTH_OK ? CLI_OK : cli_report(&s.err);
}

void fit_print(const fit_request *wanted, const fit_answer *answer) {
  char given[FORMAT_SIZE], needed[FORMAT_SIZE], tokens[FORMAT_SIZE];
  format_bytes(wanted->bytes, given);
  format_bytes(answer->arena_size, needed);
  format_count((uint64_t)answer->ctx, tokens);
  const char *unit = answer->ctx == 1 ? "token" : "tokens";
  const bool is_all = answer->fits && wanted->made_with != 0 && (uint64_t)answer->ctx == wanted->made_with;
  if (answer->fits)
    printf("fits in %s: a context of %s %s%s, kept as %s, read %" PRId64 " at a time, takes %s\n", given, tokens, unit,
           is_all ? " (all that the model was made for)" : "", answer->kv, answer->chunk, needed);
  else
    printf("does not fit in %s: %s %s of context, kept as %s and read %" PRId64 " at a time, would need %s\n", given,
           tokens, unit, answer->kv, answer->chunk, needed);
}

void fit_write_json(const fit_request *wanted, const fit_answer *answer, json *out) {
  json_open_object(out, "fit");
  json_uint(out, "bytes", wanted->bytes);
  json_bool(out, "fits", answer->fits);
  json_int(out, "ctx", answer->ctx);
  json_int(out, "chunk", answer->chunk);
  json_string(out, "kv", answer->kv);
  json_uint(out, "arena_size", answer->arena_size);
  json_close_object(out);
}
