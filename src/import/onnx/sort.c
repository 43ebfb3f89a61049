/* Sorts nodes such that each comes after those that it reads from. The standard requires this, but not all exporters do
 * it. A list that is in order is unchanged; in any other, the nodes that a node reads from are moved before it.
 *
 * One walk over the model looks up every name once. A name that is read inside the graph of an If, Loop or Scan may be
 * made in any enclosing list; it is then a dependency of the node in that list that contains the inner graph. */
#include <stdio.h>

#include "base/hash.h"
#include "import/onnx/model.h"

#define MAX_LEVELS 72    /* nesting of graphs; the reader refuses files with more than 64 */
#define GIVEN UINT32_MAX /* not made by a node: an input or an initializer */
#define MOST_NAMED 8     /* nodes of a cycle named in a message */

/* Which node makes a name, as seen from the current position of the walk. */
typedef struct sort_maker {
  uint32_t level; /* of the list that makes it; 0: none that is visible */
  uint32_t maker; /* the node, or GIVEN */
  size_t hidden;  /* one more than the index in `hidden` of the entry that this one hides; 0: none */
} sort_maker;

typedef struct sort_hidden {
  uint32_t id;
  sort_maker maker;
} sort_hidden;

/* A name and its position in the file. */
typedef struct sort_name {
  berth__span text;
  uint32_t hash;
  sort_maker by;
} sort_name;

/* A list of nodes that is being walked. */
typedef struct sort_level {
  uint32_t node;   /* the one whose operands are being looked up */
  uint32_t *needs; /* the nodes that each reads from: those of node i from first[i] to first[i + 1] */
  size_t n_needs, needs_capacity;
  size_t *first;
  size_t first_capacity;
  bool is_unsorted;
} sort_level;

typedef struct sorter {
  berth_context *ctx;
  sort_name *names;
  size_t n_names, names_capacity;
  uint32_t *slots;     /* a hash table of positions in `names` plus one; 0: free */
  size_t n_slots;      /* a power of two, or 0 */
  sort_hidden *hidden; /* what the open lists have changed, to be restored when they end */
  size_t n_hidden, hidden_capacity;
  sort_level levels[MAX_LEVELS];
  uint32_t level; /* depth of the innermost open list, from 1 */
} sorter;

/* ---- Names ---- */

static uint32_t sort_hash(const sorter *s, berth__span name) {
  return berth__hash(s->ctx->hash_key, name.data, name.size);
}

/* The slot of a name, or the free one where it would go. */
static uint32_t *sort_slot(const sorter *s, berth__span name, uint32_t hash) {
  size_t at = hash & (s->n_slots - 1);
  for (; s->slots[at] != 0; at = (at + 1) & (s->n_slots - 1)) {
    const sort_name *other = &s->names[s->slots[at] - 1];
    if (other->hash == hash && berth__span_equal(other->text, name)) break;
  }
  return &s->slots[at];
}

static berth_status sort_more_slots(sorter *s, berth_error *err) {
  const size_t n = s->n_slots == 0 ? 64 : s->n_slots * 2;
  uint32_t *slots = berth__alloc_array_zero(s->ctx, n, sizeof *slots);
  if (slots == NULL) return berth__fail_nomem(err, "the names of a model");
  berth__free(s->ctx, s->slots);
  s->slots = slots;
  s->n_slots = n;
  for (size_t i = 0; i < s->n_names; i++) *sort_slot(s, s->names[i].text, s->names[i].hash) = (uint32_t)i + 1;
  return BERTH_OK;
}

/* The position of a name, which is added if it is new. */
static berth_status sort_position(sorter *s, berth__span name, uint32_t *out, berth_error *err) {
  const uint32_t hash = sort_hash(s, name);
  if (s->n_names >= UINT32_MAX / 4) return berth__fail(err, BERTH_UNSUPPORTED, "the model has too many names");
  if (s->n_names >= s->n_slots - s->n_slots / 4) BERTH__TRY(sort_more_slots(s, err));
  uint32_t *slot = sort_slot(s, name, hash);
  if (*slot == 0) {
    BERTH__TRY(BERTH__RESERVE(s->ctx, s->names, s->names_capacity, s->n_names + 1, err));
    s->names[s->n_names++] = (sort_name){.text = name, .hash = hash};
    *slot = (uint32_t)s->n_names;
  }
  *out = *slot - 1;
  return BERTH_OK;
}

