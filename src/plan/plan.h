/* A plan: where and when every value lives.
 *
 * arena   | weights: params, prelude  | states | constants | activations and scratch, packed by lifetime  |
 *           0                                    params_size base                                    arena_size
 *
 * After scheduling, node order[i] is step i. The first n_prelude steps run once, when the weights have been loaded. A
 * buffer lives over the half-open steps [birth, death). */
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
  uint32_t step;     /* of scratch: its step */
  uint64_t size;     /* what its values need */
  uint64_t guard;    /* kept free after it */
  uint64_t offset;   /* in the arena */
  uint32_t birth, death;
} berth__buffer;

/* The slot of one value. */
typedef struct berth__place {
  uint32_t buffer;                /* BERTH__NO_BUFFER: outside the arena */
  berth_value root;               /* the value that owns the bytes; itself when it does */
  uint64_t root_offset;           /* relative to it */
  int64_t stride[BERTH_MAX_RANK]; /* in elements */
  berth_storage storage;          /* how its elements are stored; a view has the storage of its root */
  bool is_view;                   /* no kernel writes it: it consists of bytes of its operand */
  bool in_place;                  /* its kernel overwrites an operand that dies there */
  bool born_inside;               /* it was placed inside the concat or choose that reads it */
  uint32_t birth, death;
} berth__place;

struct berth_plan {
  berth_context *ctx;
  berth_graph *graph;     /* bound, owned */
  const char *device;     /* the device it is for */
  char which[64];         /* one of several devices, as the caller named it ("1", part of a name); "": the first */
  berth__profile profile; /* its scratch was sized by it, and its program is made with it */
  uint32_t flags;
  uint64_t align; /* default alignment of offsets */
  bool is_tight;  /* buffers that share bytes over time keep their exact size; small ones are aligned to it */
  uint64_t aim;   /* bytes beside weights and states that a budget leaves; 0: no budget */
  uint32_t n_threads;
  uint32_t n_steps;
  uint32_t n_prelude; /* how many of them run once */
  bool *in_prelude;   /* one per node: it is in the prelude */
  uint32_t *order;
  uint64_t order_bound;         /* a lower bound for the load of all orders, including scratch; 0: unknown */
  bool in_place_over;           /* results overwrite operands at the fullest steps: other orders were not measured so */
  berth__conditions conditions; /* conditions of steps that are not always needed */
  berth_storage *storages;      /* one per value: the device's choice; NULL: follow from their types */
  berth__place *places;         /* one per value */
  berth__buffer *buffers;
  size_t n_buffers;
  uint32_t *scratch;    /* one per step: its buffer, or BERTH__NO_BUFFER */
  uint64_t params_size; /* end of the weights and states that plans of one layout share; this plan's own ones follow */
  berth_plan_info info;
  const berth_cancel *cancel; /* during construction */
};

/* Bytes of `count` elements of a planned value as stored in the arena. */
static inline uint64_t berth__place_bytes(const berth__place *place, uint64_t count) {
  return berth__storage_size(place->storage, count);
}

/* The number of steps, but never 0: a graph without nodes still keeps its inputs. */
static inline uint32_t berth__plan_end(uint32_t n_steps) { return n_steps != 0 ? n_steps : 1; }

/* The tensor for value v of a bound graph as kernels see it, without data. */
berth_tensor berth__plan_tensor(const berth_graph *graph, berth_value value, const int64_t *stride);

/* The call of one node as its kernel sees it, without data. tensors: space for its operands and results. Omitted
 * operands have type BERTH_TYPE_NONE. */
void berth__plan_call(const berth_plan *plan, const berth__node *node, berth_tensor *tensors, berth_op_call *call);
size_t berth__plan_most_tensors(const berth_plan *plan); /* the number of tensors that suffices for every node */

/* Whether a node has anything to do: not if its result is a view, nor if the parts of a concat or the sides of a choose
 * were made in place (query.c). */
bool berth__plan_needs_kernel(const berth_plan *plan, const berth__node *node);

/* Builds a plan for a device with these limits; desc is complete (berth_plan_create fills it in). */
berth_status berth__plan_build(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err);

/* The same for a graph that is bound and rewritten, in one order. desc->budget is without weights and states here, and
 * nothing is done to meet it: it is the plan's aim. Takes ownership of the graph, also on failure. */
berth_status berth__plan_bound(berth_graph *bound, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err);

#endif
