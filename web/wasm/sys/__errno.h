/* Replaces wasi-libc's header, which makes errno thread-local: the library was built for one thread, and has a single
 * one. */
#ifndef BERTH_WEB_ERRNO_H
#define BERTH_WEB_ERRNO_H

extern int errno;
#define errno errno

#endif
