/* Evaluating and generating tokens. */
#include "generate/generator.h"

#include <inttypes.h>
#include <math.h>

#include "base/desc.h"

/* ---- Runs ---- */

berth_status berth__generator_bind(berth_generator *g, uint32_t rows, berth_error *err) {
  berth_dim dims[BERTH_GENERATOR_DIMS];
  const size_t n = berth_generator_dims(g->graph, g->capacity, g->chunk, rows, dims);
  return berth_session_bind(g->session, dims, n, err);
}

static void generator_count_rows(berth_generator *g, uint32_t rows) {
  const uint32_t end = g->n_evaluated + rows;
  if (g->near == 0 || end <= g->written) return;
  g->written = end;
  if (end > g->near && end - g->near > g->intact) g->intact = end - g->near;
}

static berth_status generator_write_last(berth_generator *g, uint32_t count, uint32_t rows, berth_error *err) {
  const int32_t last = (int32_t)count - 1;
  if (g->scores != NULL)
    return berth_session_write_at(g->session, g->input_last, g->all_rows, rows * sizeof *g->all_rows, err);
  return berth_session_write_at(g->session, g->input_last, &last, sizeof last, err);
}

/* Hands out the logits of every row with a token, and keeps those of the last. */
static berth_status generator_score(berth_generator *g, uint32_t count, uint32_t rows, berth_error *err) {
  if (g->scores == NULL) return BERTH_OK;
  const size_t vocabulary = g->vocabulary;
  BERTH__TRY(berth_session_read_at(g->session, 0, g->scores, rows * vocabulary * sizeof *g->scores, err));
  for (uint32_t i = 0; i < count; i++)
    g->desc.scores(g->desc.user, g->n_evaluated - count + i, g->scores + i * vocabulary, g->vocabulary);
  memcpy(g->logits, g->scores + (count - 1) * vocabulary, vocabulary * sizeof *g->logits);
  g->has_logits = true;
  return BERTH_OK;
}

/* Evaluates `count` tokens in a run of `rows` rows; the remaining rows are padding. */
static berth_status generator_run(berth_generator *g, uint32_t count, uint32_t rows, berth_error *err) {
  const int32_t position = (int32_t)g->n_evaluated;
  memcpy(g->rows, g->tokens + g->n_evaluated, count * sizeof *g->rows);
  for (uint32_t i = count; i < rows; i++) g->rows[i] = 0;
  BERTH__TRY(berth__generator_bind(g, rows, err));
  BERTH__TRY(berth_session_write_at(g->session, g->input_tokens, g->rows, rows * sizeof *g->rows, err));
  BERTH__TRY(berth_session_write_at(g->session, g->input_position, &position, sizeof position, err));
  BERTH__TRY(generator_write_last(g, count, rows, err));
  g->has_logits = false;
  generator_count_rows(g, rows); /* even a run that fails may have written them */
  const berth_status status = berth_session_run(g->session, err);
  if (status != BERTH_OK) {
    berth__session_keep_states(g->session); /* rows after the last token are written before they are read */
    return status;
  }
  g->n_evaluated += count;
  return generator_score(g, count, rows, err);
}

/* The next token sees `window` keys, the last of which is its own. */
void berth__generator_back_to(berth_generator *g, uint32_t n) {
  const uint32_t sees = n + 1 > g->window ? n + 1 - g->window : 0; /* the first position that it sees */
  g->n_evaluated = sees >= g->intact ? n : 0;
  if (g->n_evaluated == 0) g->written = g->intact = 0;
}

/* A partly filled run costs as much as a full one. A chunk costs about as much as a quarter of its rows one at a time,
 * and as half of them in runs of few rows. */
static uint32_t generator_rows(const berth_generator *g) {
  const uint32_t left = g->n_tokens - g->n_evaluated, room = g->capacity - g->n_evaluated;
  const uint32_t enough = g->few != 0 ? g->chunk / 2 + 1 : g->chunk / 4;
  if (g->chunk <= room && g->chunk > 1 && left > 1 && left >= enough) return g->chunk;
  return g->few != 0 && g->few <= room && left >= g->few_from ? g->few : 1;
}

