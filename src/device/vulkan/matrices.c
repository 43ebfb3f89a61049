/* What a driver has of cooperative matrices, and what has to be turned on for them. */
#include "device/vulkan/matrices.h"

#include "device/vulkan/vulkan.h"

#define MOST_LISTED 256u
#define MOST_EXTENSIONS 1024u

/* ---- Choosing a size ---- */

static bool is_piece(uint32_t extent) { return extent == 8 || extent == 16; }

/* The compute type that an entry multiplies, if kernels can use it; otherwise f32. */
static berth_compute kind_of(const VkCooperativeMatrixPropertiesKHR *p) {
  if (p->scope != VK_SCOPE_SUBGROUP_KHR || p->saturatingAccumulation != VK_FALSE || p->AType != p->BType ||
      p->CType != VK_COMPONENT_TYPE_FLOAT32_KHR || p->ResultType != p->CType || !is_piece(p->MSize) ||
      !is_piece(p->NSize) || !is_piece(p->KSize))
    return BERTH_COMPUTE_F32;
  if (p->AType == VK_COMPONENT_TYPE_FLOAT16_KHR) return BERTH_COMPUTE_F16;
  return p->AType == VK_COMPONENT_TYPE_BFLOAT16_KHR ? BERTH_COMPUTE_BF16 : BERTH_COMPUTE_F32;
}

static bool is_larger(const VkCooperativeMatrixPropertiesKHR *a, const VkCooperativeMatrixPropertiesKHR *b) {
  const uint32_t of_a = a->MSize * a->NSize, of_b = b->MSize * b->NSize;
  return of_a != of_b ? of_a > of_b : a->KSize > b->KSize;
}

/* The size is that of f16 where it is listed, and of bf16 otherwise. */
berth__vulkan_pieces berth__vulkan_pieces_of(const VkCooperativeMatrixPropertiesKHR *listed, uint32_t n,
                                             bool has_bf16) {
  static const berth_compute kinds[] = {BERTH_COMPUTE_F16, BERTH_COMPUTE_BF16};
  const VkCooperativeMatrixPropertiesKHR *best = NULL;
  berth__vulkan_pieces out = {0};
  for (uint32_t k = 0; k < (has_bf16 ? 2u : 1u) && best == NULL; k++)
    for (uint32_t i = 0; i < n; i++)
      if (kind_of(&listed[i]) == kinds[k] && (best == NULL || is_larger(&listed[i], best))) best = &listed[i];
  if (best == NULL) return out;
  out = (berth__vulkan_pieces){.rows = best->MSize, .columns = best->NSize, .depth = best->KSize};
  for (uint32_t i = 0; i < n; i++) {
    const berth_compute kind = kind_of(&listed[i]);
    const bool is_same = listed[i].MSize == out.rows && listed[i].NSize == out.columns && listed[i].KSize == out.depth;
    if (is_same && kind != BERTH_COMPUTE_F32 && (kind != BERTH_COMPUTE_BF16 || has_bf16)) out.kinds |= 1u << kind;
  }
  return out;
}

/* ---- Asking the driver ---- */

static bool has_extension(const VkExtensionProperties *all, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(all[i].extensionName, name) == 0) return true;
  return false;
}

typedef struct having {
  bool matrices, bf16;
} having;

static having find_extensions(const berth__engine *engine) {
  having has = {false, false};
  uint32_t n = MOST_EXTENSIONS;
  VkExtensionProperties *all = berth__alloc_array(engine->core.ctx, n, sizeof *all);
  if (all == NULL) return has;
  const VkResult result = engine->instance.vk.EnumerateDeviceExtensionProperties(engine->physical, NULL, &n, all);
  if (result == VK_SUCCESS || result == VK_INCOMPLETE) {
    has.matrices = has_extension(all, n, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    has.bf16 = has_extension(all, n, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  }
  berth__free(engine->core.ctx, all);
  return has;
}

/* Whether everything that the kernels need can be turned on. */
static having find_features(const berth__engine *engine, having listed) {
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16 = {.sType =
                                                        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, .pNext = listed.bf16 ? &bf16 : NULL};
  VkPhysicalDeviceVulkan12Features newer = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &matrices};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &newer};
  engine->instance.vk.GetPhysicalDeviceFeatures2(engine->physical, &features);
  const bool has_all = matrices.cooperativeMatrix != VK_FALSE && newer.vulkanMemoryModel != VK_FALSE &&
                       newer.shaderFloat16 != VK_FALSE && features.features.shaderInt16 != VK_FALSE;
  return (having){
      .matrices = has_all,
      .bf16 = has_all && bf16.shaderBFloat16Type != VK_FALSE && bf16.shaderBFloat16CooperativeMatrix != VK_FALSE};
}

