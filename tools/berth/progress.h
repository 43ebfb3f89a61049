/* A progress bar on stderr: only on a terminal, only after a second, gone at the end. */
#ifndef BERTH_TOOLS_PROGRESS_H
#define BERTH_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  const char *what;
  double start_ms, drawn_ms;
  bool terminal, drawn;
} progress;

void progress_begin(progress *bar, const char *what);
void progress_update(progress *bar, uint64_t done, uint64_t total); /* cheap: draws a few times a second */
void progress_end(progress *bar);

#endif
