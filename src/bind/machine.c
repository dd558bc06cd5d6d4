/* What this machine has, as far as the compiler and the system say. See machine.h. */
#include "bind/machine.h"

#include <unistd.h>

static int vector_bytes(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
#elif defined(__aarch64__)
  return 16;
#else
  return 32;
#endif
}

static int registers(int bytes) {
#if defined(__aarch64__)
  (void)bytes;
  return 32;
#else
  return bytes == 64 ? 32 : 16;
#endif
}

/* sysconf's answer, or what is usual: some systems say 0 or -1. */
static int64_t cache(int name, int64_t usual) {
  long bytes = name >= 0 ? sysconf(name) : 0;
  return bytes > 0 ? bytes : usual;
}

#ifdef _SC_LEVEL1_DCACHE_SIZE
enum { L1 = _SC_LEVEL1_DCACHE_SIZE, L2 = _SC_LEVEL2_CACHE_SIZE };
#else
enum { L1 = -1, L2 = -1 };
#endif

/* Half of what there is. */
static int64_t memory(void) {
#ifdef _SC_PHYS_PAGES
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return (int64_t)pages * page / 2;
#endif
  return (int64_t)4 << 30;
}

struct machine machine_here(void) {
  int bytes = vector_bytes();
  return (struct machine){.vector_bytes = bytes,
                          .registers = registers(bytes),
                          .l1 = cache(L1, 32 << 10),
                          .l2 = cache(L2, 1 << 20),
                          .memory = memory()};
}

struct machine machine_model(void) {
  return (struct machine){.vector_bytes = 64,
                          .registers = 32,
                          .l1 = 48 << 10,
                          .l2 = 2 << 20,
                          .memory = (int64_t)4 << 30};
}
