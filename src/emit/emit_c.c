/* C: its words, the helpers that a text needs before it, and the frame of the function. See
 * print_c.h.
 *
 * The C is C11 with the vector types of gcc and clang. Vector loads and stores use an unaligned
 * type that may alias its elements. Helpers on vectors are macros: a function would pass vectors by
 * an ABI that depends on the machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/code.h"
#include "emit/print_c.h"
#include "emit/vector_math.h"

static const struct spelling c_words = {
    .index = "long",
    .narrow = "int",
    .type = {"float", "double", "uint16_t", "int32_t"},
    .operation = c_operations,
    .infinity = "INFINITY",
    .nan = "NAN",
};

const char *c_type_name(enum program_dtype dtype) {
  return c_words.type[dtype];
}

/* ---- the prelude ---- */

/* A file may hold several such texts: C allows the same definition of a macro or type twice. Names
 * that end with _ are never a user's (emit_names.c). */
static const struct {
  unsigned when; /* printed if any of these helpers is used */
  const char *text;
} helpers[] = {
    {HELP_PARALLEL,
     "#ifdef _OPENMP\n#define PRAGMA(text) _Pragma(#text)\n#else\n#define PRAGMA(text)\n#endif\n"},
    {HELP_STREAMED,
     "/* what went around the caches is seen before what is written later */\n"
     "#ifdef __SSE__\n#define STREAMED() __builtin_ia32_sfence()\n"
     "#else\n#define STREAMED() ((void)0)\n#endif\n"},
    {HELP_SCALAR | HELP_SCALAR_ALONE,
     "/* clang's vectors of such a loop would read a remainder as if it never came round */\n"},
    {HELP_SCALAR,
     "#ifdef __clang__\n#define SCALAR _Pragma(\"clang loop vectorize(disable)\")\n"
     "#else\n#define SCALAR\n#endif\n"},
    {HELP_SCALAR_ALONE,
     "#if defined(__clang__) && !defined(_OPENMP)\n"
     "#define SCALAR_ALONE _Pragma(\"clang loop vectorize(disable)\")\n"
     "#else\n#define SCALAR_ALONE\n#endif\n"},
    {HELP_LANES_LOOP,
     "#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)\n"
     "#define LANES _Pragma(\"GCC unroll 64\") /* a vector is put together in registers */\n"
     "#else\n#define LANES\n#endif\n"},
    {HELP_SUMS_END,
     "#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)\n"
     "#define SUMS_END() __asm__ volatile(\"\" ::: \"memory\") /* nothing behind is loaded before "
     "*/\n"
     "#else\n#define SUMS_END() ((void)0)\n#endif\n"},
    {HELP_MAX_F32 | HELP_MIN_F32 | HELP_MAX_F64 | HELP_MIN_F64, "/* nan if either is */\n"},
    {HELP_MAX_F32,
     "#define MAX_F32(x, y) \\\n"
     "  ({ float x_ = (x), y_ = (y), most_ = y_ > x_ ? y_ : x_; y_ != y_ ? y_ : most_; })\n"},
    {HELP_MAX_F64,
     "#define MAX_F64(x, y) \\\n"
     "  ({ double x_ = (x), y_ = (y), most_ = y_ > x_ ? y_ : x_; y_ != y_ ? y_ : most_; })\n"},
    {HELP_MIN_F32,
     "#define MIN_F32(x, y) \\\n"
     "  ({ float x_ = (x), y_ = (y), least_ = y_ < x_ ? y_ : x_; y_ != y_ ? y_ : least_; })\n"},
    {HELP_MIN_F64,
     "#define MIN_F64(x, y) \\\n"
     "  ({ double x_ = (x), y_ = (y), least_ = y_ < x_ ? y_ : x_; y_ != y_ ? y_ : least_; })\n"},
    {HELP_CLAMP_F32,
     "/* nan if x is */\n"
     "#define CLAMP_F32(x, low, high) \\\n"
     "  ({ float x_ = (x), most_ = x_ < (low) ? (low) : x_; x_ > (high) ? (high) : most_; })\n"},
    {HELP_FLOOR_DIV | HELP_FLOOR_MOD, "/* of a positive number: towards minus infinity */\n"},
    {HELP_FLOOR_DIV, "#define FLOOR_DIV(i, n) ({ long i_ = (i); i_ / (n) - (i_ % (n) < 0); })\n"},
    {HELP_FLOOR_MOD,
     "#define FLOOR_MOD(i, n) ({ long i_ = (i) % (n); i_ < 0 ? i_ + (n) : i_; })\n"},
    {HELP_LEAST_OF, "#define LEAST_OF(i, j) ({ long i_ = (i), j_ = (j); i_ < j_ ? i_ : j_; })\n"},
    {HELP_MOST_OF, "#define MOST_OF(i, j) ({ long i_ = (i), j_ = (j); i_ > j_ ? i_ : j_; })\n"},
    {HELP_BF16_READ | HELP_BF16_WRITE | HELP_BF16_ROUND,
     "/* bf16 is the upper half of fp32, rounded to nearest, ties to even; nan stays nan */\n"},
    {HELP_BF16_READ | HELP_BF16_ROUND,
     "#define BF16_READ(half) \\\n"
     "  ({ union { uint32_t bits; float value; } x_ = {.bits = (uint32_t)(half) << 16}; x_.value; "
     "})\n"},
    {HELP_BF16_WRITE | HELP_BF16_ROUND,
     "#define BF16_WRITE(x) \\\n"
     "  ({ \\\n"
     "    union { uint32_t bits; float value; } x_ = {.value = (x)}; \\\n"
     "    (uint16_t)(x_.value != x_.value ? x_.bits >> 16 | 64 \\\n"
     "                                    : (x_.bits + 0x7fff + (x_.bits >> 16 & 1)) >> 16); \\\n"
     "  })\n"},
    {HELP_BF16_ROUND, "#define BF16_ROUND(x) BF16_READ(BF16_WRITE(x))\n"},
};

