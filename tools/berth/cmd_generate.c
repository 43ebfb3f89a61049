/* berth generate: text from a language model, token by token; with --chat a conversation. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "format.h"
#include "generate.h"
#include "json.h"
#include "out.h"
#include "pages.h"

static const arg_option options[] = {
    {"prompt", 'p', ARG_TEXT, "TEXT", "the text to continue; with --chat, the system message",
     offsetof(generate_options, prompt), 0, 0},
    {"file", 'f', ARG_TEXT, "FILE", "the same from a file (-: stdin)", offsetof(generate_options, file), 0, 0},
    {"count", 'n', ARG_COUNT, "N", "generate at most N tokens (256)", offsetof(generate_options, count), 0, 0},
    {"ctx", 0, ARG_COUNT, "N", "context length in tokens (that of the model, at most 4096)",
     offsetof(generate_options, ctx), 1, INT32_MAX},
    {"chunk", 0, ARG_COUNT, "N", "read the prompt N tokens at a time (64)", offsetof(generate_options, chunk), 1,
     INT32_MAX},
    {"kv", 0, ARG_TEXT, "TYPE", "type of the KV cache: f32, f16, bf16 or q8_0 (f16)", offsetof(generate_options, kv), 0,
     0},
    {"slide", 0, ARG_FLAG, NULL, "when the context is full, forget its older half and go on",
     offsetof(generate_options, slide), 0, 0},
    {"temp", 0, ARG_REAL, "T", "temperature; 0: always take the most probable token (0.8)",
     offsetof(generate_options, temp), 0, 0},
    {"top-k", 0, ARG_COUNT, "K", "sample from the K most probable tokens; 0: all (40)",
     offsetof(generate_options, top_k), 0, UINT32_MAX},
    {"top-p", 0, ARG_REAL, "P", "and from the fewest whose probabilities add up to P (0.95)",
     offsetof(generate_options, top_p), 0, 0},
    {"min-p", 0, ARG_REAL, "P", "and from those at least P times as probable as the best (0.05)",
     offsetof(generate_options, min_p), 0, 0},
    {"repeat-penalty", 0, ARG_REAL, "R", "penalty for tokens among the last 64; 1: none (1)",
     offsetof(generate_options, repeat_penalty), 0, 0},
    {"seed", 0, ARG_COUNT, "N", "seed of the sampler (0)", offsetof(generate_options, seed), 0, 0},
    {"stop", 0, ARG_LIST, "TEXT", "stop before this text; may be repeated", offsetof(generate_options, stop), 0, 0},
    {"chat", 0, ARG_FLAG, NULL, "chat: messages from stdin, one per line, in the model's chat template",
     offsetof(generate_options, chat), 0, 0},
    {"perplexity", 0, ARG_TEXT, "FILE",
     "print the perplexity of a text instead (-: stdin), in windows of --ctx tokens (512)",
     offsetof(generate_options, perplexity), 0, 0},
    {"device", 0, ARG_TEXT, "D", "device to run on, as listed by `berth devices` (cpu)",
     offsetof(generate_options, device), 0, 0},
    {"compute", 0, ARG_TEXT, "K", "on GPUs with matrix units, multiply as f32, tf32x3, tf32, bf16 or f16 (f32)",
     offsetof(generate_options, compute), 0, 0},
    {"threads", 0, ARG_COUNT, "N", "number of threads; 0: one per core (0)", offsetof(generate_options, threads), 0,
     1024},
    {"memory-limit", 0, ARG_BYTES, "N",
     "refuse an arena of more than N bytes of host memory (memory of the machine or its control group)",
     offsetof(generate_options, memory_limit), 1, 0},
    {"json", 0, ARG_FLAG, NULL, "print one JSON object", offsetof(generate_options, json), 0, 0},
};

const arg_verb cmd_generate_verb = {
    .name = "generate",
    .purpose = "continue a text with a language model from a GGUF file",
    .operand = "MODEL",
    .operand_required = true,
    .operand_offset = offsetof(generate_options, path),
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .details =
        "The text goes to stdout as it is generated, statistics go to stderr. Ctrl-C stops generating; in a chat it\n"
        "returns to your prompt. All memory is allocated before the first token.\n",
    .examples =
        "  berth generate model.gguf -p 'Once upon a time' -n 100\n"
        "  berth generate model.gguf --chat --ctx 8192\n"
        "  berth generate model.gguf -f story.txt --temp 0 --json\n"
        "  berth generate model.gguf --perplexity book.txt\n",
};

/* ---- Ctrl-C ---- */

static berth_cancel *volatile cancel_on_interrupt; /* as long as there is a generator */

static void on_interrupt(int number) {
  berth_cancel *cancel = cancel_on_interrupt;
  (void)number;
  if (cancel) berth_cancel_request(cancel);
}

