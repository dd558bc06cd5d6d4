/* The engine of the edits: builds a program anew, tensor by tensor, with one change in it. Tensors
 * that the change does not concern are copied. program_edit.c parses a change from the text of an
 * edit; the functions at the end of program_edit.h make changes without a text. */
#ifndef CANVAS_REWRITE_PROGRAM_REBUILD_H
#define CANVAS_REWRITE_PROGRAM_REBUILD_H

#include "program/program_facts.h"
#include "rewrite/index_pieces.h"
#include "rewrite/program_layout.h"

enum change_kind {
  CHANGE_CACHE_WRITE,
  CHANGE_CACHE_READ,
  CHANGE_PACK,
  CHANGE_INLINE,
  CHANGE_TYPE,
  CHANGE_RFACTOR,
  CHANGE_BORDER,
  CHANGE_OVERLAP,
  CHANGE_OUTLINE,
  CHANGE_RECIPROCAL,
  CHANGE_STRAIGHT,
  CHANGE_TRANSPOSE,
  CHANGE_WINOGRAD,
  CHANGE_WHOLE
};

/* One axis of the stage that `outline` adds: an axis of the consumer, or two of them combined into
 * `step*axis + with_step*with` or, with a block, `axis/block*block + with`. */
struct outlined_axis {
  int axis, with; /* axes of the consumer; with -1: `axis` alone */
  int64_t step, with_step, size, block;
};

/* A convolution with a 3x3 window: a stage that sums image times weights. The image depends on
 * own[0] + window[0] (the row) and own[1] + window[1] (the column), the weights on the window. */
struct winograd {
  int tile;              /* rows and columns of an output tile, 2 or 4; 0: no convolution */
  int own[2], window[2]; /* axes of the stage */
  int image, weights;    /* expressions: the two factors */
  int guard;             /* select around the product, whose condition guards the image; -1: none */
  int64_t block[PROGRAM_AXES]; /* the image depends on axis/block only; 0: on the axis itself */
};

/* Sum of the products in the zero padding, 0 * factor, of a stage that multiplies a padded
 * value. */
struct padding_sum {
  int factor;       /* expression that the padded value is multiplied by */
  uint32_t axes;    /* axes of the stage, by bit, that the sum has as its own */
  uint32_t reduced; /* reductions of the stage, by bit, that no padding condition depends on */
};

/* A load split by the pieces of `axis` on which its index number `index` is affine. */
enum { LOAD_PIECES = 4 };
struct load_pieces {
  int index, axis;
  struct index_piece piece[LOAD_PIECES];
  int count;
  bool covers_axis; /* else the original load remains for the rest of the axis */
};

/* One edit. Which fields an edit uses stands behind them. */
struct change {
  enum change_kind kind;
  const struct program *from;
  struct program *to; /* the new program; empty until program_rebuild */
  int tensor;         /* of `from`: the tensor that is changed; -1: none, or the whole program */
  const char *text;   /* of the edit, in the arena of `to`; NULL: change_print writes it */
  int consumer; /* stage that loads `tensor` or holds `node`: CACHE_READ, OVERLAP, node's edits */
  int node;     /* value in the consumer's expression, equal ones too: OUTLINE to STRAIGHT */
  struct outlined_axis axes[PROGRAM_AXES]; /* OUTLINE, RECIPROCAL: of the new stage */
  int axis_count;
  bool columns;            /* OUTLINE: never combine two axes into one (edit `columns`) */
  const char *name;        /* of the new stage */
  enum program_dtype type; /* TYPE */
  struct layout layout;    /* PACK */
  int axis;      /* of `tensor`: RFACTOR: the split reduction; TRANSPOSE: the new innermost */
  int64_t lanes; /* RFACTOR: number of partial sums */
  int group;     /* RFACTOR: own axis g of loads at g*size+axis, which keep one axis; -1: none */
  struct window window;           /* OVERLAP */
  struct winograd *winograd;      /* WINOGRAD: by tensor */
  struct padding_sum padding_sum; /* BORDER with a name */
  struct load_pieces pieces;      /* STRAIGHT */
  bool *inlined;                  /* INLINE, WINOGRAD: by tensor */
  int *number;                    /* by tensor of `from`: its index in `to` */
  int new_stage;                  /* index in `to` of the stage that the edit adds; -1: not yet */
  bool redirected; /* in the stage being built, loads of `tensor` go to `new_stage` */
  /* WHOLE: the edited program, not verified; NULL: the edit changes nothing */
  struct program *(*edit_whole)(const struct program *p);
};

