/* Prints the kernels of a plan as text. */
#include "device/gpu/recipe.h"

static berth_status gpu_kernels_print_all(const berth__recipe *recipe, berth_write_fn write, void *user,
                                          berth_error *err) {
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    const berth_status status = i != 0 ? write(user, "\n", 1) : BERTH_OK;
    if (status != BERTH_OK) return berth__fail(err, status, "writing the kernels was stopped");
    BERTH__TRY(berth__kernel_print(recipe->kernels[i], write, user, err));
  }
  return BERTH_OK;
}

berth_status berth_plan_kernels(const berth_plan *plan, berth_write_fn write, void *user, berth_error *err) {
  berth__recipe *recipe;
  if (plan == NULL || write == NULL)
    return berth__fail(err, BERTH_INVALID, "a plan, and a function that takes the text, are needed");
  BERTH__TRY(berth__recipe_create(plan, &recipe, err));
  const berth_status status = gpu_kernels_print_all(recipe, write, user, err);
  berth__recipe_destroy(recipe);
  return status;
}
