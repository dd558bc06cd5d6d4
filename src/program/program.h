/* Tensor programs: what every kernel means, and what the compiler starts from.
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
 * Expressions have one of three sorts: an index (integers; `/` and `%` are the mathematical floor
 * division and modulo by a positive constant), a value (double precision in the interpreter), or a
 * condition. `real(i)` makes a value of an index. They are nodes in one array, named by position.
 *
 * docs/program.md is the language; interpret.h is the meaning.
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
#define PROGRAM_ELEMENTS ((int64_t)1 << 40) /* elements of a tensor; of a reduction */

/* How elements are stored. Only inputs may be of PROGRAM_I32, and a load of one is an index. */
enum program_dtype { PROGRAM_F32, PROGRAM_F64, PROGRAM_BF16, PROGRAM_I32, PROGRAM_DTYPES };

enum program_reducer { REDUCE_NONE, REDUCE_SUM, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_PROD };

enum px_sort { PX_INDEX, PX_VALUE, PX_CONDITION };

enum px_op {
  /* leaves */
  PX_INT,    /* integer: an index */
  PX_NUMBER, /* number: a value; infinite is allowed, nan is not */
  PX_BOOL,   /* integer is 0 or 1: a condition */
  PX_AXIS,   /* tensor is the stage, integer the position among its axes (reduction axes last) */
  PX_LOAD,   /* tensor; its indices are p->indices.data[first .. first + rank); an index of i32 */
/* operations: scalar_ops.h. Of PX_SELECT arg[0] is the condition */
#define X(op, ...) PX_##op,
  SCALAR_OPS(X)
#undef X
      PX_OPS
};

enum { PX_ARGS = 3 }; /* operands of an operation, at most */

struct px_node {
  uint8_t op;       /* enum px_op */
  uint8_t sort;     /* enum px_sort */
  bool literal;     /* built of integer constants only: may still become a value */
  int depth, size;  /* of the tree below, itself included; shared nodes count each time */
  int line, column; /* where the text has it, 0 if built */
  int arg[PX_ARGS]; /* -1 where unused */
  int tensor;       /* PX_LOAD, PX_AXIS */
  int first;        /* PX_LOAD */
  union {
    int64_t integer; /* PX_INT, PX_BOOL, PX_AXIS */
    double number;   /* PX_NUMBER */
  };
};

/* An axis runs over [0, size). A reduction axis `k:ptr[r]..ptr[r+1]` runs over [low, high) instead,
 * indices made of the axes before it and of i32 loads: its values are in [first, first + size), as
 * far as ranges tell, so that `size` is the most there can be; it may be empty. */
struct program_axis {
  const char *name;
  int64_t size;  /* >= 1 */
  int64_t first; /* 0 without low and high */
  int low, high; /* expressions; -1: none */
};

struct program_tensor {
  const char *name;
  bool is_input;
  enum program_dtype dtype;
  int64_t least, most;  /* PROGRAM_I32: the range of its elements, both included */
  bool constant;        /* an input that is the same in many calls: weights */
  bool rising;          /* ... which never fall along the last axis, from least to most */
  int rank, reductions; /* axes[0 .. rank) are its own, then the reduction axes */
  struct program_axis axes[PROGRAM_AXES];
  enum program_reducer reducer; /* REDUCE_NONE if and only if reductions == 0 */
  int body;                     /* expression; -1 for inputs and until program_define */
  int line, column;             /* of its name in the text, 0 if built */
};

struct program {
  const char *name;
  int winograd; /* the largest tile that an edit `winograd` took on the way here: its rounding is another;
                   0: none */
  const char *edits; /* texts of the edits that made it (program_edit.h), a line each; NULL: none */
  struct {
    VEC(struct program_tensor);
  } tensors; /* in order; a stage loads earlier ones only */
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
  } indices;          /* index lists of the loads */
  struct arena arena; /* names */
  bool failed;        /* a builder call failed; error says how */
  char error[MESSAGE_SIZE];
};

/* program_parse.c, program_print.c. Parsing verifies too; print(parse(t)) is canonical, and stable
 * under parsing and printing again. */
canvas_status program_parse(canvas_context *ctx, const char *text, size_t length,
                            struct program **out);
void program_print(const struct program *p, struct buf *buf);
void program_print_expr(const struct program *p, int expr, struct buf *buf);
struct program *program_copy(const struct program *p); /* program_copy.c: of a verified one */
const char *px_op_text(enum px_op op);                 /* "+", "min"; "" of leaves */
const char *program_dtype_name(enum program_dtype dtype);
const char *program_reducer_name(enum program_reducer reducer);

/* A program in another text: from where the lexer stands through a line `end`. */
struct lexer;
canvas_status program_parse_inner(struct lexer *lx, struct program **out);

/* An index of the axes of `tensor` (no loads), read where the lexer stands. */
canvas_status program_parse_index(struct lexer *lx, struct program *p, int tensor, int *out);
/* A value of stage `stage`, which loads tensors before it; its nodes are new ones of `p`. */
canvas_status program_parse_value(struct lexer *lx, struct program *p, int stage, int *out);

/* program_verify.c: every rule of a program; the failure of an earlier builder call is reported
 * here too. */
canvas_status program_verify(canvas_context *ctx, const struct program *p);
bool program_is_word(const char *name); /* of the language: no tensor or axis may have it */
canvas_status program_verify_tensor(canvas_context *ctx, const struct program *p, int tensor);

