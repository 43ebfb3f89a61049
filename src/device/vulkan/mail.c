/* Mail: small results of a run, copied to host-visible memory by the run's own submission, so that reading a result of
 * a few bytes (such as the next token) needs no second submission. For blocks that the host cannot access. */
#include "device/vulkan/code.h"

#define MOST_BYTES 256u /* per result */

void berth__vulkan_mail_plan(berth__gpu_binding *binding) {
  const berth_plan *plan = binding->code->recipe->plan;
  uint64_t used = 0;
  if (binding->block->data != NULL) return;
  for (size_t i = 0; i < plan->graph->n_outputs && binding->n_mail < BERTH__VULKAN_LETTERS; i++) {
    berth__span span = {0, 0};
    if (berth__recipe_span(plan, plan->graph->outputs[i].value, &span, NULL) != BERTH_OK) continue;
    if (span.size == 0 || span.size > MOST_BYTES || used + span.size > BERTH__VULKAN_MAIL) continue;
    binding->mail[binding->n_mail++] = (berth__vulkan_letter){span.at, span.size, used};
    used += span.size;
  }
}

void berth__vulkan_mail_record(const berth__gpu_binding *binding, VkCommandBuffer commands) {
  const berth__engine *engine = binding->engine;
  if (binding->n_mail == 0) return;
  berth__vulkan_barrier(engine, commands);
  for (uint32_t i = 0; i < binding->n_mail; i++) {
    const berth__vulkan_letter *letter = &binding->mail[i];
    const VkBufferCopy region = {.srcOffset = binding->block->base + letter->at,
                                 .dstOffset = engine->ring.mail_offset + letter->offset,
                                 .size = letter->size};
    engine->vk.CmdCopyBuffer(commands, binding->block->buffer, engine->ring.buffer, 1, &region);
  }
}

bool berth__vulkan_mail_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size) {
  const berth__vulkan_ring *ring = &block->engine->ring;
  if (ring->mail_of == NULL || ring->mail_of->block != block) return false;
  for (uint32_t i = 0; i < ring->mail_of->n_mail; i++) {
    const berth__vulkan_letter *letter = &ring->mail_of->mail[i];
    if (offset < letter->at || offset - letter->at > letter->size || size > letter->size - (offset - letter->at))
      continue;
    memcpy(dst, ring->mail + letter->offset + (offset - letter->at), (size_t)size);
    return true;
  }
  return false;
}
