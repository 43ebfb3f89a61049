/* In the place of wasi-libc's own, which says that errno is one a thread: the library was built for one thread, and
 * has one. */
#ifndef BERTH_WEB_ERRNO_H
#define BERTH_WEB_ERRNO_H

extern int errno;
#define errno errno

#endif
