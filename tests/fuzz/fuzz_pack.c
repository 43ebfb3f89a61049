/* Any bytes as buffers for berth_pack(): refused with a sentence, or placed so that nothing overlaps. The first bytes
 * choose the capacity, the heaps and the seed; then every buffer takes ten. */
#include "fuzz/fuzz.h"

enum {
  MOST = 64,
  HEADER = 4,
  RECORD = 10
};

/* Mostly small numbers, sometimes enormous ones. */
static uint64_t number(uint8_t kind, uint8_t value) {
  switch (kind % 16) {
    case 13: return (uint64_t)value << 40;
    case 14: return UINT64_MAX - value;
    case 15: return (UINT64_C(1) << 62) - value;
    default: return value;
  }
}

static int64_t moment(uint8_t kind, uint8_t value) {
  switch (kind % 16) {
    case 14: return INT64_MAX - value;
    case 15: return INT64_MIN + value;
    default: return (int64_t)value - 100;
  }
}

static void check_placement(const berth_pack_buffer *b, size_t n, const uint64_t *offset, const uint32_t *heap_of) {
  for (size_t i = 0; i < n; i++) {
    FUZZ_CHECK(b[i].align < 2 || offset[i] % b[i].align == 0);
    FUZZ_CHECK(b[i].offset == BERTH_PACK_FREE || b[i].offset == offset[i]);
    for (size_t j = 0; j < i; j++) {
      if (heap_of[i] != heap_of[j] || b[i].lower >= b[j].upper || b[j].lower >= b[i].upper) continue;
      if (b[i].lower == b[i].upper || b[j].lower == b[j].upper || b[i].size == 0 || b[j].size == 0) continue;
      FUZZ_CHECK(offset[i] >= offset[j] + b[j].size || offset[j] >= offset[i] + b[i].size);
    }
  }
}

static size_t read_buffers(const uint8_t *data, size_t size, berth_pack_buffer *b) {
  size_t n = 0;
  for (; n < MOST && size >= RECORD; n++, data += RECORD, size -= RECORD) {
    b[n] = (berth_pack_buffer){.size = number(data[0], data[1]),
                               .align = number(data[2], data[3]),
                               .lower = moment(data[4], data[5]),
                               .offset = data[8] < 200 ? BERTH_PACK_FREE : number(data[8], data[9])};
    b[n].upper = data[6] < 230 ? b[n].lower : moment(data[6], data[7]);
    if (data[6] < 230 && b[n].lower < INT64_MAX - 255) b[n].upper += data[7];
  }
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_pack_buffer b[MOST];
  uint64_t offset[MOST];
  uint32_t heap_of[MOST] = {0};
  if (size < HEADER) return 0;
  size_t n = read_buffers(data + HEADER, size - HEADER, b);
  berth_pack_heap heaps[3] = {{data[1]}, {(uint64_t)data[2] * 4}, {UINT64_MAX}};
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  d.effort = data[0] & 1 ? 1 : 300;
  d.seed = data[3];
  if (data[0] & 2) d.capacity = number(data[1], data[2]);
  if (data[0] & 4) {
    d.heaps = heaps;
    d.n_heaps = 1 + (data[0] >> 3) % 3u;
    d.heap_of = heap_of;
  }
  berth_context *ctx = fuzz_context();
  berth_pack_result r = BERTH_PACK_RESULT_INIT;
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_pack(ctx, b, n, &d, offset, &r, &err);
  FUZZ_CHECK(status == BERTH_OK || (status == BERTH_INVALID && err.status == status && err.message[0] != '\0'));
  if (status == BERTH_OK) {
    FUZZ_CHECK(!(r.fits && r.infeasible));
    if (d.n_heaps == 0 || r.fits) {
      FUZZ_CHECK(r.lower_bound <= r.size && (!r.optimal || r.lower_bound == r.size));
      check_placement(b, n, offset, heap_of);
    }
  }
  berth_context_destroy(ctx);
  return 0;
}
