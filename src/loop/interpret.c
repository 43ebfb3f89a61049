/* Runs a kernel here, one workgroup after the other. The threads of a workgroup go in step: an instruction is computed
 * for all of them before the next one, and blocks say which of them it counts for. Results of threads that are out of a
 * block are of no use to anyone, so only what acts asks who is in.
 *
 * What a device would not tell is an error here: an index that is out of its buffer or array, a barrier that not all
 * threads come to, an element of a shared array that two threads use between the same two barriers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "loop/lanes.h"

#define POISON 0x7fc0deadu /* in arrays that nobody wrote to yet: a NaN, and a big integer */
#define MANY UINT32_MAX    /* threads */

/* Who used an element of a shared array since which barrier. */
typedef struct use {
  uint32_t write_time, writer;
  uint32_t read_time, reader;
} use;

/* Beside each instruction that bounds a block. */
typedef struct bound {
  berth__x opener; /* of else and end: the loop or if; of break: the loop */
  berth__x next;   /* of loop, if and else: the bound that comes next */
} bound;

typedef struct machine {
  const berth__kernel *k;
  const berth__kernel_memory *buffers;
  uint32_t n; /* threads */
  uint64_t group;
  uint32_t time;       /* barriers so far, counted from 1 */
  berth__lane *values; /* n an instruction */
  uint32_t *masks;     /* n a depth: 1 for threads that are in */
  uint32_t *n_in;      /* a depth */
  bound *bounds;       /* one an instruction */
  berth__lane *shared, *local;
  use *uses;
  berth_error *err;
} machine;

static uint32_t most_depth(const berth__kernel *k) {
  uint32_t most = 0;
  for (size_t i = 0; i < k->n_insts; ++i) most = k->insts[i].depth > most ? k->insts[i].depth : most;
  return most + 2;
}

static uint64_t total_of(const berth__kernel_array *arrays, uint32_t n) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < n; ++i) total += arrays[i].count;
  return total;
}

/* Cuts `room` into the machine's parts; gives their size, and sets nothing where room is NULL. */
static uint64_t lay_out(machine *m, uint8_t *room) {
  const berth__kernel *k = m->k;
  uint64_t lanes = (uint64_t)k->n_insts * m->n, depth = most_depth(k), n_shared = total_of(k->shared, k->n_shared),
           n_local = total_of(k->local, k->n_local) * m->n;
  const uint64_t size[] = {lanes * sizeof *m->values,      depth * m->n * sizeof *m->masks, depth * sizeof *m->n_in,
                           k->n_insts * sizeof *m->bounds, n_shared * sizeof *m->shared,    n_local * sizeof *m->local,
                           n_shared * sizeof *m->uses};
  uint64_t at[8] = {0};
  for (int i = 0; i < 7; ++i) at[i + 1] = at[i] + ((size[i] + 15) & ~(uint64_t)15);
  if (room == NULL) return at[7];
  m->values = (berth__lane *)(void *)(room + at[0]);
  m->masks = (uint32_t *)(void *)(room + at[1]);
  m->n_in = (uint32_t *)(void *)(room + at[2]);
  m->bounds = (bound *)(void *)(room + at[3]);
  m->shared = (berth__lane *)(void *)(room + at[4]);
  m->local = (berth__lane *)(void *)(room + at[5]);
  m->uses = (use *)(void *)(room + at[6]);
  return at[7];
}

uint64_t berth__kernel_room(const berth__kernel *kernel) {
  machine m = {.k = kernel, .n = kernel->group_size};
  return lay_out(&m, NULL);
}

static berth__lane *values_of(const machine *m, berth__x x) { return m->values + (size_t)x * m->n; }
static uint32_t *mask_of(const machine *m, uint32_t depth) { return m->masks + (size_t)depth * m->n; }

static void find_bounds(machine *m) {
  const berth__kernel *k = m->k;
  berth__x opener[UINT8_MAX], last[UINT8_MAX]; /* a depth */
  for (berth__x x = 0; x < k->n_insts; ++x) {
    const berth__inst *inst = &k->insts[x];
    uint32_t depth = inst->depth;
    switch (inst->code) {
      case BERTH__INST_loop:
      case BERTH__INST_if: opener[depth] = last[depth] = x; break;
      case BERTH__INST_else:
      case BERTH__INST_end:
        m->bounds[last[depth]].next = x;
        m->bounds[x].opener = opener[depth];
        last[depth] = x;
        break;
      case BERTH__INST_break:
        do --depth;
        while (k->insts[opener[depth]].code != BERTH__INST_loop);
        m->bounds[x].opener = opener[depth];
        break;
      default: break;
    }
  }
}