static const char *letters(bool wide, bool mask) {
  return mask ? (wide ? "n" : "m") : wide ? "d" : "v";
}

/* The vector functions that are used, of fp32 vectors of `lanes` lanes; 0: of any length. */
static unsigned used_functions(const struct printer *p, int lanes) {
  uint64_t bit = lanes ? UINT64_C(1) << (lanes - 1) : UINT64_MAX;
  unsigned used = 0;
  for (int op = 0; op < PX_OPS; op++)
    if (p->used_vectors[VECTOR_BF16_WRITE + 1 + op][0] & bit)
      used |= vector_math_of((enum px_op)op);
  return used;
}

/* Bit i-1: integer vectors of i lanes are needed. */
static uint64_t used_masks(const struct printer *p, bool wide) {
  const int users[] = {VECTOR_PICK,
                       VECTOR_PERMUTE,
                       VECTOR_PERMUTE_TWO,
                       VECTOR_BF16_LOAD,
                       VECTOR_BF16_READ,
                       VECTOR_BF16_WRITE + 1 + PX_MAX,
                       VECTOR_BF16_WRITE + 1 + PX_MIN,
                       VECTOR_BF16_WRITE + 1 + PX_ABS};
  uint64_t used = 0;
  for (size_t i = 0; i < sizeof users / sizeof *users; i++) used |= p->used_vectors[users[i]][wide];
  for (int op = 0; op < PX_OPS && !wide; op++)
    if (vector_math_of((enum px_op)op)) used |= p->used_vectors[VECTOR_BF16_WRITE + 1 + op][0];
  return used;
}

/* typedef float v16, its masks, its unaligned form V16(place) */
static void put_type(const struct printer *p, bool wide, int lanes, struct buf *out) {
  int bytes = lanes * (wide ? 8 : 4);
  const char *v = letters(wide, false), *type = p->words->type[wide ? PROGRAM_F64 : PROGRAM_F32];
  buf_printf(out, "typedef %s %s%d __attribute__((vector_size(%d)));\n", type, v, lanes, bytes);
  if (used_masks(p, wide) >> (lanes - 1) & 1)
    buf_printf(out, "typedef %s %s%d __attribute__((vector_size(%d)));\n",
               wide ? "int64_t" : "int32_t", letters(wide, true), lanes, bytes);
  buf_printf(out,
             "typedef %s %s%d_anywhere __attribute__((vector_size(%d), aligned(%d), may_alias));\n",
             type, v, lanes, bytes, wide ? 8 : 4);
  buf_printf(out, "#define %c%d(place) (*(%s%d_anywhere *)&(place))\n", wide ? 'D' : 'V', lanes, v,
             lanes);
}

/* For a loop over lanes gcc stores two halves of 64 bytes and loads the whole, which waits for both
 * stores. */
static void put_wide_abs(int lanes, struct buf *out) {
  buf_printf(out, "#define ABS_D%d(x) ((d%d)((n%d)(d%d)(x) & 0x7fffffffffffffff))\n", lanes, lanes,
             lanes, lanes);
}

/* A function of fp64, or one without a polynomial: libm's, lane by lane. */
static void put_lane_function(const struct printer *p, enum px_op op, bool wide, int lanes,
                              struct buf *out) {
  const char *v = letters(wide, false), *name = scalar_ops[op].name;
  if (!wide && vector_math_of(op)) return;
  bool two = scalar_ops[op].arity == 2;
  buf_printf(out, "#define %s_%c%d(x%s) \\\n  ({ \\\n    %s%d x_ = (x)%s; \\\n", name,
             wide ? 'D' : 'V', lanes, two ? ", y" : "", v, lanes, two ? ", y_ = (y)" : "");
  buf_printf(out,
             "    for (int i_ = 0; i_ < %d; i_++) x_[i_] = %s(x_[i_]%s); \\\n    x_; \\\n  })\n",
             lanes, p->words->operation[op][wide], two ? ", y_[i_]" : "");
}

/* x + y; of the extrema MAX_V8(x, y), or MAX_F32(x, y) of two lanes */
static void put_pair(int which, bool wide, int lanes, const char *x, const char *y,
                     struct buf *out) {
  const char *type = wide ? "F64" : "F32", *word = lanes_words[which];
  if (which < 2)
    buf_printf(out, "%s %c %s", x, which ? '*' : '+', y);
  else if (lanes == 1)
    buf_printf(out, "%s_%s(%s, %s)", word, type, x, y);
  else
    buf_printf(out, "%s_%c%d(%s, %s)", word, wide ? 'D' : 'V', lanes, x, y);
}

