/* Minimal UTF-8 support: names in models and files may contain any bytes. */
#ifndef BERTH_TOOLS_UTF8_H
#define BERTH_TOOLS_UTF8_H

#include <stddef.h>

/* Bytes of the valid character that starts here (text is terminated); 0 if it is invalid. */
size_t utf8_length(const char *text);

#endif