static void fill(const machine *m, berth__x x, uint32_t bits, uint32_t step) {
  berth__lane *out = values_of(m, x);
  for (uint32_t j = 0; j < m->n; ++j) out[j].u = bits + j * step;
}

/* What is the same for all workgroups. */
static void prepare(machine *m) {
  find_bounds(m);
  for (berth__x x = 0; x < m->k->n_insts; ++x) {
    const berth__inst *inst = &m->k->insts[x];
    if (inst->code == BERTH__INST_constant) fill(m, x, inst->bits, 0);
    if (inst->code == BERTH__INST_thread) fill(m, x, 0, 1);
  }
  memset(m->uses, 0, total_of(m->k->shared, m->k->n_shared) * sizeof *m->uses);
}

static berth_status fail_index(const machine *m, berth__x x, uint32_t thread, const char *what, uint64_t count) {
  const berth__inst *inst = &m->k->insts[x];
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (%s) of thread %" PRIu32 " of workgroup %" PRIu64
                     " goes to element %" PRId32 " of %s %" PRIu32 ", which has %" PRIu64 " elements.",
                     m->k->name, x, berth__inst_name((berth__inst_code)inst->code), thread, m->group,
                     values_of(m, inst->in[0])[thread].i, what, inst->bits, count);
}

/* The first thread that is in and whose index is not below count; n: none. */
static uint32_t find_outside(const machine *m, const berth__lane *index, const uint32_t *mask, uint64_t count) {
  uint32_t limit = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count, bad = 0;
  for (uint32_t j = 0; j < m->n; ++j) bad |= mask[j] & (uint32_t)(index[j].u >= limit);
  if (bad == 0) return m->n;
  uint32_t j = 0;
  while (mask[j] == 0 || index[j].u < limit) ++j;
  return j;
}

static uint32_t load_half(const uint32_t *words, uint32_t index) {
  berth__lane value = {.f = berth__f16_to_f32((uint16_t)(words[index >> 1] >> (16 * (index & 1u))))};
  return value.u;
}

static berth_status access_buffer(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_memory *buffer = &m->buffers[inst->bits];
  const berth__lane *index = values_of(m, inst->in[0]);
  const uint32_t *mask = mask_of(m, inst->depth);
  uint32_t outside = find_outside(m, index, mask, buffer->count);
  if (outside < m->n) return fail_index(m, x, outside, "buffer", buffer->count);
  if (inst->code == BERTH__INST_store) {
    const berth__lane *value = values_of(m, inst->in[1]);
    for (uint32_t j = 0; j < m->n; ++j) {
      if (mask[j] != 0) buffer->words[index[j].u] = value[j].u;
    }
    return BERTH_OK;
  }
  berth__lane *out = values_of(m, x);
  bool is_half = m->k->buffers[inst->bits].storage == BERTH__STORE_F16;
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] != 0) out[j].u = is_half ? load_half(buffer->words, index[j].u) : buffer->words[index[j].u];
  }
  return BERTH_OK;
}

static size_t first_of(const berth__kernel_array *arrays, uint32_t array) { return total_of(arrays, array); }

static berth_status access_local(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = values_of(m, inst->in[0]);
  const uint32_t *mask = mask_of(m, inst->depth);
  uint32_t count = m->k->local[inst->bits].count, outside = find_outside(m, index, mask, count);
  if (outside < m->n) return fail_index(m, x, outside, "local array", count);
  berth__lane *array = m->local + first_of(m->k->local, inst->bits) * m->n;
  bool is_store = inst->code == BERTH__INST_local_store;
  berth__lane *out = values_of(m, x), *value = is_store ? values_of(m, inst->in[1]) : out;
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] == 0) continue;
    berth__lane *element = &array[(size_t)index[j].u * m->n + j];
    if (is_store) {
      *element = value[j];
    } else {
      out[j] = *element;
    }
  }
  return BERTH_OK;
}

