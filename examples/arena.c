/* The arena alone: a block whose places a plan has decided, for those who run kernels of their own. */
#include "example.h"

static const char source[] =
    "graph \"places\" {\n"
    "  input %a : f32[6]\n  input %b : f32[6]\n  input %h : f16[4]\n"
    "  %s = add(%a, %b)\n  %c = cast(%h) {to = \"f32\"}\n"
    "  output \"s\" = %s\n  output \"c\" = %c\n}\n";

int main(void) {
  static const float numbers[6] = {1, 2, 3, 4, 5, 6};
  float back[6], *there;
  uint64_t count;
  void *data;
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
  berth_arena *arena, *twin;
  berth_arena_desc desc = BERTH_ARENA_DESC_INIT;
  MUST(berth_context_create(NULL, &ctx, &err));
  MUST(berth_graph_parse(ctx, source, sizeof source - 1, &graph, &err));
  MUST(berth_plan_create(graph, NULL, &plan, &err));
  const berth_value a = berth_graph_find(graph, "a"), b = berth_graph_find(graph, "b"),
                    h = berth_graph_find(graph, "h");
  MUST(berth_arena_create(plan, NULL, &arena, &err));
  CHECK(berth_arena_size(arena) >= berth_plan_arena_size(plan));
  CHECK(berth_arena_has(arena, a) && berth_arena_capacity(arena, a) == sizeof numbers);

  /* Bytes, and elements as f32 whatever their type is. */
  MUST(berth_arena_write(arena, a, 0, numbers, sizeof numbers, &err));
  MUST(berth_arena_read(arena, a, 8, back, 8, &err));
  CHECK(back[0] == 3 && back[1] == 4);
  MUST(berth_arena_write_f32(arena, h, 0, numbers, 4, &err));
  MUST(berth_arena_read_f32(arena, h, 1, back, 2, &err));
  CHECK(back[0] == 2 && back[1] == 3);

  /* Elements from place to place, and a byte over a whole one. */
  MUST(berth_arena_copy(arena, b, 2, a, 0, 3, &err));
  MUST(berth_arena_copy_first(arena, b, a, 1, &err));
  MUST(berth_arena_read_f32(arena, b, 0, back, 6, &err));
  CHECK(back[0] == 1 && back[2] == 1 && back[4] == 3);
  MUST(berth_arena_fill(arena, b, 0, sizeof numbers, 0, &err));

  /* On the CPU the bytes are there to be used. */
  MUST(berth_arena_slice(arena, a, BERTH_F32, &data, &count, &err));
  there = data;
  CHECK(count == 6 && there[5] == 6);
  CHECK((unsigned char *)data == (unsigned char *)berth_arena_data(arena) + berth_arena_offset(arena, a));

  /* A second one like it, in the caller's own memory. */
  desc.memory_size = berth_plan_arena_size(plan);
  desc.memory = aligned_alloc(64, (size_t)(desc.memory_size + 63) / 64 * 64);
  CHECK(desc.memory != NULL);
  MUST(berth_arena_create(plan, &desc, &twin, &err));
  MUST(berth_arena_copy_all(twin, arena, &err));
  MUST(berth_arena_read_f32(twin, a, 0, back, 6, &err));
  CHECK(memcmp(back, numbers, sizeof numbers) == 0);

  berth_arena_destroy(twin);
  free(desc.memory);
  berth_arena_destroy(arena);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  puts("ok");
  return 0;
}
