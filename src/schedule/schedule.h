/* Schedules: the loops of a program's stages, as a tree with a text form.
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
 * One text serves as IR, search space and log record: its integers are the configuration, its
 * holes (`yi:?`, `yi:{6,7,14}`, or no number) the search space. This header is the parsed tree,
 * whose names are not resolved; loop_tree.h binds it to a program and checks it. docs/schedule.md
 * describes the language.
 *
 * A loop name is a *level* of a split. It has one extent, one tail and one meaning in the whole
 * schedule, even if several loops (nodes) run over it. A node is one `for` loop with its own marks.
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
  SCHEDULE_PREFETCH = 1024,            /* prefetch distance, in iterations */
  SCHEDULE_NAME = 2 * PROGRAM_NAME + 1 /* bytes of a loop's name: STAGE_AXIS fits */
};

enum level_extent {
  EXTENT_OPEN,   /* no number: inferred from the axis and its other levels, or else a hole */
  EXTENT_INT,    /* yi:14 */
  EXTENT_HOLE,   /* yi:? */
  EXTENT_CHOICE, /* yi:{6,7,14} */
  EXTENT_DYN     /* ko:dyn(xr): data-dependent bounds of a reduction axis, a function of axis xr */
};
/* How the remainder of an axis is computed. */
enum level_tail {
  TAIL_NONE, /* no remainder: the levels of the axis multiply to its size */
  TAIL_MASK, /* the last tile is guarded by a condition */
  TAIL_PEEL  /* a remainder loop of its own, so full tiles need no condition */
};

/* A level: one loop name. */
struct level {
  const char *name;
  enum level_extent kind;
  int64_t extent; /* EXTENT_INT: >= 1 */
  struct {
    VEC(int64_t);
  } choices;            /* EXTENT_CHOICE: ascending */
  const char *dyn;      /* EXTENT_DYN: the axis that the bounds depend on */
  enum level_tail tail; /* of the axes that this level is a part of */
  int line, column;     /* of its first occurrence; 0 if built by functions */
};

/* clang-format off */
/* Marks of loops, in the order in which they are printed.
 *
 *   LOOP_FOLD  in the text
 *   |          |          a way to run a loop: at most one of them, none on a dyn loop
 *   |          |          |      makes one loop of a group
 *   |          |          |      |  */
#define LOOP_MARKS(X) \
  X(FOLD,      "fold",    false, true)  /* fuses a group, so that a tile may hold several rows */ \
  X(PARA,      "para",    true,  true)  /* runs the iterations in parallel */ \
  X(VEC,       "vec",     true,  false) /* vectorises; only unrolled loops may stand inside */ \
  X(UNROLL,    "unroll",  true,  false) /* unrolls */
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
  LOOP_GROUPS = 0 LOOP_MARKS(X) /* marks that make one loop of a group */
#undef X
};

enum { GROUP_MOST = 8 }; /* levels of one group */

/* A loop over one level, or over a group `{n, h}:para` of levels that run as one loop, slowest
 * first. */
struct schedule_loop {
  int level[GROUP_MOST];
  int count;      /* >= 1 */
  unsigned marks; /* enum loop_mark */
  int prefetch;   /* pf(n): distance in iterations; 0: no prefetch */
};

/* One axis of a stage and the levels that it is split into, outer to inner: `{yt, yo, yi}/y`. */
struct schedule_axis {
  const char *axis; /* NULL for `oc`, where the axis has the name of its only level */
  int level[SCHEDULE_DEPTH];
  int count; /* >= 1 */
  int line, column;
};

/* Where a stage is stored. SCOPE_STREAM is for outputs: non-temporal stores, which bypass the
 * caches. */
enum buffer_scope { SCOPE_AUTO, SCOPE_REG, SCOPE_L1, SCOPE_HEAP, SCOPE_STREAM };

/* A leaf: computes one point of a stage. */
struct schedule_leaf {
  const char *stage;
  struct {
    VEC(struct schedule_axis);
  } axes;         /* own axes of the stage, then its reductions */
  int reductions; /* the number of axes after the // */
  struct {
    VEC(const char *);
  } layout; /* [k][yi]: axes or levels, slowest first; empty: in the order of the axes */
  enum buffer_scope scope;
};

enum node_kind { NODE_ROOT, NODE_LOOP, NODE_LEAF };

struct schedule_node {
  enum node_kind kind;
  int parent;                /* -1 for the root only */
  int first, last, next;     /* first and last child, next sibling; -1: none */
  int line, column;          /* 0 if built by functions */
  struct schedule_loop loop; /* NODE_LOOP */
  struct schedule_leaf leaf; /* NODE_LEAF */
};

struct schedule {
  const char *name; /* "" if the text has no `schedule` line */
  struct {
    VEC(struct level);
  } levels;
  int *slots; /* hash table by name: level + 1; 0: free */
  int slot_count;
  struct {
    VEC(struct schedule_node);
  } nodes;            /* 0 is the root; a removed node is unreachable and its parent -1 */
  struct arena arena; /* names */
};

/* schedule_parse.c, schedule_print.c. The parser reads two forms, `=>` trees and `STAGE> loops`
 * selectors; the printer writes trees, one line per run of nested loops. print(parse(t)) is
 * canonical: parsing and printing it again gives the same text. Parsing checks every rule that
 * needs no program. */
canvas_status schedule_parse(canvas_context *ctx, const char *text, size_t length,
                             struct schedule **out);
void schedule_print(const struct schedule *s, struct buf *buf);
void schedule_print_extent(const struct level *level, struct buf *buf);       /* "14", "?", "" */
void schedule_print_marks(const struct schedule_loop *loop, struct buf *buf); /* ":vec:pf(2)" */
extern const char *const loop_mark_names[MARKS];
const char *level_tail_name(enum level_tail tail);      /* "" for TAIL_NONE */
const char *buffer_scope_name(enum buffer_scope scope); /* "" for SCOPE_AUTO */

/* schedule_rules.c: checks every rule that needs no program; schedule_parse calls it. Error
 * messages have line and column, except for schedules built by functions. */
canvas_status schedule_verify(canvas_context *ctx, const struct schedule *s);

/* Sets the extents of levels from a list, "iw=14,yo=4", and overwrites what they had. Fails and
 * changes nothing if the list is malformed, a name has no loop, or a number is not one of the
 * choices. */
canvas_status schedule_set(canvas_context *ctx, struct schedule *s, const char *assignments);

/* schedule.c: functions that build schedules. Names are copied. Nodes are numbers, valid until
 * removed. */
struct schedule *schedule_new(const char *name);
void schedule_free(struct schedule *s); /* NULL is fine */
struct schedule *schedule_copy(const struct schedule *s);
int schedule_level(struct schedule *s, const char *name);            /* finds a level, or adds it */
int schedule_find_level(const struct schedule *s, const char *name); /* -1 if there is none */
/* These add a node as the last child of `parent`, and an axis to a leaf. */
int schedule_add_loop(struct schedule *s, int parent, int level, unsigned marks);
int schedule_add_leaf(struct schedule *s, int parent, const char *stage);
struct schedule_axis *schedule_add_axis(struct schedule *s, int leaf, const char *axis);

#endif