/* MAX_V16(x, y): nan if either is nan. If y is a constant number, gcc and clang emit one
 * instruction. */
static void put_extremum(bool greater, bool wide, int lanes, struct buf *out) {
  char V = wide ? 'D' : 'V';
  const char *v = letters(wide, false), *m = letters(wide, true);
  if (wide) vector_math_print_extremum(greater, wide, lanes, out);
  buf_printf(out,
             "#define %s_%c%d(x, y) \\\n  ({ \\\n    %s%d x_ = (x), y_ = (y); \\\n"
             "    %s%d nan_ = y_ != y_; \\\n"
             "    (%s%d)((nan_ & (%s%d)y_) | (~nan_ & (%s%d)%s_%c%d(x_, y_))); \\\n  })\n",
             greater ? "MAX" : "MIN", V, lanes, v, lanes, m, lanes, v, lanes, m, lanes, m, lanes,
             greater ? "GREATER" : "LESSER", V, lanes);
}

/* SUM_OF_V16(x): adds the halves of x, then their halves, down to two lanes. */
static void put_lanes_helper(int which, bool wide, int lanes, struct buf *out) {
  const char *v = letters(wide, false), *word = lanes_words[which];
  char V = wide ? 'D' : 'V', x[24], y[24];
  buf_printf(out, "#define %s_OF_%c%d(x) \\\n  ({ \\\n    ", word, V, lanes);
  if (lanes == 2) {
    buf_printf(out, "%s2 pair_ = (x); \\\n    ", v);
    put_pair(which, wide, 1, "pair_[0]", "pair_[1]", out);
  } else {
    snprintf(x, sizeof x, "half%d_.of[0]", lanes);
    snprintf(y, sizeof y, "half%d_.of[1]", lanes);
    buf_printf(out, "union { %s%d all; %s%d of[2]; } half%d_ = {(x)}; \\\n    ", v, lanes, v,
               lanes / 2, lanes);
    buf_printf(out, "%s_OF_%c%d(", word, V, lanes / 2);
    put_pair(which, wide, lanes / 2, x, y, out);
    buf_puts(out, ")");
  }
  buf_puts(out, "; \\\n  })\n");
}

/* ---- the first lanes of a vector ------------------------------------------------------------- */

/* Masked loads and stores of the first n_ lanes of f32: the processor features that they need, and
 * the mask. A copy of as many bytes by a loop takes ten times as long, with gcc above all. */
struct masked {
  int lanes;
  const char *wants, *load, *store, *mask, *some; /* a masked store needs AVX-512: put_halves() */
};

/* Masks of the f32 lanes below n_, and from first_ on. */
#define LANES_4  "(int __attribute__((vector_size(16)))){0, 1, 2, 3}"
#define LANES_8  "(int __attribute__((vector_size(32)))){0, 1, 2, 3, 4, 5, 6, 7}"
#define UNTIL_4  LANES_4 " < (int)(n_ > 4 ? 4 : n_ < 0 ? 0 : n_)"
#define UNTIL_8  LANES_8 " < (int)(n_ > 8 ? 8 : n_ < 0 ? 0 : n_)"
#define UNTIL_16 "(n_ >= 16 ? 0xffff : n_ > 0 ? (1 << n_) - 1 : 0)"
#define FROM_4   LANES_4 " >= (int)(first_ > 4 ? 4 : first_ < 0 ? 0 : first_)"
#define FROM_8   LANES_8 " >= (int)(first_ > 8 ? 8 : first_ < 0 ? 0 : first_)"
#define FROM_16  "(first_ >= 16 ? 0 : first_ > 0 ? 0xffff << first_ : 0xffff)"
static const struct masked masked[] = {
    {4, "__AVX2__", "(v4)__builtin_ia32_maskloadps((const v4 *)from_, mask_)",
     "__builtin_ia32_maskstoreps((v4 *)to_, mask_, x_)",
     "int __attribute__((vector_size(16))) mask_ = " UNTIL_4,
     "int __attribute__((vector_size(16))) mask_ = (" UNTIL_4 ") & (" FROM_4 ")"},
    {8, "__AVX2__", "(v8)__builtin_ia32_maskloadps256((const v8 *)from_, mask_)",
     "__builtin_ia32_maskstoreps256((v8 *)to_, mask_, x_)",
     "int __attribute__((vector_size(32))) mask_ = " UNTIL_8,
     "int __attribute__((vector_size(32))) mask_ = (" UNTIL_8 ") & (" FROM_8 ")"},
    {16, "__AVX512F__", "(v16)__builtin_ia32_loadups512_mask(from_, (v16){0}, mask_)",
     "__builtin_ia32_storeups512_mask(to_, x_, mask_)",
     "unsigned short mask_ = (unsigned short)" UNTIL_16,
     "unsigned short mask_ = (unsigned short)(" UNTIL_16 " & " FROM_16 ")"},
};

