#include "cli.h"
#include "pages.h"
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A message is one line, whatever file and model names it quotes. */
static void print_line(const char *prefix, const char *format, va_list args) {
  char text[1024];
  vsnprintf(text, sizeof(text), format, args);
  for (char *c = text; *c; c++) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  }
  fprintf(stderr, "%s%s\n", prefix, text);
}

int cli_failed(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line("berth: ", format, args);
  va_end(args);
  return CLI_FAILED;
}

int cli_usage(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line("berth: ", format, args);
  va_end(args);
  return CLI_USAGE;
}

int cli_unsupported(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line("berth: ", format, args);
  va_end(args);
  return CLI_UNSUPPORTED;
}

void cli_hint(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line("hint: ", format, args);
  va_end(args);
}

void cli_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line("berth: note: ", format, args);
  va_end(args);
}

int cli_no_memory(void) { return cli_failed("out of host memory"); }

int cli_exit_code(berth_status status) {
  if (status == BERTH_OK) return CLI_OK;
  return status == BERTH_UNSUPPORTED ? CLI_UNSUPPORTED : CLI_FAILED;
}

int cli_report(const berth_error *err) {
  cli_failed("%s", err->message[0] ? err->message : berth_status_text(err->status));
  return cli_exit_code(err->status);
}

double cli_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void *counting_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
  cli_allocations *counter = user;
  (void)old_size;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  atomic_fetch_add_explicit(&counter->count, 1, memory_order_relaxed);
  return realloc(ptr, new_size);
}

/* Shows the library's progress while a session is created. A long stage ends with its full count. */
static void show_stage(void *user, const char *stage, uint64_t done, uint64_t total) {
  static progress bar;
  (void)user;
  if (bar.what == NULL || strcmp(bar.what, stage) != 0) {
    progress_end(&bar);
    progress_begin(&bar, stage);
    pages_let_go(); /* each stage uses other code */
  }
  progress_update(&bar, done, total);
  if (done == total) progress_end(&bar);
}

int cli_context(uint32_t n_threads, uint64_t memory_limit, cli_allocations *counter, berth_context **out) {
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_options options = BERTH_OPTIONS_INIT;
  berth_error err = {BERTH_OK, ""};
  desc.n_threads = n_threads;
  desc.progress = show_stage;
  options.flags = BERTH_OPTION_CATCH_SIGBUS; /* this process does not use the signal otherwise */
  options.memory_limit = memory_limit;
  if (memory_limit != 0) unsetenv("BERTH_MEMORY_LIMIT"); /* the command line takes precedence */
  desc.options = &options;
  if (counter) {
    atomic_init(&counter->count, 0);
    desc.alloc = counting_alloc;
    desc.user = counter;
  }
  return berth_context_create(&desc, out, &err) == BERTH_OK ? CLI_OK : cli_report(&err);
}

int cli_check_device(const berth_context *ctx, const char *name) {
  if (!name) return CLI_OK;
  if (strcmp(name, "loops") == 0) name = "interp"; /* its former name; the library accepts both */
  for (uint32_t i = 0; i < berth_device_count(ctx); i++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    berth_error err = {BERTH_OK, ""};
    if (berth_device_at(ctx, i, &info, &err) != BERTH_OK) return cli_report(&err);
    const size_t length = strcspn(name, ":"); /* followed by which of several devices */
    if (strncmp(info.name, name, length) != 0 || (info.name[length] != '\0' && info.name[length] != ':')) continue;
    if (info.available) return CLI_OK;
    return cli_unsupported("the device '%s' cannot be used here: %s", name,
                           info.reason ? info.reason : "no reason given");
  }
  int code = cli_unsupported("this build of berth has no device '%s'", name);
  cli_hint("`berth devices` lists what this machine can run on");
  return code;
}

berth_plan_info cli_plan_info(const berth_plan *plan) {
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_plan_get_info(plan, &info, NULL);
  return info;
}
