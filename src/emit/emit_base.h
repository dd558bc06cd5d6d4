/* What the targets share: a bound tree is walked once and its text is written in the words of a
 * table, so that a target of the C family is a table, a frame around the text, and little more.
 *
 * The bound tree says what is unrolled and where values live (storage.h); loop_space.h makes the
 * indices of the loops that stand open.
 *
 *     emit_plan.c    before: names, and where variables are declared
 *     emit_base.c    the walk: loops, guards, buffers, where accumulators begin and end
 *     emit_stage.c   one point of a stage: its statement, in lanes where it stands in a vec loop
 *     emit_value.c   expressions of values, and the conditions among them
 *     emit_index.c   indices
 *     emit_names.c   names that are free in the target's language
 */
#ifndef CANVAS_EMIT_EMIT_BASE_H
#define CANVAS_EMIT_EMIT_BASE_H

#include "bind/loop_space.h"
#include "emit/emit.h"

#define EMIT_BYTES (32 << 20) /* of text */

extern const char *const c_operations[PX_OPS][2]; /* emit_operations.c: {"expf", "exp"} */

/* The words of a target. Functions and types come for fp32 and for fp64. */
struct spelling {
  const char *index;                 /* type of loops */
  const char *type[PROGRAM_DTYPES];  /* of elements in memory */
  const char *const (*operation)[2]; /* by enum px_op: expf, exp */
  const char *parallel;              /* the line above a parallel loop; %d loops run as one */
  const char *infinity, *nan;
};

/* Where values live, and their name: those of a stage, or its accumulators. */
struct held {
  const char *name;
  struct storage at;
};

struct stage_plan {
  struct held value;  /* its values */
  struct held sum;    /* its accumulators, unless they are its values: direct */
  uint64_t read;      /* of its variables those that were */
  uint64_t sums_read; /* ... of those of its accumulators */
};

struct node_plan {
  const char *name; /* of the variable, where several levels are one loop */
  int stage;        /* the only stage below; -1: there are several */
  bool declares;    /* its body begins with variables */
};

/* What the text needs defined before it. */
enum helper {
  HELP_MAX_F32 = 1 << 0,
  HELP_MAX_F64 = 1 << 1,
  HELP_MIN_F32 = 1 << 2,
  HELP_MIN_F64 = 1 << 3,
  HELP_FLOOR_DIV = 1 << 4,
  HELP_FLOOR_MOD = 1 << 5,
  HELP_LEAST_OF = 1 << 6,
  HELP_MOST_OF = 1 << 7,
  HELP_BF16_READ = 1 << 8,
  HELP_BF16_WRITE = 1 << 9,
  HELP_BF16_ROUND = 1 << 10,
  HELP_MATH = 1 << 11,
  HELP_HEAP = 1 << 12,
  HELP_PARALLEL = 1 << 13,
  HELP_REGION = 1 << 14 /* a parallel region with buffers of its own */
};

/* Of vectors: for each operation the lengths that occur, bit i for i lanes; fp32, then fp64. */
enum vector_helper { VECTOR_TYPE, VECTOR_ALL, VECTOR_PICK, VECTOR_BF16_READ, VECTOR_BF16_WRITE };
enum { VECTOR_HELPERS = VECTOR_BF16_WRITE + 1 + PX_OPS }; /* then those of enum px_op */

/* A line and what stands under it: in braces if that is more than one statement. */
struct block {
  size_t start, head; /* where its line begins and ends */
  int statements, effects;
  bool copied;
};

struct emitter {
  canvas_context *ctx;
  const struct loop_tree *tree;
  const struct program *program;
  const struct schedule *schedule;
  const struct spelling *words;
  const char *function;
  struct arena arena; /* names and plans */
  struct {
    VEC(const char *);
  } names; /* taken */

  /* plan */
  struct stage_plan *stages; /* by position in the tree */
  struct node_plan *nodes;   /* by node */
  const char **tensor_name;  /* by tensor */
  const char **level_name;   /* by level */

  /* text */
  struct buf out;
  int depth;      /* of indentation */
  bool copied;    /* the block holds several copies of what is written now */
  int parallel;   /* so many loops to come run as one, in parallel */
  bool region;    /* ... by the threads of a region around */
  int statements; /* of the block being written: one alone needs no braces */
  int effects;    /* ... that are no declarations: without any the block goes */

  /* where the walk stands */
  struct loop_space space;
  struct program *px; /* of the space */
  int *digit;         /* of the space, by level: its value here; -1: not open */
  uint64_t *guarded;  /* by stage: axes whose condition stands around already */
  int lanes;          /* of its vectors here; 1: scalars */
  int lane;           /* the axis that counts the lanes; -1: none */
  bool one_by_one;    /* lanes are written one by one, `lane` is a loop */
  struct buf before;  /* gathered vectors of the statement being written */
  int gathered;
  bool wide; /* the statement is computed in fp64 */
  struct {
    VEC(uint8_t);
  } known; /* of its expressions, by node: emit_value.c */

  bool *loaded;  /* by tensor */
  unsigned used; /* enum helper */
  uint64_t used_vectors[VECTOR_HELPERS][2];
};

/* emit_c.c */
canvas_status emit_c_open(canvas_context *ctx, struct emitter *e, const struct loop_tree *tree,
                          const struct emit_options *options);
void emit_c_close(struct emitter *e);
void emit_c_parameters(const struct emitter *e, const char *restricted, struct buf *out);

/* emit_names.c */
const char *emit_name(struct emitter *e, const char *wish);
const char *emit_function_name(struct emitter *e, const char *wish);

/* emit_plan.c */
void emit_plan(struct emitter *e, const char *function);

/* emit_base.c */
void emit_walk(struct emitter *e); /* the function's body */
void emit_wrapped(const char *text, size_t length, int depth, struct buf *out);
void emit_line(struct emitter *e, const char *format, ...) PRINTF_LIKE(2, 3);
struct block emit_open(struct emitter *e, const char *format, ...) PRINTF_LIKE(2, 3);
void emit_close(struct emitter *e, struct block block);

/* emit_stage.c */
enum moment { MOMENT_START, MOMENT_POINT, MOMENT_END }; /* of a reduction */
void emit_statement(struct emitter *e, int stage, enum moment moment);
double emit_start_of(enum program_reducer reducer);
void emit_start_value(struct emitter *e, enum program_reducer reducer, int lanes, struct buf *out);

/* emit_value.c */
enum spread {
  SPREAD_SAME,     /* all lanes have the same value: it is a scalar */
  SPREAD_LANES,    /* a vector */
  SPREAD_SCATTERED /* lanes that only a loop can gather */
};
enum spread emit_spread(struct emitter *e, int expr);
void emit_value(struct emitter *e, int expr, int bound, struct buf *out);
void emit_vector(struct emitter *e, int expr, struct buf *out); /* of all lanes, also if the same */
void emit_condition(struct emitter *e, int expr, struct buf *out);
void emit_number(struct emitter *e, double number, struct buf *out);
enum spread emit_held_spread(struct emitter *e, const struct held *h, int place);
int64_t emit_variable(struct emitter *e, const struct held *h, int place);
void emit_held(struct emitter *e, const struct held *h, int place, struct buf *out);
const char *emit_vector_type(struct emitter *e, bool wide, int lanes, char name[16]);
void emit_use_vector(struct emitter *e, int helper, bool wide, int lanes);

/* emit_index.c */
bool emit_stride(const struct emitter *e, int index, int axis, int64_t *stride);
int emit_at_zero(struct emitter *e, int index, int axis);
void emit_index(struct emitter *e, int expr, int bound, struct buf *out);

#endif
