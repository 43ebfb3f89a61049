# Writes OUTPUT, a C source that holds the bytes of INPUT under the name SYMBOL. Runs at build time: see Embed.cmake.
file(SIZE ${INPUT} size)
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REPEAT "0x[0-9a-f][0-9a-f]," 24 row)
string(REGEX REPLACE "(${row})" "\\1\n" bytes "${bytes}")
if(size EQUAL 0)
  set(bytes "0") # an array of nothing is not C
endif()
file(WRITE ${OUTPUT} "#include <stddef.h>

extern const unsigned char ${SYMBOL}[];
extern const size_t ${SYMBOL}_size;

_Alignas(64) const unsigned char ${SYMBOL}[] = {
${bytes}
};
const size_t ${SYMBOL}_size = ${size};
")
