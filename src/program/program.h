/* Tensor programs: the meaning of every kernel, and the input of the compiler.
 *
 * A program is a list of tensors in order of definition: inputs, and stages that each compute one
 * tensor from earlier ones by one expression per element, reduced over the axes after `//`:
 *
 *     canvas 1
 *     program conv3x3
 *     in X f32 [n:1, ci:64, h:56, w:56]
 *     in W f32 [co:64, ci:64, kh:3, kw:3]
 *     P[n:1, ci:64, h:58, w:58] = if 1 <= h && h < 57 && 1 <= w && w < 57
 *                                 then X[n, ci, h-1, w-1] else 0          (one line in a file)
 *     Y[n:1, co:64, h:56, w:56] = P[n, ci, h+kh, w+kw] * W[co, ci, kh, kw] // sum ci:64, kh:3, kw:3
 *     out Y
 *
 * An expression has one of three sorts: an index (integers; `/` and `%` are floor division and
 * modulo by a positive constant), a value (double precision in the interpreter), or a condition.
 * `real(i)` converts an index to a value. Expressions are nodes in one array, named by position.
 *
 * docs/program.md describes the language, interpret.h the meaning.
 */
#ifndef CANVAS_PROGRAM_PROGRAM_H
#define CANVAS_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/status.h"
#include "program/scalar_ops.h"

enum {
  PROGRAM_AXES = 32,       /* axes of a tensor, reduction axes included */
  PROGRAM_STAGES = 4096,   /* tensors of a program, inputs included */
  PROGRAM_DEPTH = 200,     /* nesting of an expression */
  PROGRAM_NODES = 1 << 18, /* expression nodes of a program, and of one expression as a tree */
  PROGRAM_NAME = 128       /* bytes of a name */
};
#define PROGRAM_ELEMENTS ((int64_t)1 << 40) /* elements of a tensor; points of a reduction */

/* The data type of stored elements. Only inputs may be of PROGRAM_I32; a load of one is an
 * index. */
enum program_dtype { PROGRAM_F32, PROGRAM_F64, PROGRAM_BF16, PROGRAM_I32, PROGRAM_DTYPES };

enum program_reducer { REDUCE_NONE, REDUCE_SUM, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_PROD };

enum px_sort { PX_INDEX, PX_VALUE, PX_CONDITION };

enum px_op {
  /* leaves */
  PX_INT,    /* integer: an index */
  PX_NUMBER, /* number: a value; infinity is allowed, nan is not */
  PX_BOOL,   /* integer is 0 or 1: a condition */
  PX_AXIS,   /* tensor is the stage, integer the position of the axis (reductions last): an index */
  PX_LOAD,   /* tensor, indices p->indices.data[first .. first + rank): a value; of i32 an index */
/* operations: scalar_ops.h. arg[0] of PX_SELECT is the condition */
#define X(op, ...) PX_##op,
  SCALAR_OPS(X)
#undef X
      PX_OPS
};

enum { PX_ARGS = 3 }; /* operands of an operation, at most */

struct px_node {
  uint8_t op;       /* enum px_op */
  uint8_t sort;     /* enum px_sort */
  bool literal;     /* built from integer constants only: may still become a value */
  int depth, size;  /* of the tree, this node included; shared nodes count each time */
  int line, column; /* in the text; 0 if built by functions */
  int arg[PX_ARGS]; /* -1 where unused */
  int tensor;       /* PX_LOAD, PX_AXIS */
  int first;        /* PX_LOAD */
  union {
    int64_t integer; /* PX_INT, PX_BOOL, PX_AXIS */
    double number;   /* PX_NUMBER */
  };
};

/* An axis runs over [0, size). A reduction axis with data-dependent bounds, `k:ptr[r]..ptr[r+1]`,
 * runs over [low, high) instead: indices of the axes before it and of i32 loads. Its values lie in
 * [first, first + size), so `size` is its maximum length; the axis may be empty. */
struct program_axis {
  const char *name;
  int64_t size;  /* >= 1 */
  int64_t first; /* 0 without low and high */
  int low, high; /* expressions; -1: the axis runs over [0, size) */
};

struct program_tensor {
  const char *name;
  bool is_input;
  enum program_dtype dtype;
  int64_t least, most; /* PROGRAM_I32: range of the elements, both ends included */
  bool constant;       /* an input that stays the same over many calls: weights */
  bool rising; /* PROGRAM_I32: elements never fall along the last axis, from least to most */
  int rank, reductions; /* axes[0 .. rank) are own axes, then come the reduction axes */
  struct program_axis axes[PROGRAM_AXES];
  enum program_reducer reducer; /* REDUCE_NONE if and only if reductions == 0 */
  int body;                     /* expression; -1 for inputs and until program_define */
  int line, column;             /* of its name in the text; 0 if built by functions */
};

