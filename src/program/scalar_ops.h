/* The operations of expressions: one row defines everything about an operation except its C.
 *
 * The enum (program.h), the parser, the printer, the builder's sorts, the interpreter, the counts
 * and the rounding bounds (src/run/rounding.c) are generated from the rows. The C is in
 * src/emit/emit_operations.c, which does not compile without a row for each operation.
 *
 * The order of the rows is that of the helpers in emitted C. The rows with CALL are the functions
 * of the program language.
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
 *  |       |         |        |  |        |  |                  the interpreter, of values
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

/* Operator precedence, from loosest to tightest: the numbers are compared. */
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

/* Sorts of the operands -> sort of the result. */
enum px_sorts {
  SORTS_LEAF,
  SORTS_NUMBERS, /* two indices -> index, or two values -> value */
  SORTS_INDICES, /* indices -> index */
  SORTS_VALUES,  /* values -> value */
  SORTS_REAL,    /* index -> value */
  SORTS_TEST,    /* two indices or two values -> condition */
  SORTS_LOGIC,   /* conditions -> condition; && and || evaluate the right side only if needed */
  SORTS_CHOICE   /* condition and two numbers -> number; only one of them is evaluated */
};

/* Error propagation: operands a and b have errors of at most e and f; the bound of the exact
 * result's error. */
enum px_error {
  ERROR_NONE,     /* no formula: an index, a condition, or a choice between operands */
  ERROR_SUM,      /* e + f */
  ERROR_PRODUCT,  /* |a| f + |b| e + e f */
  ERROR_QUOTIENT, /* (e + |a/b| f) / (|b| - f) */
  ERROR_POWER,    /* as a factor: exp of the error of b * log a */
  ERROR_LARGER,   /* the larger of e and f */
  ERROR_SLOPE,    /* slope * e */
  ERROR_WAVE,     /* slope * e; near zeros the result is rounded as if it were 1 */
  ERROR_RISING,   /* f(a + e) - f(a - e), for a monotone function */
  ERROR_EXP,      /* exp(a) (exp(e) - 1): of exp and expm1 */
  ERROR_LOG,      /* e / (a - e), of log1p e / (1 + a - e) */
  ERROR_SQRT      /* e / sqrt(a) */
};

/* Rounding error of the result, in units in the last place: exact, nearest, or wide enough for any
 * libm and for short polynomials. */
enum px_units { UNITS_EXACT = 0, UNITS_NEAREST = 1, UNITS_LIBRARY = 8 };

struct scalar_op {
  const char *name, *text; /* "EXP", "exp"; of leaves "" */
  enum px_binding binding;
  int arity;
  enum px_sorts sorts;
  bool counted; /* as a flop, where it is of values */
  enum px_error error;
  double slope; /* maximum slope, of ERROR_SLOPE and ERROR_WAVE */
  enum px_units units;
};

extern const struct scalar_op scalar_ops[]; /* by enum px_op */

#endif