static const struct masked *masked_of(bool wide, int lanes) {
  for (size_t i = 0; i < sizeof masked / sizeof *masked; i++)
    if (!wide && masked[i].lanes == lanes) return &masked[i];
  return NULL;
}

/* Loads the first n lanes; n may be zero, negative, or more than all. */
static void put_load(const struct printer *p, bool wide, int lanes, struct buf *out) {
  const char *v = letters(wide, false), *type = p->words->type[wide ? PROGRAM_F64 : PROGRAM_F32];
  const struct masked *by = masked_of(wide, lanes);
  char V = wide ? 'D' : 'V';
  if (by)
    buf_printf(out,
               "#ifdef %s\n#define LOAD_%c%d(place, n) \\\n  ({ \\\n"
               "    const %s *from_ = &(place); \\\n    long n_ = (n); \\\n    %s; \\\n"
               "    %s; \\\n  })\n#else\n",
               by->wants, V, lanes, type, by->mask, by->load);
  buf_printf(out,
             "#define LOAD_%c%d(place, n) \\\n  ({ \\\n    const %s *from_ = &(place); \\\n"
             "    long n_ = (n); \\\n"
             "    n_ >= %d ? (%s%d)%c%d(*from_) : ({ \\\n      %s%d part_ = {0}; \\\n"
             "      if (n_ > 0) __builtin_memcpy(&part_, from_, (n_ & %d) * %d); \\\n"
             "      part_; \\\n    }); \\\n  })\n",
             V, lanes, type, lanes, v, lanes, V, lanes, v, lanes, lanes - 1, wide ? 8 : 4);
  if (by) buf_puts(out, "#endif\n");
}

/* Loads the f32 lanes from first up to end; the address is that of lane `first`. */
static void put_some(const struct printer *p, int lanes, struct buf *out) {
  const char *type = p->words->type[PROGRAM_F32];
  bool by = masked_of(false, lanes) != NULL;
  if (by)
    buf_printf(out,
               "#ifdef %s\n#define SOME_V%d(place, first, end) \\\n  ({ \\\n"
               "    long first_ = (first), n_ = (end); \\\n"
               "    const %s *from_ = (const %s *)((__UINTPTR_TYPE__)&(place) - 4 * first_); \\\n"
               "    %s; \\\n    %s; \\\n  })\n#else\n",
               masked_of(false, lanes)->wants, lanes, type, type, masked_of(false, lanes)->some,
               masked_of(false, lanes)->load);
  buf_printf(out,
             "#define SOME_V%d(place, first, end) \\\n  ({ \\\n    const %s *from_ = &(place); \\\n"
             "    long first_ = (first), n_ = (end) - first_; \\\n    v%d part_ = {0}; \\\n"
             "    for (long i_ = 0; i_ < n_; i_++) part_[first_ + i_] = from_[i_]; \\\n"
             "    part_; \\\n  })\n",
             lanes, type, lanes);
  if (by) buf_puts(out, "#endif\n");
}

/* Stores the first lanes by halves: AMD's processors before Zen 4 take 12 cycles and more for a
 * masked store. */
static void put_halves(int lanes, struct buf *out) {
  bool eight = lanes == 8;
  buf_printf(out,
             "    typedef float part_ __attribute__((vector_size(16), aligned(4), may_alias)); \\\n"
             "    union { v%d all; part_ of[%d]; } half%d_ = {x_}; \\\n"
             "    part_ rest_ = half%d_.of[0]; \\\n",
             lanes, lanes / 4, lanes, lanes);
  buf_printf(out, "    if (n_ >= %d) { \\\n      V%d(*to_) = x_; \\\n", lanes, lanes);
  buf_puts(out, "    } else if (n_ > 0) { \\\n");
  if (eight)
    buf_puts(out,
             "      if (n_ & 4) { \\\n        *(part_ *)to_ = rest_; \\\n"
             "        rest_ = half8_.of[1]; \\\n        to_ += 4; \\\n      } \\\n");
  buf_puts(out,
           "      if (n_ & 2) { \\\n        to_[0] = rest_[0]; \\\n        to_[1] = rest_[1]; \\\n"
           "        rest_ = (part_){rest_[2]}; \\\n        to_ += 2; \\\n      } \\\n"
           "      if (n_ & 1) *to_ = rest_[0]; \\\n    } \\\n");
}

static void put_store(const struct printer *p, bool wide, int lanes, struct buf *out) {
  const char *v = letters(wide, false), *type = p->words->type[wide ? PROGRAM_F64 : PROGRAM_F32];
  const struct masked *by = masked_of(wide, lanes);
  char V = wide ? 'D' : 'V', head[160];
  snprintf(head, sizeof head,
           "#define STORE_%c%d(place, n, x) \\\n  do { \\\n    %s *to_ = &(place); \\\n"
           "    long n_ = (n); \\\n    %s%d x_ = (x); \\\n",
           V, lanes, type, v, lanes);
  if (by)
    buf_printf(out, "#ifdef __AVX512F__\n%s    %s; \\\n    %s; \\\n  } while (0)\n#else\n", head,
               by->mask, by->store);
  buf_puts(out, head);
  if (by && lanes <= 8)
    put_halves(lanes, out);
  else
    buf_printf(out,
               "    if (n_ >= %d) { \\\n      %c%d(*to_) = x_; \\\n    } else if (n_ > 0) { \\\n"
               "      %s%d part_ = x_; \\\n"
               "      __builtin_memcpy(to_, &part_, (n_ & %d) * %d); \\\n    } \\\n",
               lanes, V, lanes, v, lanes, lanes - 1, wide ? 8 : 4);
  buf_puts(out, "  } while (0)\n");
  if (by) buf_puts(out, "#endif\n");
}

