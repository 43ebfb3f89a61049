/* A session: one arena, one set of weights, a program for every binding of the named dimensions. */
#ifndef BERTH_SESSION_SESSION_H
#define BERTH_SESSION_SESSION_H

#include "device/arena.h"

/* One binding: its extents (one a named dimension of the graph), plan and program. */
typedef struct berth__binding {
  int64_t *extents;
  berth_plan *plan;
  berth__slots *slots;
  berth__program *program;
  const void **outside; /* one a value: where it lies when it is not in the arena */
  bool has_own_weights; /* some lie behind those that bindings share: they are there while this one is current */
  bool is_prepared;     /* its prelude has run on the weights that there are */
} berth__binding;

struct berth_session {
  berth_context *ctx;
  berth_graph *graph; /* with named dimensions; value numbers hold for every binding */
  const berth__device *device;
  char *device_name; /* as it was asked for */
  berth__engine *engine;
  uint32_t n_threads;
  bool checked;
  berth__profile profile;    /* that its plans are made with */
  berth_plan_desc plan_desc; /* without dims and layout */
  berth_layout *layout;      /* where the first plan put the weights: the others follow */
  berth__binding *bindings;
  size_t n_bindings, bindings_capacity;
  size_t current;
  berth_arena *arena;
  void *memory; /* the caller's own */
  uint64_t memory_size;
  const void **outside; /* one a value: inputs and params outside the arena; every binding adds its constants */
  void **owned;         /* one a value: copies of params outside the arena that the session made */
  bool *is_set;         /* one a value: params that have their weights */
  berth__observer observer;
};

static inline berth__binding *berth__session_current(const berth_session *session) {
  return &session->bindings[session->current];
}

/* compile.c: a binding that is compiled for these dims; it is added to the session but not made current. */
berth_status berth__session_compile(berth_session *session, const berth_dim *dims, size_t n_dims, size_t *index,
                                    berth_error *err);
void berth__session_free_binding(berth_session *session, berth__binding *binding);
/* Points every program at the arena and at what lies outside. */
berth_status berth__session_rebind(berth_session *session, berth_error *err);
/* io.c: the constants of the current binding, which folding may have made for it alone; it must be addressed. */
berth_status berth__session_place_constants(berth_session *session, berth_error *err);
/* state.c: gives every state its initial value. */
berth_status berth__session_place_states(berth_session *session, berth_error *err);
/* weights.c: sets one param, whose size is right. */
berth_status berth__session_set_param(berth_session *session, berth_value value, const void *data, size_t size,
                                      berth_error *err);
/* weights.c: room for a copy of a param, in session->owned. */
berth_status berth__session_own(berth_session *session, berth_value value, size_t size, berth_error *err);
/* weights.c: gets hold of params that a new binding reads outside the arena, and others have inside. */
berth_status berth__session_bring_out(berth_session *session, const berth__binding *binding, berth_error *err);
/* weights.c: the weights that the graph already has. */
berth_status berth__session_place_weights(berth_session *session, berth_error *err);
bool berth__session_has_weights(const berth_session *session); /* every param is set */
/* weights.c: what the current binding alone has in the arena: its constants, and weights that others do not need. When
 * it has become the current one, or the arena is a new one. */
berth_status berth__session_settle(berth_session *session, berth_error *err);
/* weights.c: runs the prelude of the current binding unless it has run on these weights. */
berth_status berth__session_prepare(berth_session *session, berth_error *err);
/* weights.c: every prelude must run again. */
void berth__session_forget_prepared(berth_session *session);
/* weights.c: whether a value has bytes in the arena, in the current binding. */
bool berth__session_in_arena(const berth_session *session, berth_value value);

#endif
