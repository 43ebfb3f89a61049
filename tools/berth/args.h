/* Options of a verb as a table, used by the parser, the checks and the help text. */
#ifndef BERTH_TOOLS_ARGS_H
#define BERTH_TOOLS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum arg_kind {
  ARG_FLAG,  /* bool */
  ARG_TEXT,  /* const char * */
  ARG_LIST,  /* arg_list; may be repeated */
  ARG_COUNT, /* uint64_t */
  ARG_REAL,  /* double */
  ARG_BYTES  /* uint64_t, optionally followed by K, M or G for powers of 1024 */
} arg_kind;

typedef struct arg_list {
  const char **items; /* pointers into argv */
  size_t n;
} arg_list;

typedef struct arg_option {
  const char *name; /* without the dashes */
  char letter;      /* the short form; 0: none */
  arg_kind kind;
  const char *value; /* the placeholder of its value in the help */
  const char *help;
  size_t offset;     /* in the verb's own struct */
  uint64_t min, max; /* for ARG_COUNT and ARG_BYTES; max 0: any */
} arg_option;

typedef struct arg_verb {
  const char *name;
  const char *purpose; /* one line */
  const char *operand; /* as in the usage line; NULL: none */
  bool operand_required;
  size_t operand_offset; /* const char * in the verb's struct */
  const arg_option *options;
  size_t n_options;
  const char *details;  /* printed below the options; may be NULL */
  const char *examples; /* one per line */
} arg_verb;

/* Fills the struct at `fields`, which has the defaults. Returns true to continue; otherwise *exit_code is the exit code
 * (after --help, or after an error that has been printed). Call args_free either way. */
bool args_parse(const arg_verb *verb, int argc, char **argv, void *fields, int *exit_code);
void args_free(const arg_verb *verb, void *fields);
void args_print_help(const arg_verb *verb, FILE *stream);
/* Splits "NAME=VALUE" at its first '='; false if there is none or the name is empty. */
bool args_split(const char *text, size_t *name_length, const char **value);
/* The candidate most similar to the word; NULL if none is similar. */
const char *args_nearest(const char *word, const char *const *candidates, size_t n);
bool args_parse_count(const char *text, bool suffixes, uint64_t *out);

#endif
