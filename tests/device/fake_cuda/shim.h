/* Definitions that make rendered CUDA C valid C: they replace the prologue of kernels. */
typedef _Bool bool;
#define true 1
#define false 0
#define BERTH_KERNEL(threads) static void
#define BERTH_FUNCTION static
#define __shared__ static
#define berth_select(no, yes, condition) ((condition) ? (yes) : (no))
typedef struct float2 {
  float x, y;
} float2;
typedef struct float4 {
  float x, y, z, w;
} float4;
typedef struct uint4 {
  unsigned x, y, z, w;
} uint4;
struct fake_index {
  unsigned x;
};
struct fake_index blockIdx, threadIdx;
void (*fake_barrier)(void);
#define __syncthreads() fake_barrier()
#define berth_await()
#define berth_release()
#define __align__(n) __attribute__((aligned(n)))
float fminf(float, float), fmaxf(float, float), fabsf(float), fmaf(float, float, float), sqrtf(float), expf(float),
    floorf(float), ceilf(float), truncf(float), rintf(float);
int abs(int);
static unsigned __float_as_uint(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
static int __float_as_int(float x) { return (int)__float_as_uint(x); }
static float __uint_as_float(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
static float __int_as_float(int bits) { return __uint_as_float((unsigned)bits); }
static float berth_from_half(unsigned bits) {
  const unsigned short low = (unsigned short)bits;
  _Float16 x;
  __builtin_memcpy(&x, &low, 2);
  return (float)x;
}
static unsigned berth_half_bits(float x) {
  const _Float16 near = (_Float16)x;
  unsigned short bits;
  __builtin_memcpy(&bits, &near, 2);
  return bits;
}
static float berth_near_half(float x) { return berth_from_half(berth_half_bits(x)); }
static unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
  const unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; i++) out |= (unsigned)(both >> 8 * (which >> 4 * i & 7u) & 255u) << 8 * i;
  return out;
}
static int __dp4a(int a, int b, int c) {
  unsigned sum = (unsigned)c;
  for (int i = 0; i < 4; i++)
    sum += (unsigned)((signed char)((unsigned)a >> 8 * i) * (signed char)((unsigned)b >> 8 * i));
  return (int)sum;
}
static int fake_min_i(int a, int b) { return a < b ? a : b; }
static int fake_max_i(int a, int b) { return a > b ? a : b; }
static unsigned fake_min_u(unsigned a, unsigned b) { return a < b ? a : b; }
static unsigned fake_max_u(unsigned a, unsigned b) { return a > b ? a : b; }
#define min(a, b) _Generic((a) + (b), int : fake_min_i, unsigned : fake_min_u)(a, b)
#define max(a, b) _Generic((a) + (b), int : fake_max_i, unsigned : fake_max_u)(a, b)
static unsigned atomicMax(unsigned *at, unsigned value) {
  const unsigned old = *at;
  if (value > old) *at = value;
  return old;
}

/* ---- Matrix units ----
 *
 * Operations of a warp are emulated in two rounds: every thread publishes its values, and after a barrier reads those
 * of the others. All threads of a group reach such a point, or none. Fragments have PTX's layout. */
#define BERTH_ROOM
static unsigned char berth_shared[232448] __attribute__((aligned(1024)));
static unsigned fake_said[1024][6];
static const void *fake_at[1024];

static void fake_ldmatrix(unsigned *x, const void *at, int is_across) {
  const unsigned me = threadIdx.x, warp = me & ~31u, lane = me & 31u;
  fake_at[me] = at;
  fake_barrier();
  for (unsigned m = 0; m < 4; m++) {
    unsigned short pair[2];
    for (unsigned i = 0; i < 2; i++) {
      const unsigned row = lane / 4, column = lane % 4 * 2 + i;
      const unsigned short *line = fake_at[warp + 8 * m + (is_across ? column : row)];
      pair[i] = line[is_across ? row : column];
    }
    __builtin_memcpy(&x[m], pair, 4);
  }
  fake_barrier();
}
typedef const char *berth_at;
static berth_at berth_shared_at(const void *at) { return at; }
static void berth_ldmatrix(unsigned *x, berth_at at) { fake_ldmatrix(x, at, 0); }
static void berth_ldmatrix_across(unsigned *x, berth_at at) { fake_ldmatrix(x, at, 1); }