static berth_status fail_race(const machine *m, berth__x x, uint32_t thread, uint32_t other) {
  char who[32] = "others";
  if (other != MANY) snprintf(who, sizeof who, "thread %" PRIu32, other);
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (%s) of thread %" PRIu32 " of workgroup %" PRIu64
                     " goes to an element of shared array %" PRIu32 " that %s used, with no barrier between them.",
                     m->k->name, x, berth__inst_name((berth__inst_code)m->k->insts[x].code), thread, m->group,
                     m->k->insts[x].bits, who);
}

/* Notes the use; false where another thread used the element in a way that needs a barrier between. */
static bool note_use(use *u, uint32_t time, uint32_t thread, bool is_store, uint32_t *other) {
  *other = u->writer;
  if (u->write_time == time && u->writer != thread) return false;
  if (is_store) {
    *other = u->reader;
    if (u->read_time == time && u->reader != thread) return false;
    u->write_time = time;
    u->writer = thread;
    return true;
  }
  u->reader = u->read_time == time && u->reader != thread ? MANY : thread;
  u->read_time = time;
  return true;
}

static berth_status access_shared(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = values_of(m, inst->in[0]);
  const uint32_t *mask = mask_of(m, inst->depth);
  uint32_t count = m->k->shared[inst->bits].count, outside = find_outside(m, index, mask, count), other;
  if (outside < m->n) return fail_index(m, x, outside, "shared array", count);
  size_t first = first_of(m->k->shared, inst->bits);
  bool is_store = inst->code == BERTH__INST_shared_store;
  berth__lane *out = values_of(m, x), *value = is_store ? values_of(m, inst->in[1]) : out;
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] == 0) continue;
    size_t element = first + index[j].u;
    if (!note_use(&m->uses[element], m->time, j, is_store, &other)) return fail_race(m, x, j, other);
    if (is_store) {
      m->shared[element] = value[j];
    } else {
      out[j] = m->shared[element];
    }
  }
  return BERTH_OK;
}

static void set_variable(machine *m, const berth__inst *inst) {
  berth__lane *variable = values_of(m, inst->in[0]);
  const berth__lane *value = values_of(m, inst->in[1]);
  const uint32_t *mask = mask_of(m, inst->depth);
  for (uint32_t j = 0; j < m->n; ++j) variable[j].u = mask[j] != 0 ? value[j].u : variable[j].u;
}

/* Those of the block around, that `truth` holds for, are in the block below `depth`. */
static bool enter_if(machine *m, uint32_t depth, const berth__lane *condition, uint32_t truth) {
  const uint32_t *outer = mask_of(m, depth);
  uint32_t *mask = mask_of(m, depth + 1), n_in = 0;
  for (uint32_t j = 0; j < m->n; ++j) {
    mask[j] = outer[j] & (condition[j].u ^ truth ^ 1u);
    n_in += mask[j];
  }
  m->n_in[depth + 1] = n_in;
  return n_in > 0;
}

/* Those of `outer` whose index is below the loop's end go on. */
static bool go_round(machine *m, const berth__inst *inst, const berth__lane *index, const uint32_t *outer) {
  const berth__lane *to = values_of(m, inst->in[1]);
  uint32_t *mask = mask_of(m, inst->depth + 1u), n_in = 0;
  for (uint32_t j = 0; j < m->n; ++j) {
    mask[j] = outer[j] & (uint32_t)(index[j].i < to[j].i);
    n_in += mask[j];
  }
  m->n_in[inst->depth + 1] = n_in;
  return n_in > 0;
}

static bool enter_loop(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  memcpy(values_of(m, x), values_of(m, inst->in[0]), m->n * sizeof(berth__lane));
  return go_round(m, inst, values_of(m, x), mask_of(m, inst->depth));
}

static bool repeat_loop(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  berth__lane *index = values_of(m, x);
  const berth__lane *step = values_of(m, inst->in[2]);
  for (uint32_t j = 0; j < m->n; ++j) index[j].u += step[j].u;
  return go_round(m, inst, index, mask_of(m, inst->depth + 1u));
}

/* Threads that leave a loop are out of every block in it. */
static void leave_loop(machine *m, const berth__inst *inst, uint32_t loop_depth) {
  const uint32_t *leaving = mask_of(m, inst->depth);
  for (uint32_t depth = loop_depth + 1; depth < inst->depth; ++depth) {
    uint32_t *mask = mask_of(m, depth);
    for (uint32_t j = 0; j < m->n; ++j) mask[j] &= leaving[j] ^ 1u;
    m->n_in[depth] -= m->n_in[inst->depth];
  }
  memset(mask_of(m, inst->depth), 0, m->n * sizeof(uint32_t));
  m->n_in[inst->depth] = 0;
}

