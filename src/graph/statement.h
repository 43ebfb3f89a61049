/* The statements of the text form, before they become a graph. */
#ifndef BERTH_GRAPH_STATEMENT_H
#define BERTH_GRAPH_STATEMENT_H

#include "graph/lex.h"

typedef enum berth__statement_kind {
  BERTH__STATEMENT_INPUT,
  BERTH__STATEMENT_PARAM,
  BERTH__STATEMENT_CONST,
  BERTH__STATEMENT_STATE,
  BERTH__STATEMENT_NODE
} berth__statement_kind;

typedef struct berth__statement {
  berth__statement_kind kind;
  uint32_t line;
  const char **names; /* what the statement defines */
  size_t n_names, names_capacity;
  const char *op;
  const char **operands; /* omitted operands are NULL */
  size_t n_operands, operands_capacity;
  berth_attr *attrs;
  size_t n_attrs, attrs_capacity;
  berth_type *types; /* annotations: none, or one per name */
  berth_shape *shapes;
  size_t n_types, types_capacity, shapes_capacity;
  void *data; /* constants, and states that are not initialised to zero */
  size_t data_size;
} berth__statement;

typedef struct berth__text_output {
  const char *name, *value;
  uint32_t line;
} berth__text_output;

typedef struct berth__text_update {
  const char *state, *next;
  uint32_t line;
} berth__text_update;

/* Everything read; strings and lists are in `blocks` or in the statements' own arrays. */
typedef struct berth__document {
  berth_context *ctx;
  const char *name, *weights;
  berth__statement *statements;
  size_t n_statements, statements_capacity;
  berth__text_output *outputs;
  size_t n_outputs, outputs_capacity;
  berth__text_update *updates;
  size_t n_updates, updates_capacity;
  void **blocks;
  size_t n_blocks, blocks_capacity;
} berth__document;

berth_status berth__document_read(berth__document *document, berth_context *ctx, const char *text, size_t size,
                                  berth_error *err);
void berth__document_free(berth__document *document);

#endif
