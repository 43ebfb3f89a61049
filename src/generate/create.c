/* Creating generators: the model, its tokenizer, and the session with its bindings. */
#include <inttypes.h>
#include <stdio.h>

#include "base/desc.h"
#include "base/math.h"
#include "generate/generator.h"
#include "import/gguf/arch.h"

#define DEFAULT_CTX 4096
#define DEFAULT_CHUNK 64

void berth_generator_destroy(berth_generator *g) {
  if (g == NULL) return;
  berth_session_destroy(g->session);
  berth_graph_destroy(g->graph);
  berth__tokenizer_destroy(g->tokenizer);
  berth__gguf_destroy(g->model);
  berth__sampler_free(g->ctx, &g->sampler);
  berth__free(g->ctx, g->tokens);
  berth__free(g->ctx, g->rows);
  berth__free(g->ctx, g->logits);
  berth__free(g->ctx, g->all_rows);
  berth__free(g->ctx, g->scores);
  berth__free(g->ctx, g->mark.logits);
  berth__free(g->ctx, g->mark.rings);
  berth__free(g->ctx, g->text);
  berth__free(g->ctx, g);
}

/* ---- The model ---- */

static berth_status create_check_arch(berth_generator *g, berth_error *err) {
  const berth__gguf_string name = g->model->architecture;
  const berth__arch *arch;
  BERTH__TRY(berth__arch_of(g->model, &arch, err));
  snprintf(g->architecture, sizeof g->architecture, "%.*s", (int)(name.size < 63 ? name.size : 63), name.data);
  if (!berth__arch_embeds(arch, g->model)) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "a model of architecture '%s' computes text embeddings and generates no text", g->architecture);
}

/* path NULL: the file is memory. Takes ownership of it, also on failure. */
static berth_status create_open(berth_generator *g, const char *path, berth__mapping *file, berth_error *err) {
  BERTH__TRY(berth__gguf_open(g->ctx, path, file, &g->model, err));
  BERTH__TRY(create_check_arch(g, err));
  BERTH__TRY(berth__tokenizer_create(g->ctx, g->model, &g->tokenizer, err));
  const berth__arch_options options = {.cache = g->desc.kv, .every_row = g->desc.scores != NULL};
  BERTH__TRY(berth__arch_graph(g->model, &options, &g->graph, err));
  return g->desc.scores == NULL ? berth__generator_add_pick(g, err) : BERTH_OK;
}

static berth_status create_sizes(berth_generator *g, berth_error *err) {
  uint64_t made_with;
  BERTH__TRY(berth__gguf_u64_or(g->model, ".context_length", DEFAULT_CTX, &made_with, err));
  g->capacity = g->desc.ctx;
  if (g->capacity == 0) g->capacity = made_with < DEFAULT_CTX ? (uint32_t)made_with : DEFAULT_CTX;
  g->chunk = g->desc.chunk != 0 ? g->desc.chunk : DEFAULT_CHUNK;
  if (g->chunk > g->capacity) g->chunk = g->capacity;
  if (g->capacity > made_with && berth__gguf_tensor_find(g->model, "position_embd.weight") != NULL)
    return berth__fail(err, BERTH_INVALID,
                       "the model has vectors for %" PRIu64 " position%s, and a context of %" PRIu32 " tokens has more",
                       made_with, berth__plural(made_with), g->capacity);
  if (g->capacity == 1 && (g->desc.flags & BERTH_GENERATOR_SLIDE))
    return berth__fail(err, BERTH_INVALID, "a context that slides needs room for 2 tokens, and this has room for 1");
  if (g->capacity != 0 && g->capacity <= INT32_MAX) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "a context of %" PRIu32 " tokens is not possible", g->capacity);
}

/* ---- The session ---- */

static bool create_find_file(const void *model, const void *data, uint64_t size, berth__file_bytes *out) {
  return berth__gguf_file_of(model, data, size, out);
}

/* On a GPU, every binding has kernels of its own, which take longer to compile than a short text takes to read. */
static void create_few(berth_generator *g) {
  if (g->session->device != &berth__cpu_device || g->chunk < 2 * BERTH__FEW_ROWS) return;
  g->few_from = berth__generator_few_from(g->graph);
  g->few = g->few_from != 0 ? BERTH__FEW_ROWS : 0;
}

