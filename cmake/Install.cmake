# Both libraries, the header, a pkg-config file and a CMake package. The installed tree can be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
install(TARGETS berth berth_static EXPORT berthTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT berthTargets NAMESPACE berth:: DESTINATION ${package_dir})
install(FILES include/berth/berth.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth)

configure_package_config_file(cmake/berthConfig.cmake.in ${PROJECT_BINARY_DIR}/berthConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/berthConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/berthConfig.cmake ${PROJECT_BINARY_DIR}/berthConfigVersion.cmake
        DESTINATION ${package_dir})

# From the folder of the .pc file up to the prefix.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/berth.pc.in ${PROJECT_BINARY_DIR}/berth.pc @ONLY)
install(FILES tools/completion/berth.bash RENAME berth DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/completion/berth.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${PROJECT_BINARY_DIR}/berth.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
