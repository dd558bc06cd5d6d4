# Optimised builds are hardened: stack protector, checked calls of the C library, relocations that are
# read-only once the program has started. Not debug builds, not those with sanitizers or for fuzzing.
# A _FORTIFY_SOURCE or stack protector of the compiler or of CFLAGS stays as it is.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

option(CANVAS_HARDEN "Harden optimised builds" ON)
check_pie_supported(LANGUAGES C)
if(NOT CANVAS_HARDEN OR CANVAS_SANITIZE OR CANVAS_FUZZ)
  return()
endif()

# Generator expression: 1 in the configurations, Debug aside, whose last -O is there and is not -O0.
set(optimised 0)
foreach(config Release RelWithDebInfo MinSizeRel "${CMAKE_BUILD_TYPE}")
  string(TOUPPER "${config}" suffix)
  string(REGEX MATCHALL "(^| )-O[^ ]*" levels "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${suffix}}")
  list(POP_BACK levels level)
  if(level AND NOT level MATCHES "-O0$" AND NOT suffix STREQUAL DEBUG)
    set(optimised "$<OR:${optimised},$<CONFIG:${config}>>")
  endif()
endforeach()

set(CMAKE_REQUIRED_FLAGS -O2)
check_c_source_compiles(
  "#ifndef _FORTIFY_SOURCE\n#error\n#endif\nint main(void) { return 0; }" CANVAS_HAS_FORTIFY_SOURCE)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT CANVAS_HAS_FORTIFY_SOURCE)
  add_compile_options("$<${optimised}:-D_FORTIFY_SOURCE=2>")
endif()

check_c_compiler_flag(-fstack-protector-strong CANVAS_STACK_PROTECTOR)
if(CANVAS_STACK_PROTECTOR AND NOT CMAKE_C_FLAGS MATCHES stack-protector)
  add_compile_options("$<${optimised}:-fstack-protector-strong>")
endif()

check_linker_flag(C "-Wl,-z,relro,-z,now" CANVAS_LINKS_NOW)
if(CANVAS_LINKS_NOW)
  add_link_options("$<${optimised}:-Wl,-z,relro,-z,now>")
endif()
