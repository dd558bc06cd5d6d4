/* What the two surface forms share when they are read: lines by indentation, loops with their
 * annotations, the head of a stage. Private to schedule_parse.c, schedule_selector.c and
 * schedule_loops.c.
 *
 *     loops = loop { "," loop }
 *     loop  = NAME { ":" annot } | "{" NAME { ":" of a level } { "," ... } "}" { ":" mark }
 *     annot = of a level | mark
 *     of a level = INT | "?" | "{" INT { "," INT } "}" | "dyn" "(" NAME ")" | "mask" | "peel"
 *     mark  = "para" | "vec" | "unroll" | "fold" | "pf" "(" INT ")" | "reorder"
 *     head  = NAME { "[" NAME "]" } [ ":" ( "reg" | "l1" | "heap" ) ]
 *
 * Lines whose first tokens stand in one column are a block. A deeper line opens a block under the
 * line above it; one that is less deep closes blocks until its own.
 */
#ifndef CANVAS_SCHEDULE_SCHEDULE_TEXT_H
#define CANVAS_SCHEDULE_SCHEDULE_TEXT_H

#include "base/lexer.h"
#include "schedule/schedule.h"

/* Where the next node is added. */
struct place {
  int node;
  int depth; /* levels open there */
};

struct block {
  int column;
  struct place place; /* of its lines */
};

struct reader {
  struct lexer lx;
  struct schedule *s;
  struct block blocks[SCHEDULE_DEPTH + 2]; /* that are open, outermost first */
  int count;
  bool opens;         /* the line above may have deeper lines ... */
  struct place below; /* ... and they are added here */
};

/* One of a list of loops, as the text has it. */
enum item_kind {
  ITEM_LOOP,
  ITEM_REORDER,   /* {a, b}:reorder */
  ITEM_REDUCTIONS /* R */
};
struct loop_item {
  enum item_kind kind;
  struct schedule_loop loop; /* not of ITEM_REDUCTIONS */
  struct token at;
};
struct loop_list {
  struct loop_item data[SCHEDULE_DEPTH];
  int count;
};

/* How much of a token an error message quotes. */
static inline int shown(const struct token *t) {
  return t->length < 40 ? t->length : 40;
}

static inline bool at_line_end(const struct lexer *lx) {
  return lx->token.kind == TOKEN_NEWLINE || lx->token.kind == TOKEN_END;
}

/* schedule_loops.c. `selector`: R and reorder are read as such. */
canvas_status schedule_read_loops(struct reader *r, bool selector, struct loop_list *out);
/* The name of a loop; the level, added if it is new. */
canvas_status schedule_read_name(struct reader *r, int *level);
/* ... as one more part of an axis. */
canvas_status schedule_read_digit(struct reader *r, struct schedule_axis *axis);
/* What stands after a name: annotations of its level, and the marks of `loop` unless it is NULL. */
canvas_status schedule_read_annotations(struct reader *r, int level, struct loop_item *item);
/* Adds a loop at `place` and moves `place` into it. */
canvas_status schedule_open_loop(struct reader *r, const struct loop_item *item,
                                 struct place *place);
canvas_status schedule_open_leaf(struct reader *r, const struct token *at, int parent, int *leaf);
/* Stage, layout and scope, from after the @. */
canvas_status schedule_read_head(struct reader *r, struct schedule_leaf *leaf);

/* schedule_indent.c: finds the block of the line that begins here. */
canvas_status schedule_read_indent(struct reader *r);

/* schedule_selector.c: the lines of the selector form, to the end of the text. */
canvas_status schedule_read_selectors(struct reader *r);

#endif
