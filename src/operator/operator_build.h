/* What the builder of an operator works with: its arguments, and a program in the making.
 *
 * An axis is a letter, so that a layout is a word: "nihw". Each letter has a name and a size, given
 * once, and an expression, which a stage sets to its own axes and which an index map may replace:
 *
 *     int y = build_stage(b, "Y", b->type, "nopq");               // n, o, p, q are Y's axes
 *     build_reduce(b, y, REDUCE_SUM, "cyx");                      // c, y, x what it sums over
 *     b->at['u'] = build_affine(b, 'p', stride, 'y', dilation);   // u = p*stride + y*dilation
 *     program_define(b->p, y, px_mul(b->p, build_load(b, x, "ncuv"), build_load(b, w, "ocyx")));
 */
#ifndef CANVAS_OPERATOR_OPERATOR_BUILD_H
#define CANVAS_OPERATOR_OPERATOR_BUILD_H

#include "operator/operator_rows.h"

enum { LETTERS = 128, LAYOUT_MAX = 16 };

struct build {
  canvas_context *ctx;
  const struct operator_row *row;
  struct argument argument[OPERATOR_ARGUMENTS_COUNT];
  struct program *p;
  enum program_dtype type; /* of data, weights and result */
  enum program_dtype wide; /* of what stands between a sum and the result */
  const char *name[LETTERS];
  int64_t size[LETTERS];
  int at[LETTERS]; /* expressions of the stage that was opened last */
};

/* Number i of an argument. */
int64_t build_number(const struct build *b, enum operator_argument argument, int i);
void build_axis(struct build *b, int letter, const char *name, int64_t size);

int build_input(struct build *b, const char *name, const char *letters);
/* An input of i32 whose elements lie in [least, most]. */
int build_index_input(struct build *b, const char *name, const char *letters, int64_t least,
                      int64_t most, bool rising);
int build_stage(struct build *b, const char *name, enum program_dtype type, const char *letters);
void build_reduce(struct build *b, int stage, enum program_reducer reducer, const char *letters);
int build_load(struct build *b, int tensor, const char *letters);
/* The stage Y[letters] = tensor[letters] + B[bias], and the end of the program. */
void build_bias(struct build *b, int tensor, const char *letters, int bias,
                const char *bias_letters);

/* 1 / (1 + exp(-value)) */
int build_sigmoid(struct build *b, int value);

/* at[a]*i + at[c]*k */
int build_affine(struct build *b, int a, int64_t i, int c, int64_t k);
/* Several letters as one number, row-major: how many values it has (at most one more than a tensor may
 * have elements), the number, and the letters' expressions from it. */
int64_t build_product(const struct build *b, const char *letters);
int build_flatten(struct build *b, const char *letters);
void build_unflatten(struct build *b, int flat, const char *letters);

/* ---- windows along spatial axes ------------------------------------------------------------ */

/* The letters of a spatial axis: of the data, of the padded data, of the result, within the window. */
struct spatial {
  const char *name, *window_name, *what;
  enum operator_argument argument;
  int data, padded, result, window;
};
const struct spatial *build_spatial(const struct build *b, int i);
int64_t build_before(const struct build *b, int i); /* padding */
int64_t build_after(const struct build *b, int i);
int64_t build_dilation(const struct build *b, int i); /* 1 where the operator has none */
int64_t build_span(const struct build *b, int i);     /* of the dilated window */

/* Sizes of all letters of the spatial axes; rejects windows that do not fit the padded data. With
 * `ceil` the last window may be partly outside, if it begins within the data or before them. */
canvas_status build_windows(struct build *b, bool ceil);
/* The stage `pad` over data[letters], or the data where nothing is put around them. */
int build_pad(struct build *b, int data, const char *letters, double fill);
/* also && low <= at < high */
int build_inside(struct build *b, int also, int at, int64_t low, int64_t high);
/* data[letters] at the padded place at[padded], `fill` around them; sets at[data]. */
int build_padded_load(struct build *b, int data, const char *letters, double fill);
/* The letters with those of the padded data for those of the data. */
const char *build_padded(const struct build *b, const char *letters, char out[LAYOUT_MAX]);
/* at[padded] = at[result]*stride + at[window]*dilation along every spatial axis. */
void build_slide(struct build *b);

/* ---- windows as a matrix (operator_im2col.c) ----------------------------------------------- */

/* Axes of the data, n, i and c, of the groups g, of all windows a ("y") and of what is in one k. */
canvas_status build_matrix_axes(struct build *b);
/* The stage whose element [letters], of g, a and k, is that of the windows of data[data]; `window` is
 * the order of channel and window axes in k, say "yxc". */
int build_matrix(struct build *b, const char *name, const char *letters, const char *window, int x,
                 const char *data);

/* Whether a divides the value, with an error message that names both. */
canvas_status build_divides(const struct build *b, const char *what_a, int64_t a,
                            const char *what_b, int64_t value);

#endif