static berth_status generator_read_logits(berth_generator *g, berth_error *err) {
  BERTH__TRY(berth_session_read_at(g->session, 0, g->logits, g->vocabulary * sizeof *g->logits, err));
  g->has_logits = true;
  return BERTH_OK;
}

/* Evaluates all pending tokens; the logits stay on the device. */
static berth_status generator_catch_up(berth_generator *g, berth_error *err) {
  if (g->n_tokens == 0) return berth__fail(err, BERTH_INVALID, "the conversation is empty: feed it something first");
  if (!g->has_logits && g->n_evaluated == g->n_tokens) berth__generator_back_to(g, g->n_evaluated - 1);
  const uint32_t first = g->n_evaluated, total = g->n_tokens - first;
  while (g->n_evaluated < g->n_tokens) {
    const uint32_t rows = generator_rows(g), left = g->n_tokens - g->n_evaluated;
    BERTH__TRY(generator_run(g, left < rows ? left : rows, rows, err));
    if (total > 1 && g->desc.progress != NULL) g->desc.progress(g->desc.user, g->n_evaluated - first, total);
  }
  return BERTH_OK;
}

berth_status berth__generator_evaluate(berth_generator *g, berth_error *err) {
  BERTH__TRY(generator_catch_up(g, err));
  return g->has_logits ? BERTH_OK : generator_read_logits(g, err);
}

/* ---- The conversation ---- */

static void generator_begin_text(berth_generator *g) {
  g->stream = berth__stream_begin(g->tokenizer, false, g->n_tokens <= 1);
}

void berth_generator_reset(berth_generator *g) {
  if (g == NULL) return;
  g->n_tokens = g->n_evaluated = g->written = g->intact = 0;
  g->has_logits = false;
  g->mark.is_set = false;
  generator_begin_text(g);
}

void berth__generator_cut(berth_generator *g, uint32_t n_tokens, const float *logits) {
  g->n_tokens = n_tokens;
  if (g->mark.n_tokens > n_tokens) g->mark.is_set = false;
  if (g->n_evaluated > n_tokens) berth__generator_back_to(g, n_tokens);
  g->has_logits = logits != NULL && g->n_evaluated == n_tokens;
  if (g->has_logits) memcpy(g->logits, logits, g->vocabulary * sizeof *g->logits);
  generator_begin_text(g);
}

/* Forgets the older half of the tokens, except the first one. */
static void generator_slide(berth_generator *g, uint32_t count) {
  const int32_t bos = berth__tokenizer_ids(g->tokenizer)->bos;
  const uint32_t kept = g->n_tokens > 0 && g->tokens[0] == bos && count < g->capacity;
  uint32_t forgotten = (g->n_tokens - kept + 1) / 2;
  const uint32_t needed = g->n_tokens + count - g->capacity;
  if (forgotten < needed) forgotten = needed;
  if (forgotten > g->n_tokens - kept) forgotten = g->n_tokens - kept;
  memmove(g->tokens + kept, g->tokens + kept + forgotten, (g->n_tokens - kept - forgotten) * sizeof *g->tokens);
  g->n_tokens -= forgotten;
  if (kept < g->n_evaluated) berth__generator_back_to(g, kept);
  g->has_logits = false;
  g->mark.is_set = false;
}

berth_status berth__generator_make_room(berth_generator *g, uint64_t count, berth_error *err) {
  if (count <= g->capacity - g->n_tokens) return BERTH_OK;
  if ((g->desc.flags & BERTH_GENERATOR_SLIDE) && count <= g->capacity) {
    generator_slide(g, (uint32_t)count);
    return BERTH_OK;
  }
  return berth__fail(err, BERTH_INFEASIBLE,
                     "the context is full: it has room for %" PRIu32 " token%s, %" PRIu32 " %s in it, and %" PRIu64
                     " more %s to come",
                     g->capacity, berth__plural(g->capacity), g->n_tokens, g->n_tokens == 1 ? "is" : "are", count,
                     count == 1 ? "is" : "are");
}