/* index_range.c: bounds of an index expression over all values of its axes. */
struct px_range {
  int64_t low, high;
  bool exact;    /* both are attained */
  bool data;     /* an i32 load or an axis with bounds occurs: what is attained is not known */
  bool overflow; /* some part of it may leave [-2^62, 2^62]: nothing else is valid */
  uint32_t axes; /* bit i: axis i occurs */
};
struct px_range px_range(const struct program *p, int expr);
uint32_t px_axes(const struct program *p, int expr); /* of the range, without the rest */
void px_bounds(const struct program *p, struct program_axis *axis); /* first, size of low..high */

/* load_range.c: guarded[node] is set for each load of the stage that is not proved to lie in its
 * tensor, by the ranges of its indices and the conditions around it. The answer is the first of them
 * that is evaluated for every element, or in the bounds of an axis; load -1: there is none. Where a
 * guarded load is out of range, code reads nan, or 0 of i32. */
struct unsafe_load {
  int load, index;   /* the node, and which of its indices */
  int64_t low, high; /* its range; INT64_MIN, INT64_MAX: not bounded */
};
struct unsafe_load program_find_unsafe_load(const struct program *p, int tensor, bool *guarded);

/* program_constants.c: a stage is constant where it loads something, in its bounds too, and only what is
 * constant. By tensor; the second is for the whole program, and the caller frees it. */
bool program_stage_is_constant(const struct program *p, int stage, const bool *constant);
bool *program_constants(const struct program *p);

/* builder.c, simplify.c: programs by hand. Calls never fail visibly: a mistake poisons the program
 * (-1 in, -1 out) and program_verify, called once at the end, reports the first one. Names are
 * copied.
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
/* The elements of an i32 input lie in [least, most]; without this call in [0, 2^31). `rising`: along
 * the last axis they never fall, the first is `least` and the last `most`. */
void program_input_range(struct program *p, int input, int64_t least, int64_t most, bool rising);
void program_input_constant(struct program *p, int input);
int program_stage(struct program *p, const char *name, enum program_dtype dtype, int rank,
                  const char *const *axes, const int64_t *sizes);
int program_axis(struct program *p, int stage, int position); /* the expression of an axis */
int program_reduce(struct program *p, int stage, enum program_reducer reducer, const char *axis,
                   int64_t size); /* one more reduction axis; its expression */
int program_reduce_range(struct program *p, int stage, enum program_reducer reducer,
                         const char *axis, int low, int high); /* ... over [low, high) */
void program_define(struct program *p, int stage, int expr);
void program_output(struct program *p, int stage);

int program_find(const struct program *p, const char *name); /* a tensor, -1 if there is none */
static inline bool same_name(const char *a, const char *b) {
  return a[0] == b[0] && strcmp(a, b) == 0; /* most differ at once */
}
int64_t program_elements(const struct program *p, int tensor);

/* Expressions. An integer constant beside a value becomes a value; another index beside a value is
 * a mistake (px_real). Index expressions are simplified: constants, x+0, x*1, 0*x, x/1, sums of
 * constants, and what the axes' sizes decide: (g*16+c)/16 = g and (g*16+c)%16 = c where c < 16,
 * x%64 = x where x < 64, x/64*64 + x%64 = x; so flat = px_add(px_mul(c, H*W), ...) can be taken
 * apart again by px_div and px_mod and reads as if it never had been flat. Comparisons of indices
 * that the sizes decide become constants, and &&, ||, ! and select drop what is decided. */
int px_int(struct program *p, int64_t value);
int px_number(struct program *p, double value);
int px_bool(struct program *p, bool value);
int px_add(struct program *p, int a, int b);
int px_sub(struct program *p, int a, int b);
int px_mul(struct program *p, int a, int b);
int px_div(struct program *p, int a, int b); /* indices: floor, b a positive constant */
int px_mod(struct program *p, int a, int b); /* indices only, likewise */
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

/* px_copy.c: `expr` of `from`, built and simplified anew in `to` (which may be `from`): axis[i] is the
 * expression that stands for axis i of its stage; loads keep their tensors' numbers, or are made by
 * `load` from the indices, copied already. */
struct px_map {
  const int *axis;
  int (*load)(struct program *to, int tensor, int rank, const int *indices, void *data);
  void *data;
  bool verbatim;       /* operators are built as they stand, nothing is simplified */
  const bool *guarded; /* by node of `from`: these loads become `if inside then load else nan` */
  int replaced_node;   /* a node of `from`, plus one: this and all that are the same become ... */
  int replacement;     /* ... this expression of `to`; 0: none does */
  bool divisors_only; /* ... only where they divide, and the quotient becomes a product with `by` */
};
int px_copy(struct program *to, const struct program *from, int expr, const struct px_map *map);
int px_apply(struct program *p, enum px_op op, const int *arg); /* any operation, by its builder */

/* px_same.c: the same expression, node by node, of the same stage. Comparing -1 is fine. */
bool px_same(const struct program *p, int a, int b);

/* program_same.c: inputs and outputs agree one by one in type, sizes and what they may hold: code for one
 * can be called with the tensors of the other. Names, and which inputs are constant, may differ, and axes of one
 * may be merged in the other. */
bool program_same_tensors(const struct program *p, const struct program *q);

/* Without simplification, with a place in the text: what the parser builds with. */
int px_raw(struct program *p, enum px_op op, int a, int b, int c, int line, int column);
int px_raw_leaf(struct program *p, struct px_node leaf);
int px_raw_load(struct program *p, int tensor, int rank, const int *indices, int line, int column);
int program_poison(struct program *p, const char *format, ...) PRINTF_LIKE(2, 3); /* -1 */

#endif