/* The lanes with these numbers of the concatenation of x and y. */
static void put_permute(bool two, bool wide, int lanes, struct buf *out) {
  const char *v = letters(wide, false), *more = two ? ", y_ = (y)" : "";
  const char *head = two ? "PERMUTE_TWO_" : "PERMUTE_", *y = two ? ", y" : "";
  char V = wide ? 'D' : 'V';
  buf_printf(out,
             "#ifdef __clang__\n#define %s%c%d(x%s, ...) \\\n"
             "  ({ %s%d x_ = (x)%s; __builtin_shufflevector(x_, %s, __VA_ARGS__); })\n",
             head, V, lanes, y, v, lanes, more, two ? "y_" : "x_");
  buf_printf(out,
             "#else\n#define %s%c%d(x%s, ...) \\\n"
             "  ({ %s%d x_ = (x)%s; __builtin_shuffle(x_%s, (%s%d){__VA_ARGS__}); })\n#endif\n",
             head, V, lanes, y, v, lanes, more, two ? ", y_" : "", letters(wide, true), lanes);
}

static void put_zip(enum code_zip zip, bool wide, int lanes, struct buf *out) {
  char V = wide ? 'D' : 'V';
  buf_printf(out, "#define %s_%c%d(x, y) PERMUTE_TWO_%c%d(x, y", print_zips[zip], V, lanes, V,
             lanes);
  for (int i = 0; i < lanes; i++) buf_printf(out, ", %d", code_zip_lane(zip, lanes, i));
  buf_puts(out, ")\n");
}

/* A non-temporal store of a whole vector, at an address that is a multiple of its size. Elsewhere,
 * or without such a store in compiler or processor, it is an ordinary store. */
static void put_stream(bool wide, int lanes, struct buf *out) {
  const char *v = letters(wide, false), *type = wide ? "double" : "float";
  int bytes = lanes * (wide ? 8 : 4);
  const char *wants = bytes == 64 ? "__AVX512F__" : bytes == 32 ? "__AVX__" : "__SSE2__";
  const char *suffix = bytes == 64 ? "512" : bytes == 32 ? "256" : "";
  char V = wide ? 'D' : 'V';
  buf_printf(out,
             "#if defined __clang__\n#define STREAM_ONE_%c%d(to, x) __builtin_nontemporal_store(x, "
             "(%s%d *)(to))\n"
             "#elif defined %s\n#define STREAM_ONE_%c%d(to, x) __builtin_ia32_movntp%c%s(to, x)\n"
             "#else\n#define STREAM_ONE_%c%d(to, x) (%c%d(*(to)) = (x))\n#endif\n",
             V, lanes, v, lanes, wants, V, lanes, wide ? 'd' : 's', suffix, V, lanes, V, lanes);
  buf_printf(
      out,
      "#define STREAM_%c%d(place, x) \\\n  do { \\\n    %s *to_ = &(place); \\\n"
      "    %s%d x_ = (x); \\\n    if ((__UINTPTR_TYPE__)to_ %% %d) \\\n      %c%d(*to_) = x_; \\\n"
      "    else \\\n      STREAM_ONE_%c%d(to_, x_); \\\n  } while (0)\n",
      V, lanes, type, v, lanes, bytes, V, lanes, V, lanes);
}

/* Vectors that are stored as bf16: the first lanes, and all. */
static void put_bf16(int helper, int lanes, struct buf *out) {
  switch (helper) {
    case VECTOR_BF16_LOAD:
      buf_printf(out,
                 "#define BF16_LOAD%d(place, n) \\\n  ({ \\\n"
                 "    const uint16_t *from_ = &(place); \\\n    long n_ = (n); \\\n"
                 "    m%d bits_ = {0}; \\\n"
                 "    for (int i_ = 0; i_ < %d && i_ < n_; i_++) \\\n"
                 "      bits_[i_] = (int32_t)((uint32_t)from_[i_] << 16); \\\n"
                 "    (v%d)bits_; \\\n  })\n",
                 lanes, lanes, lanes, lanes);
      return;
    case VECTOR_BF16_STORE:
      buf_printf(out,
                 "#define BF16_STORE%d(place, n, x) \\\n  do { \\\n"
                 "    uint16_t *to_ = &(place); \\\n    long n_ = (n); \\\n"
                 "    v%d from_ = (x); \\\n"
                 "    for (int i_ = 0; i_ < %d && i_ < n_; i_++) to_[i_] = BF16_WRITE(from_[i_]); "
                 "\\\n  } while (0)\n",
                 lanes, lanes, lanes);
      return;
    case VECTOR_BF16_READ:
      buf_printf(
          out,
          "#define BF16_READ%d(place) \\\n  ({ \\\n"
          "    typedef uint16_t half_ __attribute__((vector_size(%d), aligned(2), may_alias)); \\\n"
          "    (v%d)(__builtin_convertvector(*(const half_ *)&(place), m%d) << 16); \\\n  })\n",
          lanes, 2 * lanes, lanes, lanes);
      return;
    default: /* VECTOR_BF16_WRITE */
      buf_printf(out,
                 "#define BF16_WRITE%d(place, x) \\\n  do { \\\n    uint16_t *to_ = &(place); \\\n"
                 "    v%d from_ = (x); \\\n"
                 "    for (int i_ = 0; i_ < %d; i_++) to_[i_] = BF16_WRITE(from_[i_]); \\\n"
                 "  } while (0)\n",
                 lanes, lanes, lanes);
      return;
  }
}