struct program {
  const char *name;
  int winograd; /* largest tile of its `winograd` edits, which affects rounding; 0: none */
  const char
      *edits; /* texts of the edits that made it (program_edit.h), one per line; NULL: none */
  struct {
    VEC(struct program_tensor);
  } tensors; /* in order of definition; a stage loads earlier tensors only */
  struct {
    VEC(int);
  } inputs; /* tensors, in order */
  struct {
    VEC(int);
  } outputs; /* stages, in order */
  struct {
    VEC(struct px_node);
  } nodes;
  struct {
    VEC(int);
  } indices;                /* index lists of the loads */
  struct arena arena;       /* of the names */
  bool failed;              /* a builder call has failed, see `error` */
  char error[MESSAGE_SIZE]; /* of the first failed builder call */
};

/* program_parse.c, program_print.c. Parsing also verifies. print(parse(t)) is canonical: parsing
 * and printing it again gives the same text. */
canvas_status program_parse(canvas_context *ctx, const char *text, size_t length,
                            struct program **out);
void program_print(const struct program *p, struct buf *buf);
void program_print_expr(const struct program *p, int expr, struct buf *buf);
void px_number_text(double value, char text[32]);      /* the fewest digits that parse back to it */
struct program *program_copy(const struct program *p); /* program_copy.c; `p` has to be verified */
const char *px_op_text(enum px_op op);                 /* "+", "min"; "" for leaves */
const char *program_dtype_name(enum program_dtype dtype);
const char *program_reducer_name(enum program_reducer reducer);

/* Parses a program inside another text, from the lexer's position through a line `end`. */
struct lexer;
canvas_status program_parse_inner(struct lexer *lx, struct program **out);

/* Parses an index of the axes of `tensor`, without loads. */
canvas_status program_parse_index(struct lexer *lx, struct program *p, int tensor, int *out);
/* Parses a value of stage `stage`, which may load tensors before it; appends its nodes to `p`. */
canvas_status program_parse_value(struct lexer *lx, struct program *p, int stage, int *out);

/* program_verify.c: checks every rule of a program, and reports the failure of an earlier builder
 * call. */
canvas_status program_verify(canvas_context *ctx, const struct program *p);
bool program_is_word(const char *name); /* a keyword: no tensor or axis may have this name */
canvas_status program_verify_tensor(canvas_context *ctx, const struct program *p, int tensor);

/* index_range.c: bounds of an index expression over all values of its axes. */
struct px_range {
  int64_t low, high;
  bool exact;    /* both bounds are attained */
  bool data;     /* depends on an i32 load or an axis with data-dependent bounds: never exact */
  bool overflow; /* a part may leave [-2^62, 2^62]: no other field is valid */
  uint32_t axes; /* bit i: depends on axis i */
};
struct px_range px_range(const struct program *p, int expr);
uint32_t px_axes(const struct program *p, int expr); /* the field `axes` only */
void px_bounds(const struct program *p,
               struct program_axis *axis); /* sets first, size from low, high */

/* load_range.c: sets guarded[node] for each load of the stage that the ranges of its indices and
 * the conditions around it do not prove to stay in its tensor. Code checks guarded loads; out of
 * range they * give nan, or 0 of i32. Returns the first of them that is evaluated unconditionally,
 * for every element, or in the bounds of an axis. */
struct unsafe_load {
  int load, index;   /* the node, and which of its indices; load -1: there is none */
  int64_t low, high; /* range of the index; INT64_MIN, INT64_MAX: unbounded */
};
struct unsafe_load program_find_unsafe_load(const struct program *p, int tensor, bool *guarded);

/* program_constants.c: a stage is constant if it loads constant tensors only, also in its bounds,
 * and at least one. `constant` is by tensor. program_constants returns it for all tensors; the
 * caller frees it. */
bool program_stage_is_constant(const struct program *p, int stage, const bool *constant);
bool *program_constants(const struct program *p);

/* builder.c, simplify.c: functions that build programs. They report no errors: a mistake poisons
 * the program (-1 in, -1 out), and program_verify, called once at the end, reports the first one.
 * Names are copied.
 *
 *     struct program *p = program_new("rows");
 *     const char *axes[] = {"n", "c"};
 *     int x = program_input(p, "X", PROGRAM_F32, 2, axes, (int64_t[]){8, 64});
 *     int y = program_stage(p, "Y", PROGRAM_F32, 1, axes, (int64_t[]){8});
 *     int n = program_axis(p, y, 0), c = program_reduce(p, y, REDUCE_SUM, "c", 64);
 *     program_define(p, y, px_load(p, x, 2, (int[]){n, c}));
 *     program_output(p, y);
 *     TRY(program_verify(ctx, p));
 */
struct program *program_new(const char *name);
void program_free(struct program *p); /* NULL is fine */

