# `cmake --install`: the command with its manual and completions, both libraries, the header, and what
# pkg-config and find_package(canvas) read. The installed tree can be moved as a whole.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(
  TARGETS canvas_command ${libraries}
  EXPORT canvas
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/canvas.h TYPE INCLUDE)
install(FILES LICENSE TYPE DOC)

# find_package(canvas): canvas::canvas (shared where there is one) and canvas::canvas_static.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/canvas)
set_target_properties(canvas_command PROPERTIES EXPORT_NAME command)
if(CANVAS_SHARED)
  set_target_properties(canvas_shared PROPERTIES EXPORT_NAME canvas)
endif()
install(EXPORT canvas DESTINATION ${package} NAMESPACE canvas:: FILE canvasTargets.cmake)
configure_package_config_file(
  cmake/canvasConfig.cmake.in canvasConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(canvasConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/canvasConfig.cmake
              ${PROJECT_BINARY_DIR}/canvasConfigVersion.cmake DESTINATION ${package})

# pkg-config: paths as seen from the place of canvas.pc.
set(pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pkgconfig} OUTPUT_VARIABLE prefix)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${pkgconfig} OUTPUT_VARIABLE libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${pkgconfig} OUTPUT_VARIABLE includedir)
configure_file(cmake/canvas.pc.in canvas.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/canvas.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
