/* A program built anew with a change in it: tensor by tensor, what the change does not concern as it
 * stands. program_edit.c reads changes from text, program_moves.c makes one of its own. */
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
  CHANGE_MERGE,
  CHANGE_NORMALIZE
};

/* An axis of what is outlined: an axis of the stage, or a sum of two, `step*axis + with_step*with` or
 * `axis/block*block + with`. */
struct outlined_axis {
  int axis, with; /* with -1: the axis alone */
  int64_t step, with_step, size, block;
};

/* A convolution of a window of 3x3: the stage sums image times weights. The image depends on own[0] +
 * window[0] and own[1] + window[1], the rows and columns, and the weights on the window. */
struct winograd {
  int tile; /* 2 or 4 rows and columns of the stage; 0: it is none */
  int own[2], window[2];
  int image, weights; /* expressions */
  int guard;          /* a select whose condition belongs to the image; -1: there is none */
  int64_t block[PROGRAM_AXES]; /* the image depends on axis/block alone; 0: on the axis */
};

/* A sum of products with a border: what is beyond it is 0 times `factor`. */
struct padding_sum {
  int factor; /* an expression */
  uint32_t axes,
      reduced; /* axes of the stage that holds it; reductions that its conditions do not ask */
};

/* Index `at` of a load is a line in each of these pieces of `axis`. */
enum { LOAD_PIECES = 4 };
struct load_pieces {
  int index, axis;
  struct index_piece piece[LOAD_PIECES];
  int count;
  bool covers_axis; /* there are no other places */
};

struct change {
  enum change_kind kind;
  const struct program *from;
  struct program *to; /* new; empty until program_rebuild */
  int tensor;         /* of `from`: what is changed */
  const char *text;   /* of the edit, in the arena of `to`; NULL: change_print has it */
  int consumer; /* CHANGE_CACHE_READ, ... OVERLAP, OUTLINE, RECIPROCAL, STRAIGHT: the stage that reads it */
  int node; /* CHANGE_OUTLINE, ... RECIPROCAL, STRAIGHT: of its expression, and all that are the same */
  struct outlined_axis axes[PROGRAM_AXES];
  int axis_count;
  bool columns;            /* none is a sum of two: CHANGE_OUTLINE */
  const char *name;        /* of the new stage */
  enum program_dtype type; /* CHANGE_TYPE */
  struct layout layout;    /* CHANGE_PACK */
  int axis;      /* of `tensor`: CHANGE_RFACTOR: a reduction; CHANGE_TRANSPOSE: what becomes last */
  int64_t lanes; /* ... so many partial sums */
  struct window window;           /* CHANGE_OVERLAP */
  struct winograd *winograd;      /* CHANGE_WINOGRAD: by tensor */
  struct padding_sum padding_sum; /* CHANGE_BORDER with a name */
  struct load_pieces pieces;      /* CHANGE_STRAIGHT */
  bool *inlined;                  /* CHANGE_INLINE: by tensor */
  int *number;                    /* the tensors of `to` that stand for those of `from` */
  int new_stage;                  /* the new stage, -1 until there is one */
  bool redirected;                /* loads of `tensor` in the stage that is built now are others */
};

/* program_edit.c: the change that an edit's text asks for; `to` is empty. To be closed in any case. */
canvas_status change_read(canvas_context *ctx, const struct program *p, const char *text,
                          size_t length, struct change *out);
/* change_text.c: the text of a change that no text asked for, as change_read reads it. */
void change_print(const struct change *c, struct buf *out);
struct change change_open(enum change_kind kind, const struct program *from);
void change_close(struct change *c); /* `to` is the caller's */
void program_rebuild(struct change *c);
/* Makes the change and closes it; NULL: there is nothing to change. The new program is to be verified
 * (program_verify) before it is kept ... */
struct program *change_make(struct change *c);
/* ... and *out is; NULL where that fails. */
canvas_status change_finish(canvas_context *ctx, struct change *c, struct program **out);

/* program_edit_values.c: the edits of values of a stage, where the lexer stands behind their word. */
canvas_status read_outline(struct lexer *lx, struct change *c, enum change_kind kind, bool columns);
canvas_status read_straight(struct lexer *lx, struct change *c);
canvas_status read_transpose(struct lexer *lx, struct change *c);
/* edit_names.c: a tensor by its name; `as NAME`, which no tensor has. */
canvas_status read_tensor(struct lexer *lx, const struct program *p, const char *wanted,
                          int *tensor);
canvas_status read_new_name(struct lexer *lx, struct change *c);

/* program_outline.c: the axes of what is outlined. */
void outline_axes(struct change *c);
/* program_straight.c: the pieces of the load c->node along the own axis; false: it has none. */
bool find_load_pieces(struct change *c, int axis);
/* program_reciprocal.c: the value is proved to be neither so small nor so large that its reciprocal is no normal
 * number of fp32, and a bound of rounding has room for one product more. */
bool has_reciprocal(const struct program *p, int expr);
/* program_conditions.c: see the edit `normalize conditions`; NULL: they are all so. */
struct program *program_normalize_conditions(const struct program *p);

/* outlined_stage.c: in c->to the stage of c->axes that computes c->node, and the load of it for the
 * consumer's axes. */
int outline_stage(struct change *c, const struct px_map *map);
int outline_load(struct change *c, const int *axis);

/* program_winograd.c: why the stage is no convolution that tiles are for, a clause; NULL if it is one. */
const char *find_winograd(const struct program *p, int stage, int tile, struct winograd *out);
/* The stage is transformed, too; a border that only it reads becomes a part of it. */
void add_winograd(struct change *c, int stage, const struct winograd *w);
/* winograd_stages.c: in c->to what the stage becomes; the last of them, which has its name. */
int winograd_stages(struct change *c, int stage, const struct px_map *map);

/* Why a reduction over the axis cannot be split into so many, a clause; NULL if it can. */
const char *not_rfactored(const struct program *p, int tensor, int axis, int64_t lanes);
/* straight_load.c: in c->to what the load becomes. */
int piecewise_load(struct change *c, const struct px_map *map);
/* Why its expression cannot stand where it is loaded, a clause such as "is an output, ..."; NULL if it
 * can. One that reduces can where the only load of it is all of a stage, which then reduces itself. */
const char *not_inlined(const struct program *p, int tensor);

/* program_border.c: the expression with products moved to where conditions of indices choose no 0, and
 * whether there are any. Where they choose 0 it is `beyond`; -1: 0. */
int sink_products(struct program *p, int expr, int beyond);
bool has_padded_product(const struct program *p, int expr);
/* Why there is no stage for what is beyond the border, a clause; NULL if there is one. */
const char *find_padding_sum(const struct program *p, int stage, struct padding_sum *out);
/* In c->to that stage, and what the sum adds of it. */
int padding_stage(struct change *c, const struct px_map *map);
int padding_load(struct change *c, const int *axis);

#endif
