/* Tensor data as text: `[1, 2.5, nan]` for short data, `hex "0000803f..."` for long data and if decimal digits would
 * lose bits (NaNs). */
#ifndef BERTH_GRAPH_LITERAL_H
#define BERTH_GRAPH_LITERAL_H

#include "base/text.h"
#include "graph/lex.h"

void berth__literal_print(berth__text *text, berth_type type, const void *data, uint64_t count);
/* The shortest decimal form that reads back as the same double; always has a '.', an 'e', "inf" or "nan". */
void berth__literal_print_double(berth__text *text, double value);
/* Reads into data, which has space for count elements. */
berth_status berth__literal_parse(berth__lexer *lexer, berth_type type, void *data, uint64_t count, berth_error *err);

#endif
