/* Orders of nodes by the memory that they need.
 *
 *   order_model.c   what every node begins and ends, as the planner will see it
 *   order_window.c  the best order of a few steps, exactly: a search over the sets of nodes that may be done
 *   order_search.c  a whole graph: cut where all orders meet, piece by piece */
#ifndef BERTH_PLAN_ORDER_H
#define BERTH_PLAN_ORDER_H

#include "plan/alias.h"

/* Bytes that live from the first step that touches them (which makes something there) to the last. */
typedef struct berth__order_class {
  uint64_t size;
  uint32_t first_touch, n_touches; /* in class_touches */
  bool is_there;                   /* before the first step */
  bool stays;                      /* after the last */
} berth__order_class;

/* A node and a class: one entry, however often the node names the class. */
typedef struct berth__order_touch {
  uint32_t class, node;
  bool is_result; /* the first result lies there, and may take the place of an operand */
  bool may_yield; /* the first result may be written over it, if it ends here */
  bool is_part;   /* a concat may have it inside its result, which then needs that much less here */
} berth__order_touch;

typedef struct berth__order_model {
  berth_context *ctx;
  uint32_t n_nodes, n_classes;
  uint64_t base;  /* bytes that live throughout */
  bool has_parts; /* there are some that may be made inside a concat */
  bool is_exact;  /* the planner finds nothing better for an order than the model says, but for such parts */
  berth__order_class *classes;
  uint32_t *first_touch; /* one per node and one more, in touches */
  berth__order_touch *touches, *class_touches;
  uint64_t *scratch;          /* one per node, rounded up */
  uint32_t *first_pred;       /* one per node and one more */
  uint32_t *preds;            /* nodes that must come before */
  const berth_cancel *cancel; /* the plan's */
  const bool *in_prelude;     /* the plan's: nodes of the prelude, which all come first */
} berth__order_model;

/* What the first result of a step need not take, since operands that end there leave their bytes to it. */
typedef struct berth__order_yield {
  bool all;       /* it lies over one of them */
  uint64_t parts; /* so much of it is there already */
} berth__order_yield;
static inline void berth__order_add_yield(berth__order_yield *yield, bool may_yield, bool is_part, uint64_t size) {
  yield->all = yield->all || may_yield;
  if (is_part) yield->parts += size;
}
static inline uint64_t berth__order_saved(const berth__order_yield *yield, uint64_t result) {
  return yield->all || yield->parts > result ? result : yield->parts;
}

/* Where parts of concats are that could be made inside them. */
typedef enum berth__order_parts {
  BERTH__PARTS_APART,
  BERTH__PARTS_INSIDE, /* all of them inside */
  BERTH__PARTS_LEAST   /* never more than any of both ways needs: for bounds */
} berth__order_parts;

typedef struct berth__order_rules {
  uint64_t align, guard;
  bool in_place; /* results may take the place of operands */
  berth__order_parts parts;
} berth__order_rules;

/* From aliases without in-place results and embedded parts. once: one per node, kept by the caller. */
berth_status berth__order_model_create(berth__order_model *model, const berth__alias *alias, const bool *in_prelude,
                                       const berth__order_rules *rules, berth_error *err);
void berth__order_model_free(berth__order_model *model);

/* What an order needs at every step, and what is alive before it (one per step and one more). */
typedef struct berth__order_load {
  uint64_t *cost, *alive;
} berth__order_load;
/* left: one a class, room. Gives the largest cost. */
uint64_t berth__order_measure(const berth__order_model *model, const uint32_t *order, uint32_t *left,
                              berth__order_load load);

/* Steps [begin, end) of an order, to be put in another one. */
typedef struct berth__order_span {
  uint32_t begin, end;
} berth__order_span;
#define BERTH__ORDER_WINDOW 256u /* steps at most */

typedef struct berth__order_goal {
  uint64_t above;  /* what needs as much as this is no use */
  uint64_t enough; /* what needs no more than this is as good as any */
  uint32_t tries;  /* sets of nodes to look at */
} berth__order_goal;

typedef struct berth__order_answer {
  bool is_found;  /* the steps were put in an order that needs `needs` */
  uint64_t needs; /* of the best order that was found, at least `enough` */
  uint64_t bound; /* between `enough` and `above`; where it is over `enough`, no order of these steps needs less */
  uint32_t tried;
} berth__order_answer;

/* Puts the steps into the best order there is, or the best that was found in so many tries. step_of: one per node, kept
 * up to date. */
berth_status berth__order_window(const berth__order_model *model, uint32_t *order, uint32_t *step_of, uint64_t alive,
                                 berth__order_span span, const berth__order_goal *goal, berth__order_answer *answer,
                                 berth_error *err);

typedef struct berth__order_result {
  uint64_t needs; /* by the model */
  uint64_t bound; /* no order needs less, by the model; not more than `needs` */
} berth__order_result;

/* Makes a valid order better. */
berth_status berth__order_search(const berth__order_model *model, uint32_t *order, berth__order_result *result,
                                 berth_error *err);

#endif