static float fake_from_bf16(unsigned bits) { return __uint_as_float(bits << 16); }
static float fake_from_tf32(unsigned bits) { return __uint_as_float(bits); }

/* Element `depth` of a row of the left fragment, or of a column of the right one: its lane and its index there. */
static float fake_factor(unsigned warp, int is_left, unsigned line, unsigned depth, int is_wide,
                         float (*from)(unsigned)) {
  const unsigned lane = line % 8 * 4 + (is_wide ? depth % 4 : depth % 8 / 2), half = is_wide ? depth / 4 : depth / 8;
  const unsigned part = is_left ? half * 2 + line / 8 : 4 + half, bits = fake_said[warp + lane][part];
  return from(is_wide ? bits : depth % 2 != 0 ? bits >> 16 : bits & 0xffffu);
}

static void fake_mma(float *c, const unsigned *a, const unsigned *b, unsigned depth, float (*from)(unsigned)) {
  const unsigned me = threadIdx.x, warp = me & ~31u, lane = me & 31u;
  for (unsigned i = 0; i < 6; i++) fake_said[me][i] = i < 4 ? a[i] : b[i - 4];
  fake_barrier();
  for (unsigned q = 0; q < 4; q++)
    for (unsigned k = 0; k < depth; k++)
      c[q] = fmaf(fake_factor(warp, 1, lane / 4 + q / 2 * 8, k, depth == 8, from),
                  fake_factor(warp, 0, lane % 4 * 2 + q % 2, k, depth == 8, from), c[q]);
  fake_barrier();
}
static void berth_mma_bf16(float *c, const unsigned *a, const unsigned *b) { fake_mma(c, a, b, 16, fake_from_bf16); }
static void berth_mma_f16(float *c, const unsigned *a, const unsigned *b) { fake_mma(c, a, b, 16, berth_from_half); }
static void berth_mma_tf32(float *c, const unsigned *a, const unsigned *b) { fake_mma(c, a, b, 8, fake_from_tf32); }

static unsigned short berth_bf16_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return (unsigned short)(bits >> 16 | 0x40u);
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
static unsigned berth_pair_bf16(float first, float second) {
  return berth_bf16_bits(first) | (unsigned)berth_bf16_bits(second) << 16;
}
static unsigned berth_pair_f16(float first, float second) {
  return berth_half_bits(first) | berth_half_bits(second) << 16;
}
static void berth_store16(unsigned *to, const unsigned *from) {
  if ((unsigned long)to % 16 != 0) __builtin_trap();
  __builtin_memcpy(to, from, 16);
}
static unsigned berth_tf32_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}

static float berth_larger(float a, float b) { return a < b || b != b ? b : a; }
static float berth_plus(float a, float b) { return a + b; }
static unsigned berth_exchange(unsigned x, int by) {
  fake_said[threadIdx.x][0] = x;
  fake_barrier();
  const unsigned y = fake_said[threadIdx.x ^ (unsigned)by][0];
  fake_barrier();
  return y;
}
#define berth_other(x, by) __uint_as_float(berth_exchange(__float_as_uint(x), by))

