/* The verbs: each has a table for the parser and the help, and a function that does the work. */
#ifndef BERTH_TOOLS_CMD_H
#define BERTH_TOOLS_CMD_H

#include "args.h"

extern const arg_verb cmd_run_verb, cmd_plan_verb, cmd_pack_verb, cmd_bench_verb, cmd_inspect_verb, cmd_devices_verb;

/* argv starts behind the verb; each returns the program's exit code. */
int cmd_run(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_pack(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_devices(int argc, char **argv);

#endif
