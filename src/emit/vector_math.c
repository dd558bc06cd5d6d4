/* Functions of fp32 vectors as polynomials: macros of the emitted text, without a call of libm.
 *
 * In the texts @ is the number of lanes. v@ is the vector, m@ as many int32_t: a mask, or the bits.
 * The names that end with _ are no user's (emit_names.c). bench/polynomials.py fits the
 * coefficients.
 *
 * Units in the last place, at most, over all numbers, with and without fused multiply-add; nan,
 * infinities, denormal numbers and signs of zero as libm has them:
 *
 *     abs floor 0     pow 0.52     exp log 1.1     tanh sin cos expm1 log1p 1.6     erf 1.8
 *
 * sin and cos subtract multiples of pi/2 in fp64; from 2^20 on, lane by lane, by the bits of 2/pi.
 * pow is computed in fp64.
 */
#include "emit/vector_math.h"

#include <string.h>

#include "program/program.h"
#include "program/scalar_ops.h"

static const char abs_text[] = "((v@)((m@)(v@)(x) & 0x7fffffff))";

/* numbers from 2^23 on are whole; the sign is kept, of -0 too */
static const char floor_text[] =
    "({\n"
    "  v@ x_ = (x), f_;\n"
    "  m@ part_ = ABS_V@(x_) < 0x1p+23f;\n"
    "  f_ = (v@)(part_ & (m@)x_);\n"
    "  f_ = __builtin_convertvector(__builtin_convertvector(f_, m@), v@);\n"
    "  f_ += __builtin_convertvector(f_ > x_, v@);\n"
    "  (v@)((part_ & ((m@)f_ | ((m@)x_ & (-0x7fffffff - 1)))) | (~part_ & (m@)x_));\n"
    "})";

/* 2^n e^r, |r| <= log(2)/2; 2^n in two factors, as n is -150..128. n + 254 stands in the last bits
 * of n_ + 0x1.8001fcp+23, two exponents of fp32 in one. Where the result is 0, as of -inf in a
 * mask, nothing is computed that is denormal: processors take a hundred cycles for that */
static const char exp_text[] =
    "({\n"
    "  v@ x_ = (x), n_, r_, e_;\n"
    "  m@ some_ = ~(x_ <= -104.0f);\n"
    "  x_ = LESSER_V@((v@)(some_ & (m@)x_), (v@){0} + 89.0f);\n"
    "  n_ = x_ * 0x1.715476p+0f + 0x1.8001fcp+23f;\n"
    "  m@ i_ = (m@)n_, j_ = i_ >> 1;\n"
    "  n_ -= 0x1.8001fcp+23f;\n"
    "  r_ = x_ - n_ * 0x1.62e4p-1f - n_ * 0x1.7f7d1cp-20f;\n"
    "  e_ = r_ * 0x1.6a48d2p-10f + 0x1.12399ap-7f;\n"
    "  e_ = r_ * e_ + 0x1.5558b4p-5f;\n"
    "  e_ = r_ * e_ + 0x1.555492p-3f;\n"
    "  e_ = r_ * e_ + 0x1.fffffcp-2f;\n"
    "  e_ = r_ * r_ * e_ + r_ + 1.0f;\n"
    "  (v@)(some_ & (m@)(e_ * (v@)(j_ << 23) * (v@)((i_ - j_) << 23)));\n"
    "})";

/* 2^n e^r - 1 = 2^n (e^r - 1) + (2^n - 1), the second of two factors after the sum: h (e^r - 1) +
 * (h - 1/k). Below -18 it is -1 */
static const char expm1_text[] =
    "({\n"
    "  v@ u_ = (x), x_, n_, r_, e_;\n"
    "  x_ = LESSER_V@(GREATER_V@(u_, (v@){0} - 18.0f), (v@){0} + 89.0f);\n"
    "  n_ = x_ * 0x1.715476p+0f + 0x1.8001fcp+23f;\n"
    "  m@ i_ = (m@)n_, j_ = i_ >> 1;\n"
    "  n_ -= 0x1.8001fcp+23f;\n"
    "  r_ = x_ - n_ * 0x1.62e4p-1f - n_ * 0x1.7f7d1cp-20f;\n"
    "  e_ = r_ * 0x1.9e7826p-13f + 0x1.6d3a5ap-10f;\n"
    "  e_ = r_ * e_ + 0x1.1112d6p-7f;\n"
    "  e_ = r_ * e_ + 0x1.5554f8p-5f;\n"
    "  e_ = r_ * e_ + 0x1.555554p-3f;\n"
    "  e_ = r_ * e_ + 0.5f;\n"
    "  e_ = r_ * r_ * e_ + r_;\n"
    "  n_ = (v@)(j_ << 23);\n"
    "  e_ = e_ * n_ + (n_ - (v@)((j_ - i_ + 254) << 23));\n"
    "  e_ *= (v@)((i_ - j_) << 23);\n"
    "  (v@)((m@)e_ | ((m@)u_ & (-0x7fffffff - 1)));\n"
    "})";

