/* The operations of expressions: one row each says everything about one but its C.
 *
 * The enum (program.h), the parser, the printer, the builder's sorts, the interpreter, the counts and
 * the bounds on rounding (src/run/rounding.c) come from the rows; what it is in C stands in
 * src/emit/emit_operations.c, which does not compile without a row for each.
 *
 * The order is that of the helpers in emitted C. MIN to POW that are written as calls are the
 * functions that programs know.
 */
#ifndef CANVAS_PROGRAM_SCALAR_OPS_H
#define CANVAS_PROGRAM_SCALAR_OPS_H

#include <stdbool.h>

/* clang-format off */

/*  PX_ADD, and EXP_V16 of vectors in C
 *  |       in programs
 *  |       |         enum px_binding: how it is written
 *  |       |         |        operands
 *  |       |         |        |  enum px_sorts: of operands and result
 *  |       |         |        |  |        operations that it counts as, of values
 *  |       |         |        |  |        |  the interpreter, of indices or conditions a, b
 *  |       |         |        |  |        |  |                  ... of values
 *  |       |         |        |  |        |  |                  |               enum px_error: an error of
 *  |       |         |        |  |        |  |                  |               |         operands, in the result
 *  |       |         |        |  |        |  |                  |               |         its slope at most
 *  |       |         |        |  |        |  |                  |               |         |    the result's own
 *  |       |         |        |  |        |  |                  |               |         |    rounding: enum px_units */
#define SCALAR_OPS(X) \
  X(ADD,    "+",     ADD,     2, NUMBERS, 1, a + b,             a + b,          SUM,      0,   NEAREST) \
  X(SUB,    "-",     ADD,     2, NUMBERS, 1, a - b,             a - b,          SUM,      0,   NEAREST) \
  X(MUL,    "*",     MUL,     2, NUMBERS, 1, a * b,             a * b,          PRODUCT,  0,   NEAREST) \
  X(DIV,    "/",     MUL,     2, NUMBERS, 1, floor_div(a, b),   a / b,          QUOTIENT, 0,   NEAREST) \
  X(MOD,    "%",     MUL,     2, INDICES, 0, floor_mod(a, b),   NEVER,          NONE,     0,   EXACT)   \
  X(MIN,    "min",   CALL,    2, NUMBERS, 1, a < b ? a : b,     least(a, b),    LARGER,   0,   EXACT)   \
  X(MAX,    "max",   CALL,    2, NUMBERS, 1, a > b ? a : b,     most(a, b),     LARGER,   0,   EXACT)   \
  X(NEG,    "-",     SIGN,    1, NUMBERS, 1, -a,                -a,             SLOPE,    1,   EXACT)   \
  X(SELECT, "if",    SELECT,  3, CHOICE,  0, NEVER,             NEVER,          NONE,     0,   EXACT)   \
  X(LT,     "<",     COMPARE, 2, TEST,    1, a < b,             a < b,          NONE,     0,   EXACT)   \
  X(LE,     "<=",    COMPARE, 2, TEST,    1, a <= b,            a <= b,         NONE,     0,   EXACT)   \
  X(GT,     ">",     COMPARE, 2, TEST,    1, a > b,             a > b,          NONE,     0,   EXACT)   \
  X(GE,     ">=",    COMPARE, 2, TEST,    1, a >= b,            a >= b,         NONE,     0,   EXACT)   \
  X(EQ,     "==",    COMPARE, 2, TEST,    1, a == b,            a == b,         NONE,     0,   EXACT)   \
  X(NE,     "!=",    COMPARE, 2, TEST,    1, a != b,            a != b,         NONE,     0,   EXACT)   \
  X(AND,    "&&",    AND,     2, LOGIC,   0, NEVER,             NEVER,          NONE,     0,   EXACT)   \
  X(OR,     "||",    OR,      2, LOGIC,   0, NEVER,             NEVER,          NONE,     0,   EXACT)   \
  X(NOT,    "!",     NOT,     1, LOGIC,   0, !a,                NEVER,          NONE,     0,   EXACT)   \
  X(EXP,    "exp",   CALL,    1, VALUES,  1, NEVER,             exp(a),         EXP,      0,   LIBRARY) \
  X(LOG,    "log",   CALL,    1, VALUES,  1, NEVER,             log(a),         LOG,      0,   LIBRARY) \
  X(EXPM1,  "expm1", CALL,    1, VALUES,  1, NEVER,             expm1(a),       EXP,      0,   LIBRARY) \
  X(LOG1P,  "log1p", CALL,    1, VALUES,  1, NEVER,             log1p(a),       LOG,      0,   LIBRARY) \
  X(SIN,    "sin",   CALL,    1, VALUES,  1, NEVER,             sin(a),         WAVE,     1,   LIBRARY) \
  X(COS,    "cos",   CALL,    1, VALUES,  1, NEVER,             cos(a),         WAVE,     1,   LIBRARY) \
  X(TANH,   "tanh",  CALL,    1, VALUES,  1, NEVER,             tanh(a),        SLOPE,    1,   LIBRARY) \
  X(SQRT,   "sqrt",  CALL,    1, VALUES,  1, NEVER,             sqrt(a),        SQRT,     0,   LIBRARY) \
  X(ERF,    "erf",   CALL,    1, VALUES,  1, NEVER,             erf(a),         SLOPE,    1.2, LIBRARY) \
  X(ABS,    "abs",   CALL,    1, VALUES,  1, NEVER,             fabs(a),        SLOPE,    1,   EXACT)   \
  X(FLOOR,  "floor", CALL,    1, VALUES,  1, NEVER,             floor(a),       RISING,   0,   EXACT)   \
  X(POW,    "pow",   CALL,    2, VALUES,  1, NEVER,             pow(a, b),      POWER,    0,   LIBRARY) \
  X(REAL,   "real",  CALL,    1, REAL,    0, (double)a,         NEVER,          NONE,     0,   NEAREST)

