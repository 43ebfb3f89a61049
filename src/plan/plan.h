/* A plan: where and when every value lives.
 *
 *   arena   | weights: params, prepared | states | constants | activations and scratch, packed by lifetime  |
 *           0                                    params_size base                                    arena_size
 *
 * After scheduling, node order[i] is step i. The first n_prelude steps run once, when the weights are in place.
 * A buffer lives over the half-open steps [birth, death). */
#ifndef BERTH_PLAN_PLAN_H
#define BERTH_PLAN_PLAN_H

#include "base/storage.h"
#include "graph/graph.h"
#include "plan/condition.h"
#include "plan/limits.h"

#define BERTH__NO_BUFFER UINT32_MAX
#define BERTH__DEFAULT_ALIGN 64u
#define BERTH__MIN_GUARD 128u

typedef enum berth__buffer_kind {
  BERTH__BUFFER_ACTIVATION,
  BERTH__BUFFER_PARAM,
  BERTH__BUFFER_CONSTANT,
  BERTH__BUFFER_PRELUDE, /* made by the prelude, read by every run */
  BERTH__BUFFER_STATE,   /* left by one run, read by the next */
  BERTH__BUFFER_INPUT,
  BERTH__BUFFER_OUTPUT,
  BERTH__BUFFER_SCRATCH
} berth__buffer_kind;

typedef struct berth__buffer {
  berth__buffer_kind kind;
  berth_value owner; /* NONE for scratch */
  uint32_t step;     /* scratch: whose */
  uint64_t size;     /* what its values need */
  uint64_t guard;    /* kept free after it */
  uint64_t offset;   /* in the arena */
  uint32_t birth, death;
} berth__buffer;

/* Where one value lies. */
typedef struct berth__place {
  uint32_t buffer;                /* BERTH__NO_BUFFER: outside the arena */
  berth_value root;               /* the value that owns the bytes; itself when it does */
  uint64_t root_offset;           /* bytes from there */
  int64_t stride[BERTH_MAX_RANK]; /* in elements */
  berth_storage storage;          /* how its elements lie there; a view's is that of what it shows */
  bool is_view;                   /* no kernel writes it: it shows bytes of its operand */
  bool in_place;                  /* its kernel writes over an operand that dies there */
  bool born_inside;               /* it was placed inside the concat or choose that reads it */
  uint32_t birth, death;
} berth__place;

struct berth_plan {
  berth_context *ctx;
  berth_graph *graph;     /* bound, owned */
  const char *device;     /* whom it is for */
  char which[64];         /* of several, as the caller named it ("1", a part of a name); "": the first */
  berth__profile profile; /* what its scratch was sized by: its program is made with the same */
  uint32_t flags;
  uint64_t align; /* of offsets, in general */
  bool is_tight;  /* what shares bytes over time takes its true size, and what is small lies at any multiple of it */
  uint32_t n_threads;
  uint32_t n_steps;
  uint32_t n_prelude; /* of them: steps that run once */
  bool *in_prelude;   /* one per node: it is one of them */
  uint32_t *order;
  uint64_t order_bound;         /* no order of these nodes has a smaller load, scratch included; 0: that is not known */
  bool in_place_over;           /* results lie over operands where it is fullest: other orders were not measured so */
  berth__conditions conditions; /* steps that are not always needed */
  berth_storage *storages;      /* one per value: what the device chose; NULL: by their types */
  berth__place *places;         /* one per value */
  berth__buffer *buffers;
  size_t n_buffers;
  uint32_t *scratch;    /* one per step: its buffer, or BERTH__NO_BUFFER */
  uint64_t params_size; /* where weights and states end that plans of one layout share; after is this plan's own */
  berth_plan_info info;
  const berth_cancel *cancel; /* while it is made */
};

/* Bytes of so many elements of a value as they lie in the arena; of a value that was planned. */
static inline uint64_t berth__place_bytes(const berth__place *place, uint64_t count) {
  return berth__storage_size(place->storage, count);
}

/* Steps, but never 0: a graph without nodes still keeps its inputs. */
static inline uint32_t berth__plan_end(uint32_t n_steps) { return n_steps != 0 ? n_steps : 1; }

/* A tensor as kernels will see value v of a bound graph, without data. */
berth_tensor berth__plan_tensor(const berth_graph *graph, berth_value value, const int64_t *stride);

/* The call of one node as its kernel will see it, without data. tensors: room for its operands and results. Operands
 * that are left out have type BERTH_TYPE_NONE. */
void berth__plan_call(const berth_plan *plan, const berth__node *node, berth_tensor *tensors, berth_op_call *call);
size_t berth__plan_most_tensors(const berth_plan *plan); /* the room that every node's call finds enough */

/* Whether anything is left to do for a node: not where its result is a view, nor where the parts of a concat or the
 * sides of a choice were made where the result lies (query.c). */
bool berth__plan_needs_kernel(const berth_plan *plan, const berth__node *node);

/* Builds a plan for a device with these limits; desc is complete (berth_plan_create fills it in). */
berth_status berth__plan_build(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err);

/* The same for a graph that is bound and rewritten, in one order alone and whatever the budget is. Takes the graph,
 * also when it fails. */
berth_status berth__plan_bound(berth_graph *bound, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err);

#endif
