/* berth pack: only the packer, on buffers from a CSV file. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "cmd.h"
#include "csv.h"
#include "format.h"
#include "json.h"
#include "out.h"
#include "progress.h"

typedef struct pack_options {
  const char *path, *output, *picture;
  uint64_t capacity, align, effort, seed;
  bool repack, json;
} pack_options;

#define FIELD(name) offsetof(pack_options, name)
static const arg_option options[] = {
    {"capacity", 0, ARG_BYTES, "N", "stop as soon as the buffers fit in N bytes", FIELD(capacity), 0, 0},
    {"align", 0, ARG_BYTES, "N", "alignment of every offset, in addition to that in the file", FIELD(align), 1, 0},
    {"effort", 0, ARG_COUNT, "N", "search steps; 0: the default, 1: construction only (0)", FIELD(effort), 0, 0},
    {"seed", 0, ARG_COUNT, "N", "seed for breaking ties; the same seed gives the same result (0)", FIELD(seed), 0, 0},
    {"repack", 0, ARG_FLAG, NULL, "ignore the offsets in the file: all buffers may move", FIELD(repack), 0, 0},
    {"output", 'o', ARG_TEXT, "OUT.csv", "write the buffers with their offsets; - is stdout", FIELD(output), 0, 0},
    {"picture", 0, ARG_TEXT, "FILE", "draw the packing into a .svg or .html file", FIELD(picture), 0, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", FIELD(json), 0, 0},
};

const arg_verb cmd_pack_verb = {
    .name = "pack",
    .purpose = "place buffers with lifetimes in as little memory as possible",
    .operand = "BUFFERS.csv",
    .operand_required = true,
    .operand_offset = FIELD(path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "BUFFERS.csv (or - for stdin) has a header with id, lower, upper, size and, where wanted, offset and\n"
        "alignment, in any order: MiniMalloc's format. A buffer is alive over [lower, upper); one that has an\n"
        "offset stays there, unless --repack is given. With --capacity, exit code 1 means that no placement\n"
        "was found. Ctrl-C ends the search: the best placement so far is printed and written, with exit code\n"
        "130.\n",
    .examples =
        "  berth pack buffers.csv -o placed.csv --picture placed.svg\n"
        "  berth pack buffers.csv --capacity 1M --json\n",
};

typedef struct packing {
  csv_table table;
  berth_pack_buffer *buffers; /* the input of the packer: the table's buffers, with the options applied */
  uint64_t *offsets;
  berth_pack_result result;
  double ms;
} packing;

static int pack_check_options(const pack_options *wanted) {
  berth_report_kind kind;
  if (wanted->picture && !out_picture_kind(wanted->picture, &kind)) return CLI_USAGE;
  if (wanted->json && wanted->output && strcmp(wanted->output, "-") == 0) {
    return cli_usage("--json and -o - both want standard output");
  }
  return CLI_OK;
}

