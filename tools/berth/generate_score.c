/* berth generate --perplexity: reads the text in windows of the context, each from the start. As in llama.cpp, the
 * first token of a window is replaced by the token that begins texts, and tokens of its first half are not scored: they
 * are the context of the others. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "generate.h"
#include "generation.h"
#include "json.h"

#define WINDOW 512

int generate_choose_window(berth_context *ctx, const generate_options *wanted, uint32_t *out) {
  uint64_t made_with = 0;
  if (wanted->ctx != 0) return CLI_OK; /* as given by --ctx */
  const int code = generation_made_with(ctx, wanted->path, &made_with);
  *out = made_with != 0 && made_with < WINDOW ? (uint32_t)made_with : WINDOW;
  return code;
}

/* -log of the probability of a token, given these logits. */
static double score_of(const float *logits, uint32_t count, int32_t token) {
  double most = -INFINITY, sum = 0;
  for (uint32_t i = 0; i < count; i++) most = fmax(most, (double)logits[i]);
  for (uint32_t i = 0; i < count; i++) sum += exp((double)logits[i] - most);
  return most + log(sum) - (double)logits[token];
}

void generate_on_scores(void *user, uint32_t position, const float *logits, uint32_t count) {
  generate *g = user;
  generate_score *s = &g->score;
  if (position < s->n_window / 2 || position + 1 >= s->n_window) return;
  s->nats += score_of(logits, count, s->window[position + 1]);
  s->n_scored++;
}

/* The token that begins every text: found in the empty text, and at the beginning but not at the end of another. */
static berth_status score_first(const generate *g, int32_t *first, bool *has_first, berth_error *err) {
  int32_t other;
  size_t n, n_other;
  berth_status status = berth_generator_encode(g->generator, NULL, 0, 0, first, 1, &n, err);
  if (status == BERTH_OK) status = berth_generator_encode(g->generator, "a", 1, 0, &other, 1, &n_other, err);
  *has_first = status == BERTH_OK && n != 0 && n_other > 1 && *first == other;
  return status;
}

static int score_windows(generate *g, int32_t *tokens, size_t n_tokens, uint32_t size) {
  berth_error err = {BERTH_OK, ""};
  generate_score *s = &g->score;
  const uint64_t windows = n_tokens / size;
  int32_t first;
  bool has_first;
  if (score_first(g, &first, &has_first, &err) != BERTH_OK) return cli_report(&err);
  generate_reading(g, "scoring");
  for (; s->n_windows < windows; s->n_windows++) {
    int32_t *window = tokens + s->n_windows * size;
    if (has_first) window[0] = first;
    s->window = window;
    s->n_window = size;
    berth_generator_reset(g->generator);
    const berth_status status = berth_generator_feed_tokens(g->generator, window, size, &err);
    if (status == BERTH_CANCELLED) break;
    if (status != BERTH_OK) {
      generate_has_read(g); /* completes the line of the progress bar */
      return cli_report(&err);
    }
    progress_update(&g->bar, s->n_windows + 1, windows);
  }
  generate_has_read(g);
  return s->n_windows < windows ? CLI_INTERRUPTED : CLI_OK;
}

static int score_print(const generate *g, const generate_options *wanted, size_t n_tokens, uint32_t window) {
  const generate_score *s = &g->score;
  const double mean = s->n_scored ? s->nats / (double)s->n_scored : 0;
  if (!wanted->json) {
    printf("perplexity: %.4f (%" PRIu64 " token%s scored in %" PRIu64 " window%s of %" PRIu32 ")\n", exp(mean),
           s->n_scored, cli_plural(s->n_scored), s->n_windows, cli_plural(s->n_windows), window);
    return CLI_OK;
  }
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_double(&out, "perplexity", exp(mean));
  json_double(&out, "nats", mean);
  json_uint(&out, "tokens", n_tokens);
  json_uint(&out, "scored", s->n_scored);
  json_uint(&out, "windows", s->n_windows);
  json_uint(&out, "ctx", window);
  json_double(&out, "load_ms", g->load_ms);
  json_double(&out, "read_ms", g->prompt_ms);
  json_string(&out, "device", wanted->device ? wanted->device : "cpu");
  json_close_object(&out);
  return json_print(&out);
}

int generate_perplexity(generate *g, const generate_options *wanted, const char *text, size_t size) {
  berth_error err = {BERTH_OK, ""};
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  size_t n_tokens = 0;
  if (berth_generator_get_info(g->generator, &info, &err) != BERTH_OK ||
      berth_generator_encode(g->generator, text, size, 0, NULL, 0, &n_tokens, &err) != BERTH_OK)
    return cli_report(&err);
  if (info.ctx < 4) return cli_usage("--perplexity needs windows of 4 tokens or more");
  if (n_tokens < info.ctx)
    return cli_usage("the text has %zu token%s, and a window has %" PRIu32 ": give a longer text, or a shorter --ctx",
                     n_tokens, cli_plural(n_tokens), info.ctx);
  int32_t *tokens = malloc(n_tokens * sizeof(*tokens));
  if (!tokens) return cli_no_memory();
  int code = CLI_OK;
  if (berth_generator_encode(g->generator, text, size, 0, tokens, n_tokens, &n_tokens, &err) != BERTH_OK)
    code = cli_report(&err);
  if (code == CLI_OK) code = score_windows(g, tokens, n_tokens, info.ctx);
  free(tokens);
  if (code == CLI_OK || (code == CLI_INTERRUPTED && g->score.n_scored)) {
    const int printed = score_print(g, wanted, n_tokens, info.ctx);
    return printed == CLI_OK ? code : printed;
  }
  return code;
}
