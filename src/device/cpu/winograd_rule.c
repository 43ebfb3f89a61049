#include "device/cpu/winograd_rule.h"

#include <stdbool.h>

/* Measured on one core of a Zen 4, in nanoseconds; only the ratios matter. */
#define MULTIPLICATION 0.018 /* one multiplication of a product in registers */
#define PIXEL 10.0           /* per pixel of conv_last, besides its products */
#define WEIGHT_BYTE 0.04     /* a run reads all weights once, from memory */
#define TRANSFORM_4 4.5      /* one tile of one channel, in or out */
#define TRANSFORM_2 2.1
#define LANES 16 /* outputs computed together */
#define LEAST_GAIN 1.15
/* Weights transformed for Winograd are (tile + 2)^2 / 9 times as large. Above this size, four times is too much for
 * what larger tiles gain. */
#define MOST_BYTES_4 (4 << 20)
/* How much longer a run may take for each byte saved: 50 microseconds per megabyte. */
#define BYTE_WORTH 0.05
#define MOST_SCRATCH (288 << 10)
/* Below, a tile's results are transformed for so few products that conv_last, which reads a picture as it is, takes 0.4
 * (one channel) to 0.9 of the time (three); with four channels both take the same. Measured on a Zen 5. */
#define LEAST_CHANNELS 4

static double weight_cost(double values, double channels, double outputs) {
  return values * channels * outputs * 4 * WEIGHT_BYTE;
}

static double direct_cost(double channels, double outputs, double pixels) {
  return pixels * (9 * channels * outputs * MULTIPLICATION + PIXEL) + weight_cost(9, channels, outputs);
}

static double cpu_winograd_rule_tiles_of(int64_t tile, int64_t height, int64_t width) {
  const int64_t down = (height + tile - 1) / tile, across = (width + tile - 1) / tile;
  return (double)down * (double)across;
}

static double tiled_cost(int64_t tile, double channels, double outputs, int64_t height, int64_t width) {
  const double tiles = cpu_winograd_rule_tiles_of(tile, height, width);
  const double values = (double)((tile + 2) * (tile + 2)), transform = tile == 4 ? TRANSFORM_4 : TRANSFORM_2;
  return tiles * (values * channels * outputs * MULTIPLICATION + transform * (channels + outputs)) +
         weight_cost(values, channels, outputs);
}

/* By larger weights, and by the tiles in scratch. */
static double bytes_added(int64_t tile, double channels, double outputs, int64_t height, int64_t width) {
  const double tiles = cpu_winograd_rule_tiles_of(tile, height, width);
  const double values = (double)((tile + 2) * (tile + 2)), scratch = tiles * values * 4 * (channels + 2 * LANES);
  return (values - 9) * channels * outputs * 4 + (scratch < MOST_SCRATCH ? scratch : MOST_SCRATCH);
}

int64_t berth__cpu_winograd_tile(int64_t channels, int64_t outputs, int64_t height, int64_t width) {
  if (channels < LEAST_CHANNELS) return 0;
  const int64_t padded = (outputs + LANES - 1) / LANES * LANES;
  const double c = (double)channels, o = (double)padded;
  const double direct = direct_cost(c, o, (double)height * (double)width);
  const double by_two = tiled_cost(2, c, o, height, width), by_four = tiled_cost(4, c, o, height, width);
  const int64_t tile = by_four <= by_two && 36 * 4 * c * o <= MOST_BYTES_4 ? 4 : 2;
  const double tiled = tile == 4 ? by_four : by_two;
  const bool is_faster = tiled * LEAST_GAIN < direct;
  return is_faster && direct - tiled > BYTE_WORTH * bytes_added(tile, c, o, height, width) ? tile : 0;
}
