#include <inttypes.h>
#include <stdio.h>

#include "base/half.h"
#include "kernel/machine.h"

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

/* The first active lane whose index is not in [first, count); n: none. */
static uint32_t find_outside_of(const berth__machine *m, const berth__lane *index, const uint32_t *mask, uint32_t first,
                                uint64_t count) {
  const uint32_t n = m->n;
  uint32_t limit = (count > UINT32_MAX ? UINT32_MAX : (uint32_t)count) - first, bad = 0;
  for (uint32_t j = 0; j < n; ++j) bad |= mask[j] & (uint32_t)(index[j].u - first >= limit);
  if (bad == 0) return m->n;
  uint32_t j = 0;
  while (mask[j] == 0 || index[j].u - first < limit) ++j;
  return j;
}

static uint32_t kernel_machine_memory_find_outside(const berth__machine *m, const berth__lane *index,
                                                   const uint32_t *mask, uint64_t count) {
  return find_outside_of(m, index, mask, 0, count);
}

/* ---- Elements that share a word ---- */

static uint32_t sign_extended(uint32_t bits, uint32_t width) {
  const uint32_t sign = 1u << (width - 1);
  return (bits ^ sign) - sign;
}

static uint32_t load_part(const uint32_t *words, uint32_t index, berth__storage storage, uint32_t per_word) {
  const uint32_t width = 32 / per_word;
  const uint32_t bits = words[index / per_word] >> (index % per_word * width) & ((1u << width) - 1);
  berth__lane value = {.u = bits};
  switch (storage) {
    case BERTH_F16: value.f = berth__f16_to_f32((uint16_t)bits); break;
    case BERTH_BF16: value.f = berth__bf16_to_f32((uint16_t)bits); break;
    case BERTH_I8:
    case BERTH_I16: value.u = sign_extended(bits, width); break;
    default: break;
  }
  return value.u;
}

float berth__machine_element(const berth__machine *m, uint32_t buffer, uint64_t index) {
  const berth__storage storage = m->k->buffers[buffer].storage;
  const uint32_t per_word = berth__storage_per_word(storage);
  const uint32_t *words = m->buffers[buffer].words;
  const berth__lane value = {.u = per_word == 1 ? words[index] : load_part(words, (uint32_t)index, storage, per_word)};
  return value.f;
}

static void store_part(uint32_t *words, uint32_t index, uint32_t per_word, uint32_t bits) {
  const uint32_t width = 32 / per_word;
  const uint32_t at = index % per_word * width, ones = (1u << width) - 1;
  words[index / per_word] = (words[index / per_word] & ~(ones << at)) | (bits & ones) << at;
}

static void kernel_machine_memory_move_parts(const berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__storage storage = m->k->buffers[inst->bits].storage;
  const uint32_t per_word = berth__storage_per_word(storage);
  uint32_t *words = m->buffers[inst->bits].words;
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  const bool is_store = inst->code == BERTH__INST_store;
  berth__lane *lane = berth__machine_values(m, is_store ? inst->in[1] : x);
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] == 0) continue;
    if (is_store)
      store_part(words, index[j].u, per_word, lane[j].u);
    else
      lane[j].u = load_part(words, index[j].u, storage, per_word);
  }
}

/* ---- Elements that two threads store ---- */

#define PLACES 4096u /* size of the hash table below: more than the number of lanes */

static bool ascend(const berth__machine *m, const berth__lane *index, const uint32_t *mask) {
  int64_t last = -1;
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] == 0) continue;
    if (index[j].u <= last) return false;
    last = index[j].u;
  }
  return true;
}

/* The first lane that stores a different value to an element than an earlier lane; n: none. Different elements of a
 * word may be stored at once: a store only changes the bits of its element. */
static uint32_t find_race(const berth__machine *m, const berth__lane *index, const berth__lane *value,
                          const uint32_t *mask) {
  if (m->n >= PLACES / 2 || ascend(m, index, mask)) return m->n;
  uint16_t table[PLACES] = {0}; /* lane + 1; 0: free */
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] == 0) continue;
    uint32_t at = index[j].u * 0x9e3779b1u >> 20;
    while (table[at] != 0 && index[table[at] - 1u].u != index[j].u) at = (at + 1) % PLACES;
    if (table[at] != 0 && value[table[at] - 1u].u != value[j].u) return j;
    table[at] = (uint16_t)(j + 1u);
  }
  return m->n;
}

static berth_status fail_store(const berth__machine *m, berth__x x, uint32_t lane) {
  const berth__inst *inst = &m->k->insts[x];
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (store) of thread %" PRIu32 " of workgroup %" PRIu64
                     " goes to element %" PRIu32 " of buffer %" PRIu32 ", where another thread stores something else.",
                     m->k->name, x, lane % m->threads, m->group + lane / m->threads,
                     berth__machine_values(m, inst->in[0])[lane].u, inst->bits);
}

