/* Parsing that both forms of a schedule share: lines by indentation, loops with annotations, the
 * head of a stage. Private to the parser: schedule_parse.c, schedule_selector.c, schedule_loops.c
 * and schedule_indent.c.
 *
 *     loops = loop { "," loop }
 *     loop  = NAME { ":" annot } | "{" NAME { ":" of a level } { "," ... } "}" { ":" mark }
 *     annot = of a level | mark
 *     of a level = INT | "?" | "{" INT { "," INT } "}" | "dyn" "(" NAME ")" | "mask" | "peel"
 *     mark  = "para" | "vec" | "unroll" | "fold" | "pf" "(" INT ")" | "reorder"
 *     head  = NAME { "[" NAME "]" } [ ":" ( "reg" | "l1" | "heap" ) ]
 *
 * Lines with the same indentation form a block. A deeper line opens a block under the line above
 * it; a less indented line closes blocks until it finds its own.
 */
#ifndef CANVAS_SCHEDULE_SCHEDULE_TEXT_H
#define CANVAS_SCHEDULE_SCHEDULE_TEXT_H

#include "base/lexer.h"
#include "schedule/schedule.h"

/* Where the next node is added. */
struct place {
  int node;
  int depth; /* number of levels around it */
};

struct block {
  int column;
  struct place place; /* where its lines are added */
};

struct reader {
  struct lexer lx;
  struct schedule *s;
  struct block blocks[SCHEDULE_DEPTH + 2]; /* open blocks, outermost first */
  int count;
  bool opens;         /* a deeper line may follow the line above */
  struct place below; /* where such deeper lines are added */
};

/* One item of a list of loops in the text. */
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

/* schedule_loops.c: parses a list of loops. `selector`: allows R and reorder. */
canvas_status schedule_read_loops(struct reader *r, bool selector, struct loop_list *out);
/* Parses the name of a loop; adds its level if it is new. */
canvas_status schedule_read_name(struct reader *r, int *level);
/* Parses the name of a loop and appends it to the levels of an axis. */
canvas_status schedule_read_digit(struct reader *r, struct schedule_axis *axis);
/* Parses the annotations after a name: those of its level, and marks unless `item` is NULL. */
canvas_status schedule_read_annotations(struct reader *r, int level, struct loop_item *item);
/* Adds a loop at `place` and moves `place` into it. */
canvas_status schedule_open_loop(struct reader *r, const struct loop_item *item,
                                 struct place *place);
canvas_status schedule_open_leaf(struct reader *r, const struct token *at, int parent, int *leaf);
/* Parses stage, layout and scope, after the @. */
canvas_status schedule_read_head(struct reader *r, struct schedule_leaf *leaf);

/* schedule_indent.c: finds the block of the line that starts here. */
canvas_status schedule_read_indent(struct reader *r);

/* schedule_selector.c: parses lines of the selector form, to the end of the text. */
canvas_status schedule_read_selectors(struct reader *r);

#endif