/* program_edit.c: parses the text of an edit; `to` stays empty. Close the change even on
 * failure. */
canvas_status change_read(canvas_context *ctx, const struct program *p, const char *text,
                          size_t length, struct change *out);
/* change_text.c: the text of a change that was made without one; change_read parses it back. */
void change_print(const struct change *c, struct buf *out);
struct change change_open(enum change_kind kind, const struct program *from);
void change_close(struct change *c); /* does not free `to` */
void program_rebuild(struct change *c);
/* Makes the change and closes it. NULL if it changes nothing. The caller has to call program_verify
 * on the result. */
struct program *change_make(struct change *c);
/* Makes the change, closes it and verifies the result; *out is NULL on failure. */
canvas_status change_finish(canvas_context *ctx, struct change *c, struct program **out);

/* program_edit_values.c: parses the edits of one value of a stage, and `turn`, after their word. */
canvas_status read_outline(struct lexer *lx, struct change *c, enum change_kind kind, bool columns);
canvas_status read_straight(struct lexer *lx, struct change *c);
canvas_status read_transpose(struct lexer *lx, struct change *c);
/* edit_names.c: parses the name of a tensor, and `as NAME` with a name that no tensor has. */
canvas_status read_tensor(struct lexer *lx, const struct program *p, const char *wanted,
                          int *tensor);
canvas_status read_new_name(struct lexer *lx, struct change *c);

/* program_outline.c: chooses c->axes, the axes of the outlined stage. */
void outline_axes(struct change *c);
/* program_straight.c: finds c->pieces of the load c->node along an own axis; false if there are
 * none. */
bool find_load_pieces(struct change *c, int axis);
/* program_reciprocal.c: whether the value is proved to have a normal reciprocal in f32, within the
 * rounding bound of one more product. */
bool has_reciprocal(const struct program *p, int expr);
/* program_conditions.c: the edit `normalize conditions`; NULL if all conditions are normal
 * already. */
struct program *program_normalize_conditions(const struct program *p);

/* outlined_stage.c: adds to c->to the stage with c->axes that computes c->node, and the load of it
 * by the consumer, whose axes are the expressions `axis`. */
int outline_stage(struct change *c, const struct px_map *map);
int outline_load(struct change *c, const int *axis);

/* program_winograd.c: fills `out` if Winograd applies to the stage and returns NULL; otherwise
 * returns a clause why not. */
const char *find_winograd(const struct program *p, int stage, int tile, struct winograd *out);
/* Adds the stage to the change, and inlines a padding stage that only it reads. */
void change_add_winograd(struct change *c, int stage, const struct winograd *w);
/* winograd_stages.c: adds to c->to the stages of the transformed convolution; returns the last one,
 * which keeps the name. */
int winograd_stages(struct change *c, int stage, const struct px_map *map);

/* Returns NULL, or a clause why the reduction over the axis cannot be split that
 * often. */
const char *not_rfactored(const struct program *p, int tensor, int axis, int64_t lanes);
/* The same of partial sums for each element of groups: each load that depends on the reduction has
 * it in an index group*size+axis. */
const char *not_grouped(const struct program *p, int tensor, int axis, int group);
/* straight_load.c: the expression in c->to that replaces the load. */
int piecewise_load(struct change *c, const struct px_map *map);
/* Returns NULL, or a clause why the tensor cannot be inlined, such as "is an output,
 * ...". A stage that reduces can be inlined only into a stage that does nothing but copy it. */
const char *not_inlined(const struct program *p, int tensor);

/* program_border.c: the expression with all products sunk into the zero padding of their factors.
 * In the padding it is `outside`; -1: 0. */
int sink_products(struct program *p, int expr, int beyond);
bool has_padded_product(const struct program *p, int expr); /* whether there are such products */
/* Fills `out` and returns NULL, or returns a clause why the padding has no sum of its
 * own. */
const char *find_padding_sum(const struct program *p, int stage, struct padding_sum *out);
/* Add to c->to the stage of c->padding_sum, and what the stage sums of it. */
int padding_stage(struct change *c, const struct px_map *map);
int padding_load(struct change *c, const int *axis);

#endif