static void put_vector_helper(const struct printer *p, int helper, bool wide, int lanes,
                              struct buf *out) {
  const char *v = letters(wide, false), *m = letters(wide, true);
  char V = wide ? 'D' : 'V';
  if (helper >= VECTOR_ZIP && helper < VECTOR_ZIP + CODE_ZIPS) {
    put_zip((enum code_zip)(helper - VECTOR_ZIP), wide, lanes, out);
    return;
  }
  switch (helper) {
    case VECTOR_ALL:
      buf_printf(out, "#define ALL_%c%d(x) ((x) - (%s%d){0})\n", V, lanes, v, lanes);
      return;
    case VECTOR_PICK:
      buf_printf(out,
                 "#define PICK_%c%d(mask, x, y) \\\n  ({ \\\n    %s%d mask_ = (mask); \\\n"
                 "    (%s%d)((mask_ & (%s%d)(x)) | (~mask_ & (%s%d)(y))); \\\n  })\n",
                 V, lanes, m, lanes, v, lanes, m, lanes, m, lanes);
      return;
    case VECTOR_PERMUTE:
    case VECTOR_PERMUTE_TWO: put_permute(helper == VECTOR_PERMUTE_TWO, wide, lanes, out); return;
    case VECTOR_LOAD: put_load(p, wide, lanes, out); return;
    case VECTOR_SOME: put_some(p, lanes, out); return;
    case VECTOR_STORE: put_store(p, wide, lanes, out); return;
    case VECTOR_STREAM: put_stream(wide, lanes, out); return;
    case VECTOR_BF16_LOAD:
    case VECTOR_BF16_STORE:
    case VECTOR_BF16_READ:
    case VECTOR_BF16_WRITE: put_bf16(helper, lanes, out); return;
    case VECTOR_BF16_WRITE + 1 + PX_MAX: put_extremum(true, wide, lanes, out); return;
    case VECTOR_BF16_WRITE + 1 + PX_MIN: put_extremum(false, wide, lanes, out); return;
    case VECTOR_BF16_WRITE + 1 + PX_ABS:
      if (wide) put_wide_abs(lanes, out);
      return; /* vector_math has one for fp32 */
    default:
      if (helper >= VECTOR_LANES)
        put_lanes_helper(helper - VECTOR_LANES, wide, lanes, out);
      else
        put_lane_function(p, (enum px_op)(helper - VECTOR_BF16_WRITE - 1), wide, lanes, out);
  }
}

static void put_vectors(const struct printer *p, struct buf *out) {
  for (int helper = 0; helper < VECTOR_HELPERS; helper++)
    for (int wide = 0; wide < 2; wide++)
      for (int lanes = 2; lanes <= CODE_LANES; lanes *= 2) {
        if (!(p->used_vectors[helper][wide] >> (lanes - 1) & 1)) continue;
        if (helper == VECTOR_TYPE)
          put_type(p, wide, lanes, out);
        else
          put_vector_helper(p, helper, wide, lanes, out);
      }
  vector_math_print_once(used_functions(p, 0), out);
  for (int lanes = 2; lanes <= CODE_LANES; lanes *= 2)
    vector_math_print(used_functions(p, lanes), lanes, out);
}

static bool needs_stdint(const struct printer *p) {
  const unsigned bf16 = HELP_BF16_READ | HELP_BF16_WRITE | HELP_BF16_ROUND;
  for (int i = 0; i < p->code->variables.count; i++) {
    const struct code_variable *v = &p->code->variables.data[i];
    bool narrow = v->type.element == PROGRAM_BF16 || v->type.element == PROGRAM_I32;
    if (narrow && v->storage != CODE_COUNTER) return true;
  }
  return p->used & bf16 || used_masks(p, false) | used_masks(p, true);
}

static void put_includes(const struct printer *p, struct buf *out) {
  if (p->used & HELP_MATH) buf_puts(out, "#include <math.h>\n");
  if (needs_stdint(p)) buf_puts(out, "#include <stdint.h>\n");
  if (p->used & HELP_HEAP) buf_puts(out, "#include <stdlib.h>\n");
  buf_puts(out, "\n");
}

static bool has_vectors(const struct printer *p) {
  return p->used_vectors[VECTOR_TYPE][0] || p->used_vectors[VECTOR_TYPE][1];
}