int program_input(struct program *p, const char *name, enum program_dtype dtype, int rank,
                  const char *const *axes, const int64_t *sizes);
/* Declares that the elements of an i32 input lie in [least, most]; the default is [0, 2^31).
 * `rising`: along the last axis they never fall, the first is `least` and the last is `most`. */
void program_input_range(struct program *p, int input, int64_t least, int64_t most, bool rising);
void program_input_constant(struct program *p, int input);
int program_stage(struct program *p, const char *name, enum program_dtype dtype, int rank,
                  const char *const *axes, const int64_t *sizes);
int program_axis(struct program *p, int stage,
                 int position); /* returns the expression of an axis */
/* Add a reduction axis over [0, size), or over [low, high), and return its expression. */
int program_reduce(struct program *p, int stage, enum program_reducer reducer, const char *axis,
                   int64_t size);
int program_reduce_range(struct program *p, int stage, enum program_reducer reducer,
                         const char *axis, int low, int high);
void program_define(struct program *p, int stage, int expr);
void program_output(struct program *p, int stage);

int program_find(const struct program *p, const char *name); /* a tensor; -1 if there is none */
static inline bool same_name(const char *a, const char *b) {
  return a[0] == b[0] && strcmp(a, b) == 0; /* most names differ in the first character */
}
int64_t program_elements(const struct program *p, int tensor);

/* Expressions. An integer constant beside a value becomes a value; any other index beside a value
 * is a mistake (use px_real). Index expressions are simplified: constants, x+0, x*1, 0*x, x/1, sums
 * of constants, and identities that the axes' sizes prove: (g*16+c)/16 = g and (g*16+c)%16 = c if c
 * < 16, x%64 = x if x < 64, x/64*64 + x%64 = x. So px_div and px_mod of a flattened index give back
 * the original indices. Comparisons of indices that the sizes decide become constants; &&, ||, !
 * and select drop decided operands. */
int px_int(struct program *p, int64_t value);
int px_number(struct program *p, double value);
int px_bool(struct program *p, bool value);
int px_add(struct program *p, int a, int b);
int px_sub(struct program *p, int a, int b);
int px_mul(struct program *p, int a, int b);
int px_div(struct program *p, int a, int b); /* of indices: floor division, b a positive constant */
int px_mod(struct program *p, int a, int b); /* of indices only, b a positive constant */
int px_min(struct program *p, int a, int b);
int px_max(struct program *p, int a, int b);
int px_neg(struct program *p, int a);
int px_real(struct program *p, int index);
int px_load(struct program *p, int tensor, int rank, const int *indices);
int px_call(struct program *p, enum px_op function, int a); /* of one value: PX_EXP */
int px_pow(struct program *p, int a, int b);
int px_select(struct program *p, int condition, int then, int other);
int px_compare(struct program *p, enum px_op op, int a, int b); /* PX_LT .. PX_NE */
int px_and(struct program *p, int a, int b);
int px_or(struct program *p, int a, int b);
int px_not(struct program *p, int a);
int px_inside(struct program *p, int a, int64_t low, int64_t high); /* low <= a && a < high */

/* px_copy.c: builds `expr` of `from` in `to`, which may be `from`, and simplifies it. `axis[i]`
 * replaces axis i of its stage. Loads keep the index of their tensor, or `load` builds them from
 * the copied indices. */
struct px_map {
  const int *axis;
  int (*load)(struct program *to, int tensor, int rank, const int *indices, void *data);
  void *data;          /* argument of `load` */
  bool verbatim;       /* copy operators without simplification */
  const bool *guarded; /* by node of `from`: these loads become `if inside then load else nan` */
  int replaced_node;  /* a node of `from`, plus one: it and all equal nodes are replaced; 0: none */
  int replacement;    /* the expression of `to` that replaces them */
  bool divisors_only; /* replace only divisors: x / node becomes x * replacement */
};
int px_copy(struct program *to, const struct program *from, int expr, const struct px_map *map);
int px_apply(struct program *p, enum px_op op, const int *arg); /* builds any operation */

/* px_same.c: whether two expressions of the same stage are equal, node by node. -1 equals only
 * -1. */
bool px_same(const struct program *p, int a, int b);

/* program_same.c: whether code for one program can be called with the tensors of the other: inputs
 * and outputs agree one by one in type, sizes and range. Names and the mark `const` may differ, and
 * axes of one may be merged in the other. */
bool program_same_tensors(const struct program *p, const struct program *q);

/* Builders without simplification, with the position in the text; for the parser. */
int px_raw(struct program *p, enum px_op op, int a, int b, int c, int line, int column);
int px_raw_leaf(struct program *p, struct px_node leaf);
int px_raw_load(struct program *p, int tensor, int rank, const int *indices, int line, int column);
int program_poison(struct program *p, const char *format, ...) PRINTF_LIKE(2, 3); /* returns -1 */

#endif
