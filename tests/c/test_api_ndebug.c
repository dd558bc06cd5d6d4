// test_api_bounds.c once more, linked with a library whose interface was compiled with NDEBUG (CMakeLists.txt).
#ifndef NDEBUG
#error "this test is of a build without assertions"
#endif
#include "test_api_bounds.c"
