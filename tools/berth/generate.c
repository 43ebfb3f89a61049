/* One answer: generates tokens until something stops it. Text that may be the beginning of a stop text is held back. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

#include "pages.h"

void generate_reading(generate *g, const char *what) {
  progress_begin(&g->bar, what);
  g->started_ms = cli_now_ms();
}

void generate_has_read(generate *g) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  progress_end(&g->bar);
  g->prompt_ms = cli_now_ms() - g->started_ms;
  pages_let_go(); /* reading a prompt and generating use different kernels */
  if (berth_generator_get_info(g->generator, &info, NULL) == BERTH_OK) g->prompt_tokens = info.n_tokens;
}

static bool generate_grow(void **items, size_t *capacity, size_t need, size_t size) {
  if (need <= *capacity) return true;
  const size_t more = need < 512 ? 1024 : 2 * need;
  void *grown = realloc(*items, more * size);
  if (!grown) return false;
  *items = grown;
  *capacity = more;
  return true;
}

static bool generate_keep(generate *g, const berth_piece *piece) {
  void *text = g->text, *tokens = g->tokens;
  const bool fits = generate_grow(&text, &g->text_capacity, g->text_size + piece->text_size + 1, 1);
  g->text = text;
  const bool counts = generate_grow(&tokens, &g->tokens_capacity, g->n_tokens + 1, sizeof(*g->tokens));
  g->tokens = tokens;
  if (!fits || !counts) return false;
  g->tokens[g->n_tokens++] = piece->token;
  memcpy(g->text + g->text_size, piece->text, piece->text_size);
  g->text_size += piece->text_size;
  g->text[g->text_size] = '\0';
  return true;
}

/* Beginning of the first stop text; the end of the text if there is none. */
static size_t find_stop(const generate *g, const arg_list *stop, bool *found) {
  size_t first = g->text_size;
  *found = false;
  for (size_t i = 0; i < stop->n; i++) {
    const size_t length = strlen(stop->items[i]); /* the text may contain zeros */
    const char *at = g->text && length ? memmem(g->text, g->text_size, stop->items[i], length) : NULL;
    if (!at || (*found && (size_t)(at - g->text) >= first)) continue;
    first = (size_t)(at - g->text);
    *found = true;
  }
  return first;
}

/* How much of the text cannot be part of an incomplete stop text. */
static size_t find_safe(const generate *g, const arg_list *stop) {
  size_t safe = g->text_size;
  for (size_t i = 0; i < stop->n; i++) {
    const size_t length = strlen(stop->items[i]);
    for (size_t n = length < g->text_size ? length : g->text_size; n > 0; n--) {
      if (memcmp(g->text + g->text_size - n, stop->items[i], n) != 0) continue;
      if (g->text_size - n < safe) safe = g->text_size - n;
      break;
    }
  }
  return safe;
}

static void generate_show(generate *g, size_t until) {
  if (until <= g->text_shown) return;
  fwrite(g->text + g->text_shown, 1, until - g->text_shown, stdout);
  fflush(stdout);
  g->text_shown = until;
}

/* The reason to stop, or NULL. */
static const char *generate_step(generate *g, const generate_options *wanted, berth_error *err) {
  berth_piece piece = BERTH_PIECE_INIT;
  bool found;
  const berth_status status = berth_generator_next(g->generator, &piece, err);
  if (status == BERTH_CANCELLED) return "interrupt";
  if (status == BERTH_INFEASIBLE) return "context";
  if (status != BERTH_OK) return "error";
  if (!generate_keep(g, &piece)) {
    cli_no_memory();
    return "error";
  }
  const size_t stop = find_stop(g, &wanted->stop, &found);
  if (found) {
    g->text_size = stop;
    g->text[stop] = '\0';
  }
  if (!wanted->json) generate_show(g, found || piece.is_end ? g->text_size : find_safe(g, &wanted->stop));
  return found ? "stop" : piece.is_end ? "end" : NULL;
}

void generate_hint_full(const generate_options *wanted) {
  cli_hint("--ctx N makes room for more tokens%s", wanted->slide ? "" : ", and --slide forgets the older half of them");
}

int generate_answer(generate *g, const generate_options *wanted) {
  berth_error err = {BERTH_OK, ""};
  double first = 0;
  g->text_size = g->text_shown = g->n_tokens = 0;
  if (g->text) g->text[0] = '\0'; /* it may be interrupted before the first token */
  g->stopped_by = NULL;
  while (!g->stopped_by && g->n_tokens < wanted->count) {
    g->stopped_by = generate_step(g, wanted, &err);
    if (g->n_tokens == 1 && first == 0) first = cli_now_ms();
  }
  if (!g->stopped_by) g->stopped_by = "count";
  g->decode_ms = first != 0 ? cli_now_ms() - first : 0;
  if (!wanted->json) generate_show(g, g->text_size);
  if (strcmp(g->stopped_by, "error") == 0) return err.status != BERTH_OK ? cli_report(&err) : CLI_FAILED;
  if (strcmp(g->stopped_by, "context") == 0 && !wanted->json) {
    cli_note("%s", err.message);
    generate_hint_full(wanted);
  }
  return strcmp(g->stopped_by, "interrupt") == 0 ? CLI_INTERRUPTED : CLI_OK;
}