static int read_table(const char *path, csv_table *table) {
  char *text;
  size_t size;
  berth_error err = {BERTH_OK, ""};
  int code = out_read_all(path, &text, &size);
  if (code != CLI_OK) return code;
  const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
  berth_status status = csv_parse(text, size, name, table, &err);
  free(text);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

/* The least common multiple of two alignments; 0 if it does not fit in 64 bits. */
static uint64_t common_alignment(uint64_t a, uint64_t b) {
  if (a <= 1 || b <= 1) return a > b ? a : b;
  uint64_t x = a, y = b;
  while (y) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  uint64_t factor = a / x;
  return factor > UINT64_MAX / b ? 0 : factor * b;
}

static int apply_options(const pack_options *wanted, packing *p) {
  size_t n = p->table.n, n_fixed = 0;
  p->buffers = calloc(n + 1, sizeof(*p->buffers));
  p->offsets = calloc(n + 1, sizeof(*p->offsets));
  if (!p->buffers || !p->offsets) return cli_no_memory();
  for (size_t i = 0; i < n; i++) {
    berth_pack_buffer *buffer = &p->buffers[i];
    *buffer = p->table.buffers[i];
    if (wanted->repack) buffer->offset = BERTH_PACK_FREE;
    n_fixed += buffer->offset != BERTH_PACK_FREE;
    buffer->align = common_alignment(buffer->align, wanted->align);
    if (buffer->align == 0 && wanted->align) return cli_failed("the alignment of '%s' is too large", p->table.ids[i]);
  }
  if (n_fixed)
    cli_note("%zu of %zu buffers %s an offset and %s; --repack moves %s", n_fixed, n, n_fixed == 1 ? "has" : "have",
             n_fixed == 1 ? "stays there" : "stay there", n_fixed == 1 ? "it" : "them");
  return CLI_OK;
}

static volatile sig_atomic_t was_interrupted;

static void note_interrupt(int number) {
  (void)number;
  was_interrupted = 1;
}

/* Ctrl-C ends the search and keeps the best placement so far; a second one ends the program. */
static void catch_interrupt(void) {
  struct sigaction action;
  if (sigaction(SIGINT, NULL, &action) != 0 || action.sa_handler == SIG_IGN)
    return; /* set by a shell for background jobs */
  memset(&action, 0, sizeof(action));
  action.sa_handler = note_interrupt;
  action.sa_flags = (int)SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}

static int show_progress(void *user, const berth_pack_progress *state) {
  progress_update(user, state->nodes, state->effort);
  return was_interrupted;
}

static int pack_pack(berth_context *ctx, const pack_options *wanted, packing *p) {
  berth_pack_desc desc = BERTH_PACK_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  progress bar;
  progress_begin(&bar, "packing");
  desc.effort = wanted->effort;
  desc.capacity = wanted->capacity;
  desc.seed = wanted->seed;
  desc.progress = show_progress;
  desc.user = &bar;
  catch_interrupt();
  double start = cli_now_ms();
  p->result = (berth_pack_result)BERTH_PACK_RESULT_INIT;
  berth_status status = berth_pack(ctx, p->buffers, p->table.n, &desc, p->offsets, &p->result, &err);
  p->ms = cli_now_ms() - start;
  progress_end(&bar);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

static berth_status make_csv(const void *subject, berth_write_fn write, void *user, berth_error *err) {
  const packing *p = subject;
  (void)err;
  return csv_write(&p->table, p->offsets, write, user);
}

typedef struct drawing {
  berth_context *ctx;
  const packing *packing;
  berth_report_kind kind;
} drawing;

static berth_status make_picture(const void *subject, berth_write_fn write, void *user, berth_error *err) {
  const drawing *d = subject;
  const packing *p = d->packing;
  return berth_pack_draw(d->ctx, p->buffers, p->table.n, p->offsets, p->table.ids, d->kind, write, user, err);
}

static int pack_write_files(berth_context *ctx, const pack_options *wanted, const packing *p) {
  int code = CLI_OK;
  if (wanted->output) code = out_make(wanted->output, make_csv, p);
  if (code == CLI_OK && wanted->picture) {
    drawing d = {ctx, p, BERTH_REPORT_SVG};
    out_picture_kind(wanted->picture, &d.kind);
    code = out_make(wanted->picture, make_picture, &d);
  }
  return code;
}

static bool has_capacity(const pack_options *wanted) { return wanted->capacity != UINT64_MAX; }

static int pack_print_json(const pack_options *wanted, const packing *p) {
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  if (p->result.size == UINT64_MAX) {
    json_null(&out, "size");
  } else {
    json_uint(&out, "size", p->result.size);
  }
  json_uint(&out, "lower_bound", p->result.lower_bound);
  json_bool(&out, "optimal", p->result.optimal != 0);
  json_uint(&out, "n", p->table.n);
  json_uint(&out, "nodes", p->result.nodes);
  json_double(&out, "ms", p->ms);
  json_bool(&out, "interrupted", p->result.cancelled != 0);
  if (has_capacity(wanted)) {
    json_uint(&out, "capacity", wanted->capacity);
    json_bool(&out, "fits", p->result.fits != 0);
    json_bool(&out, "infeasible", p->result.infeasible != 0);
  }
  json_close_object(&out);
  return json_print(&out);
}

/* If the CSV goes to stdout, the summary goes to stderr. */
static void pack_print_text(const pack_options *wanted, const packing *p) {
  FILE *stream = wanted->output && strcmp(wanted->output, "-") == 0 ? stderr : stdout;
  const berth_pack_result *result = &p->result;
  char size[FORMAT_SIZE], bound[FORMAT_SIZE], nodes[FORMAT_SIZE];
  double gap = result->lower_bound ? 100 * ((double)result->size / (double)result->lower_bound - 1) : 0;
  if (result->size != UINT64_MAX) {
    fprintf(stream, "%zu buffer%s in %s\n", p->table.n, cli_plural(p->table.n), format_bytes(result->size, size));
  }
  fprintf(stream, "  lower bound  %s", format_bytes(result->lower_bound, bound));
  if (result->optimal) {
    fprintf(stream, ", optimal (proven)\n");
  } else if (result->size != UINT64_MAX) {
    fprintf(stream, ", gap %.2f %%\n", gap);
  } else {
    fprintf(stream, "\n");
  }
  if (has_capacity(wanted)) {
    fprintf(stream, "  capacity     %s: %s\n", format_bytes(wanted->capacity, size),
            result->fits         ? "fits"
            : result->infeasible ? "no placement exists (proven)"
                                 : "no placement was found");
  }
  fprintf(stream, "  effort       %s node%s, %.3f ms\n", format_count(result->nodes, nodes), cli_plural(result->nodes),
          p->ms);
}

static int pack_table(berth_context *ctx, const pack_options *wanted, packing *p) {
  int code = apply_options(wanted, p);
  if (code == CLI_OK) code = pack_pack(ctx, wanted, p);
  if (code != CLI_OK) return code;
  bool placed = p->result.fits || !has_capacity(wanted);
  if (placed) code = pack_write_files(ctx, wanted, p);
  if (code != CLI_OK) return code;
  if (wanted->json) {
    code = pack_print_json(wanted, p);
  } else {
    pack_print_text(wanted, p);
  }
  if (code == CLI_OK && p->result.cancelled) {
    cli_failed(placed ? "interrupted: this is the best placement so far"
                      : "interrupted before a placement was found that fits");
    return CLI_INTERRUPTED;
  }
  if (placed || code != CLI_OK) return code;
  return cli_failed("no placement of these buffers in %" PRIu64 " byte%s %s", wanted->capacity,
                    cli_plural(wanted->capacity), p->result.infeasible ? "exists" : "was found");
}

int cmd_pack(int argc, char **argv) {
  pack_options wanted = {.capacity = UINT64_MAX};
  int code;
  if (!args_parse(&cmd_pack_verb, argc, argv, &wanted, &code)) return code;
  code = pack_check_options(&wanted);
  if (code != CLI_OK) return code;
  berth_context *ctx = NULL;
  packing p;
  memset(&p, 0, sizeof(p));
  code = read_table(wanted.path, &p.table);
  if (code == CLI_OK) code = cli_context(0, 0, NULL, &ctx);
  if (code == CLI_OK) code = pack_table(ctx, &wanted, &p);
  free(p.buffers);
  free(p.offsets);
  csv_free(&p.table);
  berth_context_destroy(ctx);
  return code;
}
