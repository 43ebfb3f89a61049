/* A session: one arena, one set of weights, and a program for every binding of the named dimensions.
 *
 * Where weights lie: the first plan's layout gives slots to the weights that it needs in the arena. These slots are
 * their home for as long as the session lives, whichever bindings come and go. A param without a home has a copy in
 * host memory (`outside`: the session's own, the graph's, or the caller's), and so has a param that some binding reads
 * outside the arena. Bindings may hold further weights of their own after the shared ones; they are filled from those
 * copies when the binding next runs. So no weight is lost when a binding is dropped. */
#ifndef BERTH_SESSION_SESSION_H
#define BERTH_SESSION_SESSION_H

#include "base/sigbus.h"
#include "device/arena.h"

/* Finds the files that weights lie in. */
typedef struct berth__weight_files {
  bool (*find)(const void *user, const void *data, uint64_t size,
               berth__file_bytes *out); /* false: it lies in no file */
  const void *user;
} berth__weight_files;

/* One binding: its extents (one per named dimension of the graph), plan and program. */
typedef struct berth__binding {
  int64_t *extents;
  berth_plan *plan;
  berth__slots *slots;
  berth__program *program;
  const void **outside; /* one per value: where it lies if not in the arena */
  uint64_t bound;       /* the number of the arena that its program is bound to; 0: not bound */
  uint64_t last_used;   /* in ticks of the session's clock */
  bool has_own_weights; /* some lie after those that bindings share, and are valid only while this binding is current */
  bool makes_all;       /* its prelude computes everything that bindings share */
  bool is_settled;      /* its constants and its own weights are in the arena */
  bool is_prepared;     /* its prelude has run on the current weights */
  bool reads_files;     /* its runs, not only its prelude, read weights or constants in a mapped file */
  uint32_t first_update; /* the first step that updates a state that is not small; UINT32_MAX: none */
  uint32_t last_update;  /* one more than the last step that updates any state; 0: none */
} berth__binding;

struct berth_session {
  berth_context *ctx;
  berth_graph *graph; /* with named dimensions; value numbers are the same in every binding */
  const berth__device *device;
  char *device_name; /* as requested */
  berth__engine *engine;
  uint32_t n_threads;
  bool checked;
  berth__profile profile;    /* used to make its plans */
  berth_plan_desc plan_desc; /* without dims and layout */
  berth_layout *layout;      /* where the first plan put the weights: later plans follow it */
  berth__slots *home;        /* slots of that plan for its params: they may outlive its binding */
  size_t n_prepared;         /* number of prelude results that bindings share */
  bool is_prepared;          /* all of them were computed from the current weights */
  berth__binding *bindings;
  size_t n_bindings, bindings_capacity, max_bindings;
  size_t current;
  uint64_t clock; /* counts binds */
  berth_arena *arena;
  uint64_t arena_number; /* counts arenas */
  void *memory;          /* the arena's memory, if the caller provided it */
  uint64_t memory_size;
  const void **outside;      /* one per value: inputs and params outside the arena; each binding adds its constants */
  void **owned;              /* one per value: copies of params outside the arena that the session made */
  bool *is_set;              /* one per value: params whose weights are set */
  berth__weight_files files; /* find is NULL: weights are copied into the arena */
  uint64_t mapped_begin,
      mapped_end;      /* the range of the arena in which weights may be mapped pages of files; empty if equal */
  berth__watch *watch; /* watches the mapped bytes */
  bool *is_lost;       /* one per state: its contents are unknown since a run failed */
  unsigned char *kept; /* copies of the small states from before the run */
  uint32_t begun;      /* in this run or the last: one more than the last step that may have begun; 0: none */
  berth__observer observer;
  berth_thread_pool threads; /* the caller's pool; none if parallel_for is NULL */
  const berth_cancel *cancel;
  bool is_submitted; /* a run of the current binding that has not been waited for */
};

static inline berth__binding *berth__session_current(const berth_session *session) {
  return &session->bindings[session->current];
}

/* run.c: fails while a run is submitted. */
berth_status berth__session_idle(const berth_session *session, berth_error *err);
/* run.c: waits for a submitted run, if there is one. */
void berth__session_finish(berth_session *session);
/* session.c: a session on a device that need not be in the registry; NULL: the one that the descriptor names. */
berth_status berth__session_create_on(const berth_graph *graph, const berth__device *on, const berth_session_desc *desc,
                                      berth_session **out, berth_error *err);