static berth_status come_to_barrier(machine *m, berth__x x) {
  uint32_t n_in = m->n_in[m->k->insts[x].depth];
  if (n_in == 0) return BERTH_OK;
  m->time += 1;
  if (n_in == m->n) return BERTH_OK;
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: %" PRIu32 " of %" PRIu32 " threads of workgroup %" PRIu64
                     " come to the barrier at instruction %" PRIu32 ".",
                     m->k->name, n_in, m->n, m->group, x);
}

/* A bound of a block; the instruction that comes next. */
static berth__x run_bound(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x], *opener;
  const bound *b = &m->bounds[x];
  switch (inst->code) {
    case BERTH__INST_loop: return enter_loop(m, x) ? x + 1 : b->next + 1;
    case BERTH__INST_if: return enter_if(m, inst->depth, values_of(m, inst->in[0]), 1) ? x + 1 : b->next;
    case BERTH__INST_else:
      opener = &m->k->insts[b->opener];
      return enter_if(m, inst->depth, values_of(m, opener->in[0]), 0) ? x + 1 : b->next;
    default:
      opener = &m->k->insts[b->opener];
      return opener->code == BERTH__INST_loop && repeat_loop(m, b->opener) ? b->opener + 1 : x + 1;
  }
}

static berth_status run_one(machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  switch (inst->code) {
    case BERTH__INST_constant:
    case BERTH__INST_thread:
    case BERTH__INST_group: return BERTH_OK;
    case BERTH__INST_load:
    case BERTH__INST_store: return access_buffer(m, x);
    case BERTH__INST_shared_load:
    case BERTH__INST_shared_store: return access_shared(m, x);
    case BERTH__INST_local_load:
    case BERTH__INST_local_store: return access_local(m, x);
    case BERTH__INST_variable:
    case BERTH__INST_get:
      memcpy(values_of(m, x), values_of(m, inst->in[0]), m->n * sizeof(berth__lane));
      return BERTH_OK;
    case BERTH__INST_set: set_variable(m, inst); return BERTH_OK;
    case BERTH__INST_break: leave_loop(m, inst, m->k->insts[m->bounds[x].opener].depth); return BERTH_OK;
    case BERTH__INST_barrier: return come_to_barrier(m, x);
    default: break;
  }
  const berth__lane *in[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < berth__inst_operands((berth__inst_code)inst->code); ++i) in[i] = values_of(m, inst->in[i]);
  berth__number from = (berth__number)m->k->insts[inst->in[0]].type;
  berth__lanes_compute((berth__inst_code)inst->code, (berth__number)inst->type, from, values_of(m, x), in[0], in[1],
                       in[2], m->n);
  return BERTH_OK;
}

static void begin_group(machine *m) {
  const berth__kernel *k = m->k;
  for (uint32_t j = 0; j < m->n; ++j) m->masks[j] = 1;
  m->n_in[0] = m->n;
  m->time += 1;
  for (berth__x x = 0; x < k->n_insts; ++x) {
    if (k->insts[x].code == BERTH__INST_group) fill(m, x, (uint32_t)m->group, 0);
  }
  uint64_t n_shared = total_of(k->shared, k->n_shared), n_local = total_of(k->local, k->n_local) * m->n;
  for (uint64_t i = 0; i < n_shared; ++i) m->shared[i].u = POISON;
  for (uint64_t i = 0; i < n_local; ++i) m->local[i].u = POISON;
}

berth_status berth__kernel_interpret(const berth__kernel *kernel, const berth__kernel_memory *buffers, void *room,
                                     berth_error *err) {
  machine m = {.k = kernel, .buffers = buffers, .n = kernel->group_size, .err = err};
  lay_out(&m, room);
  prepare(&m);
  for (m.group = 0; m.group < kernel->n_groups; ++m.group) {
    begin_group(&m);
    for (berth__x x = 0; x < kernel->n_insts;) {
      if (berth__inst_kind_of((berth__inst_code)kernel->insts[x].code) == BERTH__INST_BLOCK) {
        x = run_bound(&m, x);
        continue;
      }
      BERTH__TRY(run_one(&m, x));
      x += 1;
    }
  }
  return BERTH_OK;
}
