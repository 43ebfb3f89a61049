/* The functions of berth's WebAssembly module: flat ones over berth.h, for a host that has numbers and bytes alone.
 *
 * Handles are addresses; 0 stands for a failure, which berth_web_error tells about. What has structure is told as JSON,
 * in a text that stays until the next call. Everything runs on the thread that calls; one call at a time. */
#ifndef BERTH_WEB_EXPORTS_H
#define BERTH_WEB_EXPORTS_H

#include "berth/berth.h"
#include "json.h"

#define BERTH_WEB_MAX_WORKERS 256u
#define BERTH_WEB_EXPORT(name) __attribute__((export_name(#name)))

typedef struct web_graph web_graph;
typedef struct web_session web_session;
typedef struct web_gguf web_gguf;

/* ---- exports.c: the context, and what was made from it ---- */
BERTH_WEB_EXPORT(start) int berth_web_start(uint32_t n_threads); /* once, before everything else; 0: it failed */
BERTH_WEB_EXPORT(alloc) void *berth_web_alloc(size_t size);      /* aligned to 64; NULL: there is no room */
BERTH_WEB_EXPORT(free) void berth_web_free(void *block);
BERTH_WEB_EXPORT(status) const char *berth_web_status(void); /* of the last failure: "INVALID" */
BERTH_WEB_EXPORT(error) const char *berth_web_error(void);   /* the sentence */
BERTH_WEB_EXPORT(version) const char *berth_web_version(void);
BERTH_WEB_EXPORT(allocations) double berth_web_allocations(void); /* of the library, so far */

/* Takes over data and weights (safetensors; NULL: there are none), which came from berth_web_alloc, also on failure. */
BERTH_WEB_EXPORT(graph) web_graph *berth_web_graph(void *data, size_t size, void *weights, size_t weights_size);
BERTH_WEB_EXPORT(digits) web_graph *berth_web_digits(void);
/* Makes an input a constant, of elements that are copied. 0: it failed. */
BERTH_WEB_EXPORT(fix)
int berth_web_fix(web_graph *graph, const char *input, const char *type, uint32_t rank, const int64_t *extents,
                  const void *data, size_t size);
BERTH_WEB_EXPORT(graph_close) void berth_web_graph_close(web_graph *graph); /* sessions that use it keep it */