/* Options of gcc, each with the slowdown without it. ira-region=all: with its own regions the
 * register allocator spills sums while registers are free (3x3 convolution of 512 channels: 1.8x).
 * no-predictive-commoning: it keeps loads of a window for later iterations on the stack, where
 * broadcasts wait for them (7x7 of stride 2: 1.35x). tune=skylake: tuned for Haswell or Zen 2 and
 * 3, each multiply-add reloads a vector that has a register (3x3 of 64 channels with AVX2: 1.26x);
 * tuned for no processor, gcc emits no gathers. */
static const char optimize[] =
    "#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)\n"
    "#pragma GCC optimize(\"no-predictive-commoning\", \"ira-region=all\") /* no sums on the stack "
    "*/\n"
    "#if defined(__AVX2__) && !defined(__AVX512F__) && !defined(TUNED)\n"
    "#define TUNED /* gcc takes it once */\n"
    "#pragma GCC target(\"tune=skylake\") /* vectors that are shared stay in registers */\n"
    "#endif\n"
    "#endif\n";

/* An index of the expression decreases with a counter. */
static bool falls(const struct code *c, int expr, bool index) {
  if (expr < 0) return false;
  const struct code_expr *e = &c->exprs.data[expr];
  for (int i = 0; i < e->count && e->op == CODE_SUM; i++) {
    const struct affine_term *t = &c->terms.data[e->first + i];
    if ((index && t->coef < 0) || falls(c, t->expr, index)) return true;
  }
  for (int i = 0; i < 3; i++)
    if (falls(c, e->arg[i], index || e->op == CODE_ELEMENT)) return true;
  return false;
}

/* The code sums scalars from decreasing addresses. gcc 12 (from -O2 on) vectorizes a loop that adds
 * two neighbours of such a row to one sum, as an unrolled window does, and adds some of them twice.
 */
static bool adds_backwards(const struct code *c) {
  bool adds = false, any = false;
  for (int i = 0; i < c->statements.count; i++) {
    const struct code_statement *s = &c->statements.data[i];
    bool name = s->kind == CODE_DECLARE && s->value >= 0 &&
                c->variables.data[s->variable].storage == CODE_NAME;
    any |= (name || s->kind == CODE_ASSIGN) && falls(c, s->value, name);
    if (s->kind != CODE_ASSIGN || s->how == CODE_SET) continue;
    struct code_type type = c->exprs.data[s->to].type;
    adds |= type.lanes == 1 && code_is_value(type);
  }
  return adds && any;
}

static const char no_vectors[] =
    "#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)\n"
    "#pragma GCC optimize(\"no-tree-loop-vectorize\") /* gcc 12 adds some of a falling row twice "
    "*/\n"
    "#endif\n";

static void put_prelude(const struct printer *p, struct buf *out) {
  put_includes(p, out);
  size_t before = out->length;
  if (has_vectors(p)) buf_puts(out, optimize);
  if (adds_backwards(p->code)) buf_puts(out, no_vectors);
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
    if (p->used & helpers[i].when) buf_puts(out, helpers[i].text);
  put_vectors(p, out);
  if (out->length > before) buf_puts(out, "\n");
}

/* ---- the frame ---- */

/* A text of the user's inside a comment. */
static void put_comment(const char *text, struct buf *out) {
  for (const char *at = text; *at;) {
    size_t length = strcspn(at, "\n");
    buf_puts(out, length ? " * " : " *");
    for (size_t i = 0; i < length; i++) {
      char c = at[i] < 32 || at[i] > 126 ? '?' : at[i];
      buf_bytes(out, &c, 1);
      bool mark = (c == '*' && at[i + 1] == '/') || (c == '/' && at[i + 1] == '*');
      if (mark) buf_puts(out, " ");
    }
    buf_puts(out, "\n");
    at += length + (at[length] == '\n');
  }
}

static void put_head(const struct printer *p, const struct loop_tree *tree, const char *source,
                     struct buf *out) {
  struct buf text = {0};
  buf_printf(out, "/* %s, written by canvas %s", p->function, canvas_version());
  buf_puts(out, source ? " from\n *\n" : ".\n *\n");
  if (source) {
    put_comment(source, out);
    buf_puts(out, " *\n");
  }
  program_print(tree->program, &text);
  put_comment(text.text, out);
  buf_free(&text);
  buf_puts(out, " *\n");
  schedule_print(tree->schedule, &text);
  put_comment(text.text, out);
  buf_free(&text);
  buf_puts(out, " */\n");
}

static bool is_parameter(const struct code *code, int variable) {
  return variable < code->variables.count && code->variables.data[variable].storage <= CODE_OUTPUT;
}

/* The parameters that are packed: `count` of them from `first` on. */
struct packing {
  int first, count;
  const char *name; /* of the packed memory */
};

static struct packing packing_of(struct printer *p, const struct emit_packed *packed) {
  struct packing pack = {0};
  if (!packed) return pack;
  for (int i = 0; is_parameter(p->code, i); i++)
    pack.first += p->code->variables.data[i].storage == CODE_INPUT;
  if (!packed->outputs) pack.first -= packed->count;
  pack.count = packed->count;
  pack.name = names_choose(&p->names, "packed", false);
  return pack;
}

