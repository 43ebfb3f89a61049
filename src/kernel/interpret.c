/* Interprets a kernel on the host, a few workgroups at a time. Their threads run in lockstep: an instruction is
 * computed for all of them before the next one, and blocks keep track of the active threads. Results of inactive
 * threads are never used, so only instructions with side effects check which threads are active.
 *
 * Reports errors that a device would not: an index outside its buffer or array, a barrier that not all threads reach,
 * an element of a shared array that two threads use between the same two barriers, an element of a buffer to which two
 * threads store different values at once. */
#include <inttypes.h>
#include <string.h>

#include "base/half.h"
#include "kernel/machine.h"

#define ENOUGH_LANES 256u /* enough to amortise a step through the instructions */

static uint32_t most_depth(const berth__kernel *k) {
  uint32_t most = 0;
  for (size_t i = 0; i < k->n_insts; ++i) most = k->insts[i].depth > most ? k->insts[i].depth : most;
  return most + 2;
}

static berth__machine machine_of(const berth__kernel *k) {
  berth__machine m = {.k = k, .threads = k->group_size, .n = k->group_size};
  uint64_t groups = k->group_size < ENOUGH_LANES ? ENOUGH_LANES / k->group_size : 1;
  if (groups > k->n_groups && k->n_groups > 0) groups = k->n_groups;
  m.n *= (uint32_t)groups;
  m.n_shared = berth__machine_elements(k->shared, k->n_shared);
  return m;
}

/* Divides `room` into the machine's arrays and returns their size; with room NULL, it only returns the size. */
static uint64_t lay_out(berth__machine *m, uint8_t *room) {
  const berth__kernel *k = m->k;
  uint64_t lanes = (uint64_t)k->n_insts * m->n, depth = most_depth(k), n_shared = m->n_shared * (m->n / m->threads),
           n_local = berth__machine_elements(k->local, k->n_local) * m->n,
           n_sums = (uint64_t)berth__machine_sums(k, k->n_sums) * m->n;
  const uint64_t size[] = {lanes * sizeof *m->values,      depth * m->n * sizeof *m->masks, depth * sizeof *m->n_in,
                           k->n_insts * sizeof *m->bounds, n_shared * sizeof *m->shared,    n_local * sizeof *m->local,
                           n_shared * sizeof *m->uses,     n_sums * sizeof *m->sums};
  uint64_t at[9] = {0};
  for (int i = 0; i < 8; ++i) at[i + 1] = at[i] + ((size[i] + 15) & ~(uint64_t)15);
  if (room == NULL) return at[8];
  m->values = (berth__lane *)(void *)(room + at[0]);
  m->masks = (uint32_t *)(void *)(room + at[1]);
  m->n_in = (uint32_t *)(void *)(room + at[2]);
  m->bounds = (berth__machine_bound *)(void *)(room + at[3]);
  m->shared = (berth__lane *)(void *)(room + at[4]);
  m->local = (berth__lane *)(void *)(room + at[5]);
  m->uses = (berth__machine_use *)(void *)(room + at[6]);
  m->sums = (berth__lane *)(void *)(room + at[7]);
  memset(m->uses, 0, (size_t)size[6]);
  return at[8];
}

uint64_t berth__kernel_room(const berth__kernel *kernel) {
  berth__machine m = machine_of(kernel);
  return lay_out(&m, NULL);
}

