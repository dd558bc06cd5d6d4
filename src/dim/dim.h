/* Symbolic dimensions: monomials over the sizes of a target and the free variables of a kernel.
 *
 *   num/den * G^a C^b KH^c KW^d H^e W^f S^g x0^.. ... x15^..        integer powers, num/den reduced
 *
 * A dim is a small value: equality is bytes, products are additions of powers. A product that
 * leaves the limits (powers in [-POWER_MAX, POWER_MAX], num and den below 2^31) is the poisoned dim
 * (num = 0), which stays poisoned in every product and is never whole: long chains are checked once.
 * C is the channel count of the kernel, KH and KW are the kernel size of the replaced convolution,
 * S is the stride that the kernel's own windows take (1: the input is pooled by the target's).
 */
#ifndef CANVAS_DIM_DIM_H
#define CANVAS_DIM_DIM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/lexer.h"

enum { VARIABLES = 16, POWER_MAX = 8 };

/* The sizes of a target, in printing order, then the dynamic variables. */
enum size {
  SIZE_G,
  SIZE_C,
  SIZE_KH,
  SIZE_KW,
  SIZE_H,
  SIZE_W,
  SIZE_S,
  SIZE_X0,
  SIZES = SIZE_X0 + VARIABLES
};

enum { DIM_POWERS = SIZES + 1 }; /* a multiple of 8: loops over all of them are vectorized */

struct dim {
  int32_t num, den;
  int8_t
      power[DIM_POWERS]; /* the last one is of no size and always 0: dims are compared as bytes */
};

/* A value for every size; 0 where none is known. No dim holds the dilation of the target, which all
 * windows of a kernel take beside their own; 0 is 1. */
struct sizes {
  int64_t value[SIZES];
  int64_t dilation;
};

static inline struct dim dim_one(void) {
  return (struct dim){.num = 1, .den = 1};
}
static inline struct dim dim_size(enum size s) {
  struct dim d = dim_one();
  d.power[s] = 1;
  return d;
}
struct dim dim_number(int64_t n); /* n >= 1 */
struct dim dim_mul(struct dim a, struct dim b);
struct dim dim_div(struct dim a, struct dim b);
static inline bool dim_equal(const struct dim *a, const struct dim *b) {
  return memcmp(a, b, sizeof *a) == 0;
}
static inline bool dim_is_one(const struct dim *d) {
  struct dim one = dim_one();
  return dim_equal(d, &one);
}
bool dim_is_stride(const struct dim *d); /* S alone */
bool dim_is_poisoned(const struct dim *d);
static inline bool dim_uses(const struct dim *d, enum size s) {
  return d->power[s] != 0;
}

/* The index of the variable with a positive power, the first with a negative one as ~index, or
 * VARIABLES if d holds none. *several: more than one variable (Theorem 1 forbids it). */
int dim_variable(const struct dim *d, bool *several);

/* d with every power of variable x replaced by that power of `by`. */
struct dim dim_substitute(struct dim d, int x, const struct dim *by);

/* Whether d can be a positive whole number for some sizes with G | C (R's "maybe integer"): with a
 * variable in the numerator the solvers see to it; otherwise no H, W, KH, KW or C below the line,
 * each G below it paid by one C above it, each S by one H or W. A variable below the line never is (Theorem 1). A numeric
 * denominator is decided when sizes are known, but a plain number must be whole. */
bool dim_is_whole(const struct dim *d);

/* The value of d; false if a size is missing, the value is not whole, or it passes 2^62. */
bool dim_value(const struct dim *d, const struct sizes *sizes, int64_t *value);
/* As numerator/denominator in lowest terms; false only for a missing size or overflow. */
bool dim_ratio(const struct dim *d, const struct sizes *sizes, int64_t *num, int64_t *den);

/* All divisors of d, where C counts as the two primes G and C/G, each of KH, KW, H, W and each x as
 * one prime, numbers as their own primes (paper 6.2). Deterministic order, 1 first. Writes at most
 * `max` and returns how many there are; 0 if d holds a negative power that C does not pay. */
int dim_divisors(const struct dim *d, struct dim *out, int max);

/* "C/G", "G*KH*KW", "3*x0"; numbers first, then G C KH KW H W S x0.. */
void dim_print(const struct dim *d, struct buf *out);
const char *size_name(enum size s); /* "G", ..., "x15" */
bool size_parse(const char *text, int length, enum size *s);
/* factor {('*'|'/') factor}, a factor is a number >= 1 or the name of a size */
canvas_status dim_parse(struct lexer *lx, struct dim *out);

int64_t gcd64(int64_t a, int64_t b);

#endif