static bool is_packed(const struct packing *pack, int variable) {
  return variable >= pack->first && variable < pack->first + pack->count;
}

/* const float *restrict X, float *restrict Y; or, as arguments, X, Y. Parameters that may share
 * memory are not `restrict`. */
static void put_parameters(const struct printer *p, const struct packing *pack, const char *how,
                           const bool *shared, struct buf *out) {
  for (int i = 0; is_parameter(p->code, i); i++) {
    const struct code_variable *v = &p->code->variables.data[i];
    const char *constant = v->storage == CODE_INPUT ? "const " : "";
    bool packed = is_packed(pack, i);
    if (packed && i != pack->first) continue;
    if (i) buf_puts(out, ", ");
    if (how)
      buf_printf(out, "%s%s%s", constant, packed ? "void" : p->words->type[v->type.element],
                 shared && shared[i] ? " *" : how);
    buf_puts(out, packed ? pack->name : p->name[i]);
  }
}

static const char *linkage_of(const struct emit_options *options) {
  return options && options->local ? "static " : "";
}

/* NAME_prepare runs once: for cold code gcc skips wide copies, which take half of its compile time.
 */
static const char *attribute_of(const struct emit_options *options) {
  return options && options->packed && options->packed->outputs ? "__attribute__((cold)) " : "";
}

/* int conv(const float *restrict X, float *restrict Y) {, broken like other lines; with buffers it
 * is a part of the function */
static void put_function(struct printer *p, const struct packing *pack,
                         const struct emit_options *options, struct buf *out) {
  struct buf text = {0};
  if (p->buffers)
    buf_printf(&text, "%sstatic int %s_body(", attribute_of(options), p->function);
  else
    buf_printf(&text, "%s%sint %s(", attribute_of(options), linkage_of(options), p->function);
  put_parameters(p, pack, " *restrict ", options ? options->shared : NULL, &text);
  workspace_print_buffers(p, &text);
  buf_puts(&text, ") {");
  print_wrapped(text.text, text.length, 0, out);
  buf_puts(out, "\n");
  buf_free(&text);
}

/* const float *restrict WP = (const float *)((const char *)packed + 64); */
static void put_packed(const struct printer *p, const struct packing *pack,
                       const struct emit_packed *packed, struct buf *out) {
  for (int i = 0; i < pack->count; i++) {
    const struct code_variable *v = &p->code->variables.data[pack->first + i];
    const char *type = p->words->type[v->type.element];
    const char *constant = packed->outputs ? "" : "const ";
    if (!packed->outputs && !p->read[pack->first + i]) continue;
    buf_printf(out, "  %s%s *restrict %s = (%s%s *)((%schar *)%s + %" PRId64 ");\n", constant, type,
               p->name[pack->first + i], constant, type, constant, pack->name, packed->offset[i]);
  }
}

/* (void)X; for inputs that no output needs, and for `packed` if none of it is read */
static void put_unused(const struct printer *p, const struct packing *pack, struct buf *out) {
  int read = 0;
  for (int i = 0; is_parameter(p->code, i); i++) {
    bool packed = is_packed(pack, i), input = p->code->variables.data[i].storage == CODE_INPUT;
    if (input && !p->read[i] && !packed) buf_printf(out, "  (void)%s;\n", p->name[i]);
    read += packed && (p->read[i] || !input);
  }
  if (pack->count && !read) buf_printf(out, "  (void)%s;\n", pack->name);
}

/* The functions after NAME_body. */
static void put_workspace(struct printer *p, const struct packing *pack,
                          const struct emit_options *options, struct buf *out) {
  struct buf parameters = {0}, arguments = {0};
  bool once = pack->count && options->packed->outputs;
  enum workspace from = options && options->workspace ? WORKSPACE_GIVEN
                        : once                        ? WORKSPACE_ONCE
                                                      : WORKSPACE_KEPT;
  put_parameters(p, pack, " *", NULL, &parameters);
  put_parameters(p, pack, NULL, NULL, &arguments);
  workspace_print(p, parameters.text, arguments.text, from, linkage_of(options), out);
  buf_free(&parameters);
  buf_free(&arguments);
}

canvas_status emit_c(canvas_context *ctx, const struct code *code, const struct loop_tree *tree,
                     const struct emit_options *options, struct buf *out) {
  struct printer p = {.ctx = ctx, .code = code, .words = &c_words};
  print_open(&p, options && options->function ? options->function : code->name, workspace_suffixes);
  struct packing pack = packing_of(&p, options ? options->packed : NULL);
  canvas_status status = print_body(&p);
  if (status == CANVAS_OK) {
    put_head(&p, tree, options ? options->source : NULL, out);
    put_prelude(&p, out);
    put_function(&p, &pack, options, out);
    put_packed(&p, &pack, options ? options->packed : NULL, out);
    put_unused(&p, &pack, out);
    buf_bytes(out, p.out.text, p.out.length);
    buf_puts(out, "}\n");
    if (p.buffers) put_workspace(&p, &pack, options, out);
    if (options && options->workspace) *options->workspace = workspace_bytes(code);
  }
  print_close(&p);
  return status;
}
