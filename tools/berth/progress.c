#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum {
  bar_width = 30,
  patience_ms = 1000,
  interval_ms = 100
};

void progress_begin(progress *bar, const char *what) {
  const char *term = getenv("TERM");
  bool terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
  *bar = (progress){.what = what, .start_ms = cli_now_ms(), .terminal = terminal};
}

void progress_update(progress *bar, uint64_t done, uint64_t total) {
  if (!bar->terminal) return;
  double now = cli_now_ms();
  if (now - bar->start_ms < patience_ms || now - bar->drawn_ms < interval_ms) return;
  double share = total ? (double)done / (double)total : 0;
  if (share > 1) share = 1;
  char cells[bar_width + 1];
  memset(cells, ' ', bar_width);
  memset(cells, '#', (size_t)(share * bar_width));
  cells[bar_width] = '\0';
  fprintf(stderr, "\r%s [%s] %3.0f %%  %.0f s", bar->what, cells, share * 100, (now - bar->start_ms) / 1000);
  fflush(stderr);
  bar->drawn = true;
  bar->drawn_ms = now;
}

void progress_end(progress *bar) {
  if (bar->drawn) fprintf(stderr, "\r\033[K");
  bar->drawn = false;
}