static void catch_interrupts(berth_cancel *cancel) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = cancel ? on_interrupt : SIG_DFL;
  sigemptyset(&action.sa_mask);
  if (cancel) cancel_on_interrupt = cancel;
  sigaction(SIGINT, &action, NULL);
  if (!cancel) cancel_on_interrupt = NULL; /* a handler that is already running may still use it */
}

/* ---- The generator ---- */

static void on_progress(void *user, uint32_t done, uint32_t total) {
  generate *g = user;
  progress_update(&g->bar, done, total);
}

static int generate_open(const generate_options *wanted, generate *g) {
  berth_error err = {BERTH_OK, ""};
  berth_sampling_desc sampling = BERTH_SAMPLING_DESC_INIT;
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  sampling.temperature = (float)wanted->temp;
  sampling.top_k = (uint32_t)wanted->top_k;
  sampling.top_p = (float)wanted->top_p;
  sampling.min_p = (float)wanted->min_p;
  sampling.repeat_penalty = (float)wanted->repeat_penalty;
  sampling.seed = wanted->seed;
  desc.flags = wanted->slide ? BERTH_GENERATOR_SLIDE : 0;
  desc.device = wanted->device;
  desc.n_threads = (uint32_t)wanted->threads;
  desc.ctx = (uint32_t)wanted->ctx;
  desc.chunk = (uint32_t)wanted->chunk;
  desc.sampling = &sampling;
  desc.progress = wanted->perplexity ? NULL : on_progress;
  desc.scores = wanted->perplexity ? generate_on_scores : NULL;
  desc.user = g;
  if (wanted->kv && (desc.kv = berth_type_from_name(wanted->kv)) == BERTH_TYPE_NONE)
    return cli_usage("--kv takes a type such as f32, f16 or q8_0, not '%s'", wanted->kv);
  if (wanted->compute && berth_compute_from_name(wanted->compute, &desc.compute, NULL) != BERTH_OK)
    return cli_usage("--compute takes f32, tf32x3, tf32, bf16 or f16, not '%s'", wanted->compute);
  int code = cli_context((uint32_t)wanted->threads, wanted->memory_limit, NULL, &g->ctx);
  if (code == CLI_OK) code = cli_check_device(g->ctx, wanted->device);
  if (code == CLI_OK && wanted->perplexity) code = generate_choose_window(g->ctx, wanted, &desc.ctx);
  if (code != CLI_OK) return code;
  if (berth_cancel_create(g->ctx, &g->cancel, &err) != BERTH_OK) return cli_report(&err);
  catch_interrupts(g->cancel);
  desc.cancel = g->cancel;
  const double start = cli_now_ms();
  if (berth_generator_create(g->ctx, wanted->path, &desc, &g->generator, &err) != BERTH_OK)
    return berth_cancel_is_requested(g->cancel) ? CLI_INTERRUPTED : cli_report(&err);
  g->load_ms = cli_now_ms() - start;
  pages_let_go();
  return CLI_OK;
}

static void generate_close(generate *g) {
  catch_interrupts(NULL);
  berth_generator_destroy(g->generator);
  berth_cancel_destroy(g->cancel);
  berth_context_destroy(g->ctx);
  free(g->text);
  free(g->tokens);
}

/* ---- The summary ---- */

static berth_generator_info info_of(const generate *g) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  berth_generator_get_info(g->generator, &info, NULL);
  return info;
}

static double ms_per_token(const generate *g) {
  return g->n_tokens > 1 ? g->decode_ms / (double)(g->n_tokens - 1) : 0; /* the first one belongs to the prompt */
}

static int generate_print_json(const generate *g, const generate_options *wanted) {
  const berth_generator_info info = info_of(g);
  json out = JSON_INIT;
  json_open_object(&out, NULL);
  json_string_of(&out, "text", g->text ? g->text : "", g->text ? g->text_size : 0);
  json_open_array(&out, "tokens");
  for (size_t i = 0; i < g->n_tokens; i++) json_int(&out, NULL, g->tokens[i]);
  json_close_array(&out);
  json_string(&out, "stopped_by", g->stopped_by);
  json_uint(&out, "prompt_tokens", g->prompt_tokens);
  json_double(&out, "load_ms", g->load_ms);
  json_double(&out, "prompt_ms", g->prompt_ms);
  json_double(&out, "decode_ms_per_token", ms_per_token(g));
  json_uint(&out, "arena_size", info.arena_size);
  json_uint(&out, "weights_size", info.weights_size);
  json_uint(&out, "state_size", info.state_size);
  json_uint(&out, "ctx", info.ctx);
  json_uint(&out, "seed", wanted->seed);
  json_string(&out, "device", wanted->device ? wanted->device : "cpu");
  json_close_object(&out);
  return json_print(&out);
}

static void generate_print_note(const generate *g) {
  const berth_generator_info info = info_of(g);
  char arena[FORMAT_SIZE];
  cli_note("%" PRIu64 " token%s read in %.0f ms, %zu generated at %.2f ms each; %s", g->prompt_tokens,
           cli_plural(g->prompt_tokens), g->prompt_ms, g->n_tokens, ms_per_token(g),
           format_short_bytes(info.arena_size, arena));
}

