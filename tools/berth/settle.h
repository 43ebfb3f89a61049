/* What a long run does not need. */
#ifndef BERTH_TOOLS_SETTLE_H
#define BERTH_TOOLS_SETTLE_H

/* Gives memory back that loading and planning took: free blocks of the heap, and pages of code and tables, which come
 * back from the file where they are needed again. Where a system has no way to do so, nothing happens. */
void settle(void);

#endif
