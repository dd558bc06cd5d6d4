/* Code as data: one function as a tree of statements, between a bound schedule and a language.
 *
 * build.h makes the tree from a bound schedule, the passes of pipeline.c change it in this order, code_verify.c
 * checks it, and src/emit prints it as C. `canvas compile FILE --after PASS -o -` shows the tree after a pass.
 *
 *     build                 loops, guards, buffers and statements as the schedule says
 *     simplify              code_simplify.c: constant folding; statements without effect are dropped
 *     partition-loops       code_borders.c: loops are split where an index condition changes its value
 *     drop-dead-code        code_dead.c: assignments to variables that nobody reads
 *     share-gathers         code_gathers.c: a vector that several statements gather is gathered once
 *     permute-gathers       code_gathers.c: strided gathers become vector loads and permutations
 *     split-lanes           code_borders.c: a gather at a padding boundary is split into load and zeros
 *     join-pieces           code_pieces.c: a vector that is set piece by piece becomes one load
 *     transpose             code_transpose.c: scattered stores become transpositions in registers
 *     drop-dead-code-again  code_dead.c: what the passes since then left unused
 *     share-divisions       code_remainders.c: one division for a quotient and its remainder
 *     promote-sums          code_promote.c: scalar promotion of sums in memory
 *     block-sums            code_sums.c: long sums in blocks, for a smaller rounding error
 *     share-loads           code_loads.c: common partial loads get a name
 *     share-indices         code_common.c: common subexpressions of indices get a name
 *
 * Nothing here belongs to one language: names are hints, which a printer makes unique; buffers are allocated by
 * a statement; parallel loops carry a mark.
 *
 * Expressions share the operations of programs (enum px_op) and have a type: an element and a number
 * of lanes. Three element types meet in a stage: what is stored in memory, what is computed with
 * and what is accumulated in; CODE_CONVERT stands wherever one becomes another. An operation on
 * vectors accepts scalars, which stand for all lanes.
 *
 * The text form (code_print.c) is for people and for tests:
 *
 *     function rows(X f32[512], Y f32[8])
 *       for y in 0..8
 *         let acc f32 = 0
 *         for k in 0..64
 *           acc += X[y*64 + k]
 *         Y[y] = acc
 */
#ifndef CANVAS_CODE_CODE_H
#define CANVAS_CODE_CODE_H

#include "program/affine.h"
#include "program/program.h"

enum { CODE_LANES = 64 }; /* most lanes of a vector */

/* Elements: those of memory (enum program_dtype: f32, f64, bf16, i32), then what only code has. */
enum code_element {
  CODE_INDEX = PROGRAM_DTYPES, /* an integer of 64 bits: loops and places; i32 is one of 32 */
  CODE_TRUTH                   /* of conditions; in lanes a mask */
};

struct code_type {
  uint8_t element; /* enum program_dtype, enum code_element */
  uint8_t lanes;   /* 1: a scalar */
};

/* ---- expressions ---- */

/* Beside enum px_op. Of indices PX_DIV and PX_MOD are of what is never negative. */
enum code_op {
  CODE_VARIABLE = PX_OPS, /* `variable`, of several the one of number `integer` */
  CODE_ELEMENT,           /* variable[arg 0] */
  CODE_LANE,              /* of the vector arg 0 the lane arg 1 */
  CODE_VECTOR,    /* `lanes` elements in memory, from the element arg 0 on; where arg 1 stands
                             so many of them, the others are 0 and neither read nor written; where
                             arg 2 stands so do lanes before that one, arg 0 is at the lane arg 2 and
                             arg 1 the lane behind the last */
  CODE_BROADCAST, /* arg 0 in all lanes */
  CODE_PERMUTE, /* lane i is number `lists[first + i]` of the lanes of arg 0 and, behind them, of arg 1 (-1: no
                             others), vectors of the same type */
  CODE_SUM,       /* of indices: coef*expr + ... + integer */
  CODE_FLOOR_DIV, /* of indices of any sign by a positive number */
  CODE_FLOOR_MOD,
  CODE_CONVERT,   /* arg 0 as `type` */
  CODE_ROUND,     /* arg 0, an f32, rounded as if it were stored as bf16 */
  CODE_LANES_ADD, /* all lanes of the vector arg 0 in one, in any order */
  CODE_LANES_MUL,
  CODE_LANES_MAX,
  CODE_LANES_MIN,
  CODE_OPS
};

struct code_expr {
  uint8_t op; /* enum px_op, enum code_op */
  struct code_type type;
  int arg[3]; /* -1 where unused */
  int variable;
  int first, count; /* CODE_SUM: of the terms; CODE_PERMUTE: of `lists`, the count is 0 */
  union {
    int64_t integer; /* PX_INT, PX_BOOL, CODE_VARIABLE, CODE_SUM */
    double number;   /* PX_NUMBER */
  };
};

/* ---- variables ---- */

