#include "graphs.h"

#include <stdlib.h>

test_buffer graph_text(const berth_graph *graph) {
  test_buffer text = {0};
  berth_error err;
  TEST_OK(berth_graph_print(graph, test_buffer_write, &text, &err));
  return text;
}

berth_graph *graph_parse(berth_context *ctx, const char *text) {
  berth_graph *graph = NULL;
  berth_error err;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  return graph;
}

void graph_parse_fails(berth_context *ctx, const char *text, berth_status want, const char *part) {
  berth_graph *graph = (berth_graph *)ctx; /* anything but NULL */
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, &err);
  if (status != want || strstr(err.message, part) == NULL)
    fail_msg("expected %s with \"%s\", got %s: %s\nfrom: %s", berth_status_name(want), part, berth_status_name(status),
             err.message, text);
  assert_null(graph);
}

void graph_round_trip(const berth_graph *graph) {
  berth_graph *again = NULL;
  berth_error err = {BERTH_OK, ""};
  test_buffer text = graph_text(graph);
  if (berth_graph_parse(graph->ctx, text.data, text.size, &again, &err) != BERTH_OK)
    fail_msg("%s\nfrom: %s", err.message, text.data);
  test_buffer text_again = graph_text(again);
  assert_string_equal(text.data, text_again.data);
  if (!berth_graph_equal(graph, again)) fail_msg("not equal: %s", text.data);
  assert_true(berth_graph_equal(again, graph));
  test_buffer_free(&text);
  test_buffer_free(&text_again);
  berth_graph_destroy(again);
}

berth_shape graph_shape(const char *text) {
  static char names[64][16]; /* enough for one test's names */
  static unsigned used;
  berth_shape shape = {0};
  while (*text != '\0') {
    char *name = names[used++ % 64];
    size_t length = strcspn(text, ", ");
    char *end;
    assert_true(length < 16 && shape.rank < BERTH_MAX_RANK);
    memcpy(name, text, length);
    name[length] = '\0';
    berth_dim *dim = &shape.dim[shape.rank++];
    dim->extent = strtoll(name, &end, 10);
    if (*end != '\0') dim->name = name;
    text += length;
    text += strspn(text, ", ");
  }
  return shape;
}