/* n log(2) + log(1 + f), 1 + f in sqrt(1/2)..sqrt(2) */
#define LOG_SERIES                                            \
  "  s_ = f_ * f_;\n"                                         \
  "  y_ = f_ * 0x1.14737ep-4f - 0x1.de01f8p-4f;\n"            \
  "  y_ = f_ * y_ + 0x1.e6c006p-4f;\n"                        \
  "  y_ = f_ * y_ - 0x1.fc28c8p-4f;\n"                        \
  "  y_ = f_ * y_ + 0x1.233ba2p-3f;\n"                        \
  "  y_ = f_ * y_ - 0x1.555c44p-3f;\n"                        \
  "  y_ = f_ * y_ + 0x1.99a476p-3f;\n"                        \
  "  y_ = f_ * y_ - 0x1.000006p-2f;\n"                        \
  "  y_ = f_ * y_ + 0x1.555548p-2f;\n"                        \
  "  y_ = f_ * s_ * y_ + n_ * 0x1.7f7d1cp-20f - 0.5f * s_;\n" \
  "  y_ = n_ * 0x1.62e4p-1f + (y_ + f_);\n"
static const char log_text[] =
    "({\n"
    "  v@ x_ = (x), f_, n_, y_, s_;\n"
    "  m@ tiny_ = x_ < 0x1p-126f, zero_ = x_ == 0.0f, less_ = x_ < 0.0f, i_;\n"
    "  f_ = (v@)((tiny_ & ~less_ & (m@)(x_ * 0x1p+25f)) | (~tiny_ & (m@)x_));\n"
    "  i_ = ((m@)f_ - 0x3f3504f3) >> 23;\n"
    "  f_ = (v@)((m@)f_ - (i_ << 23)) - 1.0f;\n"
    "  n_ = __builtin_convertvector(i_ - (tiny_ & 25), v@);\n" LOG_SERIES
    "  i_ = ~(x_ < __builtin_inff()) & ~(zero_ | less_); /* inf and nan */\n"
    "  (v@)((~(i_ | zero_ | less_) & (m@)y_) | (i_ & (m@)x_) | (zero_ & -0x800000) |\n"
    "       (less_ & 0x7fc00000));\n"
    "})";

/* the same of 1 + x, and f = 2^-n x + (2^-n - 1), which is x where n is 0: nothing of it is lost in
 * 1 + x */
static const char log1p_text[] =
    "({\n"
    "  v@ x_ = (x), u_ = x_ + 1.0f, f_, n_, y_, s_;\n"
    "  m@ zero_ = u_ == 0.0f, less_ = u_ < 0.0f, i_ = ((m@)u_ - 0x3f3504f3) >> 23;\n"
    "  n_ = __builtin_convertvector(i_, v@);\n"
    "  f_ = (v@)((u_ < 0x1p+64f) & (0x3f800000 - (i_ << 23)));\n"
    "  f_ = (v@)((m@)x_ - (i_ << 23)) + (f_ - 1.0f);\n" LOG_SERIES
    "  i_ = ~(x_ < __builtin_inff()) & ~(zero_ | less_); /* inf and nan */\n"
    "  (v@)((~(i_ | zero_ | less_) & ((m@)y_ | ((m@)x_ & (-0x7fffffff - 1)))) | (i_ & (m@)x_) |\n"
    "       (zero_ & -0x800000) | (less_ & 0x7fc00000));\n"
    "})";

