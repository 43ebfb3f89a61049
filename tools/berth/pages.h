/* Memory of this process that can go once a model is loaded. */
#ifndef BERTH_TOOLS_PAGES_H
#define BERTH_TOOLS_PAGES_H

/* What planned and loaded a model is not needed while it runs: pages of code, which the system maps by the dozen and
 * brings back where they are called again, and memory that was freed. */
void pages_let_go(void);

#endif
