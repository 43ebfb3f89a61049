#include "args.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct cursor {
  const arg_verb *verb;
  int argc, next;
  char **argv;
  void *fields;
  bool options_ended, operand_seen;
} cursor;

static void *field_at(void *fields, size_t offset) { return (char *)fields + offset; }

bool args_split(const char *text, size_t *name_length, const char **value) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text) return false;
  *name_length = (size_t)(equals - text);
  *value = equals + 1;
  return true;
}

static uint64_t suffix_factor(const char *suffix) {
  static const char letters[] = "KMGT";
  const char *at = *suffix ? strchr(letters, *suffix >= 'a' ? *suffix - 'a' + 'A' : *suffix) : NULL;
  if (!at) return 0;
  const char *rest = suffix + 1;
  if (*rest && strcmp(rest, "iB") != 0 && strcmp(rest, "B") != 0) return 0;
  return (uint64_t)1 << (10 * (unsigned)(at - letters + 1));
}

bool args_parse_count(const char *text, bool suffixes, uint64_t *out) {
  uint64_t number = 0;
  const char *c = text;
  for (; *c >= '0' && *c <= '9'; c++) {
    uint64_t digit = (uint64_t)(*c - '0');
    if (number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  if (c == text) return false;
  if (*c) {
    uint64_t factor = suffixes ? suffix_factor(c) : 0;
    if (factor == 0 || number > UINT64_MAX / factor) return false;
    number *= factor;
  }
  *out = number;
  return true;
}

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Edit distance between words: insertions, deletions, replacements. */
static size_t edit_distance(const char *a, const char *b) {
  enum {
    longest = 32
  };
  size_t row[longest + 1];
  size_t n = strlen(a), m = strlen(b);
  if (n > longest || m > longest) return longest;
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = min_size(replaced, 1 + min_size(row[j], row[j - 1]));
    }
  }
  return row[m];
}

const char *args_nearest(const char *word, const char *const *candidates, size_t n) {
  const char *best = NULL;
  size_t length = strlen(word), best_distance = length / 3 + 2;
  for (size_t i = 0; i < n; i++) {
    size_t distance = edit_distance(word, candidates[i]);
    if (length >= 2 && strncmp(word, candidates[i], length) == 0) distance = min_size(distance, 1);
    if (distance < best_distance && distance < strlen(candidates[i])) {
      best_distance = distance;
      best = candidates[i];
    }
  }
  return best;
}

static int unknown_option(const arg_verb *verb, const char *argument) {
  const char *names[64] = {"help"};
  size_t n = 1;
  char word[64];
  for (size_t i = 0; i < verb->n_options && n < 64; i++) names[n++] = verb->options[i].name;
  snprintf(word, sizeof(word), "%.*s", (int)min_size(strcspn(argument, "="), 63), argument);
  cli_usage("`berth %s` has no option '%s'", verb->name, word);
  const char *nearest = args_nearest(word + strspn(word, "-"), names, n);
  if (nearest) {
    cli_hint("did you mean --%s?", nearest);
  } else {
    cli_hint("`berth %s --help` lists its options", verb->name);
  }
  return CLI_USAGE;
}

static const arg_option *find_option(const arg_verb *verb, const char *argument) {
  for (size_t i = 0; i < verb->n_options; i++) {
    const arg_option *option = &verb->options[i];
    if (argument[1] != '-') {
      if (option->letter && argument[1] == option->letter) return option;
      continue;
    }
    size_t length = strcspn(argument + 2, "=");
    if (strlen(option->name) == length && strncmp(option->name, argument + 2, length) == 0) return option;
  }
  return NULL;
}

static int tool_args_store_number(const arg_option *option, const char *value, uint64_t *out) {
  uint64_t number;
  if (!args_parse_count(value, option->kind == ARG_BYTES, &number)) {
    return cli_usage("--%s takes a whole number%s, not '%s'", option->name,
                     option->kind == ARG_BYTES ? " of bytes such as 4096 or 64K" : "", value);
  }
  if (number < option->min || (option->max && number > option->max)) {
    if (!option->max) return cli_usage("--%s takes at least %llu", option->name, (unsigned long long)option->min);
    return cli_usage("--%s takes a number from %llu to %llu, not %s", option->name, (unsigned long long)option->min,
                     (unsigned long long)option->max, value);
  }
  *out = number;
  return CLI_OK;
}

static int tool_args_store_real(const arg_option *option, const char *value, double *out) {
  char *end;
  const double number = strtod(value, &end);
  if (end == value || *end != '\0' || !(number - number == 0)) /* not infinite or NaN */
    return cli_usage("--%s takes a number, not '%s'", option->name, value);
  *out = number;
  return CLI_OK;
}

static int tool_args_append(arg_list *list, const char *value) {
  const char **grown = realloc(list->items, (list->n + 1) * sizeof(*grown));
  if (!grown) return cli_no_memory();
  grown[list->n++] = value;
  list->items = grown;
  return CLI_OK;
}