/* Thread by thread: the order does not matter. */
static void kernel_machine_memory_store_max(const berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  uint32_t *words = m->buffers[inst->bits].words;
  const berth__lane *index = berth__machine_values(m, inst->in[0]), *value = berth__machine_values(m, inst->in[1]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  for (uint32_t j = 0; j < m->n; ++j) {
    if (mask[j] != 0 && words[index[j].u] < value[j].u) words[index[j].u] = value[j].u;
  }
}

berth_status berth__machine_buffer(berth__machine *m, berth__x x) {
  const uint32_t n = m->n;
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_memory *buffer = &m->buffers[inst->bits];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  uint32_t outside = find_outside_of(m, index, mask, buffer->first, buffer->count);
  if (outside < m->n) return fail_index(m, x, outside, "buffer", buffer->count);
  if (inst->code == BERTH__INST_store_max) {
    kernel_machine_memory_store_max(m, x);
    return BERTH_OK;
  }
  if (inst->code == BERTH__INST_store) {
    const uint32_t race = find_race(m, index, berth__machine_values(m, inst->in[1]), mask);
    if (race < m->n) return fail_store(m, x, race);
  }
  if (berth__storage_per_word(m->k->buffers[inst->bits].storage) > 1) {
    kernel_machine_memory_move_parts(m, x);
    return BERTH_OK;
  }
  if (inst->code == BERTH__INST_store) {
    const berth__lane *value = berth__machine_values(m, inst->in[1]);
    for (uint32_t j = 0; j < n; ++j) {
      if (mask[j] != 0) buffer->words[index[j].u] = value[j].u;
    }
    return BERTH_OK;
  }
  berth__lane *out = berth__machine_values(m, x);
  if (m->n_in[inst->depth] == m->n) {
    for (uint32_t j = 0; j < n; ++j) out[j].u = buffer->words[index[j].u];
    return BERTH_OK;
  }
  for (uint32_t j = 0; j < n; ++j) {
    if (mask[j] != 0) out[j].u = buffer->words[index[j].u];
  }
  return BERTH_OK;
}

/* A quad is the index of its first word; its parts are read one by one. */
berth_status berth__machine_quad(berth__machine *m, berth__x x) {
  const uint32_t n = m->n;
  const berth__inst *inst = &m->k->insts[x];
  const berth__kernel_memory *buffer = &m->buffers[inst->bits];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  berth__lane *out = berth__machine_values(m, x);
  if (inst->code == BERTH__INST_part) {
    const uint32_t which = m->k->insts[inst->in[1]].bits;
    for (uint32_t j = 0; j < n; ++j)
      if (mask[j] != 0) out[j].u = buffer->words[index[j].u + which];
    return BERTH_OK;
  }
  const uint32_t outside = find_outside_of(m, index, mask, 0, buffer->count / 4);
  if (outside < n) return fail_index(m, x, outside, "the quads of buffer", buffer->count / 4);
  for (uint32_t j = 0; j < n; ++j) out[j].u = index[j].u * 4u;
  return BERTH_OK;
}

berth_status berth__machine_quad_store(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const uint32_t number = inst->bits & 255u;
  const berth__kernel_memory *buffer = &m->buffers[number];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  const berth__lane *words = m->local + berth__machine_elements(m->k->local, inst->bits >> 8) * m->n;
  const uint32_t outside = find_outside_of(m, index, mask, (buffer->first + 3) / 4, buffer->count / 4);
  if (outside < m->n) return fail_index(m, x, outside, "the quads of buffer", buffer->count / 4);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t race = find_race(m, index, words + (size_t)i * m->n, mask);
    if (race < m->n) return fail_store(m, x, race);
    for (uint32_t j = 0; j < m->n; ++j)
      if (mask[j] != 0) buffer->words[4 * (size_t)index[j].u + i] = words[(size_t)i * m->n + j].u;
  }
  return BERTH_OK;
}