/* If several nodes make a name, the first counts; the conversion refuses the others. */
static berth_status sort_define(sorter *s, berth__span name, uint32_t maker, berth_error *err) {
  uint32_t id = 0;
  if (name.size == 0) return BERTH_OK;
  BERTH__TRY(sort_position(s, name, &id, err));
  if (s->names[id].by.level == s->level) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->hidden, s->hidden_capacity, s->n_hidden + 1, err));
  s->hidden[s->n_hidden++] = (sort_hidden){id, s->names[id].by};
  s->names[id].by = (sort_maker){.level = s->level, .maker = maker, .hidden = s->n_hidden};
  return BERTH_OK;
}

static bool sort_comes_before(const sorter *s, const sort_maker *by) {
  return by->maker == GIVEN || by->maker < s->levels[by->level].node;
}

/* The maker that a name refers to: the innermost one before the reader. If there is none, the innermost one. */
static sort_maker sort_meant(const sorter *s, uint32_t id) {
  const sort_maker *innermost = &s->names[id].by;
  for (const sort_maker *by = innermost; by->level != 0; by = &s->hidden[by->hidden - 1].maker)
    if (sort_comes_before(s, by)) return *by;
  return *innermost;
}

static berth_status sort_read(sorter *s, berth__span name, berth_error *err) {
  if (name.size == 0 || s->n_slots == 0) return BERTH_OK;
  const uint32_t slot = *sort_slot(s, name, sort_hash(s, name));
  if (slot == 0) return BERTH_OK; /* not made anywhere; the conversion reports it */
  const sort_maker meant = sort_meant(s, slot - 1);
  if (meant.level == 0 || meant.maker == GIVEN) return BERTH_OK;
  sort_level *level = &s->levels[meant.level];
  BERTH__TRY(BERTH__RESERVE(s->ctx, level->needs, level->needs_capacity, level->n_needs + 1, err));
  level->needs[level->n_needs++] = meant.maker;
  level->is_unsorted = level->is_unsorted || meant.maker >= level->node;
  return BERTH_OK;
}

/* ---- Order ---- */

/* A walk along dependencies, depth first. */
typedef struct sort_walk {
  const sort_level *level;
  const berth__onnx_node *nodes;
  uint32_t *path; /* nodes that wait for the last one of them */
  size_t n_path;
  size_t *next; /* the dependency of each node to visit next; past its last: the node has been placed */
  bool *is_open;
  berth__onnx_node *sorted;
  size_t n_sorted;
} sort_walk;

/* "'a' (Add) reads from 'b' (Mul), which reads from 'a'": the nodes of the path from `node` on depend on each other. */
static berth_status sort_refuse_cycle(const sort_walk *w, uint32_t node, berth_error *err) {
  char text[400] = "";
  size_t used = 0, first = w->n_path, n_named = 0;
  while (w->path[first - 1] != node) first--;
  for (size_t i = first - 1; i < w->n_path && n_named < MOST_NAMED; i++, n_named++) {
    const berth__onnx_node *at = &w->nodes[w->path[i]];
    const berth__span name = at->name.size != 0 || at->n_outputs == 0 ? at->name : at->outputs[0];
    const int length =
        snprintf(text + used, sizeof text - used, "%s'%.*s' (%.*s)", n_named == 0 ? "" : ", ",
                 (int)(name.size < 24 ? name.size : 24), name.data != NULL ? (const char *)name.data : "",
                 (int)(at->op.size < 16 ? at->op.size : 16), at->op.data != NULL ? (const char *)at->op.data : "");
    if (length > 0) used += (size_t)length;
  }
  const size_t n_left = w->n_path - (first - 1) - n_named;
  if (n_left != 0)
    return berth__fail(err, BERTH_MALFORMED, "the ONNX nodes %s and %zu more wait for each other's results", text,
                       n_left);
  if (n_named == 1) return berth__fail(err, BERTH_MALFORMED, "the ONNX node %s waits for its own result", text);
  return berth__fail(err, BERTH_MALFORMED, "the ONNX nodes %s wait for each other's results", text);
}

