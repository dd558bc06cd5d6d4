# libcanvas, shared and static, from one set of objects: every layer, and the command line but for its
# main(). Only what canvas.h declares leaves either of them.
#
#   canvas_objects   the objects, for what sees the internals: the command, the unit tests
#   canvas_shared    libcanvas.so.0.1; while the version is 0.x, a minor version may change the ABI
#   canvas_static    libcanvas.a
#
# To a linker an archive is a pile of objects, where `hidden` hides nothing: a program's own `fail` or
# `arena_alloc` would clash with ours. So all objects are linked into one, whose hidden names are then
# made local (Apple's linker does so by itself). That needs machine code, hence -fno-lto.
file(GLOB sources CONFIGURE_DEPENDS src/*/*.c cli/*.c)
list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/cli/main.c)
add_library(canvas_objects OBJECT ${sources})
target_include_directories(canvas_objects PUBLIC include PRIVATE src)
target_compile_options(canvas_objects PRIVATE -fno-lto)
# Where tests are built, and for debugging, code is verified after each pass (src/code/pipeline.h).
set_property(SOURCE src/code/pipeline.c APPEND PROPERTY COMPILE_DEFINITIONS
  $<$<OR:$<BOOL:${CANVAS_TESTS}>,$<CONFIG:Debug>>:CANVAS_VERIFY_PASSES>)
target_link_libraries(canvas_objects PUBLIC m ${CMAKE_DL_LIBS})

set(whole ${CMAKE_CURRENT_BINARY_DIR}/canvas.o)
separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
if(CMAKE_OBJCOPY AND NOT APPLE)
  set(make_local COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole})
endif()
add_custom_command(
  OUTPUT ${whole}
  COMMAND ${CMAKE_C_COMPILER} ${flags} -r -nostdlib -o ${whole} $<TARGET_OBJECTS:canvas_objects>
  ${make_local}
  DEPENDS canvas_objects $<TARGET_OBJECTS:canvas_objects>
  COMMENT "Linking canvas.o"
  COMMAND_EXPAND_LISTS VERBATIM)
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(canvas_static STATIC ${whole})
target_link_libraries(canvas_static INTERFACE m ${CMAKE_DL_LIBS})
add_library(canvas::canvas_static ALIAS canvas_static)
set(libraries canvas_static)

if(CANVAS_SHARED)
  add_library(canvas_shared SHARED $<TARGET_OBJECTS:canvas_objects>)
  set_target_properties(
    canvas_shared PROPERTIES VERSION ${PROJECT_VERSION}
                             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_libraries(canvas_shared PRIVATE m ${CMAKE_DL_LIBS})
  list(APPEND libraries canvas_shared)
  add_library(canvas::canvas ALIAS canvas_shared)
else()
  add_library(canvas::canvas ALIAS canvas_static)
endif()

set_target_properties(${libraries} PROPERTIES OUTPUT_NAME canvas LINKER_LANGUAGE C)
foreach(library ${libraries})
  target_include_directories(
    ${library} INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
endforeach()