/* dims: names and extents as berth_dim has them. */
BERTH_WEB_EXPORT(plan)
berth_plan *berth_web_plan(const web_graph *graph, const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                           const berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(plan_close) void berth_web_plan_close(berth_plan *plan);

BERTH_WEB_EXPORT(session)
web_session *berth_web_session(web_graph *graph, const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                               const berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(session_plan) const berth_plan *berth_web_session_plan(const web_session *session);
BERTH_WEB_EXPORT(session_close) void berth_web_session_close(web_session *session);
/* Where the host writes an input and finds an output. write, run, read: 0 is a failure. */
BERTH_WEB_EXPORT(input) void *berth_web_input(const web_session *session, uint32_t input);
BERTH_WEB_EXPORT(output) const void *berth_web_output(const web_session *session, uint32_t output);
BERTH_WEB_EXPORT(write) int berth_web_write(web_session *session);
BERTH_WEB_EXPORT(run) int berth_web_run(web_session *session);
BERTH_WEB_EXPORT(read) int berth_web_read(web_session *session);
/* Of the last run: rank, then the extents. */
BERTH_WEB_EXPORT(output_shape) const int64_t *berth_web_output_shape(const web_session *session, uint32_t output);

/* ---- gguf.c: GGUF files, of which the beginning is enough ---- */
/* Takes over data on success alone. The status IO says that the header goes on after these bytes. file_size: of the
 * whole file. */
BERTH_WEB_EXPORT(gguf) web_gguf *berth_web_gguf(void *data, size_t size, uint64_t file_size);
BERTH_WEB_EXPORT(gguf_close) void berth_web_gguf_close(web_gguf *gguf);
/* The graph with a cache of the type kv, without weights; to be closed. */
BERTH_WEB_EXPORT(gguf_graph) web_graph *berth_web_gguf_graph(const web_gguf *gguf, const char *kv);
BERTH_WEB_EXPORT(describe_gguf) const char *berth_web_describe_gguf(const web_gguf *gguf); /* JSON */
/* What a generator takes, as JSON. ctx and chunk: 0 stands for what a generator takes then. */
BERTH_WEB_EXPORT(gguf_plan)
const char *berth_web_gguf_plan(const web_gguf *gguf, const char *kv, const char *device, uint64_t ctx, uint64_t chunk);

/* ---- generate.c: as berth_generator_* of berth.h ---- */
typedef struct web_piece {
  int32_t token, is_end;
  const char *text;
  uint32_t text_size;
} web_piece;

/* Takes over data, which came from berth_web_alloc, also on failure. */
BERTH_WEB_EXPORT(generator)
berth_generator *berth_web_generator(void *data, size_t size, const char *device, const char *kv, uint32_t ctx,
                                     uint32_t chunk, uint32_t flags);
BERTH_WEB_EXPORT(generator_fork) berth_generator *berth_web_generator_fork(berth_generator *generator);
BERTH_WEB_EXPORT(generator_close) void berth_web_generator_close(berth_generator *generator);
BERTH_WEB_EXPORT(generator_sample)
int berth_web_generator_sample(berth_generator *generator, float temperature, uint32_t top_k, float top_p, float min_p,
                               float repeat_penalty, uint32_t repeat_last, uint64_t seed);
BERTH_WEB_EXPORT(generator_feed)
int berth_web_generator_feed(berth_generator *generator, const char *text, size_t size, uint32_t flags);
BERTH_WEB_EXPORT(generator_feed_tokens)
int berth_web_generator_feed_tokens(berth_generator *generator, const int32_t *tokens, size_t n_tokens);
BERTH_WEB_EXPORT(generator_chat)
int berth_web_generator_chat(berth_generator *generator, const berth_message *messages, size_t n_messages);
/* Until the next call. */
BERTH_WEB_EXPORT(generator_next) const web_piece *berth_web_generator_next(berth_generator *generator);
BERTH_WEB_EXPORT(generator_logits) const float *berth_web_generator_logits(berth_generator *generator);
BERTH_WEB_EXPORT(generator_mark) int berth_web_generator_mark(berth_generator *generator);
BERTH_WEB_EXPORT(generator_rewind) int berth_web_generator_rewind(berth_generator *generator);
BERTH_WEB_EXPORT(generator_reset) void berth_web_generator_reset(berth_generator *generator);
BERTH_WEB_EXPORT(generator_save_size) double berth_web_generator_save_size(const berth_generator *generator);
BERTH_WEB_EXPORT(generator_save) int berth_web_generator_save(berth_generator *generator, void *dst, size_t size);
BERTH_WEB_EXPORT(generator_load) int berth_web_generator_load(berth_generator *generator, const void *src, size_t size);
BERTH_WEB_EXPORT(generator_tokens) const int32_t *berth_web_generator_tokens(const berth_generator *generator);
BERTH_WEB_EXPORT(describe_generator) const char *berth_web_describe_generator(const berth_generator *generator);

/* ---- train.c: graphs whose runs are steps of training, and weights ---- */
typedef struct web_training {
  double momentum, beta1, beta2, epsilon, weight_decay, clip; /* as berth_train_desc has them */
  const char *loss;                                           /* "cross_entropy", "mse" */
  const char *output;                                         /* that it is taken of; "": the first of a float type */
  const char *optimizer;                                      /* "adamw", "sgd" */
  const char *const *params;                                  /* what is trained */
  uint32_t n_params;                                          /* 0: all of a float type */
  uint32_t accumulate;
} web_training;

/* The model for these dims, with inputs "train.labels" and "learning_rate" and an output "train.loss"; to be closed. */
BERTH_WEB_EXPORT(train)
web_graph *berth_web_train(web_graph *model, const web_training *how, const berth_dim *dims, size_t n_dims);
/* JSON: name, type, shape, size, and where the elements are (0: there are none). */
BERTH_WEB_EXPORT(describe_weights) const char *berth_web_describe_weights(const web_graph *model);
BERTH_WEB_EXPORT(describe_states) const char *berth_web_describe_states(const web_session *session);
BERTH_WEB_EXPORT(state_read)
int berth_web_state_read(web_session *session, const char *state, void *dst, size_t size);
BERTH_WEB_EXPORT(state_write)
int berth_web_state_write(web_session *session, const char *state, const void *src, size_t size);
BERTH_WEB_EXPORT(state_size) double berth_web_state_size(const web_session *session);
BERTH_WEB_EXPORT(state_save) int berth_web_state_save(web_session *session, void *dst, size_t size);
BERTH_WEB_EXPORT(state_restore) int berth_web_state_restore(web_session *session, const void *src, size_t size);

/* ---- memory.c ---- */
BERTH_WEB_EXPORT(used) double berth_web_used(void); /* bytes of the memory that are in use */

/* ---- describe.c: JSON, and pictures; NULL: it failed ---- */
BERTH_WEB_EXPORT(devices) const char *berth_web_devices(void);
BERTH_WEB_EXPORT(describe) const char *berth_web_describe(const web_graph *graph);
/* dims: one for every open dimension of the graph; extents with which it cannot be bound are replaced by the least. */
BERTH_WEB_EXPORT(guess) const char *berth_web_guess(const web_graph *graph, berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(describe_plan) const char *berth_web_describe_plan(const berth_plan *plan);
BERTH_WEB_EXPORT(describe_bound) const char *berth_web_describe_bound(const berth_plan *plan); /* its inputs, outputs */
/* With dims, bound to them. */
BERTH_WEB_EXPORT(describe_nodes)
const char *berth_web_describe_nodes(const web_graph *graph, const berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(report)
const char *berth_web_report(const berth_plan *plan, uint32_t kind); /* berth_report_kind: a text, a picture */

/* ---- trace.c: a run that is looked at ---- */
/* Runs once; JSON: what every step took, and where the first elements of what it made are (at most `most` of each
 * value, dense), until trace_end. */
BERTH_WEB_EXPORT(trace) const char *berth_web_trace(web_session *session, uint32_t most);
BERTH_WEB_EXPORT(trace_end) void berth_web_trace_end(void);

/* ---- sys/pthread.c: workers ---- */
/* The host has a worker with this number, or will have it soon. 0: it failed, there can be no such number. */
BERTH_WEB_EXPORT(thread_add) int berth_web_thread_add(uint32_t number);
BERTH_WEB_EXPORT(thread_idle) uint32_t berth_web_thread_idle(void);             /* how many have nothing to do */
BERTH_WEB_EXPORT(thread_local_size) uint32_t berth_web_thread_local_size(void); /* bytes that one needs for itself */
/* What a worker runs, on a stack of its own; never returns. */
BERTH_WEB_EXPORT(thread) void berth_web_thread(uint32_t number);
/* What the host calls when that ended all the same: who waits for a worker then stops within a second. */
BERTH_WEB_EXPORT(thread_died) void berth_web_thread_died(void);
BERTH_WEB_EXPORT(thread_dead) uint32_t berth_web_thread_dead(void); /* how many did */

/* ---- what the host gives ---- */
__attribute__((import_module("host"), import_name("progress"))) void berth_web_host_progress(const char *stage,
                                                                                             double done, double total);

/* ---- shared by these files ---- */
extern berth_context *web_context;
extern berth_error web_error;
const berth_graph *web_graph_of(const web_graph *graph);
berth_session *web_session_of(const web_session *session);
web_graph *web_graph_hold(berth_graph *graph, void *weights);     /* takes over both; NULL: there is no room */
web_graph *web_graph_derive(web_graph *base, berth_graph *graph); /* as hold; it reads the bytes of base */
web_graph *web_graph_retain(web_graph *graph);
/* The text that describing functions give. finish: NULL where it is not whole. */
json *web_text_begin(void);
const char *web_text_finish(void);
void web_text_report(const berth_plan_info *info); /* its fields */

#endif