static berth_status create_session(berth_generator *g, berth_error *err) {
  berth_dim dims[BERTH_GENERATOR_DIMS];
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.dims = dims;
  plan.n_dims = berth_generator_dims(g->graph, g->capacity, g->chunk, g->chunk, dims);
  plan.compute = g->desc.compute;
  desc.plan = &plan;
  desc.device = g->desc.device;
  desc.n_threads = g->desc.n_threads;
  desc.threads = g->desc.threads;
  desc.cancel = g->desc.cancel;
  const berth__weight_files files = {create_find_file, g->model};
  BERTH__TRY(berth__session_create_mapped(g->graph, &desc, &files, &g->session, err));
  create_few(g);
  if (g->few != 0) BERTH__TRY(berth__generator_bind(g, g->few, err));
  return berth__generator_bind(g, 1, err);
}

static uint32_t create_input(const berth_generator *g, const char *name) {
  uint32_t index = 0;
  while (strcmp(g->graph->values[berth_graph_input_at(g->graph, index)].name, name) != 0) index++;
  return index;
}

static void create_find_inputs(berth_generator *g) {
  g->input_tokens = create_input(g, "tokens");
  g->input_position = create_input(g, "position");
  g->input_last = create_input(g, "last");
  const berth__shape *logits = &g->graph->values[g->graph->outputs[0].value].shape;
  g->vocabulary = (uint32_t)logits->dim[logits->rank - 1];
}

static bool create_scores(berth_generator *g) {
  uint64_t count;
  if (g->desc.scores == NULL) return true;
  if (!berth__mul_u64(g->chunk, g->vocabulary, &count) || count > SIZE_MAX) return false;
  g->all_rows = berth__alloc_array(g->ctx, g->chunk, sizeof *g->all_rows);
  g->scores = berth__alloc_array(g->ctx, (size_t)count, sizeof *g->scores);
  for (uint32_t i = 0; g->all_rows != NULL && i < g->chunk; i++) g->all_rows[i] = (int32_t)i;
  return g->all_rows != NULL && g->scores != NULL;
}

berth_status berth__generator_arrays(berth_generator *g, berth_error *err) {
  g->tokens = berth__alloc_array(g->ctx, g->capacity, sizeof *g->tokens);
  g->rows = berth__alloc_array_zero(g->ctx, g->chunk, sizeof *g->rows);
  g->logits = berth__alloc_array(g->ctx, g->vocabulary, sizeof *g->logits);
  g->text = berth__alloc(
      g->ctx, 2 * berth__stream_capacity(g->tokenizer) + 1); /* one piece, and the bytes held back before it */
  if (g->tokens == NULL || g->rows == NULL || g->logits == NULL || g->text == NULL || !create_scores(g))
    return berth__fail_nomem(err, "a conversation");
  return berth__sampler_create(g->ctx, g->vocabulary, &g->sampler, err);
}

static uint32_t create_near(const berth_generator *g) {
  const uint64_t needed = (uint64_t)g->window + g->chunk - 1; /* as in berth_generator_dims */
  return needed < g->capacity ? (uint32_t)needed : g->capacity;
}

static berth_status create_all(berth_generator *g, const char *path, berth__mapping *file, berth_error *err) {
  BERTH__TRY(create_open(g, path, file, err));
  BERTH__TRY(create_sizes(g, err));
  create_find_inputs(g);
  g->window = berth__generator_window(g->graph);
  if (g->window != 0) g->near = create_near(g);
  if (berth__tokenizer_count(g->tokenizer) > g->vocabulary)
    return berth__fail(err, BERTH_MALFORMED, "the tokenizer has %" PRIu32 " token%s, and the model %" PRIu32,
                       berth__tokenizer_count(g->tokenizer), berth__plural(berth__tokenizer_count(g->tokenizer)),
                       g->vocabulary);
  BERTH__TRY(berth__generator_arrays(g, err));
  BERTH__TRY(berth__sampler_set(g->ctx, &g->sampler, g->desc.sampling, err));
  BERTH__TRY(create_session(g, err));
  berth__gguf_rest_header(g->model); /* all of it was read to index the tokenizer; generating needs a few pages of it */
  berth_generator_reset(g);
  return BERTH_OK;
}

/* Takes ownership of the file, also on failure. */
static berth_status create_from(berth_context *ctx, const char *path, berth__mapping *file,
                                const berth_generator_desc *desc, berth_generator **out, berth_error *err) {
  berth_generator *g = berth__alloc_zero(ctx, sizeof *g);
  if (g == NULL) {
    berth__file_unmap(file);
    return berth__fail_nomem(err, "a generator");
  }
  g->ctx = ctx;
  g->desc = *desc;
  const berth_status status = create_all(g, path, file, err);
  if (status != BERTH_OK) {
    berth_generator_destroy(g);
    return path != NULL ? berth__fail_within(err, status, "%s", path) : status;
  }
  *out = g;
  return BERTH_OK;
}

