# What every file of the project is compiled with.

# POSIX and M_PI beside strict C11; a*b + c is rounded twice everywhere, fused nowhere.
add_compile_definitions(_XOPEN_SOURCE=700)
add_compile_options(-ffp-contract=off)
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla)

if(CANVAS_WERROR)
  add_compile_options(-Werror)
endif()

if(CANVAS_SANITIZE)
  add_compile_options(
    -fsanitize=${CANVAS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CANVAS_SANITIZE})
  # The sanitizers are linked into every test: LLVM's linker does that in half of the time.
  find_program(CANVAS_LLD ld.lld)
  if(CANVAS_LLD AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
    add_link_options(-fuse-ld=lld)
  endif()
endif()

# The library counts the edges that an input takes; tests/fuzz/ links libFuzzer.
if(CANVAS_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