berth_status berth_generator_feed_tokens(berth_generator *g, const int32_t *tokens, size_t n_tokens, berth_error *err) {
  if (g == NULL || (tokens == NULL && n_tokens != 0))
    return berth__fail(err, BERTH_INVALID, "berth_generator_feed_tokens needs a generator and tokens");
  for (size_t i = 0; i < n_tokens; i++)
    if (tokens[i] < 0 || (uint32_t)tokens[i] >= g->vocabulary)
      return berth__fail(err, BERTH_INVALID, "token %" PRId32 " is not one of the vocabulary's %" PRIu32, tokens[i],
                         g->vocabulary);
  BERTH__TRY(berth__generator_make_room(g, n_tokens, err));
  const uint32_t before = g->n_tokens;
  if (n_tokens != 0) memcpy(g->tokens + before, tokens, n_tokens * sizeof *tokens);
  g->n_tokens += (uint32_t)n_tokens;
  if (g->n_tokens == 0) return BERTH_OK;
  const berth_status status = berth__generator_evaluate(g, err);
  if (status != BERTH_OK) g->n_tokens = g->n_evaluated > before ? g->n_evaluated : before;
  if (g->n_tokens != before) generator_begin_text(g);
  return status;
}

berth_status berth_generator_feed(berth_generator *g, const char *text, size_t size, uint32_t flags, berth_error *err) {
  berth__tokens tokens = {0};
  if (g == NULL || (text == NULL && size != 0))
    return berth__fail(err, BERTH_INVALID, "berth_generator_feed needs a generator and text");
  const uint32_t how = (flags & BERTH_FEED_SPECIAL ? (uint32_t)BERTH__ENCODE_PARSE_SPECIAL : 0) |
                       (g->n_tokens == 0 ? (uint32_t)BERTH__ENCODE_ADD_SPECIAL : 0);
  berth_status status = berth__tokenizer_encode(g->tokenizer, text, size, how, &tokens, err);
  if (status == BERTH_OK) /* all are less than the size of the vocabulary, and so less than 2^31 */
    status = berth_generator_feed_tokens(g, (const int32_t *)tokens.ids, tokens.count, err);
  berth__free(g->ctx, tokens.ids);
  return status;
}

berth_status berth_generator_encode(const berth_generator *g, const char *text, size_t size, uint32_t flags,
                                    int32_t *dst, size_t capacity, size_t *count, berth_error *err) {
  berth__tokens tokens = {0};
  if (g == NULL || (text == NULL && size != 0) || (dst == NULL && capacity != 0) || count == NULL)
    return berth__fail(err, BERTH_INVALID,
                       "berth_generator_encode needs a generator, text and pointers to store its results");
  const uint32_t special = flags & BERTH_FEED_SPECIAL ? (uint32_t)BERTH__ENCODE_PARSE_SPECIAL : 0;
  const berth_status status =
      berth__tokenizer_encode(g->tokenizer, text, size, special | BERTH__ENCODE_ADD_SPECIAL, &tokens, err);
  *count = status == BERTH_OK ? tokens.count : 0;
  const size_t n = *count < capacity ? *count : capacity;
  if (n != 0) memcpy(dst, tokens.ids, n * sizeof *dst);
  berth__free(g->ctx, tokens.ids);
  return status;
}

/* ---- Generating ---- */

/* Fails if the logits have no best token, because the model's weights are broken. */
static berth_status generator_check_logits(const berth_generator *g, berth_error *err) {
  for (uint32_t i = 0; i < g->vocabulary; i++)
    if (!isnan(g->logits[i])) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED,
                     "none of the logits after %" PRIu32 " token%s is a number: the model is broken", g->n_tokens,
                     berth__plural(g->n_tokens));
}