berth_status berth__machine_local(berth__machine *m, berth__x x) {
  const uint32_t n = m->n;
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  uint32_t count = m->k->local[inst->bits].count, outside = kernel_machine_memory_find_outside(m, index, mask, count);
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

berth_status berth__machine_fail_race(const berth__machine *m, berth__x x, uint32_t lane, uint32_t other) {
  char who[32] = "others";
  if (other != MANY) snprintf(who, sizeof who, "thread %" PRIu32, other % m->threads);
  return berth__fail(m->err, BERTH_INTERNAL,
                     "The kernel %s: instruction %" PRIu32 " (%s) of thread %" PRIu32 " of workgroup %" PRIu64
                     " goes to an element of shared array %" PRIu32 " that %s used, with no barrier between them.",
                     m->k->name, x, berth__inst_name((berth__inst_code)m->k->insts[x].code), lane % m->threads,
                     m->group + lane / m->threads, m->k->insts[x].bits, who);
}

/* Records the use; false if another thread used the element in a way that needs a barrier in between. */
bool berth__machine_note(berth__machine_use *u, uint32_t time, uint32_t lane, bool is_store, uint32_t *other) {
  *other = u->writer;
  if (u->write_time == time && u->writer != lane) return false;
  if (is_store) {
    *other = u->reader;
    if (u->read_time == time && u->reader != lane) return false;
    u->write_time = time;
    u->writer = lane;
    u->group = 0;
    return true;
  }
  u->reader = u->read_time == time && u->reader != lane ? MANY : lane;
  u->read_time = time;
  return true;
}

static void lose_contents(berth__machine *m, uint32_t array) {
  const uint64_t first = berth__machine_elements(m->k->shared, array);
  m->holds[array] = false;
  for (uint32_t lane = 0, group = 0; lane < m->n; lane += m->threads, ++group)
    for (uint32_t i = 0; i < m->k->shared[array].count; ++i)
      m->shared[first + group * m->n_shared + i].u = BERTH__POISON;
}

static bool may_be_read(const berth__machine *m, uint32_t array) {
  for (uint32_t n = 0; n < m->k->n_sums; ++n)
    if (m->is_going[n] && (m->k->sums[n].left.array == array || m->k->sums[n].right.array == array)) return true;
  return false;
}

berth_status berth__machine_take(berth__machine *m, berth__x x, uint32_t array) {
  if (!m->meets[array]) return BERTH_OK;
  m->use_time[array] = m->time;
  if (m->holds[array]) return BERTH_OK;
  for (uint32_t other = 0; other < m->k->n_shared; ++other) {
    if (other == array || !berth__kernel_shared_meet(m->k, array, other)) continue;
    if (m->use_time[other] == m->time || may_be_read(m, other))
      return berth__fail(m->err, BERTH_INTERNAL,
                         "The kernel %s: instruction %" PRIu32 " (%s) uses shared array %" PRIu32
                         " in the memory of array %" PRIu32 ", which is used, with no barrier between them.",
                         m->k->name, x, berth__inst_name((berth__inst_code)m->k->insts[x].code), array, other);
    if (m->holds[other]) lose_contents(m, other);
  }
  m->holds[array] = true;
  return BERTH_OK;
}

/* For one workgroup: its lanes from `lane` on, its part of the array from `first` on. */
static berth_status kernel_machine_memory_store_shared(berth__machine *m, berth__x x, uint32_t lane, uint64_t first) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = berth__machine_values(m, inst->in[0]), *value = berth__machine_values(m, inst->in[1]);
  const uint32_t *mask = berth__machine_mask(m, inst->depth);
  const berth__storage storage = m->k->shared[inst->bits].storage;
  uint32_t other;
  m->write_time[inst->bits] = m->time;
  for (uint32_t j = lane; j < lane + m->threads; ++j) {
    if (mask[j] == 0) continue;
    if (!berth__machine_note(&m->uses[first + index[j].u], m->time, j, true, &other))
      return berth__machine_fail_race(m, x, j, other);
    m->shared[first + index[j].u] = value[j];
    if (storage != BERTH_F32) m->shared[first + index[j].u].f = berth__machine_near(storage, value[j].f);
  }
  return BERTH_OK;
}

static berth_status kernel_machine_memory_load_shared(berth__machine *m, berth__x x, uint32_t lane, uint64_t first) {
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
    if (!berth__machine_note(&m->uses[first + index[j].u], m->time, j, false, &other))
      return berth__machine_fail_race(m, x, j, other);
    out[j] = array[index[j].u];
  }
  return BERTH_OK;
}

berth_status berth__machine_shared(berth__machine *m, berth__x x) {
  const berth__inst *inst = &m->k->insts[x];
  const berth__lane *index = berth__machine_values(m, inst->in[0]);
  uint32_t count = m->k->shared[inst->bits].count;
  uint32_t outside = kernel_machine_memory_find_outside(m, index, berth__machine_mask(m, inst->depth), count);
  if (outside < m->n) return fail_index(m, x, outside, "shared array", count);
  if (m->n_in[inst->depth] > 0) BERTH__TRY(berth__machine_take(m, x, inst->bits));
  bool is_store = inst->code == BERTH__INST_shared_store;
  uint64_t first = berth__machine_elements(m->k->shared, inst->bits);
  for (uint32_t lane = 0; lane < m->n; lane += m->threads, first += m->n_shared) {
    BERTH__TRY((is_store ? kernel_machine_memory_store_shared : kernel_machine_memory_load_shared)(m, x, lane, first));
  }
  return BERTH_OK;
}
