/* Code as data: one function as a tree of statements, between a bound schedule and a language.
 *
 * build.h makes the tree from a bound schedule, the passes of pipeline.c change it in this order,
 * code_verify.c checks it, and src/emit prints it as C. `canvas compile FILE --after PASS -o -`
 * shows the tree after a pass.
 *
 *     build                 loops, guards, buffers and statements in the order of the schedule
 *     simplify              code_simplify.c: drops statements without effect, loops of one trip
 *     partition-loops       code_borders.c: splits loops where an index condition changes its value
 *     drop-dead-code        code_dead.c: drops assignments to variables that nobody reads
 *     share-gathers         code_gathers.c: gathers a vector once for several statements
 *     permute-gathers       code_gathers.c: strided gathers become loads and permutations
 *     split-lanes           code_borders.c: splits gathers at a padding boundary
 *     join-pieces           code_pieces.c: a vector that is set piece by piece becomes one load
 *     transpose             code_transpose.c: scattered stores become transpositions in registers
 *     drop-dead-code-again  code_dead.c: drops what passes since then left unused
 *     share-divisions       code_remainders.c: one division for a quotient and its remainder
 *     promote-sums          code_promote.c: scalar promotion of sums in memory
 *     block-sums            code_sums.c: long sums in blocks, for a smaller rounding error
 *     share-loads           code_loads.c: common partial loads get a name
 *     share-indices         code_common.c: common subexpressions of indices get a name
 *
 * Nothing here belongs to one language: names are hints, which a printer makes unique; buffers are
 * allocated by a statement; parallel loops carry a mark.
 *
 * Expressions share the operations of programs (enum px_op) and have a type: an element and a
 * number of lanes. A stage has three element types: of memory, of arithmetic and of accumulators.
 * CODE_CONVERT converts between them. An operation on vectors accepts scalars, which stand for all
 * lanes.
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

enum { CODE_LANES = 64 }; /* maximum lanes of a vector */

/* Elements: those of memory (enum program_dtype: f32, f64, bf16, i32), then what only code has. */
enum code_element {
  CODE_INDEX = PROGRAM_DTYPES, /* a 64-bit integer: loop counters and indices; i32 has 32 bits */
  CODE_TRUTH                   /* of conditions; with several lanes a mask */
};

struct code_type {
  uint8_t element; /* enum program_dtype, enum code_element */
  uint8_t lanes;   /* 1: a scalar */
};

/* ---- expressions ---- */

/* Beside enum px_op. PX_DIV and PX_MOD of indices take operands that are never negative. */
enum code_op {
  CODE_VARIABLE = PX_OPS, /* `variable`; of an array of variables number `integer` */
  CODE_ELEMENT,           /* variable[arg 0] */
  CODE_LANE,              /* lane arg 1 of the vector arg 0 */
  CODE_VECTOR, /* `lanes` contiguous elements in memory from the element arg 0 on. With arg 1 only
                  that many lanes are read or written, the others are 0. With arg 2, lanes before
                  that one are 0, too: arg 0 is at lane arg 2, arg 1 is the lane after the last */
  CODE_BROADCAST, /* arg 0 in all lanes */
  CODE_PERMUTE,   /* lane i is lane `lists[first + i]` of the concatenation of the vectors arg 0 and
                     arg 1 (-1: arg 0 alone), of the same type */
  CODE_SUM,       /* of indices: coef*expr + ... + integer */
  CODE_FLOOR_DIV, /* floor division of an index of any sign by a positive number */
  CODE_FLOOR_MOD,
  CODE_CONVERT,   /* arg 0 as `type` */
  CODE_ROUND,     /* arg 0, an f32, rounded to bf16 precision */
  CODE_LANES_ADD, /* horizontal reduction of the vector arg 0, in any order */
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
  int first, count; /* CODE_SUM: range of `terms`; CODE_PERMUTE: start in `lists`, count 0 */
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
  CODE_NAME,    /* a named index: declared with its value, never written */
  CODE_LOCAL,   /* `count` variables, each with its own name: registers, if there are enough */
  CODE_ARRAY,   /* `count` elements on the stack, declared */
  CODE_HEAP     /* `count` elements on the heap, allocated */
};

