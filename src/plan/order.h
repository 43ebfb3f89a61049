/* Orders of nodes by the memory that they need.
 *
 * order_model.c   which lifetimes every node begins and ends, in the planner's terms
 * order_window.c  the optimal order of a few steps: a search over the sets of completed nodes
 * order_search.c  a whole graph: cut at the nodes that all orders have in common, piece by piece */
#ifndef BERTH_PLAN_ORDER_H
#define BERTH_PLAN_ORDER_H

#include "plan/alias.h"

/* Bytes that live from the first step that touches them (and makes a value there) to the last. */
typedef struct berth__order_class {
  uint64_t size;
  uint32_t first_touch, n_touches; /* in class_touches */
  bool is_there;                   /* before the first step */
  bool stays;                      /* after the last */
} berth__order_class;

/* A node and a class: one entry, however often the class occurs in the node. */
typedef struct berth__order_touch {
  uint32_t class, node;
  bool is_result; /* holds the first result, which may overwrite an operand */
  bool may_yield; /* the first result may overwrite it, if it ends here */
  bool is_part;   /* a concat may have it inside its result, which then needs that much less here */
} berth__order_touch;

typedef struct berth__order_model {
  berth_context *ctx;
  uint32_t n_nodes, n_classes;
  uint64_t base;  /* bytes that are always alive */
  bool has_parts; /* some may be made inside a concat */
  bool is_exact;  /* except for such parts, the model gives exactly what the planner finds for an order */
  berth__order_class *classes;
  uint32_t *first_touch; /* one per node and one more, in touches */
  berth__order_touch *touches, *class_touches;
  uint64_t *scratch;          /* one per node, rounded up */
  uint32_t *first_pred;       /* one per node and one more */
  uint32_t *preds;            /* nodes that must come before */
  const berth_cancel *cancel; /* the plan's token */
  const bool *in_prelude;     /* the plan's: nodes of the prelude, which all come first */
} berth__order_model;

/* The bytes that the first result of a step need not allocate, because it reuses those of operands that end there. */
typedef struct berth__order_yield {
  bool all;       /* it overwrites one of them */
  uint64_t parts; /* bytes of parts that are already in place */
} berth__order_yield;
static inline void berth__order_add_yield(berth__order_yield *yield, bool may_yield, bool is_part, uint64_t size) {
  yield->all = yield->all || may_yield;
  if (is_part) yield->parts += size;
}
static inline uint64_t berth__order_saved(const berth__order_yield *yield, uint64_t result) {
  return yield->all || yield->parts > result ? result : yield->parts;
}

/* How parts of concats that could be made inside their results are counted. */
typedef enum berth__order_parts {
  BERTH__PARTS_APART,
  BERTH__PARTS_INSIDE, /* all of them inside */
  BERTH__PARTS_LEAST   /* the minimum of both ways: for lower bounds */
} berth__order_parts;

typedef struct berth__order_rules {
  uint64_t align, guard;
  bool in_place; /* results may overwrite operands */
  berth__order_parts parts;
} berth__order_rules;

/* From aliases without in-place results and embedded parts. once: one per node, kept by the caller. */
berth_status berth__order_model_create(berth__order_model *model, const berth__alias *alias, const bool *in_prelude,
                                       const berth__order_rules *rules, berth_error *err);
void berth__order_model_free(berth__order_model *model);

/* The bytes that an order needs at every step, and those alive before it (one per step and one more). */
typedef struct berth__order_load {
  uint64_t *cost, *alive;
} berth__order_load;
/* left: work space, one per class. Returns the largest cost. */
uint64_t berth__order_measure(const berth__order_model *model, const uint32_t *order, uint32_t *left,
                              berth__order_load load);

/* Steps [begin, end) of an order, to be reordered. */
typedef struct berth__order_span {
  uint32_t begin, end;
} berth__order_span;
#define BERTH__ORDER_WINDOW 256u /* most steps */

typedef struct berth__order_goal {
  uint64_t above;  /* orders that need this much are useless */
  uint64_t enough; /* orders that need at most this are all equally good */
  uint32_t tries;  /* sets of nodes to examine */
} berth__order_goal;

typedef struct berth__order_answer {
  bool is_found;  /* the steps have been reordered and now need `needs` */
  uint64_t needs; /* by the best order found, at least `enough` */
  uint64_t bound; /* between `enough` and `above`; if above `enough`, a lower bound for all orders of these steps */
  uint32_t tried;
} berth__order_answer;

/* Puts the steps into the optimal order, or the best one found in that many tries. step_of: one per node, kept up to
 * date. */
berth_status berth__order_window(const berth__order_model *model, uint32_t *order, uint32_t *step_of, uint64_t alive,
                                 berth__order_span span, const berth__order_goal *goal, berth__order_answer *answer,
                                 berth_error *err);

typedef struct berth__order_result {
  uint64_t needs; /* according to the model */
  uint64_t bound; /* a lower bound for all orders, according to the model; at most `needs` */
} berth__order_result;

/* Improves a valid order. */
berth_status berth__order_search(const berth__order_model *model, uint32_t *order, berth__order_result *result,
                                 berth_error *err);

#endif
