#include <stddef.h>

#include "bar.h"

const char *bar_name(void) { return NULL; }

void bar_limit(const char *isa) { (void)isa; }

bar *bar_create(const bar_work *work) {
  (void)work;
  return NULL;
}

void bar_run(const bar *b) { (void)b; }

void bar_destroy(bar *b) { (void)b; }
