/* berth generate --chat: every line is a message, which the model answers using its own template. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "generate.h"

typedef struct chat {
  berth_message *messages; /* owns the contents */
  size_t n;
} chat;

/* Messages are zero-terminated: zeros in the content are removed, and the rest is kept. */
static bool chat_add(chat *c, const char *role, const char *content, size_t size) {
  berth_message *grown = realloc(c->messages, (c->n + 1) * sizeof(*grown));
  char *copy = malloc(size + 1);
  size_t n = 0;
  if (grown) c->messages = grown;
  if (!grown || !copy) {
    free(copy);
    return false;
  }
  for (size_t i = 0; i < size; i++)
    if (content[i] != '\0') copy[n++] = content[i];
  copy[n] = '\0';
  c->messages[c->n++] = (berth_message){role, copy};
  return true;
}

static void chat_free(chat *c) {
  for (size_t i = 0; i < c->n; i++) free((void *)(uintptr_t)c->messages[i].content);
  free(c->messages);
}

/* The next line that is not empty, without its line ending; false at the end of the input or after a signal. */
static bool chat_read_line(char **line, size_t *capacity, size_t *length) {
  const bool asks = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  for (;;) {
    if (asks) fputs("> ", stderr);
    ssize_t n = getline(line, capacity, stdin);
    if (n < 0) return false;
    while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r')) (*line)[--n] = '\0';
    *length = (size_t)n;
    if (n > 0) return true;
  }
}

static int chat_answer(generate *g, const generate_options *wanted, chat *c) {
  berth_error err = {BERTH_OK, ""};
  generate_reading(g, "reading");
  const berth_status status = berth_generator_chat(g->generator, c->messages, c->n, &err);
  generate_has_read(g);
  if (status == BERTH_CANCELLED) return CLI_INTERRUPTED;
  if (status != BERTH_OK) return cli_report(&err);
  const int code = generate_answer(g, wanted);
  putchar('\n');
  if (code != CLI_OK && code != CLI_INTERRUPTED) return code;
  if (!chat_add(c, "assistant", g->text, g->text_size)) return cli_no_memory();
  return CLI_OK;
}

/* Before the user writes anything. */
static int chat_check(const generate *g) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  berth_error err = {BERTH_OK, ""};
  if (berth_generator_get_info(g->generator, &info, &err) != BERTH_OK) return cli_report(&err);
  if (info.has_template) return CLI_OK;
  err = (berth_error){BERTH_UNSUPPORTED, "the model has no chat template: it can only continue texts"};
  const int code = cli_report(&err);
  cli_hint("-p TEXT without --chat continues a text");
  return code;
}

int generate_chat(generate *g, const generate_options *wanted, const char *system, size_t size) {
  chat c = {0};
  char *line = NULL;
  size_t capacity = 0, length = 0;
  int code = chat_check(g);
  if (code == CLI_OK && size != 0 && !chat_add(&c, "system", system, size)) code = cli_no_memory();
  while (code == CLI_OK && chat_read_line(&line, &capacity, &length)) {
    code = chat_add(&c, "user", line, length) ? chat_answer(g, wanted, &c) : cli_no_memory();
    if (code == CLI_INTERRUPTED) { /* before an answer: the message is removed again */
      free((void *)(uintptr_t)c.messages[--c.n].content);
      code = CLI_OK;
    }
    berth_cancel_clear(g->cancel);
  }
  free(line);
  chat_free(&c);
  return code;
}
