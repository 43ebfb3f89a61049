/* Straightforward matrix products for comparison: workgroups of 8 x 8 threads. M, N and K are defined before
 * simple_head; rows of the result are a multiple of `height`. */
#ifndef BERTH_BENCH_GPU_SIMPLE_H
#define BERTH_BENCH_GPU_SIMPLE_H

typedef struct simple_kernel {
  const char *name;
  int height, width; /* results per thread */
  const char *body;
} simple_kernel;

static const char simple_head[] =
    "layout(local_size_x = 8, local_size_y = 8) in;\n"
    "layout(set = 0, binding = 0) buffer Floats { float f[]; };\n"
    "layout(set = 0, binding = 0) buffer Fours { vec4 v[]; };\n"
    "layout(push_constant) uniform Starts { uint at[3]; };\n";

#define SIMPLE_KERNELS 3
static const simple_kernel simple_kernels[SIMPLE_KERNELS] = {
    {"naive", 1, 1,
     "void main() {\n"
     "  uint n = gl_GlobalInvocationID.x, m = gl_GlobalInvocationID.y;\n"
     "  if (n >= N || m >= M) return;\n"
     "  float sum = 0;\n"
     "  for (uint k = 0; k < K; k++) sum += f[at[0] + m * K + k] * f[at[1] + k * N + n];\n"
     "  f[at[2] + m * N + n] = sum;\n"
     "}\n"},
    {"4x4", 4, 4,
     "void main() {\n"
     "  uint n = gl_GlobalInvocationID.x * 4, m = gl_GlobalInvocationID.y * 4;\n"
     "  if (n >= N || m >= M) return;\n"
     "  float s[4][4];\n"
     "  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) s[i][j] = 0;\n"
     "  for (uint k = 0; k < K; k++) {\n"
     "    float a[4], b[4];\n"
     "    for (int i = 0; i < 4; i++) a[i] = f[at[0] + (m + i) * K + k];\n"
     "    for (int j = 0; j < 4; j++) b[j] = f[at[1] + k * N + n + j];\n"
     "    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) s[i][j] += a[i] * b[j];\n"
     "  }\n"
     "  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) f[at[2] + (m + i) * N + n + j] = s[i][j];\n"
     "}\n"},
    {"4x4 of vec4", 4, 4,
     "void main() {\n"
     "  uint n = gl_GlobalInvocationID.x, m = gl_GlobalInvocationID.y * 4;\n"
     "  if (n >= N / 4 || m >= M) return;\n"
     "  uint a0 = at[0] / 4 + m * (K / 4), b0 = at[1] / 4 + n, o = at[2] / 4 + m * (N / 4) + n;\n"
     "  vec4 s0 = vec4(0), s1 = vec4(0), s2 = vec4(0), s3 = vec4(0);\n"
     "  for (uint k = 0; k < K / 4; k++) {\n"
     "    vec4 a[4] = {v[a0 + k], v[a0 + K / 4 + k], v[a0 + 2 * (K / 4) + k], v[a0 + 3 * (K / 4) + k]};\n"
     "    for (int i = 0; i < 4; i++) {\n"
     "      vec4 b = v[b0 + (4 * k + i) * (N / 4)];\n"
     "      s0 += a[0][i] * b; s1 += a[1][i] * b; s2 += a[2][i] * b; s3 += a[3][i] * b;\n"
     "    }\n"
     "  }\n"
     "  v[o] = s0; v[o + N / 4] = s1; v[o + 2 * (N / 4)] = s2; v[o + 3 * (N / 4)] = s3;\n"
     "}\n"},
};

#endif