/* x + x^3 P(x^2), from 5/8 on 1 - 2 / (e^2x + 1) */
static const char tanh_text[] =
    "({\n"
    "  v@ u_ = (x), a_ = ABS_V@(u_), w_ = u_ * u_, y_;\n"
    "  m@ small_ = a_ < 0.625f;\n"
    "  y_ = w_ * 0x1.1a2816p-9f - 0x1.0c5ed0p-7f;\n"
    "  y_ = w_ * y_ + 0x1.63a550p-6f;\n"
    "  y_ = w_ * y_ - 0x1.b9f188p-5f;\n"
    "  y_ = w_ * y_ + 0x1.11107ap-3f;\n"
    "  y_ = w_ * y_ - 0x1.555554p-2f;\n"
    "  y_ = a_ * w_ * y_ + a_;\n"
    "  a_ = 1.0f - 2.0f / (EXP_V@(a_ + a_) + 1.0f);\n"
    "  (v@)((small_ & (m@)y_) | (~small_ & (m@)a_) | ((m@)u_ & (-0x7fffffff - 1)));\n"
    "})";

/* 1 - (1 - s/4)^4, s = x + x P(x), which is 1 from 4 on: s is squared away twice, s - s^2/8 and
 * s - s^2/4. d_ is s - x, so that small x are rounded once, at the end */
static const char erf_text[] =
    "({\n"
    "  v@ u_ = (x), a_ = ABS_V@(u_), w_, p_, s_, d_;\n"
    "  a_ = LESSER_V@(a_, (v@){0} + 4.0f);\n"
    "  w_ = a_ * a_;\n"
    "  p_ = a_ * -0x1.6a9004p-16f + 0x1.b30052p-13f;\n"
    "  p_ = w_ * 0x1.8a2866p-21f + p_;\n"
    "  p_ = w_ * p_ + (a_ * -0x1.7b4980p-11f - 0x1.07d92cp-11f);\n"
    "  p_ = w_ * p_ + (a_ * 0x1.e8377ep-8f + 0x1.4c4d9ep-8f);\n"
    "  p_ = w_ * p_ + (a_ * -0x1.316678p-4f - 0x1.fa9a30p-5f);\n"
    "  p_ = w_ * p_ + (a_ * 0x1.e8ec72p-2f + 0x1.06eba8p-3f);\n"
    "  d_ = a_ * p_;\n"
    "  s_ = a_ + d_;\n"
    "  d_ -= 0.125f * s_ * s_;\n"
    "  s_ = a_ + d_;\n"
    "  m@ i_ = a_ < 0.78125f;\n"
    "  p_ = 0.25f * s_;\n"
    "  d_ = a_ + (d_ - p_ * s_);\n"
    "  s_ -= p_ * s_;\n"
    "  (v@)((i_ & (m@)d_) | (~i_ & (m@)s_) | ((m@)u_ & (-0x7fffffff - 1)));\n"
    "})";

/* 2^(y log2|x|) in fp64: log2 by s = (m - 1) / (m + 1), m in sqrt(1/2)..sqrt(2), 2^n by the last
 * bits of n + 2^52; then what the signs, zeros, infinities and whole numbers y make of it */
