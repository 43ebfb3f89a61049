# berth_embed(target file symbol): makes the bytes of a file part of a target, as
#   const unsigned char symbol[]   (aligned to 64)   and   const size_t symbol_size.
set(BERTH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/EmbedFile.cmake)

function(berth_embed target file symbol)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.c)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${source} -DSYMBOL=${symbol} -P ${BERTH_EMBED_SCRIPT}
    DEPENDS ${file} ${BERTH_EMBED_SCRIPT}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
