#include <inttypes.h>
#include <stdio.h>

#include "base/half.h"
#include "loop/machine.h"

#define MANY UINT32_MAX /* threads */

static berth_status fail_index(const berth__machine *m, berth__x x, uint32_t lane, const char *what, uint64_t count) {
  const berth__inst *inst = &m->k->insts[x];
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (%s) of thread %" PRIu32 " of workgroup %" PRIu64
                     " goes to element %" PRId32 " of %s %" PRIu32 ", which has %" PRIu64 " elements.",
                     m->k->name, x, berth__inst_name((berth__inst_code)inst->code), lane % m->threads,
                     m->group + lane / m->threads, berth__machine_values(m, inst->in[0])[lane].i, what, inst->bits,
                     count);
}

/* The first lane that is in and whose index is not below count; n: none. */
static uint32_t find_outside(const berth__machine *m, const berth__lane *index, const uint32_t *mask, uint64_t count) {
  const uint32_t n = m->n;
  uint32_t limit = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count, bad = 0;
  for (uint32_t j = 0; j < n; ++j) bad |= mask[j] & (uint32_t)(index[j].u >= limit);
  if (bad == 0) return m->n;
  uint32_t j = 0;
  while (mask[j] == 0 || index[j].u < limit) ++j;
  return j;
}

static uint32_t load_half(const uint32_t *words, uint32_t index) {
  berth__lane value = {.f = berth__f16_to_f32((uint16_t)(words[index >> 1] >> (16 * (index & 1u))))};
  return value.u;
}

berth_status berth__machine_buffer(berth__machine *m, berth__x x) {
  const uint32_t n = m->n;
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_memory *buffer = &m->buffers[inst->bits];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  uint32_t outside = find_outside(m, index, mask, buffer->count);
  if (outside < m->n) return fail_index(m, x, outside, "buffer", buffer->count);
  if (inst->code == BERTH__INST_store) {
    const berth__lane *value = berth__machine_values(m, inst->in[1]);
    for (uint32_t j = 0; j < n; ++j) {
      if (mask[j] != 0) buffer->words[index[j].u] = value[j].u;
    }
    return BERTH_OK;
  }
  berth__lane *out = berth__machine_values(m, x);
  bool is_half = m->k->buffers[inst->bits].storage == BERTH__STORE_F16;
  if (!is_half && m->n_in[inst->depth] == m->n) {
    for (uint32_t j = 0; j < n; ++j) out[j].u = buffer->words[index[j].u];
    return BERTH_OK;
  }
  for (uint32_t j = 0; j < n; ++j) {
    if (mask[j] != 0) out[j].u = is_half ? load_half(buffer->words, index[j].u) : buffer->words[index[j].u];
  }
  return BERTH_OK;
}

berth_status berth__machine_local(berth__machine *m, berth__x x) {
  const uint32_t n = m->n;
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  uint32_t count = m->k->local[inst->bits].count, outside = find_outside(m, index, mask, count);
  if (outside < m->n) return fail_index(m, x, outside, "local array", count);
  berth__lane *array = m->local + berth__machine_elements(m->k->local, inst->bits) * m->n;
  bool is_store = inst->code == BERTH__INST_local_store;
  berth__lane *out = berth__machine_values(m, x), *value = is_store ? berth__machine_values(m, inst->in[1]) : out;
  if (!is_store && m->n_in[inst->depth] == m->n) {
    for (uint32_t j = 0; j < n; ++j) out[j] = array[(size_t)index[j].u * m->n + j];
    return BERTH_OK;
  }
  for (uint32_t j = 0; j < n; ++j) {
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

static berth_status fail_race(const berth__machine *m, berth__x x, uint32_t lane, uint32_t other) {
  char who[32] = "others";
  if (other != MANY) snprintf(who, sizeof who, "thread %" PRIu32, other % m->threads);
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (%s) of thread %" PRIu32 " of workgroup %" PRIu64
                     " goes to an element of shared array %" PRIu32 " that %s used, with no barrier between them.",
                     m->k->name, x, berth__inst_name((berth__inst_code)m->k->insts[x].code), lane % m->threads,
                     m->group + lane / m->threads, m->k->insts[x].bits, who);
}

/* Notes the use; false where another thread used the element in a way that needs a barrier between. */
static bool note_use(berth__machine_use *u, uint32_t time, uint32_t lane, bool is_store, uint32_t *other) {
  *other = u->writer;
  if (u->write_time == time && u->writer != lane) return false;
  if (is_store) {
    *other = u->reader;
    if (u->read_time == time && u->reader != lane) return false;
    u->write_time = time;
    u->writer = lane;
    return true;
  }
  u->reader = u->read_time == time && u->reader != lane ? MANY : lane;
  u->read_time = time;
  return true;
}

/* Of one workgroup: its lanes from `lane` on, its part of the array from `first` on. */
static berth_status store_shared(berth__machine *m, berth__x x, uint32_t lane, uint64_t first) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = berth__machine_values(m, inst->in[0]), *value = berth__machine_values(m, inst->in[1]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  uint32_t other;
  m->write_time[inst->bits] = m->time;
  for (uint32_t j = lane; j < lane + m->threads; ++j) {
    if (mask[j] == 0) continue;
    if (!note_use(&m->uses[first + index[j].u], m->time, j, true, &other)) return fail_race(m, x, j, other);
    m->shared[first + index[j].u] = value[j];
  }
  return BERTH_OK;
}

static berth_status load_shared(berth__machine *m, berth__x x, uint32_t lane, uint64_t first) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *array = m->shared + first, *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth), end = lane + m->threads;
  berth__lane *out = berth__machine_values(m, x);
  uint32_t other;
  bool cannot_race = !m->notes_loads[inst->bits] && m->write_time[inst->bits] != m->time;
  if (cannot_race && m->n_in[inst->depth] == m->n) {
    for (uint32_t j = lane; j < end; ++j) out[j] = array[index[j].u];
    return BERTH_OK;
  }
  for (uint32_t j = lane; j < end; ++j) {
    if (mask[j] == 0) continue;
    if (!note_use(&m->uses[first + index[j].u], m->time, j, false, &other)) return fail_race(m, x, j, other);
    out[j] = array[index[j].u];
  }
  return BERTH_OK;
}

berth_status berth__machine_shared(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  uint32_t count = m->k->shared[inst->bits].count;
  uint32_t outside = find_outside(m, index, berth__machine_mask(m, inst->depth), count);
  if (outside < m->n) return fail_index(m, x, outside, "shared array", count);
  bool is_store = inst->code == BERTH__INST_shared_store;
  uint64_t first = berth__machine_elements(m->k->shared, inst->bits);
  for (uint32_t lane = 0; lane < m->n; lane += m->threads, first += m->n_shared) {
    BERTH__TRY((is_store ? store_shared : load_shared)(m, x, lane, first));
  }
  return BERTH_OK;
}