static const char pow_text[] =
    "({\n"
    "  typedef double d_ __attribute__((vector_size(@ * 8)));\n"
    "  typedef uint64_t l_ __attribute__((vector_size(@ * 8)));\n"
    "  v@ x_ = (x), y_ = (y), a_ = ABS_V@(x_), b_ = ABS_V@(y_), f_;\n"
    "  m@ tiny_ = a_ < 0x1p-126f, i_, k_, whole_, less_, bad_, one_, zero_, huge_;\n"
    "  f_ = (v@)((tiny_ & (m@)(a_ * 0x1p+25f)) | (~tiny_ & (m@)a_));\n"
    "  i_ = ((m@)f_ - 0x3f3504f3) >> 23;\n"
    "  d_ t_ = __builtin_convertvector((v@)((m@)f_ - (i_ << 23)), d_), s_, w_, e_;\n"
    "  l_ far_;\n"
    "  s_ = (t_ - 1.0) / (t_ + 1.0);\n"
    "  w_ = s_ * s_;\n"
    "  t_ = w_ * 0x1.c68f568d31761p-3 + 0x1.0c9a84994022dp-2;\n"
    "  t_ = w_ * t_ + 0x1.484b13d7c02a9p-2;\n"
    "  t_ = w_ * t_ + 0x1.a61762a7adedap-2;\n"
    "  t_ = w_ * t_ + 0x1.2776c50ef9bfep-1;\n"
    "  t_ = w_ * t_ + 0x1.ec709dc3a03fep-1;\n"
    "  t_ = w_ * t_ + 0x1.71547652b82fep+1;\n"
    "  t_ = s_ * t_ + __builtin_convertvector(i_ - (tiny_ & 25), d_);\n"
    "  t_ *= __builtin_convertvector(y_, d_);\n"
    "  far_ = (l_)(t_ < -200.0);\n"
    "  t_ = (d_)((far_ & (l_)((d_){0} - 200.0)) | (~far_ & (l_)t_));\n"
    "  far_ = (l_)(t_ > 200.0);\n"
    "  t_ = (d_)((far_ & (l_)((d_){0} + 200.0)) | (~far_ & (l_)t_));\n"
    "  s_ = t_ + 0x1.8p+52;\n"
    "  w_ = t_ - (s_ - 0x1.8p+52);\n"
    "  e_ = w_ * 0x1.62c0223a5c822p-20 + 0x1.ffcbfc588b0c5p-17;\n"
    "  e_ = w_ * e_ + 0x1.430912f86c786p-13;\n"
    "  e_ = w_ * e_ + 0x1.5d87fe78a6730p-10;\n"
    "  e_ = w_ * e_ + 0x1.3b2ab6fba4e77p-7;\n"
    "  e_ = w_ * e_ + 0x1.c6b08d704a0bfp-5;\n"
    "  e_ = w_ * e_ + 0x1.ebfbdff82c58ep-3;\n"
    "  e_ = w_ * e_ + 0x1.62e42fefa39efp-1;\n"
    "  e_ = w_ * e_ + 1.0;\n"
    "  e_ *= (d_)(((l_)s_ << 52) + ((l_){0} + (UINT64_C(1023) << 52)));\n"
    "  f_ = __builtin_convertvector(e_, v@);\n"
    "  k_ = __builtin_convertvector((v@)((b_ < 0x1p+24f) & (m@)y_), m@);\n"
    "  whole_ = (b_ >= 0x1p+24f) | (__builtin_convertvector(k_, v@) == y_);\n"
    "  less_ = (m@)x_ < 0;\n"
    "  zero_ = a_ == 0.0f;\n"
    "  huge_ = a_ == __builtin_inff();\n"
    "  bad_ = ~(a_ <= __builtin_inff()) | (less_ & ~whole_ & ~zero_ & ~huge_);\n"
    "  one_ = (y_ == 0.0f) | (x_ == 1.0f) | ((a_ == 1.0f) & (b_ == __builtin_inff()));\n"
    "  i_ = (zero_ & (y_ > 0.0f)) | (huge_ & (y_ < 0.0f)); /* 0 */\n"
    "  zero_ = (zero_ & (y_ < 0.0f)) | (huge_ & (y_ > 0.0f)); /* infinite */\n"
    "  f_ = (v@)((~(i_ | zero_) & (m@)f_) | (zero_ & 0x7f800000));\n"
    "  f_ = (v@)((m@)f_ | (less_ & whole_ & ((k_ & 1) == 1) & (-0x7fffffff - 1)));\n"
    "  f_ = (v@)((~bad_ & (m@)f_) | (bad_ & 0x7fc00000));\n"
    "  (v@)((one_ & 0x3f800000) | (~one_ & (m@)f_));\n"
    "})";

/* r = x - n pi/2, |r| <= pi/4 */
static const char reduce_text[] =
    "do {\n"
    "  typedef double d_ __attribute__((vector_size(@ * 8)));\n"
    "  d_ t_ = __builtin_convertvector(x, d_), k_ = t_ * 0x1.45f306dc9c883p-1 + 0x1.8p+52;\n"
    "  k_ -= 0x1.8p+52;\n"
    "  t_ = t_ - k_ * 0x1.921fb544p+0 - k_ * 0x1.0b4611a626331p-34;\n"
    "  r = __builtin_convertvector(t_, v@);\n"
    "  n = __builtin_convertvector(k_, m@);\n"
    "  m@ far_ = ~(ABS_V@(x) < 0x1p+20f);\n"
    "  int any_ = 0;\n"
    "  for (int i_ = 0; i_ < @; i_++) any_ |= far_[i_];\n"
    "  if (any_)\n"
    "    for (int i_ = 0; i_ < @; i_++)\n"
    "      if (far_[i_]) {\n"
    "        int turns_;\n"
    "        r[i_] = FAR_ANGLE(x[i_], turns_);\n"
    "        n[i_] = turns_;\n"
    "      }\n"
    "} while (0)";