/* ---- One text ---- */

static generate_options generate_defaults(void) {
  const berth_sampling_desc sampling = BERTH_SAMPLING_DESC_INIT;
  return (generate_options){.count = 256,
                            .temp = (double)sampling.temperature,
                            .top_k = sampling.top_k,
                            .top_p = (double)sampling.top_p,
                            .min_p = (double)sampling.min_p,
                            .repeat_penalty = (double)sampling.repeat_penalty};
}

/* As berth_generator_sample has them; said before a model is opened. */
static int generate_check_sampling(const generate_options *wanted) {
  if (!(wanted->temp >= 0)) return cli_usage("--temp takes a number of at least 0");
  if (!(wanted->top_p > 0 && wanted->top_p <= 1)) return cli_usage("--top-p takes a number over 0 and at most 1");
  if (!(wanted->min_p >= 0 && wanted->min_p <= 1)) return cli_usage("--min-p takes a number from 0 to 1");
  if (!(wanted->repeat_penalty > 0)) return cli_usage("--repeat-penalty takes a number over 0");
  return CLI_OK;
}

static bool generate_is_default(const generate_options *wanted) {
  const generate_options usual = generate_defaults();
  return wanted->count == usual.count && wanted->temp == usual.temp && wanted->top_k == usual.top_k &&
         wanted->top_p == usual.top_p && wanted->min_p == usual.min_p &&
         wanted->repeat_penalty == usual.repeat_penalty && wanted->seed == usual.seed;
}

static int generate_check(const generate_options *wanted) {
  if (wanted->chat && wanted->json) return cli_usage("--chat and --json cannot be combined");
  for (size_t i = 0; i < wanted->stop.n; i++)
    if (wanted->stop.items[i][0] == '\0') return cli_usage("--stop takes a text that is not empty");
  if (wanted->perplexity && (wanted->prompt || wanted->file || wanted->chat))
    return cli_usage("--perplexity scores a text: there is nothing to continue");
  if (wanted->perplexity && (wanted->slide || wanted->stop.n != 0 || !generate_is_default(wanted)))
    return cli_usage(
        "--perplexity generates no text, which is what -n, --slide, --stop, --seed and the options of "
        "sampling are for");
  return generate_check_sampling(wanted);
}

static int generate_read_prompt(const generate_options *wanted, char **text, size_t *size) {
  *text = NULL;
  if (wanted->prompt && wanted->file) return cli_usage("-p and -f both give the prompt: use one of them");
  if (wanted->perplexity) return out_read_all(wanted->perplexity, text, size);
  if (wanted->file) return out_read_all(wanted->file, text, size);
  const char *given = wanted->prompt ? wanted->prompt : "";
  *size = strlen(given);
  *text = malloc(*size + 1);
  if (!*text) return cli_no_memory();
  memcpy(*text, given, *size + 1);
  return CLI_OK;
}

static int generate_one(generate *g, const generate_options *wanted, const char *prompt, size_t size) {
  berth_error err = {BERTH_OK, ""};
  generate_reading(g, "reading the prompt");
  const berth_status status = berth_generator_feed(g->generator, prompt, size, 0, &err);
  generate_has_read(g);
  int code = status == BERTH_OK          ? generate_answer(g, wanted)
             : status == BERTH_CANCELLED ? CLI_INTERRUPTED
                                         : cli_report(&err);
  if (status == BERTH_INFEASIBLE) generate_hint_full(wanted);
  if (code == CLI_INTERRUPTED && !g->stopped_by) g->stopped_by = "interrupt";
  if (code != CLI_OK && code != CLI_INTERRUPTED) return code;
  pages_let_go();
  if (wanted->json) {
    const int printed = generate_print_json(g, wanted);
    return printed == CLI_OK ? code : printed;
  }
  putchar('\n');
  generate_print_note(g);
  return code;
}

int cmd_generate(int argc, char **argv) {
  generate_options wanted = generate_defaults();
  generate g = {0};
  char *prompt = NULL;
  size_t size = 0;
  int code;
  if (args_parse(&cmd_generate_verb, argc, argv, &wanted, &code)) {
    code = generate_check(&wanted);
    if (code == CLI_OK) code = generate_read_prompt(&wanted, &prompt, &size);
    if (code == CLI_OK) code = generate_open(&wanted, &g);
    if (code == CLI_OK)
      code = wanted.perplexity ? generate_perplexity(&g, &wanted, prompt, size)
             : wanted.chat     ? generate_chat(&g, &wanted, prompt, size)
                               : generate_one(&g, &wanted, prompt, size);
    generate_close(&g);
  }
  free(prompt);
  args_free(&cmd_generate_verb, &wanted);
  return code;
}