static berth__vulkan_pieces find_pieces(const berth__engine *engine, bool has_bf16) {
  berth__vulkan_pieces pieces = {0};
  uint32_t n = MOST_LISTED;
  VkCooperativeMatrixPropertiesKHR *listed = berth__alloc_array_zero(engine->core.ctx, n, sizeof *listed);
  if (listed == NULL) return pieces;
  for (uint32_t i = 0; i < n; i++) listed[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  const VkResult result =
      engine->instance.vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(engine->physical, &n, listed);
  if (result == VK_SUCCESS || result == VK_INCOMPLETE) {
    pieces = berth__vulkan_pieces_of(listed, n, has_bf16);
    for (uint32_t i = 0; i < n; i++)
      berth__log(engine->core.ctx, 0, "vulkan: cooperative matrices %u x %u x %u, types %d, %d, %d, %d, scope %d%s",
                 listed[i].MSize, listed[i].NSize, listed[i].KSize, (int)listed[i].AType, (int)listed[i].BType,
                 (int)listed[i].CType, (int)listed[i].ResultType, (int)listed[i].scope,
                 listed[i].saturatingAccumulation != VK_FALSE ? ", saturating" : "");
  }
  berth__free(engine->core.ctx, listed);
  return pieces;
}

static bool has_int16(const berth__engine *engine) {
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  engine->instance.vk.GetPhysicalDeviceFeatures2(engine->physical, &features);
  return features.features.shaderInt16 != VK_FALSE;
}

/* A CPU that plays a GPU is faster without. */
void berth__vulkan_find_units(berth__engine *engine, uint32_t lanes, bool has_full_subgroups) {
  engine->has_int16 = has_int16(engine);
  if (!has_full_subgroups || lanes == 0 || engine->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ||
      engine->instance.vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR == NULL)
    return;
  having has = find_extensions(engine);
  if (has.matrices) has = find_features(engine, has);
  if (!has.matrices) return;
  const berth__vulkan_pieces pieces = find_pieces(engine, has.bf16);
  engine->units = (berth__render_units){
      .rows = pieces.rows, .columns = pieces.columns, .depth = pieces.depth, .lanes = pieces.kinds != 0 ? lanes : 0};
  engine->unit_kinds = pieces.kinds;
}

/* ---- Turning it on ---- */

void berth__vulkan_want_units(const berth__engine *engine, berth__vulkan_wanted *out) {
  const bool is_bf16 = (engine->unit_kinds >> BERTH_COMPUTE_BF16 & 1u) != 0;
  out->core.shaderInt16 = engine->has_int16;
  if (engine->unit_kinds == 0) return;
  out->newer = (VkPhysicalDeviceVulkan12Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                  .pNext = (void *)(uintptr_t)out->next,
                                                  .shaderFloat16 = VK_TRUE,
                                                  .vulkanMemoryModel = VK_TRUE};
  out->matrices = (VkPhysicalDeviceCooperativeMatrixFeaturesKHR){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
      .pNext = &out->newer,
      .cooperativeMatrix = VK_TRUE};
  out->next = &out->matrices;
  out->extensions[out->n_extensions++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
  if (!is_bf16) return;
  out->bf16 = (VkPhysicalDeviceShaderBfloat16FeaturesKHR){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
      .pNext = &out->matrices,
      .shaderBFloat16Type = VK_TRUE,
      .shaderBFloat16CooperativeMatrix = VK_TRUE};
  out->next = &out->bf16;
  out->extensions[out->n_extensions++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
}
