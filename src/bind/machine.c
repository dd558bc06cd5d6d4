/* Detects this machine from the processor and the system. See machine.h. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "bind/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif

/* ---- instructions ---------------------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

struct cpuid {
  unsigned eax, ebx, ecx, edx;
};

/* Executes cpuid; zeros if the processor has no such leaf. */
static struct cpuid cpuid_leaf(unsigned leaf, unsigned sub) {
  struct cpuid r = {0};
  if (!__get_cpuid_count(leaf, sub, &r.eax, &r.ebx, &r.ecx, &r.edx)) return (struct cpuid){0};
  return r;
}

/* The register files that the system saves (XCR0); 0 if unknown. */
static unsigned saved_state(void) {
  unsigned low = 0, high = 0;
  if (!(cpuid_leaf(1, 0).ecx >> 27 & 1)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

enum { AVX_STATE = 6, AVX512_STATE = 0xe6, TILE_STATE = 3 << 17 };

static void find_tiles(struct machine *m, unsigned saved, struct cpuid seven, struct cpuid more) {
  if ((saved & TILE_STATE) != TILE_STATE || !(seven.edx >> 24 & 1)) return;
  if (seven.edx >> 25 & 1) m->tiles |= TILES_INT8;
  if (seven.edx >> 22 & 1) m->tiles |= TILES_BF16;
  if (more.eax >> 21 & 1) m->tiles |= TILES_FP16;
}

static void find_instructions(struct machine *m) {
  struct cpuid one = cpuid_leaf(1, 0), seven = cpuid_leaf(7, 0);
  struct cpuid more = seven.eax >= 1 ? cpuid_leaf(7, 1) : (struct cpuid){0};
  unsigned saved = saved_state();
  bool avx = (saved & AVX_STATE) == AVX_STATE && seven.ebx >> 5 & 1;
  bool avx512 = avx && (saved & AVX512_STATE) == AVX512_STATE && seven.ebx >> 16 & 1;
  m->vector_bytes = avx512 ? 64 : avx ? 32 : 16;
  m->registers = avx512 ? 32 : 16;
  m->fma = avx && one.ecx >> 12 & 1;
  if (avx512 && more.eax >> 5 & 1) m->bf16 = BF16_CONVERT | BF16_DOT;
  find_tiles(m, saved, seven, more);
}

#elif defined(__aarch64__)

#ifdef __linux__
#include <sys/auxv.h>
#endif

static void find_instructions(struct machine *m) {
  m->vector_bytes = 16;
  m->registers = 32;
  m->fma = 1;
#ifdef AT_HWCAP2
  if (getauxval(AT_HWCAP2) >> 14 & 1) m->bf16 = BF16_CONVERT | BF16_DOT;
#endif
}

#else

static void find_instructions(struct machine *m) {
  m->vector_bytes = 32;
  m->registers = 16;
}

#endif

/* ---- caches, cores, memory ------------------------------------------------------------------- */

enum { MOST_BITS = 50 }; /* larger sizes are taken for errors of the system */

static bool is_size(int64_t bytes) {
  return bytes > 0 && bytes <= (int64_t)1 << MOST_BITS;
}

/* The number at the start of a system file, such as "32768K"; 0 if there is none, as for "max". */
static int64_t file_number(const char *path) {
  char text[32] = "", *end;
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  bool read = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  if (!read || !isdigit((unsigned char)*text)) return 0;
  int64_t number = strtoll(text, &end, 10);
  if (!is_size(number)) return 0;
  return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

/* The size of the data cache of a level, from system files; 0 if unknown. */
static int64_t cache_file(int level, const char *what) {
  char path[80];
  for (int i = 0; i < 8; i++) {
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
    if (file_number(path) != level) continue;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
    FILE *file = fopen(path, "r");
    bool code = file && fgetc(file) == 'I';
    if (file) fclose(file);
    if (code) continue;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, what);
    return file_number(path);
  }
  return 0;
}

/* The size of a cache: from system files, else from sysconf, else a usual size. sysconf returns 0
 * or -1 on some systems, and on some processors the L3 of all cores instead of the part that one
 * core reaches. */
static int64_t cache(int name, int level, int64_t usual) {
  int64_t bytes = cache_file(level, "size");
  if (!is_size(bytes)) bytes = name >= 0 ? sysconf(name) : 0;
  return is_size(bytes) ? bytes : usual;
}

#ifdef _SC_LEVEL1_DCACHE_SIZE
enum { L1 = _SC_LEVEL1_DCACHE_SIZE, L2 = _SC_LEVEL2_CACHE_SIZE, L3 = _SC_LEVEL3_CACHE_SIZE };
#else
enum { L1 = -1, L2 = -1, L3 = -1 };
#endif

static int cache_line(void) {
  int64_t bytes = cache_file(1, "coherency_line_size");
  return bytes == 32 || bytes == 128 || bytes == 256 ? (int)bytes : 64;
}

/* The number of processors that this process may run on. */
static int cores(void) {
  long count = 0;
#ifdef __linux__
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set)) count = CPU_COUNT(&set);
#endif
#ifdef _SC_NPROCESSORS_ONLN
  if (count < 1) count = sysconf(_SC_NPROCESSORS_ONLN);
#endif
  return count < 1 ? 1 : count > 1 << 20 ? 1 << 20 : (int)count;
}

/* Half of the memory of the machine, or of the limit of the container. */
static int64_t memory(void) {
  int64_t bytes = (int64_t)8 << 30;
#ifdef _SC_PHYS_PAGES
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0 && is_size((int64_t)pages * page)) bytes = (int64_t)pages * page;
#endif
  int64_t most = file_number("/sys/fs/cgroup/memory.max");
  return (most > 1 && most < bytes ? most : bytes) / 2;
}

struct machine machine_here(void) {
  struct machine m = {.name = "here",
                      .target = "native",
                      .line = cache_line(),
                      .l1 = cache(L1, 1, 32 << 10),
                      .l2 = cache(L2, 2, 1 << 20),
                      .l3 = cache(L3, 3, 0),
                      .cores = cores(),
                      .memory = memory()};
  find_instructions(&m);
  return m;
}
