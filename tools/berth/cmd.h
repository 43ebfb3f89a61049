/* The verbs: each has a table for the parser and the help, and a function that does the work. */
#ifndef BERTH_TOOLS_CMD_H
#define BERTH_TOOLS_CMD_H

#include "args.h"

#define VERB(name)                         \
  extern const arg_verb cmd_##name##_verb; \
  int cmd_##name(int argc, char **argv);
#include "verbs.def"
#undef VERB

#endif