/* A variable, an array or a parameter. Copies of a loop declare it again. */
struct code_variable {
  const char *name; /* a hint: printers make it unique */
  bool reserved;    /* the tree's own (lane, points): printers reserve the name */
  enum code_storage storage;
  struct code_type type; /* type of each element */
  int64_t count;
  int64_t written; /* elements that statements may write; later ones are 0, for loads of whole
                      vectors */
  int64_t row,
      used;      /* elements of a row, and how many of them are used; 0: no rows, all are used */
  bool streamed; /* CODE_OUTPUT: whole vectors are stored past the caches */
};

/* ---- statements ---- */

enum code_kind {
  CODE_FUNCTION, /* statement 0 */
  CODE_BLOCK,    /* a scope of its own */
  CODE_FOR,      /* variable = low; variable < high; variable += step */
  CODE_IF,
  CODE_DECLARE, /* a local or an array; a local may begin with `value` */
  CODE_ASSIGN,  /* `to` (a variable, a lane, an element, a vector) is set, added to or multiplied */
  CODE_PREFETCH, /* the element `to` will be read soon */
  CODE_ALLOCATE, /* allocates buffers for the time that its children run */
  CODE_REGION    /* each thread runs its children and gets a share of their parallel loop */
};

enum code_how { CODE_SET, CODE_ADD, CODE_MULTIPLY };

struct code_statement {
  enum code_kind kind;
  int parent;            /* -1 for statement 0 only */
  int first, last, next; /* children in order and the next sibling; -1 = none */
  int variable;          /* CODE_FOR, CODE_DECLARE */
  int low, high;         /* CODE_FOR: indices */
  int64_t step;          /* CODE_FOR: >= 1 */
  int parallel;    /* CODE_FOR: number of nested loops that are collapsed into one parallel loop; 0:
                      serial */
  int condition;   /* CODE_IF */
  int other;       /* CODE_IF: the else branch, a CODE_BLOCK; -1: none */
  int to;          /* CODE_ASSIGN, CODE_PREFETCH */
  int value;       /* CODE_DECLARE, CODE_ASSIGN; -1 */
  uint64_t unread; /* CODE_DECLARE: bit set of unused numbers, which are not declared */
  enum code_how how;     /* CODE_ASSIGN */
  int first_list, count; /* CODE_ALLOCATE: its variables, a range of `lists` */
};

struct code {
  const char *name; /* of the function: a hint */
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
  int at;             /* while it is built: parent of the next statement */
  struct arena arena; /* names */
};

/* code.c: builds a tree. Names are copied. A statement becomes the last child of the open
 * statement. */
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

/* Quotient or remainder of an index by a positive constant; minimum or maximum of two indices. */
bool code_is_index_operation(const struct code *c, int expr);
/* Whether the expression (-1: none) has the variable, as a counter, or an element of it. */
bool code_mentions(const struct code *c, int expr, int variable);
/* The expression without a conversion of an index to 64 bits. */
int code_bare(const struct code *c, int expr);
/* Whether both are the same expression, conversions of indices to 64 bits aside. */
bool code_same(const struct code *c, int a, int b);

int code_int(struct code *c, int64_t integer);
int code_number(struct code *c, int element, double number);
int code_truth(struct code *c, bool value);
int code_variable_at(struct code *c, int variable, int64_t number);
int code_element(struct code *c, int variable, int index);
int code_lane(struct code *c, int vector, int lane);
int code_vector(struct code *c, int element, int lanes);
int code_first_lanes(struct code *c, int element, int lanes, int count); /* count: any index */
/* The lanes first .. end-1 of f32; `element` is that of the lane `first`. */
int code_some_lanes(struct code *c, int element, int lanes, int first, int end);
int code_broadcast(struct code *c, int scalar, int lanes);        /* itself if lanes is 1 */
int code_permute(struct code *c, int x, int y, const int *lanes); /* y: -1 where it is x alone */
/* Steps of a transposition. ZIP interleaves the first two (LOW) or last two (HIGH) of each four
 * lanes of x and y, one by one or in pairs. QUARTERS concatenates every second four lanes of x and
 * of y. */