/* clang-format on */

/* How tightly the text binds, from loosest to tightest: the numbers are compared. */
enum px_binding {
  BIND_SELECT,
  BIND_OR,
  BIND_AND,
  BIND_NOT,
  BIND_COMPARE,
  BIND_ADD,
  BIND_MUL,
  BIND_SIGN,
  BIND_CALL, /* exp(a) */
  BIND_LEAF
};

enum px_sorts {
  SORTS_LEAF,
  SORTS_NUMBERS, /* indices, or values: the result is what the operands are */
  SORTS_INDICES, /* indices alone */
  SORTS_VALUES,  /* values alone */
  SORTS_REAL,    /* an index; a value */
  SORTS_TEST,    /* indices, or values; a condition */
  SORTS_LOGIC,   /* conditions; && and || evaluate their right side if the left does not decide */
  SORTS_CHOICE   /* a condition and two numbers, of which one is evaluated */
};

/* The operands a and b are off by at most e and f: by how much the exact result of them is. */
enum px_error {
  ERROR_NONE,     /* not asked: an index, or written by its sorts */
  ERROR_SUM,      /* e + f */
  ERROR_PRODUCT,  /* |a| f + |b| e + e f */
  ERROR_QUOTIENT, /* (e + |a/b| f) / (|b| - f) */
  ERROR_POWER,    /* what the logarithm moves by, as a factor */
  ERROR_LARGER,   /* the larger of e and f */
  ERROR_SLOPE,    /* slope * e */
  ERROR_WAVE,     /* slope * e; the result's own rounding is one of 1 too, near zeros */
  ERROR_RISING,   /* f(a + e) - f(a - e): of any function that never falls */
  ERROR_EXP,      /* exp(a) (exp(e) - 1): of exp and expm1 */
  ERROR_LOG,      /* e / (a - e), of log1p e / (1 + a - e) */
  ERROR_SQRT      /* e / sqrt(a) */
};

/* In units of the last place: the nearest number, or wide enough for any libm and for short
 * polynomials. */
enum px_units { UNITS_EXACT = 0, UNITS_NEAREST = 1, UNITS_LIBRARY = 8 };

struct scalar_op {
  const char *name, *text; /* "EXP", "exp"; of leaves "" */
  enum px_binding binding;
  int arity;
  enum px_sorts sorts;
  bool counted;
  enum px_error error;
  double slope;
  enum px_units units;
};

extern const struct scalar_op scalar_ops[]; /* by enum px_op */

#endif
