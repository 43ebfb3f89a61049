/* The functions of berth's WebAssembly module: a flat version of berth.h, for a host that can pass only numbers and
 * bytes.
 *
 * Handles are addresses; 0 means failure, which berth_web_error describes. Structured data is returned as JSON, in a
 * text that is valid until the next call. Everything runs on the calling thread; one call at a time. */
#ifndef BERTH_WEB_EXPORTS_H
#define BERTH_WEB_EXPORTS_H

#include "berth/berth.h"
#include "json.h"

#define BERTH_WEB_MAX_WORKERS 256u
#define BERTH_WEB_EXPORT(name) __attribute__((export_name(#name)))

typedef struct web_graph web_graph;
typedef struct web_session web_session;
typedef struct web_gguf web_gguf;

/* ---- exports.c: the context, and the objects made from it ---- */
BERTH_WEB_EXPORT(start) int berth_web_start(uint32_t n_threads); /* once, before everything else; 0: failure */
BERTH_WEB_EXPORT(alloc) void *berth_web_alloc(size_t size);      /* aligned to 64; NULL: out of memory */
BERTH_WEB_EXPORT(free) void berth_web_free(void *block);
BERTH_WEB_EXPORT(status) const char *berth_web_status(void); /* of the last failure: "INVALID" */
BERTH_WEB_EXPORT(error) const char *berth_web_error(void);   /* its message */
BERTH_WEB_EXPORT(version) const char *berth_web_version(void);
BERTH_WEB_EXPORT(allocations) double berth_web_allocations(void); /* by the library, so far */

/* Takes ownership of data and weights (safetensors; NULL: none), which come from berth_web_alloc, also on failure. */
BERTH_WEB_EXPORT(graph) web_graph *berth_web_graph(void *data, size_t size, void *weights, size_t weights_size);
BERTH_WEB_EXPORT(digits) web_graph *berth_web_digits(void);
/* Makes an input a constant; the elements are copied. 0: failure. */
BERTH_WEB_EXPORT(fix)
int berth_web_fix(web_graph *graph, const char *input, const char *type, uint32_t rank, const int64_t *extents,
                  const void *data, size_t size);
BERTH_WEB_EXPORT(graph_close) void berth_web_graph_close(web_graph *graph); /* sessions that use it keep it alive */

