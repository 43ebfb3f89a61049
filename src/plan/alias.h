/* Which values share bytes: views, in-place results, parts computed inside their concat, the two results of an If in
 * one slot. Decided before packing. */
#ifndef BERTH_PLAN_ALIAS_H
#define BERTH_PLAN_ALIAS_H

#include "graph/region.h"
#include "plan/condition.h"
#include "plan/plan.h"

/* A value is at byte `offset` of `parent`; a root is its own parent. */
typedef struct berth__alias_value {
  berth_value parent;
  uint64_t offset;
  int64_t stride[BERTH_MAX_RANK];
  berth_storage storage;
  bool is_view, in_place, born_inside;
} berth__alias_value;

/* All values that share a root's bytes; only the entries of roots are valid. */
typedef struct berth__alias_class {
  uint64_t size;        /* bytes of the root */
  uint32_t birth;       /* first step that makes a member */
  uint32_t death;       /* after the last step that reads one; the end if one is an output */
  uint32_t first_write; /* first and last step at which a kernel overwrites a member; UINT32_MAX / 0: never */
  uint32_t last_write;
  bool has_output;
  bool is_of_prelude;  /* made by the prelude and read by runs: must not change */
  bool is_read_in_run; /* a run reads a member, or one is an output */
} berth__alias_class;

/* The strides that a reader supports. */
typedef enum berth__reach {
  BERTH__REACH_CONTIGUOUS,
  BERTH__REACH_UNIT_LAST, /* any strides, except that the last axis has stride 1 */
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
  uint32_t *last_use;       /* one per value: after its last reader or last use as a condition; 0: never read */
  bool *is_output;          /* one per value: an output, or the next value of a state */
  berth_value *state_of;    /* one per value: the state that it updates; BERTH_VALUE_NONE */
  berth__reach *may_stride; /* one per value: the strides that all readers support */
  uint64_t aim;             /* bytes that the load should not exceed at any step; UINT64_MAX: none */
  double excess;            /* set by berth__alias_load: by how much steps exceed it, to the fourth power, summed up */
  int64_t *delta;           /* one per step and one more: work space of berth__alias_load */
  uint64_t *scratch;        /* one per node: the scratch of its kernel (berth__alias_scratch); NULL: not counted */
  berth__alias_value *values;
  berth__alias_class *classes;
} berth__alias;

/* storages: one per value; NULL: follow from their types. order: a valid order of the graph's nodes, kept by the
 * caller; its first n_prelude steps run once. */
berth_status berth__alias_create(berth__alias *alias, const berth_graph *graph, const berth_storage *storages,
                                 uint32_t flags, const uint32_t *order, uint32_t n_prelude, berth_error *err);
void berth__alias_free(berth__alias *alias);
/* Bytes of a contiguous value. */
uint64_t berth__alias_bytes(const berth__alias *alias, berth_value value);
/* The root of a value, and the value's offset in it. */
berth_value berth__alias_root(const berth__alias *alias, berth_value value, uint64_t *offset);
/* Whether the flags put a value in the arena (its root decides). */
bool berth__alias_in_arena(const berth__alias *alias, berth_value root);
/* Whether result `out` may overwrite this operand, if that has no readers after the node. */
bool berth__alias_may_overwrite(const berth__alias *alias, const berth__node *node, uint32_t operand, uint32_t out);
/* buffers.c: fills alias->scratch. */
berth_status berth__alias_scratch(berth__alias *alias, const berth__limits *limits, uint32_t n_threads,
                                  berth_error *err);
/* The largest sum of sizes alive at one step, each rounded up to align: a lower bound on the packed size. Includes
 * scratch if it is known. */
uint64_t berth__alias_load(berth__alias *alias, uint64_t align, uint64_t guard);
/* Whether only the prelude needs a root. Then it does not count in the load. */
bool berth__alias_is_preparation(const berth__alias *alias, berth_value root);
/* Scratch of a loop_end: next values in places where others must go are copied through it. */
uint64_t berth__alias_staging(const berth__alias *alias, const berth__node *node);

/* concat.c: moves the parts of concats into their results if that does not raise the load, nor what exceeds the aim. */
void berth__alias_concat(berth__alias *alias, uint64_t align, uint64_t guard);
/* Whether the parts of a concat are contiguous pieces of its result; and whether a part is a whole root, so that it can
 * be made there. */
bool berth__alias_is_joinable(const berth__alias *alias, const berth__node *node);
bool berth__alias_may_join(const berth__alias *alias, berth_value part, berth_value whole);
/* branches.c: puts the two operands of a choose into the same bytes if a run makes only one of them. */
void berth__alias_branches(berth__alias *alias);

#endif