enum code_storage {
  CODE_INPUT,   /* a parameter: an array that is read */
  CODE_OUTPUT,  /* a parameter: an array that is written */
  CODE_COUNTER, /* of a loop */
  CODE_NAME,    /* of an index: declared with its value, never written */
  CODE_LOCAL, /* `count` variables, each with a name of its own: in registers, if there are enough */
  CODE_ARRAY, /* `count` elements, declared */
  CODE_HEAP   /* `count` elements, allocated */
};

/* A name and what it stands for, wherever it is declared: copies of a loop declare it again. */
struct code_variable {
  const char *name; /* a wish */
  bool reserved;    /* the tree's own (lane, points): printers keep it from other names */
  enum code_storage storage;
  struct code_type type; /* of each element */
  int64_t count;
  int64_t
      written; /* ... that statements may write; those behind are loaded in whole vectors, and 0 */
  int64_t row, used; /* its rows have so many elements, of which so many are used; 0: all are */
  bool streamed;     /* CODE_OUTPUT: whole vectors are written around the caches */
};

/* ---- statements ---- */

enum code_kind {
  CODE_FUNCTION, /* statement 0 */
  CODE_BLOCK,    /* a scope of its own */
  CODE_FOR,      /* variable = low; variable < high; variable += step */
  CODE_IF,
  CODE_DECLARE,  /* a local or an array; a local may begin with `value` */
  CODE_ASSIGN,   /* a variable, a lane, an element or elements `to`, by `how` */
  CODE_PREFETCH, /* the element `to` will be read soon */
  CODE_ALLOCATE, /* buffers that live as long as its children run */
  CODE_REGION    /* its children run in each of several threads, which share its parallel loop */
};

enum code_how { CODE_SET, CODE_ADD, CODE_MULTIPLY };

struct code_statement {
  enum code_kind kind;
  int parent;            /* -1 for statement 0 only */
  int first, last, next; /* children in order and the next sibling; -1 = none */
  int variable;          /* CODE_FOR, CODE_DECLARE */
  int low, high;         /* CODE_FOR: indices */
  int64_t step;          /* ... >= 1 */
  int parallel;          /* ... so many loops, one in the other, run as one in parallel; 0: none */
  int condition;         /* CODE_IF */
  int other;             /* ... a CODE_BLOCK, -1 */
  int to;                /* CODE_ASSIGN, CODE_PREFETCH */
  int value;             /* CODE_DECLARE, CODE_ASSIGN; -1 */
  uint64_t unread;       /* CODE_DECLARE: numbers that nobody reads, which are not declared */
  enum code_how how;     /* CODE_ASSIGN */
  int first_list, count; /* CODE_ALLOCATE: of `lists` */
};

struct code {
  const char *name; /* of the function: a wish */
  struct {
    VEC(struct code_variable);
  } variables; /* the parameters in order, then what printers name in this order */
  struct {
    VEC(struct code_expr);
  } exprs;
  struct {
    VEC(struct affine_term);
  } terms;
  struct {
    VEC(struct code_statement);
  } statements;
  struct {
    VEC(int);
  } lists;            /* variables of CODE_ALLOCATE, lanes of CODE_PERMUTE */
  int at;             /* while it is built: where the next statement goes */
  struct arena arena; /* names */
};

/* code.c: by hand. Names are copied. A statement becomes the last child of what is open. */
struct code *code_new(const char *function);
void code_free(struct code *c); /* NULL is fine */

int code_variable(struct code *c, const char *name, enum code_storage storage,
                  struct code_type type, int64_t count);
/* A local of that name and type among the variables from `first` on; a new one if there is none. */
int code_local(struct code *c, int first, const char *name, struct code_type type);

struct code_type code_type(int element, int lanes);
bool code_same_type(struct code_type a, struct code_type b);
bool code_is_index(struct code_type type); /* i32 or CODE_INDEX */
bool code_is_value(struct code_type type); /* f32, f64 or bf16 */

/* A quotient or remainder of an index by a positive constant; the lesser or the greater of two. */
bool code_is_index_operation(const struct code *c, int expr);
/* Whether the expression, -1: none, holds the variable, an element of it, or it as a counter. */
bool code_mentions(const struct code *c, int expr, int variable);
/* An index as one of 64 bits is that index; any other expression is itself. */
int code_bare(const struct code *c, int expr);
/* Whether both are written alike; an index may be of 64 bits in one of them alone. */
bool code_same(const struct code *c, int a, int b);

int code_int(struct code *c, int64_t integer);
int code_number(struct code *c, int element, double number);
int code_truth(struct code *c, bool value);
int code_variable_at(struct code *c, int variable, int64_t number);
int code_element(struct code *c, int variable, int index);
int code_lane(struct code *c, int vector, int lane);
int code_vector(struct code *c, int element, int lanes);
int code_first_lanes(struct code *c, int element, int lanes, int count); /* any index will do */
/* The lanes first .. end-1, the element being that of the first one; of f32. */
int code_some_lanes(struct code *c, int element, int lanes, int first, int end);
int code_broadcast(struct code *c, int scalar, int lanes);        /* itself if lanes is 1 */
int code_permute(struct code *c, int x, int y, const int *lanes); /* y: -1 where it is x alone */
/* What a transposition is made of: of each four lanes of x and y the first two (LOW) or last two, by turns,
 * one by one or in pairs; every second four lanes of x, then of y. */
