/* Memory of this process that can be released after loading a model. */
#ifndef BERTH_TOOLS_PAGES_H
#define BERTH_TOOLS_PAGES_H

/* Releases what was needed only to plan and load a model: pages of code, which the system maps by the dozen and reloads
 * if they are called again, and freed memory. */
void pages_let_go(void);

#endif