static berth_status generator_choose(berth_generator *g, int32_t *token, berth_error *err) {
  bool is_picked = false;
  if (!g->has_logits) BERTH__TRY(berth__generator_pick(g, token, &is_picked, err));
  if (is_picked) return BERTH_OK;
  if (!g->has_logits) BERTH__TRY(generator_read_logits(g, err));
  BERTH__TRY(generator_check_logits(g, err));
  *token = berth__sampler_choose(&g->sampler, g->logits, g->tokens, g->n_tokens);
  return BERTH_OK;
}

berth_status berth_generator_next(berth_generator *g, berth_piece *out, berth_error *err) {
  berth_piece piece = BERTH_PIECE_INIT;
  if (g == NULL) return berth__fail(err, BERTH_INVALID, "the generator is NULL");
  BERTH__TRY(berth__result_check(out, "berth_piece", err));
  BERTH__TRY(berth__generator_make_room(g, 1, err));
  BERTH__TRY(generator_catch_up(g, err));
  BERTH__TRY(generator_choose(g, &piece.token, err));
  g->tokens[g->n_tokens++] = piece.token;
  piece.is_end = berth__tokenizer_is_end(g->tokenizer, (uint32_t)piece.token);
  piece.text = g->text;
  piece.text_size = berth__stream_next(&g->stream, (uint32_t)piece.token, g->text);
  if (piece.is_end) piece.text_size += berth__stream_end(&g->stream, g->text + piece.text_size);
  g->text[piece.text_size] = '\0';
  return BERTH__RESULT_WRITE(out, &piece, "berth_piece", err);
}

berth_status berth_generator_logits(berth_generator *g, const float **logits, uint32_t *count, berth_error *err) {
  if (g == NULL || logits == NULL || count == NULL)
    return berth__fail(err, BERTH_INVALID,
                       "berth_generator_logits needs a generator and pointers to store its results");
  BERTH__TRY(berth__generator_evaluate(g, err));
  *logits = g->logits;
  *count = g->vocabulary;
  return BERTH_OK;
}

berth_status berth_generator_sample(berth_generator *g, const berth_sampling_desc *sampling, berth_error *err) {
  if (g == NULL) return berth__fail(err, BERTH_INVALID, "the generator is NULL");
  return berth__sampler_set(g->ctx, &g->sampler, sampling, err);
}

/* ---- Marks ---- */

berth_status berth_generator_mark(berth_generator *g, berth_error *err) {
  if (g == NULL) return berth__fail(err, BERTH_INVALID, "the generator is NULL");
  if (g->mark.logits == NULL) g->mark.logits = berth__alloc_array(g->ctx, g->vocabulary, sizeof *g->mark.logits);
  if (g->mark.logits == NULL) return berth__fail_nomem(err, "a mark");
  if (g->n_tokens > 0) {
    BERTH__TRY(berth__generator_evaluate(g, err));
    memcpy(g->mark.logits, g->logits, g->vocabulary * sizeof *g->logits);
  }
  g->mark.is_set = false;
  BERTH__TRY(berth__generator_keep_rings(g, err));
  g->mark.n_tokens = g->n_tokens;
  g->mark.is_set = true;
  return BERTH_OK;
}

berth_status berth_generator_rewind(berth_generator *g, berth_error *err) {
  if (g == NULL) return berth__fail(err, BERTH_INVALID, "the generator is NULL");
  if (!g->mark.is_set) return berth__fail(err, BERTH_INVALID, "the conversation has no mark to go back to");
  /* After a cancelled evaluation, the rings hold the rows of the tokens before it. */
  if (g->mark.n_tokens > 0 && g->n_evaluated >= g->mark.n_tokens) BERTH__TRY(berth__generator_restore_rings(g, err));
  berth__generator_cut(g, g->mark.n_tokens, g->mark.n_tokens > 0 ? g->mark.logits : NULL);
  return BERTH_OK;
}