berth_status berth_generator_create(berth_context *ctx, const char *path, const berth_generator_desc *desc,
                                    berth_generator **out, berth_error *err) {
  berth__mapping file;
  if (out == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_generator_create needs a pointer to store the generator");
  *out = NULL;
  if (ctx == NULL || path == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_generator_create needs a context and a path");
  berth_generator_desc full = BERTH_GENERATOR_DESC_INIT;
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_generator_desc", err));
  const berth_status status = berth__file_map(path, &file, err);
  return status == BERTH_OK ? create_from(ctx, path, &file, &full, out, err)
                            : berth__fail_within(err, status, "%s", path);
}

berth_status berth_generator_from_memory(berth_context *ctx, const void *data, size_t size, berth_release_fn release,
                                         void *user, const berth_generator_desc *desc, berth_generator **out,
                                         berth_error *err) {
  berth__mapping memory = {.data = data, .size = size, .released = release, .user = user};
  berth_generator_desc full = BERTH_GENERATOR_DESC_INIT;
  berth_status status = BERTH_OK;
  if (out != NULL) *out = NULL;
  if (ctx == NULL || data == NULL || out == NULL)
    status = berth__fail(err, BERTH_INVALID,
                         "berth_generator_from_memory needs a context, data and a pointer to store the generator");
  if (status == BERTH_OK) status = BERTH__DESC_COPY(&full, desc, "berth_generator_desc", err);
  if (status == BERTH_OK) return create_from(ctx, NULL, &memory, &full, out, err);
  berth__file_unmap(&memory);
  return status;
}

/* ---- Forks ---- */

static berth_status fork_into(const berth_generator *from, berth_generator *g, berth_error *err) {
  g->model = berth__gguf_retain(from->model);
  BERTH__TRY(berth__tokenizer_create(g->ctx, g->model, &g->tokenizer, err));
  BERTH__TRY(berth__graph_clone(from->graph, &g->graph, err));
  BERTH__TRY(berth__generator_arrays(g, err));
  BERTH__TRY(berth_session_clone(from->session, &g->session, err));
  memcpy(g->tokens, from->tokens, from->n_tokens * sizeof *g->tokens);
  memcpy(g->logits, from->logits, from->vocabulary * sizeof *g->logits);
  BERTH__TRY(berth__sampler_set(g->ctx, &g->sampler, &from->sampler.desc, err));
  g->sampler.state = from->sampler.state;
  g->stream.tokenizer = g->tokenizer;
  return BERTH_OK;
}

berth_status berth_generator_fork(berth_generator *generator, berth_generator **out, berth_error *err) {
  if (out != NULL) *out = NULL;
  if (generator == NULL || out == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_generator_fork needs a generator and a pointer to store another");
  berth_generator *g = berth__alloc(generator->ctx, sizeof *g);
  if (g == NULL) return berth__fail_nomem(err, "a generator");
  *g = *generator;
  g->model = NULL, g->tokenizer = NULL, g->graph = NULL, g->session = NULL;
  g->tokens = NULL, g->rows = NULL, g->logits = NULL, g->text = NULL, g->all_rows = NULL, g->scores = NULL;
  g->mark = (berth__mark){0};
  g->sampler = (berth__sampler){0};
  const berth_status status = fork_into(generator, g, err);
  if (status != BERTH_OK) {
    berth_generator_destroy(g);
    return status;
  }
  *out = g;
  return BERTH_OK;
}

berth_status berth_generator_get_info(const berth_generator *g, berth_generator_info *out, berth_error *err) {
  if (g == NULL) return berth__fail(err, BERTH_INVALID, "the generator is NULL");
  berth_plan_info plan = BERTH_PLAN_INFO_INIT;
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  BERTH__TRY(berth_plan_get_info(berth_session_plan(g->session), &plan, err));
  info.ctx = g->capacity;
  info.chunk = g->chunk;
  info.vocabulary = g->vocabulary;
  info.n_tokens = g->n_tokens;
  info.has_template = berth__gguf_find(g->model, "tokenizer.chat_template") != NULL;
  info.architecture = g->architecture;
  info.arena_size = berth_arena_size(g->session->arena);
  info.weights_size = plan.weights_size;
  info.state_size = plan.state_size;
  return BERTH__RESULT_WRITE(out, &info, "berth_generator_info", err);
}

const int32_t *berth_generator_tokens(const berth_generator *generator) {
  return generator != NULL ? generator->tokens : NULL;
}
