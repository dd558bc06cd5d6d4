/* The operator library: programs by name, from arguments such as `height=56 kernel=3 padding=1`.
 *
 * An operator is one row of a table: its name, its arguments in the order in which they were
 * published with their defaults, what it computes, and the builder of its program. A family of
 * operators is one file, operator_FAMILY.c. Data, weights and biases are inputs X, W, B of the program,
 * the result is Y; zeros around the data are a stage named `pad`, so that a schedule may place it.
 *
 * Names, argument order and meaning follow AutoScheduler's nn/ops where it has the operator (inputs,
 * then weight, bias, stride, padding, dilation, groups), else PyTorch. docs/operators.md is the
 * library.
 */
#ifndef CANVAS_OPERATOR_OPERATOR_H
#define CANVAS_OPERATOR_OPERATOR_H

#include "program/program.h"

enum { OPERATOR_NUMBERS = 8, OPERATOR_SIZE_MAX = 1 << 24 };

/* How the value of an argument is written. */
enum argument_kind {
  KIND_NUMBER, /* 64 */
  KIND_FLAG,   /* 0 or 1 */
  KIND_WINDOW, /* 3, or for each spatial axis: 3x1 */
  KIND_EDGES,  /* 1, or for each spatial axis: 1x0, or before and after each: 1x2x0x0 */
  KIND_SHAPE,  /* 8x64x56 */
  KIND_AXES,   /* 1,2: positions in the shape, from the end if negative */
  KIND_REAL,   /* 1e-5: more than 0 */
  KIND_WORD    /* one of the words in the column */
};

/* clang-format off */
/*   id                 name                 kind         least words       meaning */
#define OPERATOR_ARGUMENTS(X) \
  X(BATCH,             "batch",             KIND_NUMBER, 1,    "",         "samples") \
  X(CHANNELS,          "channels",          KIND_NUMBER, 1,    "",         "channels") \
  X(IN_CHANNELS,       "in_channels",       KIND_NUMBER, 1,    "",         "channels of the data") \
  X(LENGTH,            "length",            KIND_NUMBER, 1,    "",         "elements of a row of the data") \
  X(DEPTH,             "depth",             KIND_NUMBER, 1,    "",         "slices of the data") \
  X(HEIGHT,            "height",            KIND_NUMBER, 1,    "",         "rows of the data") \
  X(WIDTH,             "width",             KIND_NUMBER, 1,    "",         "columns of the data") \
  X(IN_BLOCK,          "in_block",          KIND_NUMBER, 1,    "",         "channels of the data that lie side by side") \
  X(OUT_CHANNELS,      "out_channels",      KIND_NUMBER, 1,    "",         "channels of the result") \
  X(OUT_BLOCK,         "out_block",         KIND_NUMBER, 1,    "",         "channels of the result that lie side by side") \
  X(FACTOR,            "factor",            KIND_NUMBER, 1,    "",         "channels of the result for each of the data") \
  X(KERNEL,            "kernel",            KIND_WINDOW, 1,    "",         "the window") \
  X(BIAS,              "bias",              KIND_FLAG,   0,    "",         "whether a bias is added") \
  X(STRIDE,            "stride",            KIND_WINDOW, 1,    "",         "steps between windows") \
  X(PADDING,           "padding",           KIND_EDGES,  0,    "",         "what is put around the data") \
  X(OUTPUT_PADDING,    "output_padding",    KIND_WINDOW, 0,    "",         "how much longer the result is than it need be") \
  X(DILATION,          "dilation",          KIND_WINDOW, 1,    "",         "steps between elements of a window") \
  X(GROUPS,            "groups",            KIND_NUMBER, 1,    "",         "groups of channels that do not mix") \
  X(CEIL_MODE,         "ceil_mode",         KIND_FLAG,   0,    "",         "whether a last window may be partly outside") \
  X(COUNT_INCLUDE_PAD, "count_include_pad", KIND_FLAG,   0,    "",         "whether padding counts as elements") \
  X(WEIGHTS,           "weights",           KIND_WORD,   0,    "oihw hwio", "order of the weight's axes") \
  X(M,                 "m",                 KIND_NUMBER, 1,    "",         "rows of the result") \
  X(K,                 "k",                 KIND_NUMBER, 1,    "",         "what is summed over") \
  X(L,                 "l",                 KIND_NUMBER, 1,    "",         "what is summed over beside k") \
  X(N,                 "n",                 KIND_NUMBER, 1,    "",         "columns of the result") \
  X(TRANSPOSE_A,       "transpose_a",       KIND_FLAG,   0,    "",         "whether A is given transposed") \
  X(TRANSPOSE_B,       "transpose_b",       KIND_FLAG,   0,    "",         "whether B is given transposed") \
  X(IN_FEATURES,       "in_features",       KIND_NUMBER, 1,    "",         "what is summed over") \
  X(OUT_FEATURES,      "out_features",      KIND_NUMBER, 1,    "",         "columns of the result") \
  X(IN1_FEATURES,      "in1_features",      KIND_NUMBER, 1,    "",         "elements of a row of the first data") \
  X(IN2_FEATURES,      "in2_features",      KIND_NUMBER, 1,    "",         "elements of a row of the second data") \
  X(INPUT_SIZE,        "input_size",        KIND_NUMBER, 1,    "",         "elements of a row of the data") \
  X(HIDDEN_SIZE,       "hidden_size",       KIND_NUMBER, 1,    "",         "elements of a row of the state") \
  X(ROWS,              "rows",              KIND_NUMBER, 1,    "",         "rows of the matrix") \
  X(COLUMNS,           "columns",           KIND_NUMBER, 1,    "",         "columns of the matrix") \
  X(BLOCK,             "block",             KIND_NUMBER, 1,    "",         "rows and columns of a circulant block") \
  X(MASK_TYPE,         "mask_type",         KIND_WORD,   0,    "A B",      "what is seen: A what stands before the pixel, B that and the pixel") \
  X(CLASS_VECTOR,      "class_vector",      KIND_FLAG,   0,    "",         "whether a vector for each sample is added to the gate") \
  X(EPSILON,           "epsilon",           KIND_REAL,   0,    "",         "what is added to the variance") \
  X(BLOCKS,            "blocks",            KIND_NUMBER, 1,    "",         "blocks of the weight that are stored") \
  X(BLOCK_ROWS,        "block_rows",        KIND_NUMBER, 1,    "",         "rows of a block: channels or columns of the result") \
  X(BLOCK_COLUMNS,     "block_columns",     KIND_NUMBER, 1,    "",         "columns of a block: elements that are summed over") \
  X(SHAPE,             "shape",             KIND_SHAPE,  1,    "",         "sizes of the data") \
  X(DIM,               "dim",               KIND_AXES,   0,    "",         "positions in the shape, from the end if negative") \
  X(DTYPE,             "dtype",             KIND_WORD,   0,    "f32 f64 bf16", "what data, weights and result are stored as")