static const char turned_text[] =
    "({\n"
    "  v@ x_ = (x), r_, s_, c_, w_;\n"
    "  m@ n_, odd_;\n"
    "  REDUCE_V@(x_, r_, n_);\n"
    "  n_ += turns;\n"
    "  w_ = r_ * r_;\n"
    "  odd_ = (n_ & 1) == 1;\n"
    "  n_ = (n_ << 30) ^ (~odd_ & (m@)r_);\n"
    "  s_ = w_ * 0x1.7c2c4ep-19f - 0x1.a05954p-13f;\n"
    "  s_ = w_ * s_ + 0x1.111174p-7f;\n"
    "  s_ = w_ * s_ - 0x1.555556p-3f;\n"
    "  r_ = ABS_V@(r_);\n"
    "  s_ = r_ * w_ * s_ + r_;\n"
    "  c_ = w_ * 0x1.99e80cp-16f - 0x1.6c0c28p-10f;\n"
    "  c_ = w_ * c_ + 0x1.55554ap-5f;\n"
    "  c_ = w_ * w_ * c_ - 0.5f * w_ + 1.0f;\n"
    "  (v@)(((odd_ & (m@)c_) | (~odd_ & (m@)s_)) ^ (n_ & (-0x7fffffff - 1)));\n"
    "})";

static const char far_angle_text[] =
    "/* x - n pi/2: x is m 2^e, times the bits of 2/pi that matter modulo 4 */\n"
    "#ifndef FAR_ANGLE\n"
    "#define FAR_ANGLE(x, n) far_angle_(x, &(n))\n"
    "static float far_angle_(float x, int *n) {\n"
    "  static const uint32_t bits[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,\n"
    "                                  0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};\n"
    "  union { float value; uint32_t bits; } f = {.value = x};\n"
    "  int e = (int)(f.bits >> 23 & 255) - 150, at = e + 30;\n"
    "  *n = 0;\n"
    "  if (e == 105) return x - x; /* inf and nan */\n"
    "  const uint32_t *w = bits + at / 32;\n"
    "  uint64_t m = (f.bits & 0x7fffff) | 0x800000;\n"
    "  uint64_t a = (uint64_t)w[0] << 32 | w[1], b = (uint64_t)w[2] << 32 | w[3];\n"
    "  if (at % 32) a = a << at % 32 | b >> (64 - at % 32), b <<= at % 32;\n"
    "  a = m * a + (m * (b >> 32) >> 32); /* in units of 2^-62 */\n"
    "  uint64_t k = (a + (UINT64_C(1) << 61)) >> 62;\n"
    "  double r = (double)(int64_t)(a - (k << 62)) * 0x1.921fb54442d18p-62;\n"
    "  *n = f.bits >> 31 ? -(int)k : (int)k;\n"
    "  return (float)(f.bits >> 31 ? -r : r);\n"
    "}\n"
    "#endif\n";

/* ---- which are there ---- */

enum function {
  GREATER,
  LESSER,
  ABS,
  FLOOR,
  EXP,
  LOG,
  EXPM1,
  LOG1P,
  TANH,
  ERF,
  REDUCE,
  TURNED,
  SIN,
  COS,
  POW
};
enum { FUNCTIONS = POW + 1 };

/* What a text uses stands before it. */
static const struct {
  const char *name, *arguments, *text;
  unsigned uses; /* a bit per enum function */
} functions[FUNCTIONS] = {
    [GREATER] = {"GREATER", "x, y", NULL, 0}, /* vector_math_print_extremum */
    [LESSER] = {"LESSER", "x, y", NULL, 0},
    [ABS] = {"ABS", "x", abs_text, 0},
    [FLOOR] = {"FLOOR", "x", floor_text, 1 << ABS},
    [EXP] = {"EXP", "x", exp_text, 1 << LESSER},
    [LOG] = {"LOG", "x", log_text, 0},
    [EXPM1] = {"EXPM1", "x", expm1_text, 1 << GREATER | 1 << LESSER},
    [LOG1P] = {"LOG1P", "x", log1p_text, 0},
    [TANH] = {"TANH", "x", tanh_text, 1 << ABS | 1 << EXP | 1 << LESSER},
    [ERF] = {"ERF", "x", erf_text, 1 << ABS | 1 << LESSER},
    [REDUCE] = {"REDUCE", "x, r, n", reduce_text, 1 << ABS},
    [TURNED] = {"TURNED", "x, turns", turned_text, 1 << ABS | 1 << REDUCE},
    [SIN] = {"SIN", "x", "TURNED_V@(x, 0)", 1 << ABS | 1 << REDUCE | 1 << TURNED},
    [COS] = {"COS", "x", "TURNED_V@(x, 1)", 1 << ABS | 1 << REDUCE | 1 << TURNED},
    [POW] = {"POW", "x, y", pow_text, 1 << ABS},
};

