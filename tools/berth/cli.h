/* Shared by all verbs: exit codes, messages on stderr, the clock, and a context that counts its allocations. */
#ifndef BERTH_TOOLS_CLI_H
#define BERTH_TOOLS_CLI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "berth/berth.h"

enum {
  CLI_OK = 0,
  CLI_FAILED = 1,
  CLI_USAGE = 2,
  CLI_UNSUPPORTED = 3,
  CLI_INTERRUPTED = 130 /* by Ctrl-C, with partial results: the exit code of shells for SIGINT */
};

#if defined(__GNUC__)
#define CLI_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define CLI_PRINTF
#endif

/* Prints one line `berth: ...` on stderr; each returns its exit code, so that a command can return the call. */
int cli_failed(const char *format, ...) CLI_PRINTF;
int cli_usage(const char *format, ...) CLI_PRINTF;
int cli_unsupported(const char *format, ...) CLI_PRINTF;
int cli_no_memory(void);
int cli_report(const berth_error *err); /* the library's message and the exit code of its status */
int cli_exit_code(berth_status status);
/* A second line after an error, and remarks that are not errors. */
void cli_hint(const char *format, ...) CLI_PRINTF;
void cli_note(const char *format, ...) CLI_PRINTF;

/* The ending of a counted noun: "%u step%s", n, cli_plural(n). */
static inline const char *cli_plural(uint64_t n) { return n == 1 ? "" : "s"; }

double cli_now_ms(void); /* monotonic */

typedef struct cli_allocations {
  atomic_uint_fast64_t count; /* blocks allocated or resized so far */
} cli_allocations;

/* n_threads 0: one per core. counter may be NULL; otherwise it must outlive the context. */
int cli_context(uint32_t n_threads, uint64_t memory_limit, cli_allocations *counter, berth_context **out);
/* Checks that the device exists and is available; NULL is the default one. */
int cli_check_device(const berth_context *ctx, const char *name);
berth_plan_info cli_plan_info(const berth_plan *plan);

#endif