/* Copies arrive when they are waited for, not before. */
static struct fake_copy {
  void *to;
  unsigned group;
  unsigned char bytes[16];
} fake_copies[1024][64];
static unsigned fake_n_copies[1024], fake_groups[1024];
static void berth_copy16(void *to, const void *from, bool is_there) {
  struct fake_copy *copy = &fake_copies[threadIdx.x][fake_n_copies[threadIdx.x]++];
  if (((unsigned long)to | (is_there ? (unsigned long)from : 0)) % 16 != 0) __builtin_trap();
  copy->to = to;
  copy->group = fake_groups[threadIdx.x];
  __builtin_memset(copy->bytes, 0, 16);
  if (is_there) __builtin_memcpy(copy->bytes, from, 16);
}
static void berth_commit(void) { fake_groups[threadIdx.x]++; }
static void berth_wait(unsigned n) {
  const unsigned me = threadIdx.x;
  unsigned left = 0;
  for (unsigned i = 0; i < fake_n_copies[me]; i++) {
    if (fake_copies[me][i].group + n < fake_groups[me])
      __builtin_memcpy(fake_copies[me][i].to, fake_copies[me][i].bytes, 16);
    else
      fake_copies[me][left++] = fake_copies[me][i];
  }
  fake_n_copies[me] = left;
}

/* ---- Warpgroups ----
 *
 * Products are computed when they are waited for. Rows are 128 bytes, and bits 4 to 6 of an address are xored with bits
 * 7 to 9, like in hardware. */
typedef struct berth_matrix {
  const char *at;
  unsigned panel;
} berth_matrix;
static berth_matrix berth_matrix_of(const void *at, unsigned panel) { return (berth_matrix){at, panel}; }
static berth_matrix berth_matrix_step(berth_matrix matrix, unsigned bytes) {
  matrix.at += bytes;
  return matrix;
}
static struct fake_product {
  float *c;
  berth_matrix left, right;
  unsigned group, columns;
  int left_deep, right_deep, is_bf16;
} fake_products[1024][64];
static unsigned fake_n_products[1024], fake_product_groups[1024];

static float fake_element(berth_matrix m, int is_deep, unsigned line, unsigned depth, int is_bf16) {
  const unsigned offset = is_deep ? line / 8 * 1024 + line % 8 * 128 + depth * 2
                                  : line / 64 * m.panel + depth / 8 * 1024 + depth % 8 * 128 + line % 64 * 2;
  const unsigned long at = (unsigned long)m.at + offset;
  const unsigned short bits = *(const unsigned short *)(at ^ (at >> 3 & 0x70));
  return is_bf16 ? fake_from_bf16(bits) : berth_from_half(bits);
}

static void fake_multiply(const struct fake_product *p) {
  const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
  for (unsigned i = 0; i < p->columns / 2; i++)
    for (unsigned k = 0; k < 16; k++)
      p->c[i] = fmaf(fake_element(p->left, p->left_deep, row + i % 4 / 2 * 8, k, p->is_bf16),
                     fake_element(p->right, p->right_deep, i / 4 * 8 + lane % 4 * 2 + i % 2, k, p->is_bf16), p->c[i]);
}

static void fake_wgmma(float *c, berth_matrix left, berth_matrix right, unsigned columns, int left_deep, int right_deep,
                       int is_bf16) {
  const unsigned me = threadIdx.x;
  fake_products[me][fake_n_products[me]++] =
      (struct fake_product){c, left, right, fake_product_groups[me], columns, left_deep, right_deep, is_bf16};
}
#define berth_wgmma(c, left, right) fake_wgmma(c, left, right, BERTH_WGMMA)
static void berth_warpgroup_begin(void) {}
static void berth_warpgroup_commit(void) { fake_product_groups[threadIdx.x]++; }
static void berth_warpgroup_wait(unsigned n) {
  const unsigned me = threadIdx.x;
  unsigned left = 0;
  for (unsigned i = 0; i < fake_n_products[me]; i++) {
    if (fake_products[me][i].group + n < fake_product_groups[me])
      fake_multiply(&fake_products[me][i]);
    else
      fake_products[me][left++] = fake_products[me][i];
  }
  fake_n_products[me] = left;
}
#define berth_arrived()
#define berth_keep(x)