static int function_of(enum px_op op) {
  switch (op) {
    case PX_MAX: return GREATER;
    case PX_MIN: return LESSER;
    case PX_ABS: return ABS;
    case PX_FLOOR: return FLOOR;
    case PX_EXP: return EXP;
    case PX_LOG: return LOG;
    case PX_EXPM1: return EXPM1;
    case PX_LOG1P: return LOG1P;
    case PX_TANH: return TANH;
    case PX_ERF: return ERF;
    case PX_SIN: return SIN;
    case PX_COS: return COS;
    case PX_POW: return POW;
    default: return -1;
  }
}

unsigned vector_math_of(enum px_op op) {
  int function = function_of(op);
  return function < 0 ? 0 : 1u << function | functions[function].uses;
}

/* ---- printing ---- */

/* A line of a macro: @ is the number of lanes; a \ unless it is the last. */
static const char *put_line(const char *line, int lanes, struct buf *out) {
  for (; *line && *line != '\n'; line++) {
    if (*line == '@')
      buf_printf(out, "%d", lanes);
    else
      buf_bytes(out, line, 1);
  }
  buf_puts(out, *line ? " \\\n" : "\n");
  return *line ? line + 1 : NULL;
}

/* y where it is greater, else x: so nan where x is. That is what the instructions of x86 answer,
 * with the operands in this order. */
void vector_math_print_extremum(bool greater, bool wide, int lanes, struct buf *out) {
  const char *name = greater ? "GREATER" : "LESSER", *instruction = greater ? "max" : "min";
  int bytes = lanes * (wide ? 8 : 4);
  char V = wide ? 'D' : 'V', v = wide ? 'd' : 'v', m = wide ? 'n' : 'm', type = wide ? 'd' : 's';
  if (bytes == 64)
    buf_printf(out,
               "#if defined __AVX512F__ && defined __clang__\n"
               "#define %s_%c%d(x, y) __builtin_ia32_%sp%c512(y, x, 4)\n"
               "#elif defined __AVX512F__\n"
               "#define %s_%c%d(x, y) __builtin_ia32_%sp%c512_mask(y, x, x, -1, 4)\n#else\n",
               name, V, lanes, instruction, type, name, V, lanes, instruction, type);
  else if (bytes == 32 || bytes == 16)
    buf_printf(out, "#ifdef %s\n#define %s_%c%d(x, y) __builtin_ia32_%sp%c%s(y, x)\n#else\n",
               bytes == 32 ? "__AVX__" : "__SSE2__", name, V, lanes, instruction, type,
               bytes == 32 ? "256" : "");
  buf_printf(out,
             "#define %s_%c%d(x, y) \\\n  ({ \\\n    %c%d take_ = (y) %c (x); \\\n"
             "    (%c%d)((take_ & (%c%d)(y)) | (~take_ & (%c%d)(x))); \\\n  })\n",
             name, V, lanes, m, lanes, greater ? '>' : '<', v, lanes, m, lanes, m, lanes);
  if (bytes >= 16) buf_puts(out, "#endif\n");
}

void vector_math_print(unsigned used, int lanes, struct buf *out) {
  for (int i = 0; i < FUNCTIONS; i++) {
    const char *line = functions[i].text;
    if (!(used >> i & 1)) continue;
    if (!line) {
      vector_math_print_extremum(i == GREATER, false, lanes, out);
      continue;
    }
    buf_printf(out, "#define %s_V%d(%s) ", functions[i].name, lanes, functions[i].arguments);
    if (strchr(line, '\n')) buf_puts(out, "\\\n  ");
    while ((line = put_line(line, lanes, out))) buf_puts(out, "  ");
  }
}

static const char precise[] =
    "#if defined __FAST_MATH__ || defined __ASSOCIATIVE_MATH__\n"
    "#error \"exp and its like are wrong with -ffast-math and -Ofast: compile this file without\"\n"
    "#endif\n";

void vector_math_print_once(unsigned used, struct buf *out) {
  if (used) buf_puts(out, precise);
  if (used >> REDUCE & 1) buf_puts(out, far_angle_text);
}