/* dims: names and extents, as in berth_dim. */
BERTH_WEB_EXPORT(plan)
berth_plan *berth_web_plan(const web_graph *graph, const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                           const berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(plan_close) void berth_web_plan_close(berth_plan *plan);

BERTH_WEB_EXPORT(session)
web_session *berth_web_session(web_graph *graph, const char *device, uint32_t flags, uint64_t budget, uint64_t effort,
                               const berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(session_plan) const berth_plan *berth_web_session_plan(const web_session *session);
BERTH_WEB_EXPORT(session_close) void berth_web_session_close(web_session *session);
/* The addresses of inputs and outputs for the host. write, run, read: 0 means failure. */
BERTH_WEB_EXPORT(input) void *berth_web_input(const web_session *session, uint32_t input);
BERTH_WEB_EXPORT(output) const void *berth_web_output(const web_session *session, uint32_t output);
BERTH_WEB_EXPORT(write) int berth_web_write(web_session *session);
BERTH_WEB_EXPORT(run) int berth_web_run(web_session *session);
BERTH_WEB_EXPORT(read) int berth_web_read(web_session *session);
/* For the last run: rank, then the extents. */
BERTH_WEB_EXPORT(output_shape) const int64_t *berth_web_output_shape(const web_session *session, uint32_t output);

/* ---- gguf.c: GGUF files, of which the header suffices ---- */
/* Takes ownership of data only on success. The status IO means that the header continues after these bytes. file_size:
 * of the whole file. */
BERTH_WEB_EXPORT(gguf) web_gguf *berth_web_gguf(void *data, size_t size, uint64_t file_size);
BERTH_WEB_EXPORT(gguf_close) void berth_web_gguf_close(web_gguf *gguf);
/* The graph with a cache of the type kv, without weights; the caller closes it. */
BERTH_WEB_EXPORT(gguf_graph) web_graph *berth_web_gguf_graph(const web_gguf *gguf, const char *kv);
BERTH_WEB_EXPORT(describe_gguf) const char *berth_web_describe_gguf(const web_gguf *gguf); /* JSON */
/* The needs of a generator, as JSON. ctx and chunk: 0 stands for a generator's default. */
BERTH_WEB_EXPORT(gguf_plan)
const char *berth_web_gguf_plan(const web_gguf *gguf, const char *kv, const char *device, uint64_t ctx, uint64_t chunk);

/* ---- generate.c: like berth_generator_* of berth.h ---- */
typedef struct web_piece {
  int32_t token, is_end;
  const char *text;
  uint32_t text_size;
} web_piece;

/* Takes ownership of data, which comes from berth_web_alloc, also on failure. */
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
/* Valid until the next call. */
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

/* ---- train.c: training graphs, and weights ---- */
typedef struct web_training {
  double momentum, beta1, beta2, epsilon, weight_decay, clip; /* as in berth_train_desc */
  const char *loss;                                           /* "cross_entropy", "mse" */
  const char *output;                                         /* the loss's output; "": the first of a float type */
  const char *optimizer;                                      /* "adamw", "sgd" */
  const char *const *params;                                  /* the trained params */
  uint32_t n_params;                                          /* 0: all of a float type */
  uint32_t accumulate;
} web_training;

/* The training graph for these dims, with inputs "train.labels" and "learning_rate" and an output "train.loss"; the
 * caller closes it. */
BERTH_WEB_EXPORT(train)
web_graph *berth_web_train(web_graph *model, const web_training *how, const berth_dim *dims, size_t n_dims);
/* JSON: name, type, shape, size, and address of the elements (0: none). */
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
BERTH_WEB_EXPORT(used) double berth_web_used(void); /* used bytes of the memory */

/* ---- describe.c: JSON, and pictures; NULL: failure ---- */
BERTH_WEB_EXPORT(devices) const char *berth_web_devices(void);
BERTH_WEB_EXPORT(describe) const char *berth_web_describe(const web_graph *graph);
/* dims: one per open dimension of the graph; extents with which it cannot be bound are replaced by the smallest. */
BERTH_WEB_EXPORT(guess) const char *berth_web_guess(const web_graph *graph, berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(describe_plan) const char *berth_web_describe_plan(const berth_plan *plan);
BERTH_WEB_EXPORT(describe_bound) const char *berth_web_describe_bound(const berth_plan *plan); /* its inputs, outputs */
/* With dims, bound to them. */
BERTH_WEB_EXPORT(describe_nodes)
const char *berth_web_describe_nodes(const web_graph *graph, const berth_dim *dims, size_t n_dims);
BERTH_WEB_EXPORT(report)
const char *berth_web_report(const berth_plan *plan, uint32_t kind); /* berth_report_kind: a text, a picture */

/* ---- trace.c: a profiled run ---- */
/* Runs once; JSON: the time of every step, and the addresses of its results' first elements (at most `most` of each
 * value, dense), valid until trace_end. */
BERTH_WEB_EXPORT(trace) const char *berth_web_trace(web_session *session, uint32_t most);
BERTH_WEB_EXPORT(trace_end) void berth_web_trace_end(void);

/* ---- sys/pthread.c: workers ---- */
/* Tells that the host has a worker with this number, or will have it soon. 0: failure, the number is not possible. */
BERTH_WEB_EXPORT(thread_add) int berth_web_thread_add(uint32_t number);
BERTH_WEB_EXPORT(thread_idle) uint32_t berth_web_thread_idle(void);             /* number of idle workers */
BERTH_WEB_EXPORT(thread_local_size) uint32_t berth_web_thread_local_size(void); /* bytes of thread-locals per worker */
/* The main function of a worker, on its own stack; never returns. */
BERTH_WEB_EXPORT(thread) void berth_web_thread(uint32_t number);
/* The host calls it if that has ended nevertheless: threads that wait for a worker then stop within a second. */
BERTH_WEB_EXPORT(thread_died) void berth_web_thread_died(void);
BERTH_WEB_EXPORT(thread_dead) uint32_t berth_web_thread_dead(void); /* number of dead workers */

/* ---- imports from the host ---- */
__attribute__((import_module("host"), import_name("progress"))) void berth_web_host_progress(const char *stage,
                                                                                             double done, double total);

/* ---- shared by these files ---- */
extern berth_context *web_context;
extern berth_error web_error;
const berth_graph *web_graph_of(const web_graph *graph);
berth_session *web_session_of(const web_session *session);
web_graph *web_graph_hold(berth_graph *graph, void *weights);     /* takes ownership of both; NULL: out of memory */
web_graph *web_graph_derive(web_graph *base, berth_graph *graph); /* like hold; it uses the bytes of base */
web_graph *web_graph_retain(web_graph *graph);
/* The text that describing functions return. finish: NULL if it is incomplete. */
json *web_text_begin(void);
const char *web_text_finish(void);
void web_text_report(const berth_plan_info *info); /* its fields */

#endif
