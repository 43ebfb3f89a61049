/* Recomputing values, chosen globally: which bytes are given up over their longest idle stretch and recomputed for
 * their first reader after it, so that a target is met with the least work.
 *
 *   work.c          what a node costs
 * remake_model.c  bytes, who touches them, when they are idle; the load and the work of a choice
 *   remake.c        the search for a choice
 *   remake_emit.c   the graph of a choice */
#ifndef BERTH_PLAN_REMAKE_H
#define BERTH_PLAN_REMAKE_H

#include "plan/alias.h"

/* The operations of a product, an attention and the like; 0 for other nodes. And its work: with the elements it moves.
 */
double berth__node_operations(const berth_graph *graph, const berth__node *node);
double berth__node_work(const berth_graph *graph, const berth__node *node);
/* The work of a plan's node, as its device counts it; 0 for a view. */
double berth__plan_work(const berth_plan *plan, const berth__limits *limits, const berth__node *node, bool is_view);

#define BERTH__REMAKE_NEVER UINT32_MAX

typedef struct berth__remake_class {
  uint64_t size;
  berth_value root;
  uint32_t maker;      /* step; NEVER: not made by a node */
  uint32_t gap_from;   /* the last step that touches it before its longest idle stretch, or the last of all */
  bool is_there;       /* before the first step */
  bool stays;          /* after the last */
  bool is_needed_late; /* after that stretch */
  bool may_drop;
} berth__remake_class;

typedef struct berth__remake_touch {
  uint32_t class;
  bool makes;     /* its bytes begin here */
  bool is_result; /* they belong to the first result */
  bool may_yield; /* the first result may overwrite it, if it ends here */
} berth__remake_touch;

/* The choice for a class. ONCE: given up over its longest idle stretch, and recomputed after it. EACH: given up
 * whenever a step does not need it, and recomputed for every one that does. */
enum {
  BERTH__REMAKE_KEPT,
  BERTH__REMAKE_ONCE,
  BERTH__REMAKE_EACH,
  BERTH__REMAKE_CHOICES
};

/* A model of one plan, in its order. Choices have one byte per class. */
typedef struct berth__remake_model {
  berth_context *ctx;
  const berth_plan *plan;
  uint32_t n_steps, n_classes;
  uint64_t base; /* bytes that are always alive */
  berth__remake_class *classes;
  uint32_t *class_of;           /* one per value: its root's class; NEVER: it costs nothing */
  bool *is_view;                /* one per value: it is a view */
  uint32_t *first_touch;        /* one per step and one more */
  berth__remake_touch *touches; /* operands before results */
  uint64_t *scratch;            /* one per step */
  double *work;                 /* one per step */
  uint32_t *latest;             /* one per step: clones of it must come before this step; 0: it has none */
  double whole;                 /* the total work of all steps */
  /* Work space of a measurement. */
  uint8_t *again;     /* one per class: it has been recomputed */
  uint32_t *needed;   /* one per class: the last step that made or needed it */
  uint32_t *form;     /* one per class: its current version: its own number, then those of clones */
  uint32_t *last_use; /* one per version */
  uint32_t *runs;     /* steps, with CLONE if one runs again */
  uint32_t most_runs;
} berth__remake_model;
#define BERTH__REMAKE_CLONE (1u << 31)

berth_status berth__remake_model_create(berth__remake_model *model, const berth_plan *plan, const berth__limits *limits,
                                        berth_error *err);
void berth__remake_model_free(berth__remake_model *model);

typedef struct berth__remake_cost {
  uint64_t peak;
  double excess; /* bytes over the target, summed over the steps */
  double work;   /* of clones */
} berth__remake_cost;
/* False if it cannot be done: a state would have another value by then. */
bool berth__remake_measure(const berth__remake_model *model, const uint8_t *dropped, uint64_t target,
                           berth__remake_cost *out);
/* Calls `make` for every class that a step needs and that is not available, operands first. */
typedef struct berth__remake_walk {
  const berth__remake_model *model;
  const uint8_t *dropped;
  uint8_t *again;
  uint32_t *needed;
  uint32_t depth;
  bool fails;
  void (*make)(struct berth__remake_walk *walk, uint32_t class);
  void *user;
} berth__remake_walk;
/* Before the first step. */
void berth__remake_walk_start(berth__remake_walk *walk);
void berth__remake_need(berth__remake_walk *walk, uint32_t class, uint32_t step);

/* Finds a choice; *out is its cost, with a peak over the target if nothing reaches it. */
berth_status berth__remake_search(const berth__remake_model *model, uint64_t target, uint8_t *dropped,
                                  berth__remake_cost *out, berth_error *err);
/* The graph of a choice, with its nodes in execution order; *n_added: nodes that run again. */
berth_status berth__remake_emit(const berth__remake_model *model, const uint8_t *dropped, berth_graph **out,
                                uint32_t *n_added, berth_error *err);

#endif
