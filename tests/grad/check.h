/* Gradients against differences: a graph of f64 is run with the reference kernels, around every element of every input.
 */
#ifndef BERTH_TESTS_GRAD_CHECK_H
#define BERTH_TESTS_GRAD_CHECK_H

#include "support.h"

#define OK(call) TEST_OK(call)

typedef struct grad_case {
  const char *op;   /* whose rule it tests */
  const char *text; /* statements of a graph; what they call %y (and %z) is what is differentiated */
  double low, high; /* of the elements of the inputs, which are f64 and differentiated by; both 0: -1 and 1 */
  int once;         /* the rule's own ops have no rules that hold here: no second derivatives */
} grad_case;

/* The cases of all rules; the last has no op. */
extern const grad_case grad_cases[];

/* Whether the first derivatives, and the second ones, are those that differences give: how many inputs have others,
 * which is said. */
int grad_check_case(const grad_case *c);

/* Whether a device gives those that the reference kernels give: how many inputs have others; -1 where it does not take
 * the graph, with the reason. */
int grad_check_case_on(const grad_case *c, const char *device, berth_error *why);

#endif