static void find_bounds(berth__machine *m) {
  const berth__kernel *k = m->k;
  berth__x opener[UINT8_MAX], last[UINT8_MAX]; /* indexed by depth */
  for (berth__x x = 0; x < k->n_insts; ++x) {
    const berth__inst *inst = &k->insts[x];
    uint32_t depth = inst->depth;
    switch (inst->code) {
      case BERTH__INST_loop:
      case BERTH__INST_each:
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

/* Whether elements of a shared array are stored when others of it have been loaded since the last barrier: then loads
 * must be recorded. A loop is walked twice, because its end affects its start. `loaded`: bit a, array a. */
static uint32_t find_mixed(berth__machine *m, berth__x from, berth__x to, uint32_t loaded) {
  for (berth__x x = from; x < to; ++x) {
    const berth__inst *inst = &m->k->insts[x];
    switch (inst->code) {
      case BERTH__INST_shared_load: loaded |= 1u << inst->bits; break;
      case BERTH__INST_shared_store: m->notes_loads[inst->bits] |= (loaded >> inst->bits) & 1u; break;
      case BERTH__INST_multiply: /* as do instructions that load many at once */
        m->notes_loads[m->k->sums[inst->bits].left.array] = m->notes_loads[m->k->sums[inst->bits].right.array] = true;
        break;
      case BERTH__INST_barrier: loaded = 0; break;
      case BERTH__INST_loop:
        loaded = find_mixed(m, x + 1, m->bounds[x].next, loaded);
        loaded = find_mixed(m, x + 1, m->bounds[x].next, loaded);
        x = m->bounds[x].next;
        break;
      default: break;
    }
  }
  return loaded;
}

static void kernel_interpret_fill(const berth__machine *m, berth__x x, uint32_t bits) {
  const uint32_t n = m->n;
  berth__lane *out = berth__machine_values(m, x);
  for (uint32_t j = 0; j < n; ++j) out[j].u = bits;
}

static void fill_with_threads(const berth__machine *m, berth__x x) {
  berth__lane *out = berth__machine_values(m, x);
  for (uint32_t j = 0; j < m->n; ++j) out[j].u = j % m->threads;
}

static void fill_with_groups(const berth__machine *m, berth__x x) {
  berth__lane *out = berth__machine_values(m, x);
  for (uint32_t j = 0; j < m->n; ++j) out[j].u = (uint32_t)m->group + j / m->threads;
}

static void find_meeting(berth__machine *m) {
  for (uint32_t a = 0; a < m->k->n_shared; ++a)
    for (uint32_t b = 0; b < m->k->n_shared; ++b)
      if (a != b && berth__kernel_shared_meet(m->k, a, b)) m->meets[a] = m->meets[b] = true;
}

/* Prepares what is the same for all workgroups. */
static void kernel_interpret_prepare(berth__machine *m) {
  find_bounds(m);
  find_meeting(m);
  if (m->k->n_shared > 0) find_mixed(m, 0, (berth__x)m->k->n_insts, 0);
  for (berth__x x = 0; x < m->k->n_insts; ++x) {
    const berth__inst *inst = &m->k->insts[x];
    if (inst->code == BERTH__INST_constant) kernel_interpret_fill(m, x, inst->bits);
    if (inst->code == BERTH__INST_thread) fill_with_threads(m, x);
  }
}

static void set_variable(berth__machine *m, const berth__inst *inst) {
  const uint32_t n = m->n;
  berth__lane *restrict variable = berth__machine_values(m, inst->in[0]);
  const berth__lane *restrict value = berth__machine_values(m, inst->in[1]);
  const uint32_t *restrict mask = berth__machine_mask(m, inst->depth);
  if (m->n_in[inst->depth] == m->n) {
    memcpy(variable, value, m->n * sizeof *value);
    return;
  }
  for (uint32_t j = 0; j < n; ++j) {
    uint32_t all = 0u - mask[j];
    variable[j].u = (value[j].u & all) | (variable[j].u & ~all);
  }
}

/* Threads that are active in the enclosing block and for which `truth` holds become active in the block at `depth`. */
static bool enter_if(berth__machine *m, uint32_t depth, const berth__lane *restrict condition, uint32_t truth) {
  const uint32_t n = m->n;
  const uint32_t *restrict outer = berth__machine_mask(m, depth);
  uint32_t *restrict mask = berth__machine_mask(m, depth + 1), n_in = 0;
  for (uint32_t j = 0; j < n; ++j) {
    mask[j] = outer[j] & (condition[j].u ^ truth ^ 1u);
    n_in += mask[j];
  }
  m->n_in[depth + 1] = n_in;
  return n_in > 0;
}

/* Threads that are in the loop and whose index is below its end go on. */
static bool go_round(berth__machine *m, const berth__inst *inst, const berth__lane *restrict index) {
  const uint32_t n = m->n;
  const berth__lane *restrict to = berth__machine_values(m, inst->in[1]);
  uint32_t *restrict mask = berth__machine_mask(m, inst->depth + 1u), n_in = 0;
  for (uint32_t j = 0; j < n; ++j) {
    mask[j] &= (uint32_t)(index[j].i < to[j].i);
    n_in += mask[j];
  }
  m->n_in[inst->depth + 1] = n_in;
  return n_in > 0;
}

static bool enter_loop(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  memcpy(berth__machine_values(m, x), berth__machine_values(m, inst->in[0]), m->n * sizeof(berth__lane));
  memcpy(berth__machine_mask(m, inst->depth + 1u), berth__machine_mask(m, inst->depth), m->n * sizeof(uint32_t));
  return go_round(m, inst, berth__machine_values(m, x));
}

static bool repeat_loop(berth__machine *m, berth__x x) {
  const uint32_t n = m->n;
  const berth__inst *inst = &m->k->insts[x];
  berth__lane *restrict index = berth__machine_values(m, x);
  const uint32_t step = m->k->insts[inst->in[2]].bits;
  for (uint32_t j = 0; j < n; ++j) index[j].u += step;
  return go_round(m, inst, index);
}

/* The next of the sums; all threads have the same number of them. */
static bool go_on_each(berth__machine *m, berth__x x, uint32_t index) {
  if ((int64_t)index > m->k->insts[x].high) return false;
  kernel_interpret_fill(m, x, index);
  return true;
}

static bool enter_each(berth__machine *m, berth__x x) {
  const uint32_t depth = m->k->insts[x].depth;
  m->is_going[m->k->insts[x].bits] = false;
  memcpy(berth__machine_mask(m, depth + 1u), berth__machine_mask(m, depth), m->n * sizeof(uint32_t));
  m->n_in[depth + 1] = m->n_in[depth];
  return m->n_in[depth] > 0 && go_on_each(m, x, 0);
}

/* Threads that leave a loop leave every block in it. */
static void leave_loop(berth__machine *m, const berth__inst *inst, uint32_t loop_depth) {
  const uint32_t n = m->n;
  const uint32_t *leaving = berth__machine_mask(m, inst->depth);
  for (uint32_t depth = loop_depth + 1; depth < inst->depth; ++depth) {
    uint32_t *mask = berth__machine_mask(m, depth);
    for (uint32_t j = 0; j < n; ++j) mask[j] &= leaving[j] ^ 1u;
    m->n_in[depth] -= m->n_in[inst->depth];
  }
  memset(berth__machine_mask(m, inst->depth), 0, m->n * sizeof(uint32_t));
  m->n_in[inst->depth] = 0;
}

/* All threads of a workgroup must be active, or none. */
static berth_status check_together(const berth__machine *m, berth__x x) {
  const uint32_t depth = m->k->insts[x].depth, *mask = berth__machine_mask(m, depth);
  for (uint32_t lane = 0; lane < m->n && m->n_in[depth] != m->n; lane += m->threads) {
    uint32_t n_in = 0;
    for (uint32_t j = 0; j < m->threads; ++j) n_in += mask[lane + j];
    if (n_in == 0 || n_in == m->threads) continue;
    return berth__fail(m->err, BERTH_INTERNAL,
                       "The kernel %s: %" PRIu32 " of %" PRIu32 " threads of workgroup %" PRIu64
                       " come to the %s at instruction %" PRIu32 ".",
                       m->k->name, n_in, m->threads, m->group + lane / m->threads,
                       berth__inst_name((berth__inst_code)m->k->insts[x].code), x);
  }
  return BERTH_OK;
}

static berth_status come_to_barrier(berth__machine *m, berth__x x) {
  if (m->n_in[m->k->insts[x].depth] == 0) return BERTH_OK;
  m->time += 1;
  m->group_settled = m->group_here;
  return check_together(m, x);
}

static berth_status exchange_lanes(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *value = berth__machine_values(m, inst->in[0]);
  berth__lane *out = berth__machine_values(m, x);
  BERTH__TRY(check_together(m, x));
  for (uint32_t j = 0; j < m->n; ++j) out[j] = value[j ^ inst->bits];
  return BERTH_OK;
}

static void pack_pairs(const berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *first = berth__machine_values(m, inst->in[0]), *second = berth__machine_values(m, inst->in[1]);
  berth__lane *out = berth__machine_values(m, x);
  for (uint32_t j = 0; j < m->n; ++j)
    out[j].u = berth__f32_to_bf16(first[j].f) | (uint32_t)berth__f32_to_bf16(second[j].f) << 16;
}

static bool kernel_interpret_is_bound(uint8_t code) {
  return code == BERTH__INST_loop || code == BERTH__INST_each || code == BERTH__INST_if || code == BERTH__INST_else ||
         code == BERTH__INST_end;
}

/* Runs a block's opener, turn or end; returns the next instruction. */
static berth__x run_bound(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x], *opener;
  const berth__machine_bound *b = &m->bounds[x];
  switch (inst->code) {
    case BERTH__INST_loop: return enter_loop(m, x) ? x + 1 : b->next + 1;
    case BERTH__INST_each: return enter_each(m, x) ? x + 1 : b->next + 1;
    case BERTH__INST_if: return enter_if(m, inst->depth, berth__machine_values(m, inst->in[0]), 1) ? x + 1 : b->next;
    case BERTH__INST_else:
      opener = &m->k->insts[b->opener];
      return enter_if(m, inst->depth, berth__machine_values(m, opener->in[0]), 0) ? x + 1 : b->next;
    default:
      opener = &m->k->insts[b->opener];
      if (opener->code == BERTH__INST_each)
        return go_on_each(m, b->opener, berth__machine_values(m, b->opener)[0].u + 1) ? b->opener + 1 : x + 1;
      return opener->code == BERTH__INST_loop && repeat_loop(m, b->opener) ? b->opener + 1 : x + 1;
  }
}

static berth_status run_one(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  switch (inst->code) {
    case BERTH__INST_constant:
    case BERTH__INST_thread:
    case BERTH__INST_group: return BERTH_OK;
    case BERTH__INST_load:
    case BERTH__INST_store:
    case BERTH__INST_store_max: return berth__machine_buffer(m, x);
    case BERTH__INST_quad:
    case BERTH__INST_part: return berth__machine_quad(m, x);
    case BERTH__INST_quad_store: return berth__machine_quad_store(m, x);
    case BERTH__INST_pack_pair: pack_pairs(m, x); return BERTH_OK;
    case BERTH__INST_shared_load:
    case BERTH__INST_shared_store: return berth__machine_shared(m, x);
    case BERTH__INST_local_load:
    case BERTH__INST_local_store: return berth__machine_local(m, x);
    case BERTH__INST_variable:
    case BERTH__INST_get:
      memcpy(berth__machine_values(m, x), berth__machine_values(m, inst->in[0]), m->n * sizeof(berth__lane));
      return BERTH_OK;
    case BERTH__INST_set: set_variable(m, inst); return BERTH_OK;
    case BERTH__INST_break: leave_loop(m, inst, m->k->insts[m->bounds[x].opener].depth); return BERTH_OK;
    case BERTH__INST_await: /* earlier kernels have ended, and later ones wait */
    case BERTH__INST_release: return BERTH_OK;
    case BERTH__INST_barrier: return come_to_barrier(m, x);
    case BERTH__INST_exchange: return exchange_lanes(m, x);
    case BERTH__INST_shared_copy: return berth__machine_copy(m, x);
    case BERTH__INST_commit: m->group_open += 1; return BERTH_OK;
    case BERTH__INST_wait:
      if (m->group_open > inst->bits) m->group_here = m->group_open - 1 - inst->bits;
      return BERTH_OK;
    case BERTH__INST_ahead:
    case BERTH__INST_multiply: return berth__machine_multiply(m, x);
    case BERTH__INST_sum: berth__machine_sum(m, x); return BERTH_OK;
    case BERTH__INST_sum_set: berth__machine_sum_set(m, x); return BERTH_OK;
    case BERTH__INST_sum_row:
    case BERTH__INST_sum_line:
    case BERTH__INST_sum_column: berth__machine_sum_place(m, x); return BERTH_OK;
    case BERTH__INST_settle: m->is_going[inst->bits] = false; return BERTH_OK;
    case BERTH__INST_join: return berth__machine_join(m, x);
    case BERTH__INST_row_largest:
    case BERTH__INST_row_total: return berth__machine_fold(m, x);
    default: break;
  }
  const berth__lane *in[3];
  for (int i = 0; i < 3; ++i) in[i] = inst->in[i] != BERTH__X_NONE ? berth__machine_values(m, inst->in[i]) : NULL;
  berth__number from = (berth__number)m->k->insts[inst->in[0]].type;
  berth__lanes_compute((berth__inst_code)inst->code, (berth__number)inst->type, from, berth__machine_values(m, x),
                       in[0], in[1], in[2], m->n);
  return BERTH_OK;
}

/* Lanes of workgroups past the last one are inactive from the start. */
static void begin_groups(berth__machine *m) {
  const berth__kernel *k = m->k;
  m->time += 1;
  m->n_in[0] = 0;
  for (uint32_t j = 0; j < m->n; ++j) {
    m->masks[j] = m->group + j / m->threads < k->n_groups;
    m->n_in[0] += m->masks[j];
  }
  for (berth__x x = 0; x < k->n_insts; ++x) {
    if (k->insts[x].code == BERTH__INST_group) fill_with_groups(m, x);
  }
  uint64_t n_shared = m->n_shared * (m->n / m->threads);
  uint64_t n_local = berth__machine_elements(k->local, k->n_local) * m->n;
  const uint64_t n_sums = (uint64_t)berth__machine_sums(k, k->n_sums) * m->n;
  memset(m->is_going, 0, sizeof m->is_going);
  for (uint32_t i = 0; i < k->n_shared; ++i) m->holds[i] = k->shared[i].over == 0;
  m->group_open = 1;
  m->group_here = m->group_settled = 0;
  for (uint64_t i = 0; i < n_sums; ++i) m->sums[i].u = 0;
  for (uint64_t i = 0; i < n_shared; ++i) m->shared[i].u = BERTH__POISON;
  for (uint64_t i = 0; i < n_local; ++i) m->local[i].u = BERTH__POISON;
}

static berth_status kernel_interpret_run_groups(berth__machine *m) {
  for (berth__x x = 0; x < m->k->n_insts;) {
    if (kernel_interpret_is_bound(m->k->insts[x].code)) {
      x = run_bound(m, x);
    } else {
      BERTH__TRY(run_one(m, x));
      x += 1;
    }
  }
  return BERTH_OK;
}

berth_status berth__kernel_interpret(const berth__kernel *kernel, const berth__kernel_memory *buffers, void *room,
                                     berth_error *err) {
  berth__machine m = machine_of(kernel);
  m.buffers = buffers;
  m.err = err;
  lay_out(&m, room);
  kernel_interpret_prepare(&m);
  for (m.group = 0; m.group < kernel->n_groups; m.group += m.n / m.threads) {
    begin_groups(&m);
    BERTH__TRY(kernel_interpret_run_groups(&m));
  }
  return BERTH_OK;
}
