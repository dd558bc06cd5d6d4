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

# The manual page and the completions, as the command prints them; not where it cannot run.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(printed)
  function(install_printed file folder)
    add_custom_command(
      OUTPUT printed/${file} COMMAND canvas_command ${ARGN} > printed/${file} DEPENDS canvas_command)
    set(printed ${printed} ${PROJECT_BINARY_DIR}/printed/${file} PARENT_SCOPE)
    install(FILES ${PROJECT_BINARY_DIR}/printed/${file} DESTINATION ${folder})
  endfunction()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/printed)
  install_printed(canvas.1 ${CMAKE_INSTALL_MANDIR}/man1 help --man)
  install_printed(canvas ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
  install_printed(_canvas ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
  install_printed(canvas.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
  add_custom_target(canvas_printed ALL DEPENDS ${printed})
endif()