enum code_zip {
  CODE_ZIP_LOW,
  CODE_ZIP_HIGH,
  CODE_ZIP_PAIRS_LOW,
  CODE_ZIP_PAIRS_HIGH,
  CODE_QUARTERS_EVEN,
  CODE_QUARTERS_ODD,
  CODE_ZIPS
};
int code_zip_lane(enum code_zip how, int lanes, int lane); /* of the concatenation of x and y */
int code_across(struct code *c, int op, int vector);       /* CODE_LANES_ADD .. */
int code_convert(struct code *c, int expr, int element);   /* itself if it has the element */
/* The sum of the terms: a constant, or the one term, where it is that. */
int code_sum(struct code *c, const struct affine_term *terms, int count, int64_t constant);
/* An operation of enum px_op or enum code_op; -1 for missing arguments. */
int code_operation(struct code *c, int op, struct code_type type, int a, int b, int third);

int code_open_for(struct code *c, int variable, int low, int high, int64_t step, int parallel);
int code_open_if(struct code *c, int condition);
int code_open_else(struct code *c, int statement); /* of a CODE_IF, closed already */
int code_open_block(struct code *c);
int code_open_allocate(struct code *c, const int *variables, int count);
int code_open_region(struct code *c);
void code_close(struct code *c, int statement); /* the statement that was opened last */
void code_declare(struct code *c, int variable, int value);
void code_assign(struct code *c, int to, enum code_how how, int value);
void code_prefetch(struct code *c, int element);
/* Inserts a statement without children after the child `before` of `parent`; -1: as the first
 * child. */
int code_insert(struct code *c, int parent, int before, struct code_statement s);

/* Replaces each part for which `mapped` returns another expression, outermost first, and folds
 * constants; returns the expression itself if nothing changes. */
typedef int code_mapped(struct code *c, int expr, void *data);
int code_map(struct code *c, int expr, code_mapped *mapped, void *data);

/* Replaces a counter by `value`. */
int code_substitute(struct code *c, int expr, int counter, int64_t value);

/* ---- passes: what each keeps stands in its file and in pipeline.c ---------------------------- */

void code_simplify(struct code *c);        /* code_simplify.c */
void code_partition_loops(struct code *c); /* code_borders.c */
void code_split_lanes(struct code *c);     /* code_borders.c: gathers at a padding boundary */
bool code_drop_dead_code(struct code *c);  /* code_dead.c: whether there was any */
bool code_share_gathers(struct code *c);   /* code_gathers.c: whether there were any */
bool code_permute_gathers(struct code *c); /* code_gathers.c: whether there were any */
bool code_join_pieces(struct code *c);     /* code_pieces.c: whether there were any */
bool code_transpose(struct code *c);       /* code_transpose.c: whether anything was transposed */
void code_share_divisions(struct code *c); /* code_remainders.c */
void code_promote_sums(struct code *c);    /* code_promote.c */
void code_block_sums(struct code *c);      /* code_sums.c */
void code_share_loads(struct code *c);     /* code_loads.c */
void code_share_indices(struct code *c);   /* code_common.c */

/* ---- what passes share ----------------------------------------------------------------------- */

/* code_lanes.c: whether the index grows by one with the counter, for counters below `end`. */
bool code_side_by_side(struct code *c, int index, int counter, int64_t end);
/* A loop over the lanes of a vector becomes a statement of vectors; false if it cannot. */
bool code_join_lanes(struct code *c, int loop);
/* code_permute.c: the elements that the lanes 0 .. lanes-1 of a counter load, as a permutation of
 * vector loads; -1 if lane by lane is no slower, or if their indices are not known. */
int code_permuted(struct code *c, int element, int counter, int lanes);
/* code_loads.c: whether a statement below `parent` assigns to the variable or to elements of it. */
bool code_writes(const struct code *c, int parent, int variable);

/* code_verify.c: checks every rule of a tree; the message names `pass`, which produced it. */
canvas_status code_verify(canvas_context *ctx, const struct code *c, const char *pass);

/* code_print.c */
void code_print(const struct code *c, struct buf *out);
void code_print_expr(const struct code *c, int expr, struct buf *out);
const char *code_element_name(int element); /* "f32", "index" */

#endif
