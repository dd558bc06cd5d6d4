/* Schedules: how the loops of a program's stages are laid out, as a tree that is text.
 *
 *     canvas 1
 *     schedule conv_gemm
 *     {yt, yo}:para =>
 *         yi:14, k9, ci:vec =>
 *             @im2col[k][yi]:l1 = {yt, yo, yi}/y, {k9, ci}/k
 *         xo =>
 *             ko, ki:9:unroll, yi:unroll, xi:32:vec =>
 *                 @ccache = {yt, yo, yi}/y, {xo, xi}/x // {ko, ki}/k
 *             yi:unroll, xi:vec =>
 *                 @cout = {yt, yo, yi}/y, {xo, xi}/x
 *
 * One text is IR, search space and log record at once: its integers are the configuration, its
 * holes (`yi:?`, `yi:{6,7,14}`, or no number) the space. This header is the text as a tree, with
 * names not yet looked up; loop_tree.h binds it to a program and checks it. docs/schedule.md is
 * the language.
 *
 * A loop name is a *level* of a split: it has one extent, one way with remainders and one meaning
 * in the whole schedule, however many loops (nodes) carry it. A node is one `for`: its marks are
 * its own.
 */
#ifndef CANVAS_SCHEDULE_SCHEDULE_H
#define CANVAS_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/status.h"
#include "program/program.h"

enum {
  SCHEDULE_NODES = 1 << 18,            /* loops and leaves of a schedule, the root included */
  SCHEDULE_DEPTH = 32,                 /* loops around a stage (members of groups count) */
  SCHEDULE_CHOICES = 64,               /* numbers of a `{6,7,14}` */
  SCHEDULE_PREFETCH = 1024,            /* iterations ahead */
  SCHEDULE_NAME = 2 * PROGRAM_NAME + 1 /* bytes of a loop's name: STAGE_AXIS fits */
};

enum level_extent {
  EXTENT_OPEN,   /* no number: the whole axis, or inferred from its siblings, or else a hole */
  EXTENT_INT,    /* yi:14 */
  EXTENT_HOLE,   /* yi:? */
  EXTENT_CHOICE, /* yi:{6,7,14} */
  EXTENT_DYN /* ko:dyn(xr): what the program's reduction axis runs over, a function of axis xr */
};
enum level_tail {
  TAIL_NONE, /* the parts of an axis multiply up to its size */
  TAIL_MASK, /* the last tile is computed under a condition */
  TAIL_PEEL  /* ... by code of its own, so that the full tiles have none */
};

/* A level: what one name means. */
struct level {
  const char *name;
  enum level_extent kind;
  int64_t extent; /* EXTENT_INT: >= 1 */
  struct {
    VEC(int64_t);
  } choices;            /* EXTENT_CHOICE: ascending */
  const char *dyn;      /* EXTENT_DYN: the axis it is a function of */
  enum level_tail tail; /* of the axis that this level is a part of */
  int line, column;     /* of its first mention, 0 if built */
};

/* clang-format off */
/* Marks of loops, in the order in which they are printed.
 *
 *   LOOP_FOLD  in the text
 *   |          |          a way to run a loop: no two of them, none where it depends on data
 *   |          |          |      makes one loop of a group
 *   |          |          |      |  */
#define LOOP_MARKS(X) \
  X(FOLD,      "fold",    false, true)  /* of a group: fused, so that a tile may hold several rows */ \
  X(PARA,      "para",    true,  true)  /* its iterations run in parallel */ \
  X(VEC,       "vec",     true,  false) /* ... are lanes of vectors; within it only unrolled loops */ \
  X(UNROLL,    "unroll",  true,  false) /* ... are unrolled */
/* clang-format on */

enum {
#define X(id, ...) MARK_##id,
  LOOP_MARKS(X)
#undef X
      MARKS
};
enum loop_mark {
#define X(id, ...) LOOP_##id = 1 << MARK_##id,
  LOOP_MARKS(X)
#undef X
};
enum {
#define X(id, text, way, groups) | (way) << MARK_##id
  LOOP_WAYS = 0 LOOP_MARKS(X), /* marks that are ways to run a loop */
#undef X
#define X(id, text, way, groups) | (groups) << MARK_##id
  LOOP_GROUPS = 0 LOOP_MARKS(X) /* ... that make one loop of a group */
#undef X
};