static void sort_open(sort_walk *w, uint32_t node) {
  w->is_open[node] = true;
  w->path[w->n_path++] = node;
}

static bool sort_is_placed(const sort_walk *w, uint32_t node) { return w->next[node] > w->level->first[node + 1]; }

/* Places a node after all those that it needs. */
static berth_status sort_place(sort_walk *w, uint32_t root, berth_error *err) {
  if (sort_is_placed(w, root)) return BERTH_OK;
  sort_open(w, root);
  while (w->n_path != 0) {
    const uint32_t node = w->path[w->n_path - 1];
    const size_t at = w->next[node]++;
    if (at == w->level->first[node + 1]) {
      w->sorted[w->n_sorted++] = w->nodes[node];
      w->n_path--;
      continue;
    }
    const uint32_t needed = w->level->needs[at];
    if (sort_is_placed(w, needed)) continue;
    if (w->is_open[needed]) return sort_refuse_cycle(w, needed, err);
    sort_open(w, needed);
  }
  return BERTH_OK;
}

static berth_status sort_nodes(sorter *s, berth__onnx_node **nodes, size_t n, size_t *capacity, berth_error *err) {
  sort_walk w = {.level = &s->levels[s->level], .nodes = *nodes};
  w.path = berth__alloc_array(s->ctx, n, sizeof *w.path);
  w.next = berth__alloc_array(s->ctx, n, sizeof *w.next);
  w.is_open = berth__alloc_array_zero(s->ctx, n, sizeof *w.is_open);
  w.sorted = berth__alloc_array(s->ctx, n, sizeof *w.sorted);
  berth_status status = BERTH_OK;
  if (w.path == NULL || w.next == NULL || w.is_open == NULL || w.sorted == NULL)
    status = berth__fail_nomem(err, "the order of nodes");
  if (status == BERTH_OK) memcpy(w.next, w.level->first, n * sizeof *w.next);
  for (size_t i = 0; i < n && status == BERTH_OK; i++) status = sort_place(&w, (uint32_t)i, err);
  if (status == BERTH_OK) {
    berth__onnx_node *old = *nodes;
    *nodes = w.sorted;
    *capacity = n;
    w.sorted = old;
  }
  berth__free(s->ctx, w.path);
  berth__free(s->ctx, w.next);
  berth__free(s->ctx, w.is_open);
  berth__free(s->ctx, w.sorted);
  return status;
}

/* ---- Lists ---- */

static berth_status sort_graph(sorter *s, berth__onnx_graph *graph, berth_error *err);

static berth_status sort_walk_nodes(sorter *s, berth__onnx_node *nodes, size_t n, berth_error *err) {
  sort_level *level = &s->levels[s->level];
  BERTH__TRY(BERTH__RESERVE(s->ctx, level->first, level->first_capacity, n + 1, err));
  for (size_t i = 0; i < n; i++) {
    level->node = (uint32_t)i;
    level->first[i] = level->n_needs;
    for (size_t k = 0; k < nodes[i].n_inputs; k++) BERTH__TRY(sort_read(s, nodes[i].inputs[k], err));
    for (size_t k = 0; k < nodes[i].n_attrs; k++)
      if (nodes[i].attrs[k].graph != NULL) BERTH__TRY(sort_graph(s, nodes[i].attrs[k].graph, err));
  }
  level->first[n] = level->n_needs;
  level->node = (uint32_t)n;
  return BERTH_OK;
}

