/* Just enough UTF-8: names in models and files may hold any bytes. */
#ifndef BERTH_TOOLS_UTF8_H
#define BERTH_TOOLS_UTF8_H

#include <stddef.h>

/* Bytes of the valid character that starts here (text is terminated); 0 where there is none. */
size_t utf8_length(const char *text);

#endif