enum { GROUP_MOST = 8 }; /* levels of one group */

/* One level, or a group `{n, h}:para` of several that run as one loop, the first the slowest. */
struct schedule_loop {
  int level[GROUP_MOST];
  int count;      /* >= 1 */
  unsigned marks; /* enum loop_mark */
  int prefetch;   /* pf(n): n iterations ahead; 0 = none */
};

/* One axis of a stage and the levels that cover it, outer to inner: `{yt, yo, yi}/y`. */
struct schedule_axis {
  const char *axis; /* NULL in text `oc`, where it is the level's own name */
  int level[SCHEDULE_DEPTH];
  int count; /* >= 1 */
  int line, column;
};

/* STREAM is of outputs: written around the caches */
enum buffer_scope { SCOPE_AUTO, SCOPE_REG, SCOPE_L1, SCOPE_HEAP, SCOPE_STREAM };

/* A leaf: one point of a stage is computed. */
struct schedule_leaf {
  const char *stage;
  struct {
    VEC(struct schedule_axis);
  } axes; /* those of the stage, then `reductions` after the // */
  int reductions;
  struct {
    VEC(const char *);
  } layout; /* [k][yi]: axes or levels, the slowest first; empty: as the axes stand */
  enum buffer_scope scope;
};

enum node_kind { NODE_ROOT, NODE_LOOP, NODE_LEAF };

struct schedule_node {
  enum node_kind kind;
  int parent;                /* -1 for the root only */
  int first, last, next;     /* children in order and the next sibling; -1 = none */
  int line, column;          /* 0 if built */
  struct schedule_loop loop; /* NODE_LOOP */
  struct schedule_leaf leaf; /* NODE_LEAF */
};

struct schedule {
  const char *name; /* "" if the text has no `schedule` line */
  struct {
    VEC(struct level);
  } levels;
  int *slots; /* a hash table of levels by name, plus one; 0 is free */
  int slot_count;
  struct {
    VEC(struct schedule_node);
  } nodes;            /* 0 is the root; a removed node is unreachable and its parent -1 */
  struct arena arena; /* names */
};

/* schedule_parse.c, schedule_print.c. Both surface forms are read (`=>` trees and `STAGE> loops`
 * selectors); one is printed, the tree, one line per run of loops. print(parse(t)) is canonical and
 * stable under parsing and printing again. Parsing checks everything that needs no program. */
canvas_status schedule_parse(canvas_context *ctx, const char *text, size_t length,
                             struct schedule **out);
void schedule_print(const struct schedule *s, struct buf *buf);
void schedule_print_extent(const struct level *level, struct buf *buf);       /* "14", "?", "" */
void schedule_print_marks(const struct schedule_loop *loop, struct buf *buf); /* ":vec:pf(2)" */
extern const char *const loop_mark_names[MARKS];
const char *level_tail_name(enum level_tail tail);      /* "" for TAIL_NONE */
const char *buffer_scope_name(enum buffer_scope scope); /* "" for SCOPE_AUTO */

/* schedule_rules.c: every rule that needs no program (parsing ends with it). An error message has the line
 * and column of the text; of what was built by hand it has none. */
canvas_status schedule_verify(canvas_context *ctx, const struct schedule *s);

/* "iw=14,yo=4": gives levels their numbers, over what they had. A name that no loop has, a number
 * that is no choice of its set and a malformed list are rejected, and nothing is changed. */
canvas_status schedule_set(canvas_context *ctx, struct schedule *s, const char *assignments);

/* schedule.c: by hand. Names are copied. Nodes are numbers and stay what they are until removed. */
struct schedule *schedule_new(const char *name);
void schedule_free(struct schedule *s); /* NULL is fine */
struct schedule *schedule_copy(const struct schedule *s);
int schedule_level(struct schedule *s, const char *name);            /* found, or added */
int schedule_find_level(const struct schedule *s, const char *name); /* -1 if there is none */
int schedule_add_loop(struct schedule *s, int parent, int level,
                      unsigned marks); /* as last child */
int schedule_add_leaf(struct schedule *s, int parent, const char *stage);
struct schedule_axis *schedule_add_axis(struct schedule *s, int leaf, const char *axis);

#endif