enum code_zip {
  CODE_ZIP_LOW,
  CODE_ZIP_HIGH,
  CODE_ZIP_PAIRS_LOW,
  CODE_ZIP_PAIRS_HIGH,
  CODE_QUARTERS_EVEN,
  CODE_QUARTERS_ODD,
  CODE_ZIPS
};
int code_zip_lane(enum code_zip how, int lanes, int lane); /* of x, and behind them of y */
int code_across(struct code *c, int op, int vector);       /* CODE_LANES_ADD .. */
int code_convert(struct code *c, int expr, int element);   /* itself if it is of that already */
/* The sum of the terms: a constant, or the one term, where it is that. */
int code_sum(struct code *c, const struct affine_term *terms, int count, int64_t constant);
/* An operation of enum px_op or enum code_op; -1 for arguments that it has not. */
int code_operation(struct code *c, int op, struct code_type type, int a, int b, int third);

int code_open_for(struct code *c, int variable, int low, int high, int64_t step, int parallel);
int code_open_if(struct code *c, int condition);
int code_open_else(struct code *c, int statement); /* of a CODE_IF, closed already */
int code_open_block(struct code *c);
int code_open_allocate(struct code *c, const int *variables, int count);
int code_open_region(struct code *c);
void code_close(struct code *c, int statement); /* what was opened last */
void code_declare(struct code *c, int variable, int value);
void code_assign(struct code *c, int to, enum code_how how, int value);
void code_prefetch(struct code *c, int element);
/* A statement without children behind the child `before` of `parent`, -1: as its first one. */
int code_insert(struct code *c, int parent, int before, struct code_statement s);

/* An expression with another in the place of each part that `mapped` answers with another for, the
 * outermost first, folded; itself if nothing changes. */
typedef int code_mapped(struct code *c, int expr, void *data);
int code_map(struct code *c, int expr, code_mapped *mapped, void *data);

/* An expression with `value` in the place of a counter. */
int code_substitute(struct code *c, int expr, int counter, int64_t value);

/* code_simplify.c: the same effects in the same order, without what never runs or is never seen. */
void code_simplify(struct code *c);

/* code_borders.c: the same, loops split where conditions of indices change. */
void code_partition_loops(struct code *c);
/* The same, lanes that load and lanes that do not in loops of their own: nothing is gathered by one loop
 * any more. */
void code_split_lanes(struct code *c);

/* code_remainders.c: the same, remainders and quotients of what is read by one division. */
void code_share_divisions(struct code *c);

/* code_promote.c: the same, what a loop adds to places in memory that do not move summed up in variables. */
void code_promote_sums(struct code *c);

/* code_sums.c: the same, sums of many steps in levels, with a smaller error. */
void code_block_sums(struct code *c);

/* code_pieces.c: the same, vectors that are set piece by piece from memory loaded at once; whether there were
 * any. */
bool code_join_pieces(struct code *c);

/* code_transpose.c: the same, vectors that are stored lane by lane beside each other transposed in registers;
 * whether there were any. */
bool code_transpose(struct code *c);

/* code_lanes.c: whether one more of the counter, of lanes before `end`, is one more of the index. */
bool code_side_by_side(struct code *c, int index, int counter, int64_t end);
/* A loop over the lanes of a vector becomes a statement of vectors; false where it cannot. */
bool code_join_lanes(struct code *c, int loop);

/* code_permute.c: the elements in memory that the lanes 0 .. lanes-1 of a counter load, as vectors with their lanes
 * in another order; -1: lane by lane is no slower, or where they lie is not known. */
int code_permuted(struct code *c, int element, int counter, int lanes);
/* code_gathers.c: the same with such vectors in the place of those that are gathered, or copied lane by lane; whether
 * there were any. */
bool code_permute_gathers(struct code *c);

/* code_dead.c: the same without what is computed though nobody reads it; whether there was any. */
bool code_drop_dead_code(struct code *c);

/* code_gathers.c: the same, vectors that are gathered several times gathered once; whether there were
 * any. */
bool code_share_gathers(struct code *c);

/* code_loads.c: the same with names for loads of the first lanes that stand several times. */
void code_share_loads(struct code *c);
/* Whether an assignment below the statement is to the variable, or to elements of it. */
bool code_writes(const struct code *c, int parent, int variable);

/* code_common.c: the same with names for what indices have in common. */
void code_share_indices(struct code *c);

/* code_verify.c: every rule of a tree; the message names `pass`, which made it. */
canvas_status code_verify(canvas_context *ctx, const struct code *c, const char *pass);

/* code_print.c */
void code_print(const struct code *c, struct buf *out);
void code_print_expr(const struct code *c, int expr, struct buf *out);
const char *code_element_name(int element); /* "f32", "index" */

#endif
