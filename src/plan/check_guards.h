/* The checker's view of guards. */
#ifndef BERTH_PLAN_CHECK_GUARDS_H
#define BERTH_PLAN_CHECK_GUARDS_H

#include "plan/plan.h"

/* Nothing is left out that is needed. */
berth_status berth__check_guards(const berth_plan *plan, berth_error *err);
/* Whether no run does steps with both of these guards. */
bool berth__check_excludes(const berth_plan *plan, uint32_t a, uint32_t b);

#endif
