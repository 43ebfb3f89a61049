/* berth: plans one block of memory for a neural network, and runs it there. One verb per call. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cmd.h"

typedef struct command {
  const arg_verb *verb;
  int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
#define VERB(name) {&cmd_##name##_verb, cmd_##name},
#include "verbs.def"
#undef VERB
};
enum {
  n_commands = sizeof(commands) / sizeof(commands[0])
};

static void print_help(FILE *stream) {
  fprintf(stream, "berth %s - plan one block of memory for a neural network, and run it there\n\n", berth_version());
  fprintf(stream, "usage: berth VERB [options]\n\n");
  for (size_t i = 0; i < n_commands; i++) {
    fprintf(stream, "  %-9s %s\n", commands[i].verb->name, commands[i].verb->purpose);
  }
  fprintf(stream, "  %-9s show this text, or the options and examples of a verb\n", "help");
  fprintf(
      stream,
      "\n`berth help VERB` or `berth VERB --help` shows the options of a verb; `berth --version` prints the version.\n"
      "Without a model, run, plan and bench use the built-in digit classifier. Try:\n"
      "  berth run\n"
      "  berth plan --dim batch=10\n");
}

static const command *find_command(const char *name) {
  for (size_t i = 0; i < n_commands; i++) {
    if (strcmp(commands[i].verb->name, name) == 0) return &commands[i];
  }
  return NULL;
}

static int unknown_verb(const char *name) {
  const char *names[n_commands + 1] = {"help"};
  for (size_t i = 0; i < n_commands; i++) names[i + 1] = commands[i].verb->name;
  int code = cli_usage("there is no verb '%s'", name);
  const char *nearest = args_nearest(name, names, n_commands + 1);
  if (nearest) {
    cli_hint("did you mean `berth %s`?", nearest);
  } else {
    cli_hint("`berth help` lists them");
  }
  return code;
}

static int help(int argc, char **argv) {
  if (argc > 1) return cli_usage("`berth help` takes one verb");
  bool is_of_help = argc == 1 && (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0);
  if (argc == 0 || is_of_help) {
    print_help(stdout);
    return CLI_OK;
  }
  const command *found = find_command(argv[0]);
  if (!found) return unknown_verb(argv[0]);
  args_print_help(found->verb, stdout);
  return CLI_OK;
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return CLI_USAGE;
  }
  const char *verb = argv[1];
  if (strcmp(verb, "--version") == 0 || strcmp(verb, "version") == 0) {
    printf("berth %s\n", berth_version());
    return CLI_OK;
  }
  if (strcmp(verb, "help") == 0 || strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)
    return help(argc - 2, argv + 2);
  if (verb[0] == '-') {
    int code = cli_usage("the verb comes first, not '%s'", verb);
    cli_hint("`berth help` lists the verbs");
    return code;
  }
  const command *found = find_command(verb);
  return found ? found->run(argc - 2, argv + 2) : unknown_verb(verb);
}

/* If a standard stream is closed, the next file to be opened would take its place and receive the program's output. So
 * it is reopened in the wrong direction, which makes its use fail visibly. */
static void hold_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) == -1) return;
  }
}

static bool is_pipe(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

/* Lost output is an error, on a full disk as well as a closed pipe; only a reader that has seen enough needs no
 * message. */
static int tool_main_finish(int code) {
  bool failed = ferror(stdout) != 0;
  errno = 0;
  if (fflush(stdout) != 0) failed = true;
  if (!failed) return code;
  const char *reason = errno ? strerror(errno) : "an earlier write failed";
  if (!is_pipe(STDOUT_FILENO)) cli_failed("cannot write to standard output: %s", reason);
  return code == CLI_OK ? CLI_FAILED : code;
}

int main(int argc, char **argv) {
  hold_standard_streams();
  signal(SIGPIPE, SIG_IGN);
  return tool_main_finish(dispatch(argc, argv));
}
