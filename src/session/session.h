/* A session: one arena, one set of weights, a program for every binding of the named dimensions.
 *
 * Where weights lie. The first plan's layout gives places in the arena to the weights that it needs there: the home of
 * those, for as long as the session lives and whichever bindings come and go. A param that has no home has a copy in
 * the host's memory (`outside`: the session's own, the graph's, or the caller's); one that some binding reads outside
 * the arena has that copy too. Bindings may hold further weights of their own after the shared ones, filled from those
 * copies when the binding next runs. So whatever is dropped, every weight is still where it can be found. */
#ifndef BERTH_SESSION_SESSION_H
#define BERTH_SESSION_SESSION_H

#include "base/sigbus.h"
#include "device/arena.h"

/* Who knows of the files that weights lie in. */
typedef struct berth__weight_files {
  bool (*find)(const void *user, const void *data, uint64_t size, berth__file_bytes *out); /* false: in none */
  const void *user;
} berth__weight_files;

/* One binding: its extents (one a named dimension of the graph), plan and program. */
typedef struct berth__binding {
  int64_t *extents;
  berth_plan *plan;
  berth__slots *slots;
  berth__program *program;
  const void **outside;  /* one per value: where it lies when it is not in the arena */
  uint64_t bound;        /* the number of the arena that its program is bound to, with what lies outside; 0: none */
  uint64_t last_used;    /* by the session's clock */
  bool has_own_weights;  /* some lie after those that bindings share: they are there while this one is current */
  bool makes_all;        /* its prelude makes all that bindings share */
  bool is_settled;       /* what it alone has in the arena is there: its constants, and its own weights */
  bool is_prepared;      /* its prelude has run on the weights that there are */
  bool reads_files;      /* its runs read weights or constants where they lie in a file, not the prelude alone */
  uint32_t first_update; /* the first step that writes over a state that is not small; UINT32_MAX: none does */
  uint32_t last_update;  /* one more than the last step that writes over any; 0: none does */
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
  berth__slots *home;        /* the slots of that plan, for its params: they may outlive its binding */
  size_t n_prepared;         /* results of preludes that bindings share */
  bool is_prepared;          /* all of them are made of the weights that there are */
  berth__binding *bindings;
  size_t n_bindings, bindings_capacity, max_bindings;
  size_t current;
  uint64_t clock; /* counts binds */
  berth_arena *arena;
  uint64_t arena_number; /* counts arenas */
  void *memory;          /* the caller's own */
  uint64_t memory_size;
  const void **outside;      /* one per value: inputs and params outside the arena; every binding adds its constants */
  void **owned;              /* one per value: copies of params outside the arena that the session made */
  bool *is_set;              /* one per value: params that have their weights */
  berth__weight_files files; /* find NULL: weights are copied into the arena */
  uint64_t mapped_begin, mapped_end; /* of the arena: in between weights may be pages of files; equal: none are */
  berth__watch *watch;               /* over these bytes */
  bool *is_lost;                     /* one per state: nobody knows what it holds since a run failed */
  unsigned char *kept;               /* room for the states that are small, as they were before the run */
  uint32_t begun; /* in this run, or the last: one more than the last step that may have begun; 0: none */
  berth__observer observer;
  berth_thread_pool threads; /* the caller's; without parallel_for: none */
  const berth_cancel *cancel;
  bool is_submitted; /* a run of the current binding, which nobody has waited for yet */
};

static inline berth__binding *berth__session_current(const berth_session *session) {
  return &session->bindings[session->current];
}

/* run.c: fails while a run is submitted. */
berth_status berth__session_idle(const berth_session *session, berth_error *err);
/* run.c: waits for a run that was submitted, if there is one. */
void berth__session_finish(berth_session *session);
/* session.c: a session on a device that need not be in the registry; NULL: the one that the descriptor names. */
berth_status berth__session_create_on(const berth_graph *graph, const berth__device *on, const berth_session_desc *desc,
                                      berth_session **out, berth_error *err);
/* session.c: a session that takes pages of files for its weights, where its device can do that. The files stay open
 * while the graph lives. */