/* clang-format on */

enum operator_argument {
#define X(id, ...) ARG_##id,
  OPERATOR_ARGUMENTS(X)
#undef X
      OPERATOR_ARGUMENTS_COUNT
};

struct argument_row {
  const char *name;
  enum argument_kind kind;
  int least; /* of each number */
  const char *words, *meaning;
};
extern const struct argument_row argument_rows[OPERATOR_ARGUMENTS_COUNT];

/* The value of an argument. A window has a number for each spatial axis, edges have two (before,
 * after); of a word it is the position in its column. */
struct argument {
  int count; /* 0: not an argument of this operator */
  int64_t number[OPERATOR_NUMBERS];
  double real;
};

struct build; /* operator_build.h */

struct operator_row {
  const char *name;
  canvas_status (*build)(struct build *b);
  int spatial;           /* axes that windows run along */
  const char *arguments; /* "batch=1 in_channels ...": in order; without = a value must be given */
  const char *meaning;
};
extern const struct operator_row operator_rows[];
extern const int operator_count;

/* CANVAS_BAD_INPUT with an error message that guesses what was meant. */
canvas_status operator_named(canvas_context *ctx, const char *name,
                             const struct operator_row **out);

/* Argument i of a row, from 0 and in order: false behind the last one. `otherwise` is its default with
 * its length, NULL if it has none; a default may be the name of an argument before it. */
struct row_argument {
  enum operator_argument argument;
  const char *otherwise;
  int length;
};
bool operator_argument_at(const struct operator_row *row, int i, struct row_argument *out);

/* operator_arguments.c: reads "NAME=VALUE ...", separated by blanks, and puts defaults for the rest. */
canvas_status operator_read(canvas_context *ctx, const struct operator_row *row, const char *text,
                            size_t length, struct argument out[OPERATOR_ARGUMENTS_COUNT]);
/* What a value of the argument looks like: "NUMBER", "NUMBER or HEIGHTxWIDTH". */
const char *operator_value_form(const struct operator_row *row, enum operator_argument argument);

/* The operator's program, verified. */
canvas_status operator_program(canvas_context *ctx, const char *name, const char *arguments,
                               size_t length, struct program **out);

#endif
