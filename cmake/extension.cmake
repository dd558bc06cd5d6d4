# canvas._core: one binary for every CPython from 3.10 on (the limited API).
# FindPython knows the stable ABI only since CMake 3.26, so its name and macro are set by hand.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module REQUIRED)

file(GLOB extension CONFIGURE_DEPENDS python/ext/*.c)
python_add_library(_core MODULE ${extension})
set_target_properties(_core PROPERTIES SUFFIX .abi3.so)
target_compile_definitions(_core PRIVATE Py_LIMITED_API=0x030A0000)
target_link_libraries(_core PRIVATE canvas_static)
if(NOT APPLE)
  target_link_options(_core PRIVATE -Wl,--exclude-libs,ALL)
endif()
