/* The built-in model's own view of a run: the digits as pictures of text, and what they were taken for. */
#ifndef BERTH_TOOLS_DIGITS_H
#define BERTH_TOOLS_DIGITS_H

#include "outputs.h"

int digits_print(const runner *r, const outputs *results); /* an exit code */

#endif
