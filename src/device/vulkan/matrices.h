/* Cooperative matrices: what a driver has of VK_KHR_cooperative_matrix, and the SPIR-V for it. */
#ifndef BERTH_DEVICE_VULKAN_MATRICES_H
#define BERTH_DEVICE_VULKAN_MATRICES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/context.h"
#include "device/vulkan/loader.h"
#include "kernel/render.h"

/* What headers before 1.3.255 and 1.4.311 lack, as the registry numbers it. */
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR ((VkStructureType)1000506000)
#define VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR ((VkStructureType)1000506001)
typedef enum VkComponentTypeKHR {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_OTHER_KHR = 0x7fffffff
} VkComponentTypeKHR;
typedef enum VkScopeKHR {
  VK_SCOPE_SUBGROUP_KHR = 3,
  VK_SCOPE_OTHER_KHR = 0x7fffffff
} VkScopeKHR;
typedef struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void *pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
} VkPhysicalDeviceCooperativeMatrixFeaturesKHR;
typedef struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void *pNext;
  uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
} VkCooperativeMatrixPropertiesKHR;
typedef VkResult(VKAPI_PTR *PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)(VkPhysicalDevice, uint32_t *,
                                                                                   VkCooperativeMatrixPropertiesKHR *);
#endif
#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR ((VkStructureType)1000141000)
#define VK_COMPONENT_TYPE_BFLOAT16_KHR ((VkComponentTypeKHR)1000141000)
typedef struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void *pNext;
  VkBool32 shaderBFloat16Type, shaderBFloat16DotProduct, shaderBFloat16CooperativeMatrix;
} VkPhysicalDeviceShaderBfloat16FeaturesKHR;
#endif

/* The size of the pieces in which a driver multiplies kernels' tiles, and a bit for each kind that it multiplies so, of
 * f16 and bf16, with sums in f32. kinds 0: none. Of several sizes the one with most rows and columns. */
typedef struct berth__vulkan_pieces {
  uint32_t rows, columns, depth;
  uint32_t kinds; /* bits of berth_compute */
} berth__vulkan_pieces;
berth__vulkan_pieces berth__vulkan_pieces_of(const VkCooperativeMatrixPropertiesKHR *listed, uint32_t n, bool has_bf16);

/* Replaces a module that uses SPV_NV_cooperative_matrix by the one for SPV_KHR_cooperative_matrix. What its matrices
 * are for follows from the specialization constant that is the number of their rows (kernel/render_glsl_tiles.c): 0 is
 * of the left side, 1 of the right side, 2 of sums. is_bf16: the 16-bit ones hold bf16. The words are from the context;
 * they are freed, and replaced. INTERNAL: the module is not as expected. */
struct berth__spirv;
berth_status berth__spirv_to_khr(berth_context *ctx, bool is_bf16, struct berth__spirv *module, berth_error *err);

#endif
