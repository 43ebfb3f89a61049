/* Decimal numbers with a point, independent of the program's locale. */
#ifndef BERTH_BASE_NUMBER_H
#define BERTH_BASE_NUMBER_H

#include <stdbool.h>

#define BERTH__DOUBLE_TEXT 40

/* The whole of text must be a number (also inf, nan); false otherwise. */
bool berth__parse_double(const char *text, double *out);
/* The shortest decimal form that reads back as the same double. */
void berth__format_double(double value, char text[BERTH__DOUBLE_TEXT]);

#endif
