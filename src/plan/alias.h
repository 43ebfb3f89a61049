/* Which values share bytes: views, in-place results, parts computed inside their concat, the two results of an If in
 * one slot. Decided before packing. */
#ifndef BERTH_PLAN_ALIAS_H
#define BERTH_PLAN_ALIAS_H

#include "graph/region.h"
#include "plan/condition.h"
#include "plan/plan.h"

/* A value's bytes lie `offset` bytes into those of `parent`; a root is its own parent. */
typedef struct berth__alias_value {
  berth_value parent;
  uint64_t offset;
  int64_t stride[BERTH_MAX_RANK];
  berth_storage storage;
  bool is_view, in_place, born_inside;
} berth__alias_value;

/* All values that share a root's bytes; only the entries of roots mean anything. */
typedef struct berth__alias_class {
  uint64_t size;        /* bytes of the root */
  uint32_t birth;       /* first step at which a member is made */
  uint32_t death;       /* after the last step at which one is read; the end when one is an output */
  uint32_t first_write; /* first and last step at which a kernel wrote over a member; UINT32_MAX / 0: never */
  uint32_t last_write;
  bool has_output;
  bool is_of_prelude;  /* made by the prelude and read by a run: stays as it is */
  bool is_read_in_run; /* a run reads a member, or one is an output */
} berth__alias_class;

/* How an operand may lie in memory. */
typedef enum berth__reach {
  BERTH__REACH_CONTIGUOUS,
  BERTH__REACH_UNIT_LAST, /* any strides, but 1 on the last axis */
  BERTH__REACH_STRIDED
} berth__reach;

typedef struct berth__alias {
  berth_context *ctx;
  const berth_graph *graph;
  uint32_t flags;
  const uint32_t *order;
  uint32_t n_steps, n_prelude;
  uint32_t *step_of; /* one per node */
  berth__conditions conditions;
  berth__regions regions;
  uint32_t *last_use;       /* one per value: after its last reader or the last step that it guards; 0: never read */
  bool *is_output;          /* one per value: an output, or the next value of a state */
  berth_value *state_of;    /* one per value: the state whose next value it is; BERTH_VALUE_NONE */
  berth__reach *may_stride; /* one per value: what every reader takes */
  int64_t *delta;           /* one per step and one more: room for berth__alias_load */
  uint64_t *scratch;        /* one per node: what its kernel asks for (berth__alias_scratch); NULL: it is not counted */
  berth__alias_value *values;
  berth__alias_class *classes;
} berth__alias;

/* storages: one per value; NULL: by their types. order: a valid order of the graph's nodes, kept by the caller; its
 * first n_prelude steps run once. */
berth_status berth__alias_create(berth__alias *alias, const berth_graph *graph, const berth_storage *storages,
                                 uint32_t flags, const uint32_t *order, uint32_t n_prelude, berth_error *err);
void berth__alias_free(berth__alias *alias);
/* Bytes of a value where it lies without gaps. */
uint64_t berth__alias_bytes(const berth__alias *alias, berth_value value);
/* The root of a value, and the bytes from its start. */
berth_value berth__alias_root(const berth__alias *alias, berth_value value, uint64_t *offset);
/* Whether a value has bytes in the arena by the flags (its root decides). */
bool berth__alias_in_arena(const berth__alias *alias, berth_value root);
/* Whether a result (by its index) may be written over this operand, if that has no readers after the node. */
bool berth__alias_may_overwrite(const berth__alias *alias, const berth__node *node, uint32_t operand, uint32_t out);
/* buffers.c: fills alias->scratch. */
berth_status berth__alias_scratch(berth__alias *alias, const berth__limits *limits, uint32_t n_threads,
                                  berth_error *err);
/* The largest sum of sizes alive at one step, each rounded up to align: no packing can be smaller. Scratch is part of
 * it where it is known. */
uint64_t berth__alias_load(const berth__alias *alias, uint64_t align, uint64_t guard);
/* Whether the prelude alone needs a root. It has no part in the load. */
bool berth__alias_is_preparation(const berth__alias *alias, berth_value root);
/* Scratch for a loop_end: next values that lie where others are to go are copied through it. */
uint64_t berth__alias_staging(const berth__alias *alias, const berth__node *node);

/* concat.c: embeds the parts of concats where that does not raise the load. */
void berth__alias_concat(berth__alias *alias, uint64_t align, uint64_t guard);
/* Whether the parts of a concat lie one after the other in its result, and whether a part is the whole of a root, so
 * that it can be made there. */
bool berth__alias_is_joinable(const berth__alias *alias, const berth__node *node);
bool berth__alias_may_join(const berth__alias *alias, berth_value part, berth_value whole);
/* branches.c: gives what a choose takes from either side the same bytes, where only one of them is ever made. */
void berth__alias_branches(berth__alias *alias);

#endif
