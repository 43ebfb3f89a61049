/* Text embeddings: a session with a binding for every power of two of rows, created when a text first needs it. */
#include <inttypes.h>

#include "base/desc.h"
#include "import/gguf/arch.h"
#include "session/session.h"
#include "text/tokenizer.h"

#define LEAST_ROWS 16

struct berth_embedder {
  berth_context *ctx;
  berth__gguf *model;
  berth__tokenizer *tokenizer;
  berth_graph *graph;
  berth_session *session;
  berth_embedder_desc desc;
  uint32_t capacity, width; /* the most tokens of a text; the length of an embedding */
  int32_t *rows;            /* of the longest text so far, padded */
  size_t rows_capacity;
};

void berth_embedder_destroy(berth_embedder *e) {
  if (e == NULL) return;
  berth_session_destroy(e->session);
  berth_graph_destroy(e->graph);
  berth__tokenizer_destroy(e->tokenizer);
  berth__gguf_destroy(e->model);
  berth__free(e->ctx, e->rows);
  berth__free(e->ctx, e);
}

static berth_status embedder_open(berth_embedder *e, const char *path, berth_error *err) {
  berth__mapping file;
  uint64_t context;
  BERTH__TRY(berth__file_map(path, &file, err));
  BERTH__TRY(berth__gguf_open(e->ctx, path, &file, &e->model, err));
  const berth__arch *arch;
  BERTH__TRY(berth__arch_of(e->model, &arch, err));
  if (!berth__arch_embeds(arch, e->model))
    return berth__fail(err, BERTH_UNSUPPORTED, "a model of architecture '%s' generates text and computes no embeddings",
                       arch->name);
  BERTH__TRY(berth__tokenizer_create(e->ctx, e->model, &e->tokenizer, err));
  BERTH__TRY(berth__arch_graph(e->model, NULL, &e->graph, err));
  BERTH__TRY(berth__gguf_u64(e->model, ".context_length", &context, err));
  if (context == 0 || context > INT32_MAX)
    return berth__fail(err, BERTH_MALFORMED, "a context of %" PRIu64 " tokens is not possible", context);
  e->capacity = (uint32_t)context;
  const int64_t vocabulary =
      berth__gguf_tensor_find(e->model, "token_embd.weight")->dim[0]; /* the graph has checked that it exists */
  if (berth__tokenizer_count(e->tokenizer) > vocabulary)
    return berth__fail(err, BERTH_MALFORMED, "the tokenizer has %" PRIu32 " token%s, and the model %" PRId64,
                       berth__tokenizer_count(e->tokenizer), berth__plural(berth__tokenizer_count(e->tokenizer)),
                       vocabulary);
  return BERTH_OK;
}

static berth_status embedder_start(berth_embedder *e, berth_error *err) {
  const berth_dim rows = {"rows", e->capacity < LEAST_ROWS ? e->capacity : LEAST_ROWS};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  const berth__shape *vector = &e->graph->values[e->graph->outputs[0].value].shape;
  e->width = (uint32_t)vector->dim[vector->rank - 1];
  plan.dims = &rows;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = e->desc.device;
  desc.n_threads = e->desc.n_threads;
  desc.threads = e->desc.threads;
  desc.cancel = e->desc.cancel;
  return berth_session_create(e->graph, &desc, &e->session, err);
}

berth_status berth_embedder_create(berth_context *ctx, const char *path, const berth_embedder_desc *desc,
                                   berth_embedder **out, berth_error *err) {
  if (out == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_embedder_create needs a pointer to store the embedder");
  *out = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_embedder_create needs a context and a path");
  berth_embedder_desc full = BERTH_EMBEDDER_DESC_INIT;
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_embedder_desc", err));
  berth_embedder *e = berth__alloc_zero(ctx, sizeof *e);
  if (e == NULL) return berth__fail_nomem(err, "an embedder");
  e->ctx = ctx;
  e->desc = full;
  berth_status status = embedder_open(e, path, err);
  if (status == BERTH_OK) status = embedder_start(e, err);
  if (status != BERTH_OK) {
    berth_embedder_destroy(e);
    return berth__fail_within(err, status, "%s", path);
  }
  *out = e;
  return BERTH_OK;
}

uint32_t berth_embedder_size(const berth_embedder *embedder) { return embedder->width; }

/* ---- One text ---- */

static berth_status embedder_run(berth_embedder *e, const berth__tokens *tokens, float *dst, berth_error *err) {
  uint32_t rows = LEAST_ROWS;
  const int32_t length = (int32_t)tokens->count;
  while (rows < tokens->count) rows *= 2;
  if (rows > e->capacity) rows = e->capacity;
  const berth_dim dim = {"rows", rows};
  BERTH__TRY(BERTH__RESERVE(e->ctx, e->rows, e->rows_capacity, rows, err));
  for (uint32_t i = 0; i < rows; i++) e->rows[i] = i < tokens->count ? (int32_t)tokens->ids[i] : 0;
  BERTH__TRY(berth_session_bind(e->session, &dim, 1, err));
  BERTH__TRY(berth_session_write(e->session, "tokens", e->rows, rows * sizeof *e->rows, err));
  BERTH__TRY(berth_session_write(e->session, "length", &length, sizeof length, err));
  BERTH__TRY(berth_session_run(e->session, err));
  return berth_session_read_at(e->session, 0, dst, e->width * sizeof *dst, err);
}

berth_status berth_embedder_embed(berth_embedder *e, const char *text, size_t size, float *dst, size_t count,
                                  berth_error *err) {
  berth__tokens tokens = {0};
  if (e == NULL || dst == NULL || (text == NULL && size != 0))
    return berth__fail(err, BERTH_INVALID,
                       "berth_embedder_embed needs an embedder, a text and a pointer to store the vector");
  if (count != e->width)
    return berth__fail(err, BERTH_INVALID, "a vector has %" PRIu32 " number%s, but there is room for %zu", e->width,
                       berth__plural(e->width), count);
  berth_status status = berth__tokenizer_encode(e->tokenizer, text, size, BERTH__ENCODE_ADD_SPECIAL, &tokens, err);
  if (status == BERTH_OK && tokens.count > e->capacity)
    status = berth__fail(err, BERTH_INFEASIBLE, "the text has %zu tokens, and the model takes %" PRIu32, tokens.count,
                         e->capacity);
  if (status == BERTH_OK && tokens.count == 0) status = berth__fail(err, BERTH_INVALID, "the text is empty");
  if (status == BERTH_OK) status = embedder_run(e, &tokens, dst, err);
  berth__free(e->ctx, tokens.ids);
  return status;
}