/* The names that the list reads from outside must already be defined. */
static berth_status sort_list(sorter *s, berth__onnx_node **nodes, size_t n, size_t *capacity, berth_error *err) {
  if (n >= GIVEN) return berth__fail(err, BERTH_UNSUPPORTED, "%zu nodes are too many", n);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < (*nodes)[i].n_outputs; k++)
      BERTH__TRY(sort_define(s, (*nodes)[i].outputs[k], (uint32_t)i, err));
  BERTH__TRY(sort_walk_nodes(s, *nodes, n, err));
  return s->levels[s->level].is_unsorted ? sort_nodes(s, nodes, n, capacity, err) : BERTH_OK;
}

static berth_status sort_enter(sorter *s, berth_error *err) {
  if (s->level + 1 == MAX_LEVELS)
    return berth__fail(err, BERTH_MALFORMED, "graphs are nested more than %d deep", MAX_LEVELS);
  sort_level *level = &s->levels[++s->level];
  level->n_needs = 0;
  level->is_unsorted = false;
  return BERTH_OK;
}

static void sort_leave(sorter *s, size_t n_hidden) {
  while (s->n_hidden > n_hidden) {
    s->n_hidden--;
    s->names[s->hidden[s->n_hidden].id].by = s->hidden[s->n_hidden].maker;
  }
  s->level--;
}

/* Results may be names of a graph around this one; its own names are all defined at its end. */
static berth_status sort_open_graph(sorter *s, berth__onnx_graph *graph, berth_error *err) {
  for (size_t i = 0; i < graph->n_inputs; i++) BERTH__TRY(sort_define(s, graph->inputs[i].name, GIVEN, err));
  for (size_t i = 0; i < graph->n_initializers; i++)
    BERTH__TRY(sort_define(s, graph->initializers[i].name, GIVEN, err));
  BERTH__TRY(sort_list(s, &graph->nodes, graph->n_nodes, &graph->nodes_capacity, err));
  for (size_t i = 0; i < graph->n_outputs; i++) BERTH__TRY(sort_read(s, graph->outputs[i].name, err));
  return BERTH_OK;
}

static berth_status sort_graph(sorter *s, berth__onnx_graph *graph, berth_error *err) {
  const size_t n_hidden = s->n_hidden;
  BERTH__TRY(sort_enter(s, err));
  BERTH__TRY(sort_open_graph(s, graph, err));
  sort_leave(s, n_hidden);
  return BERTH_OK;
}

/* A function sees no names but its own. */
static berth_status sort_function(sorter *s, berth__onnx_function *function, berth_error *err) {
  const size_t n_hidden = s->n_hidden;
  for (size_t i = 0; i < function->n_defaults; i++)
    if (function->defaults[i].graph != NULL) BERTH__TRY(sort_graph(s, function->defaults[i].graph, err));
  BERTH__TRY(sort_enter(s, err));
  for (size_t i = 0; i < function->n_inputs; i++) BERTH__TRY(sort_define(s, function->inputs[i], GIVEN, err));
  berth_status status = sort_list(s, &function->nodes, function->n_nodes, &function->nodes_capacity, err);
  if (status == BERTH_MALFORMED)
    berth__fail_within(err, status, "the function '%.*s'", BERTH__SPAN_TEXT(function->name));
  BERTH__TRY(status);
  sort_leave(s, n_hidden);
  return BERTH_OK;
}

static berth_status sort_model(sorter *s, berth__onnx_model *model, berth_error *err) {
  BERTH__TRY(sort_graph(s, &model->graph, err));
  for (size_t i = 0; i < model->n_functions; i++) BERTH__TRY(sort_function(s, &model->functions[i], err));
  return BERTH_OK;
}

berth_status berth__onnx_sort(berth__onnx_model *model, berth_error *err) {
  sorter s = {.ctx = model->ctx};
  berth_status status = sort_model(&s, model, err);
  for (uint32_t i = 0; i < MAX_LEVELS; i++) {
    berth__free(s.ctx, s.levels[i].needs);
    berth__free(s.ctx, s.levels[i].first);
  }
  berth__free(s.ctx, s.names);
  berth__free(s.ctx, s.slots);
  berth__free(s.ctx, s.hidden);
  return status;
}
