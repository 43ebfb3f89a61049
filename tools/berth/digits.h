/* Output specific to the built-in model: the digits as text pictures, and their classification. */
#ifndef BERTH_TOOLS_DIGITS_H
#define BERTH_TOOLS_DIGITS_H

#include "outputs.h"

int digits_print(const runner *r, const outputs *results); /* an exit code */

#endif
