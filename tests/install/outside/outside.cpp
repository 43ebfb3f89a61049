// The packer from C++, by the installed header alone.
#include <berth/berth.h>

#include <cstdio>
#include <vector>

int main() {
  berth_error err;
  berth_context *ctx = nullptr;
  if (berth_context_create(nullptr, &ctx, &err) != BERTH_OK) return 2;
  std::vector<berth_pack_buffer> buffers = {
      {100, 0, 0, 2, BERTH_PACK_FREE}, {50, 0, 1, 3, BERTH_PACK_FREE}, {100, 0, 2, 4, BERTH_PACK_FREE}};
  std::vector<uint64_t> offsets(buffers.size());
  berth_pack_result result = BERTH_PACK_RESULT_INIT;
  berth_status status = berth_pack(ctx, buffers.data(), buffers.size(), nullptr, offsets.data(), &result, &err);
  berth_context_destroy(ctx);
  if (status != BERTH_OK) {
    std::fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  return result.size == 150 ? 0 : 1;
}
