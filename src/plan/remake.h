/* Making values again, as a whole: which bytes are given up over their longest idle stretch and made once more for the
 * first who needs them after it, so that a load is met with the least work.
 *
 *   work.c          what a node costs
 *   remake_model.c  bytes, who touches them, when they are idle; the load and the work of a choice
 *   remake.c        the search for a choice
 *   remake_emit.c   the graph of a choice */
#ifndef BERTH_PLAN_REMAKE_H
#define BERTH_PLAN_REMAKE_H

#include "plan/alias.h"

/* The work of a node in operations, elements that are moved included; 0 for a view. */
double berth__node_work(const berth_graph *graph, const berth__node *node, bool is_view);

#define BERTH__REMAKE_NEVER UINT32_MAX

typedef struct berth__remake_class {
  uint64_t size;
  berth_value root;
  uint32_t maker;      /* step; NEVER: no node makes it */
  uint32_t gap_from;   /* the last step that touches it before its longest idle stretch, or at all */
  bool is_there;       /* before the first step */
  bool stays;          /* after the last */
  bool is_needed_late; /* after that stretch */
  bool may_drop;
} berth__remake_class;

typedef struct berth__remake_touch {
  uint32_t class;
  bool makes;     /* its bytes begin here */
  bool is_result; /* they are those of the first result */
  bool may_yield; /* the first result may be written over it, if it ends here */
} berth__remake_touch;

/* What is chosen for a class. ONCE: it is given up over its longest idle stretch, and made again after it. EACH: it is
 * given up whenever a step does not need it, and made again for every one that does. */
enum {
  BERTH__REMAKE_KEPT,
  BERTH__REMAKE_ONCE,
  BERTH__REMAKE_EACH,
  BERTH__REMAKE_CHOICES
};

/* Of one plan, in its order. Choices have a byte a class. */
typedef struct berth__remake_model {
  berth_context *ctx;
  const berth_plan *plan;
  uint32_t n_steps, n_classes;
  uint64_t base; /* bytes that live throughout */
  berth__remake_class *classes;
  uint32_t *class_of;           /* one per value: of its root; NEVER: it costs nothing */
  bool *is_view;                /* one per value: it shows bytes that another one has */
  uint32_t *first_touch;        /* one per step and one more */
  berth__remake_touch *touches; /* operands before results */
  uint64_t *scratch;            /* one per step */
  double *work;                 /* one per step */
  uint32_t *latest;             /* one per step: no clone of it stands after this step; 0: it has none */
  double whole;                 /* the work of all steps */
  /* Room of a measurement. */
  uint8_t *again;     /* one per class: it has been made again */
  uint32_t *needed;   /* one per class: the last step that made or needed it */
  uint32_t *form;     /* one per class: which form of it is there: its own number, then those of clones */
  uint32_t *last_use; /* one per form */
  uint32_t *runs;     /* steps, with CLONE where one runs again */
  uint32_t most_runs;
} berth__remake_model;
#define BERTH__REMAKE_CLONE (1u << 31)

berth_status berth__remake_model_create(berth__remake_model *model, const berth_plan *plan, const berth__limits *limits,
                                        berth_error *err);
void berth__remake_model_free(berth__remake_model *model);

typedef struct berth__remake_cost {
  uint64_t peak;
  double excess; /* bytes over the target, summed over the steps */
  double work;   /* of what runs again */
} berth__remake_cost;
/* False where it cannot be done: a state has another value by then. */
bool berth__remake_measure(const berth__remake_model *model, const uint8_t *dropped, uint64_t target,
                           berth__remake_cost *out);
/* Calls `make` for every class that a step needs and that is not there, after those that it is made from. */
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

/* Finds a choice; *out is what it gives, whose peak may be over the target where nothing reaches it. */
berth_status berth__remake_search(const berth__remake_model *model, uint64_t target, uint8_t *dropped,
                                  berth__remake_cost *out, berth_error *err);
/* The graph of a choice, its nodes in the order in which they are to run; *n_added: nodes that run again. */
berth_status berth__remake_emit(const berth__remake_model *model, const uint8_t *dropped, berth_graph **out,
                                uint32_t *n_added, berth_error *err);

#endif