static int tool_args_store(const arg_option *option, const char *value, void *fields) {
  void *field = field_at(fields, option->offset);
  switch (option->kind) {
    case ARG_FLAG: *(bool *)field = true; return CLI_OK;
    case ARG_TEXT: *(const char **)field = value; return CLI_OK;
    case ARG_LIST: return tool_args_append(field, value);
    case ARG_COUNT:
    case ARG_BYTES: return tool_args_store_number(option, value, field);
    case ARG_REAL: return tool_args_store_real(option, value, field);
  }
  return CLI_USAGE;
}

/* The value comes after '=', after the letter, or is the next argument. */
static const char *take_value(cursor *at, const char *argument) {
  if (argument[1] == '-') {
    const char *equals = strchr(argument, '=');
    if (equals) return equals + 1;
  } else if (argument[2]) {
    return argument + 2;
  }
  if (at->next >= at->argc) return NULL;
  const char *value = at->argv[at->next];
  if (strncmp(value, "--", 2) == 0) return NULL;
  at->next++;
  return value;
}

static int parse_option(cursor *at, const char *argument) {
  const arg_option *option = find_option(at->verb, argument);
  if (!option) return unknown_option(at->verb, argument);
  if (option->kind == ARG_FLAG) {
    bool has_value = argument[1] == '-' ? strchr(argument, '=') != NULL : argument[2] != '\0';
    if (has_value) return cli_usage("--%s takes no value", option->name);
    return tool_args_store(option, NULL, at->fields);
  }
  const char *value = take_value(at, argument);
  if (!value) return cli_usage("--%s needs a value: --%s %s", option->name, option->name, option->value);
  return tool_args_store(option, value, at->fields);
}

static int parse_operand(cursor *at, const char *argument) {
  const arg_verb *verb = at->verb;
  if (!verb->operand) return cli_usage("`berth %s` takes no argument '%s'", verb->name, argument);
  if (at->operand_seen)
    return cli_usage("`berth %s` takes one %s; '%s' is too many", verb->name, verb->operand, argument);
  at->operand_seen = true;
  *(const char **)field_at(at->fields, verb->operand_offset) = argument;
  return CLI_OK;
}

static bool is_option(const cursor *at, const char *argument) {
  return !at->options_ended && argument[0] == '-' && argument[1] != '\0';
}

bool args_parse(const arg_verb *verb, int argc, char **argv, void *fields, int *exit_code) {
  cursor at = {.verb = verb, .argc = argc, .argv = argv, .fields = fields};
  *exit_code = CLI_OK;
  while (at.next < argc) {
    const char *argument = argv[at.next++];
    if (is_option(&at, argument) && strcmp(argument, "--") == 0) {
      at.options_ended = true;
      continue;
    }
    if (is_option(&at, argument) && (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)) {
      args_print_help(verb, stdout);
      return false;
    }
    *exit_code = is_option(&at, argument) ? parse_option(&at, argument) : parse_operand(&at, argument);
    if (*exit_code != CLI_OK) return false;
  }
  if (verb->operand_required && !at.operand_seen) {
    *exit_code = cli_usage("`berth %s` needs %s", verb->name, verb->operand);
    cli_hint("`berth %s --help` shows how", verb->name);
    return false;
  }
  return true;
}

void args_free(const arg_verb *verb, void *fields) {
  for (size_t i = 0; i < verb->n_options; i++) {
    if (verb->options[i].kind != ARG_LIST) continue;
    arg_list *list = field_at(fields, verb->options[i].offset);
    free(list->items);
    *list = (arg_list){NULL, 0};
  }
}

static int print_option_name(const arg_option *option, FILE *stream) {
  char letter[8] = "";
  if (option->letter) snprintf(letter, sizeof(letter), "-%c, ", option->letter);
  return fprintf(stream, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
                 option->value ? option->value : "");
}

void args_print_help(const arg_verb *verb, FILE *stream) {
  enum {
    help_column = 28
  };
  fprintf(stream, "berth %s - %s\n\n", verb->name, verb->purpose);
  fprintf(stream, "usage: berth %s", verb->name);
  if (verb->operand) fprintf(stream, verb->operand_required ? " %s" : " [%s]", verb->operand);
  fprintf(stream, " [options]\n\noptions (defaults in parentheses):\n");
  for (size_t i = 0; i < verb->n_options; i++) {
    int width = print_option_name(&verb->options[i], stream);
    if (width > help_column - 2) {
      fputc('\n', stream);
      width = 0;
    }
    fprintf(stream, "%*s%s\n", help_column - width, "", verb->options[i].help);
  }
  fprintf(stream, "  -h, --help%*sshow this text\n", help_column - 12, "");
  if (verb->details) fprintf(stream, "\n%s", verb->details);
  fprintf(stream, "\nexamples:\n%s", verb->examples);
}