/* session.c: a session that maps pages of files as its weights, if its device can. The files stay open while the graph
 * lives. */
berth_status berth__session_create_mapped(const berth_graph *graph, const berth_session_desc *desc,
                                          const berth__weight_files *files, berth_session **out, berth_error *err);
/* compile.c: compiles a binding for these dims and makes it current. On failure nothing has changed. */
berth_status berth__session_compile(berth_session *session, const berth_dim *dims, size_t n_dims, berth_error *err);
void berth__session_free_binding(berth_session *session, berth__binding *binding);
/* compile.c: binds a program to an arena (number: the session's count of it) and to the values outside. Does nothing if
 * it is already bound to them. */
berth_status berth__session_bind_program(const berth_session *session, berth__binding *binding, berth_arena *arena,
                                         uint64_t number, berth_error *err);
/* compile.c: the same for the current binding, after values outside have changed. */
berth_status berth__session_rebind(berth_session *session, berth_error *err);
/* binding.c: makes a binding current. Its program must be bound. */
void berth__session_make_current(berth_session *session, size_t index);
/* binding.c: the dims of a binding, in the order of the graph's names. */
void berth__session_list_dims(const berth_session *session, const berth__binding *binding, berth_dim *dims);
/* binding.c: drops the least recently used bindings while there are more than the session may have. */
void berth__session_trim(berth_session *session);
/* io.c: places the constants of the current binding, some of which may have been folded for it alone. It must be
 * bound. */
berth_status berth__session_place_constants(berth_session *session, berth_error *err);
/* lost.c: finds which steps of a binding update states. */
void berth__session_find_updates(const berth_plan *plan, berth__binding *binding);
/* lost.c: before a run: copies the states that are restored if the run fails before it updates any other. */
berth_status berth__session_keep_small(berth_session *session, berth_error *err);
#define BERTH__SMALL_STATE 64u /* bytes of the largest state that is kept like this */
/* lost.c: the run failed; the states that it was updating are lost. */
void berth__session_note_failure(berth_session *session);
/* lost.c: the run updated states from values that were not valid. */
void berth__session_lose_states(berth_session *session);
/* lost.c: for callers who know which bytes of states a failed run may have written, and do not need them. */
void berth__session_keep_states(berth_session *session);
berth_status berth__session_check_lost(const berth_session *session, berth_error *err); /* fails if one is lost */
/* state.c: gives every state its initial value, in a new arena. */
berth_status berth__session_begin_states(berth_session *session, berth_error *err);
/* weights.c: sets one param, whose size has been checked. If the device fails while it writes, the param is not set. */
berth_status berth__session_set_param(berth_session *session, berth_value value, const void *data, size_t size,
                                      berth_error *err);
/* weights.c: makes the current binding read an input or param outside the arena from this memory. */
berth_status berth__session_use(berth_session *session, berth_value value, const void *data, size_t size,
                                berth_error *err);
/* weights.c: memory for a copy of a param, in session->owned. */
berth_status berth__session_own(berth_session *session, berth_value value, size_t size, berth_error *err);
/* weights.c: makes copies of params that a new binding reads outside the arena and others have inside. */
berth_status berth__session_bring_out(berth_session *session, const berth__binding *binding, berth_error *err);
/* weights.c: frees copies that no binding reads. */
void berth__session_release_copies(berth_session *session);
/* weights.c: places the weights that the graph already has. */
berth_status berth__session_place_weights(berth_session *session, berth_error *err);
bool berth__session_has_weights(const berth_session *session); /* every param is set */
/* weights.c: fails if files that are mapped into the arena have shrunk. */
berth_status berth__session_check_mapped(const berth_session *session, berth_error *err);
void berth__session_forget_mapped(berth_session *session); /* weights.c: before the arena is destroyed */
/* weights.c: before a run: places what only the current binding has in the arena, unless it is there already. */
berth_status berth__session_settle(berth_session *session, berth_error *err);
/* weights.c: runs the prelude of the current binding unless it has run on the current weights. */
berth_status berth__session_prepare(berth_session *session, berth_error *err);
/* weights.c: makes every prelude run again. */
void berth__session_forget_prepared(berth_session *session);
/* weights.c: whether a value has bytes in the arena, in the current binding. */
bool berth__session_in_arena(const berth_session *session, berth_value value);

#endif