berth_status berth__session_create_mapped(const berth_graph *graph, const berth_session_desc *desc,
                                          const berth__weight_files *files, berth_session **out, berth_error *err);
/* compile.c: a binding that is compiled for these dims and made current. When it fails, nothing has changed. */
berth_status berth__session_compile(berth_session *session, const berth_dim *dims, size_t n_dims, berth_error *err);
void berth__session_free_binding(berth_session *session, berth__binding *binding);
/* compile.c: points a program at an arena (number: the session's count of it) and at what lies outside. Does nothing
 * where it is bound so. */
berth_status berth__session_bind_program(const berth_session *session, berth__binding *binding, berth_arena *arena,
                                         uint64_t number, berth_error *err);
/* compile.c: the same for the current binding, after what lies outside has changed. */
berth_status berth__session_rebind(berth_session *session, berth_error *err);
/* binding.c: makes a binding current whose program is bound. */
void berth__session_make_current(berth_session *session, size_t index);
/* binding.c: the dims of a binding, in the order of the graph's names. */
void berth__session_list_dims(const berth_session *session, const berth__binding *binding, berth_dim *dims);
/* binding.c: drops those that were used longest ago while there are more than the session may have. */
void berth__session_trim(berth_session *session);
/* io.c: the constants of the current binding, which folding may have made for it alone; it must be addressed. */
berth_status berth__session_place_constants(berth_session *session, berth_error *err);
/* lost.c: which steps of a binding write over states. */
void berth__session_find_updates(const berth_plan *plan, berth__binding *binding);
/* lost.c: before a run: what is put back if it fails before it updates anything else. */
berth_status berth__session_keep_small(berth_session *session, berth_error *err);
#define BERTH__SMALL_STATE 64u /* bytes of a state that is kept so */
/* lost.c: the run failed; states that it was updating are lost. */
void berth__session_note_failure(berth_session *session);
/* lost.c: the run updated states from what was not there. */
void berth__session_lose_states(berth_session *session);
/* lost.c: for who knows which bytes of states a failed run may have written, and does not need them. */
void berth__session_keep_states(berth_session *session);
berth_status berth__session_check_lost(const berth_session *session, berth_error *err); /* fails where they are */
/* state.c: gives every state its initial value, in an arena that was just made. */
berth_status berth__session_begin_states(berth_session *session, berth_error *err);
/* weights.c: sets one param, whose size is right. When the device fails while it writes, the param is not set. */
berth_status berth__session_set_param(berth_session *session, berth_value value, const void *data, size_t size,
                                      berth_error *err);
/* weights.c: an input or param that the current binding reads outside the arena is read from this memory. */
berth_status berth__session_use(berth_session *session, berth_value value, const void *data, size_t size,
                                berth_error *err);
/* weights.c: room for a copy of a param, in session->owned. */
berth_status berth__session_own(berth_session *session, berth_value value, size_t size, berth_error *err);
/* weights.c: copies of params that a new binding reads outside the arena, and others have inside. */
berth_status berth__session_bring_out(berth_session *session, const berth__binding *binding, berth_error *err);
/* weights.c: frees copies that no binding of the session reads. */
void berth__session_release_copies(berth_session *session);
/* weights.c: the weights that the graph already has. */
berth_status berth__session_place_weights(berth_session *session, berth_error *err);
bool berth__session_has_weights(const berth_session *session); /* every param is set */
/* weights.c: fails where files that the arena has pages of have shrunk. */
berth_status berth__session_check_mapped(const berth_session *session, berth_error *err);
void berth__session_forget_mapped(berth_session *session); /* weights.c: before that arena goes */
/* weights.c: before a run: what the current binding alone has in the arena, unless it is there. */
berth_status berth__session_settle(berth_session *session, berth_error *err);
/* weights.c: runs the prelude of the current binding unless it has run on these weights. */
berth_status berth__session_prepare(berth_session *session, berth_error *err);
/* weights.c: every prelude must run again. */
void berth__session_forget_prepared(berth_session *session);
/* weights.c: whether a value has bytes in the arena, in the current binding. */
bool berth__session_in_arena(const berth_session *session, berth_value value);

#endif
