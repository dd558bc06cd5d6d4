/* Checks the rules that need no program: schedule_verify of schedule.h.
 *
 * - every loop contains a stage that it indexes;
 * - every stage is indexed by loops around it, by each at most once;
 * - no level has two loops on one path, and no stage has two leaves;
 * - marks do not contradict each other.
 *
 * Loops and stages are checked in the order of the text, so the first mistake is reported.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "schedule/schedule.h"

struct checker {
  canvas_context *ctx;
  const struct schedule *s;
  unsigned char *named; /* by node: bit i: member i of its group indexes a stage inside */
  int *opened;          /* by level: the loop around the current node; 0: none */
  int *leaves;          /* in the order of the text */
  int count;
};

static canvas_status reject(struct checker *c, int line, int column, const char *format, ...)
    PRINTF_LIKE(4, 5);

static canvas_status reject(struct checker *c, int line, int column, const char *format, ...) {
  char message[MESSAGE_SIZE];
  va_list args;
  va_start(args, format);
  text_vformat(message, sizeof message, format, args);
  va_end(args);
  if (!line) return fail(c->ctx, CANVAS_BAD_INPUT, "%s", message);
  return fail(c->ctx, CANVAS_BAD_INPUT, "line %d, column %d: %s", line, column, message);
}

static const struct schedule_node *node_at(const struct checker *c, int node) {
  return &c->s->nodes.data[node];
}

static const char *level_name(const struct checker *c, int level) {
  return c->s->levels.data[level].name;
}

/* ---- which loops the stages name ----------------------------------------------------------- */

/* Marks in `named` the loops around `node` over the level; false if there is none. With `named`
 * NULL it marks nothing. */
static bool note_name(const struct checker *c, int node, int level, unsigned char *named) {
  bool found = false;
  for (node = node_at(c, node)->parent; node > 0; node = node_at(c, node)->parent) {
    const struct schedule_loop *loop = &node_at(c, node)->loop;
    for (int i = 0; i < loop->count; i++)
      if (loop->level[i] == level) {
        found = true;
        if (named) named[node] |= (unsigned char)(1u << i);
      }
  }
  return found;
}

static void note_leaf(struct checker *c, int leaf) {
  const struct schedule_leaf *l = &node_at(c, leaf)->leaf;
  c->leaves[c->count++] = leaf;
  for (int i = 0; i < l->axes.count; i++)
    for (int j = 0; j < l->axes.data[i].count; j++)
      note_name(c, leaf, l->axes.data[i].level[j], c->named);
}

static void note_children(struct checker *c, int node) {
  for (int child = node_at(c, node)->first; child >= 0; child = node_at(c, child)->next)
    if (node_at(c, child)->kind == NODE_LEAF)
      note_leaf(c, child);
    else
      note_children(c, child);
}

/* The name of a level that indexes a stage in `node` but has no loop around it; NULL if there is
 * none. */
static const char *wanted(const struct checker *c, int node, const char **stage) {
  const struct schedule_node *n = node_at(c, node);
  for (int i = 0; n->kind == NODE_LEAF && i < n->leaf.axes.count; i++)
    for (int j = 0; j < n->leaf.axes.data[i].count; j++) {
      int level = n->leaf.axes.data[i].level[j];
      *stage = n->leaf.stage;
      if (!note_name(c, node, level, NULL)) return level_name(c, level);
    }
  for (int child = n->first; child >= 0; child = node_at(c, child)->next) {
    const char *name = wanted(c, child, stage);
    if (name) return name;
  }
  return NULL;
}

/* ---- loops --------------------------------------------------------------------------------- */

static canvas_status check_member(struct checker *c, int node, int member) {
  const struct schedule_node *n = node_at(c, node);
  int level = n->loop.level[member];
  const char *name = level_name(c, level), *stage, *other;
  if (c->opened[level]) {
    int line = node_at(c, c->opened[level])->line;
    return reject(c, n->line, n->column, "loop '%.40s' is open already, since line %d", name, line);
  }
  c->opened[level] = node;
  if (c->named[node] >> member & 1) return CANVAS_OK;
  other = wanted(c, node, &stage);
  if (other)
    return reject(
        c, n->line, n->column,
        "unknown loop '%.40s', no stage in it has a part of that name ('@%.40s' has '%.40s')", name,
        stage, other);
  return reject(c, n->line, n->column,
                "unknown loop '%.40s', no stage in it has a part of that name", name);
}

static bool has_dyn(const struct checker *c, const struct schedule_loop *loop) {
  for (int i = 0; i < loop->count; i++)
    if (c->s->levels.data[loop->level[i]].kind == EXTENT_DYN) return true;
  return false;
}

static const char *first_mark(unsigned marks) {
  int i = 0;
  while (!(marks >> i & 1)) i++;
  return loop_mark_names[i];
}

static canvas_status two_ways(struct checker *c, const struct schedule_node *n, unsigned ways) {
  return reject(c, n->line, n->column, "loop '%.40s' cannot be both '%s' and '%s'",
                level_name(c, n->loop.level[0]), first_mark(ways), first_mark(ways & (ways - 1)));
}

/* Rejects marks that make no sense for any program. */
static canvas_status check_marks(struct checker *c, const struct schedule_node *n) {
  const struct schedule_loop *loop = &n->loop;
  const char *name = level_name(c, loop->level[0]);
  unsigned ways = loop->marks & LOOP_WAYS;
  if (ways & (ways - 1)) return two_ways(c, n, ways);
  if (loop->count == 1 && loop->marks & LOOP_FOLD)
    return reject(c, n->line, n->column, "'fold' makes one loop of several, '%.40s' is one", name);
  if (loop->count > 1 && !(loop->marks & LOOP_GROUPS))
    return reject(c, n->line, n->column, "group of '%.40s' has neither 'para' nor 'fold'", name);
  if (loop->prefetch && loop->marks & LOOP_VEC)
    return reject(c, n->line, n->column, "loop '%.40s' is a vector, nothing can be ahead in it",
                  name);
  if (loop->prefetch && loop->marks & LOOP_UNROLL)
    return reject(c, n->line, n->column,
                  "loop '%.40s' is unrolled, 'pf' belongs to a loop that is not", name);
  if (!has_dyn(c, loop)) return CANVAS_OK;
  if (ways)
    return reject(c, n->line, n->column, "loop '%.40s' depends on data, it cannot be '%s'", name,
                  first_mark(ways));
  if (loop->count > 1)
    return reject(c, n->line, n->column, "a loop of group '%.40s' depends on data, it stands alone",
                  name);
  return CANVAS_OK;
}

/* ---- stages -------------------------------------------------------------------------------- */

static const char *axis_name(const struct checker *c, const struct schedule_axis *axis) {
  return axis->axis ? axis->axis : level_name(c, axis->level[0]);
}

/* Checks that the levels of an axis are different from each other and from those of the axes
 * before. */
static canvas_status check_parts(struct checker *c, const struct schedule_leaf *l, int at) {
  const struct schedule_axis *axis = &l->axes.data[at];
  for (int j = 0; j < axis->count; j++) {
    int level = axis->level[j];
    const char *name = level_name(c, level);
    if (!c->opened[level])
      return reject(c, axis->line, axis->column,
                    "unknown loop '%.40s', none of that name is open here", name);
    for (int i = 0; i <= at; i++)
      for (int k = 0; k < (i < at ? l->axes.data[i].count : j); k++)
        if (l->axes.data[i].level[k] == level)
          return reject(c, axis->line, axis->column, "loop '%.40s' covers two parts of '@%.40s'",
                        name, l->stage);
    const struct level *lv = &c->s->levels.data[level];
    if (lv->kind == EXTENT_DYN && (axis->count > 1 || at < l->axes.count - l->reductions))
      return reject(c, axis->line, axis->column,
                    "loop '%.40s' depends on data: it is the whole of a reduction axis", name);
  }
  return CANVAS_OK;
}

static canvas_status check_axis(struct checker *c, const struct schedule_leaf *l, int at) {
  const struct schedule_axis *axis = &l->axes.data[at];
  const char *name = axis_name(c, axis);
  for (int i = 0; i < at; i++)
    if (!strcmp(axis_name(c, &l->axes.data[i]), name))
      return reject(c, axis->line, axis->column, "axis '%.40s' of '@%.40s' is covered twice", name,
                    l->stage);
  return check_parts(c, l, at);
}

/* Whether a layout may contain the name: an own axis of the stage, or one of its levels. */
static bool can_lay_out(const struct checker *c, const struct schedule_leaf *l, const char *name) {
  for (int i = 0; i < l->axes.count - l->reductions; i++) {
    const struct schedule_axis *axis = &l->axes.data[i];
    if (!strcmp(axis_name(c, axis), name)) return true;
    for (int j = 0; j < axis->count; j++)
      if (!strcmp(level_name(c, axis->level[j]), name)) return true;
  }
  return false;
}

static canvas_status check_layout(struct checker *c, const struct schedule_node *n) {
  const struct schedule_leaf *l = &n->leaf;
  for (int i = 0; i < l->layout.count; i++) {
    const char *name = l->layout.data[i];
    if (!can_lay_out(c, l, name))
      return reject(c, n->line, n->column, "'%.40s' in the layout of '@%.40s' is none of its axes",
                    name, l->stage);
    for (int j = 0; j < i; j++)
      if (!strcmp(l->layout.data[j], name))
        return reject(c, n->line, n->column, "'%.40s' stands twice in the layout of '@%.40s'", name,
                      l->stage);
  }
  return CANVAS_OK;
}

static canvas_status check_leaf(struct checker *c, int node) {
  const struct schedule_node *n = node_at(c, node);
  for (int i = 0; i < n->leaf.axes.count; i++) TRY(check_axis(c, &n->leaf, i));
  return check_layout(c, n);
}

/* ---- the tree ------------------------------------------------------------------------------ */

static canvas_status check_children(struct checker *c, int node);

static canvas_status check_loop(struct checker *c, int node) {
  const struct schedule_node *n = node_at(c, node);
  if (n->first < 0)
    return reject(c, n->line, n->column, "nothing stands in loop '%.40s'",
                  level_name(c, n->loop.level[0]));
  for (int i = 0; i < n->loop.count; i++) TRY(check_member(c, node, i));
  TRY(check_marks(c, n));
  TRY(check_children(c, node));
  for (int i = 0; i < n->loop.count; i++) c->opened[n->loop.level[i]] = 0;
  return CANVAS_OK;
}

static canvas_status check_children(struct checker *c, int node) {
  for (int child = node_at(c, node)->first; child >= 0; child = node_at(c, child)->next)
    TRY(node_at(c, child)->kind == NODE_LEAF ? check_leaf(c, child) : check_loop(c, child));
  return CANVAS_OK;
}

/* ---- what concerns the whole --------------------------------------------------------------- */

static canvas_status check_once(struct checker *c) {
  struct schedule *names = schedule_new(""); /* its levels: a set of names */
  canvas_status status = CANVAS_OK;
  for (int i = 0; i < c->count && status == CANVAS_OK; i++) {
    const struct schedule_node *n = node_at(c, c->leaves[i]);
    int first = schedule_level(names, n->leaf.stage);
    if (first < i)
      status = reject(c, n->line, n->column, "stage '@%.40s' stands twice, first on line %d",
                      n->leaf.stage, node_at(c, c->leaves[first])->line);
  }
  schedule_free(names);
  return status;
}

static canvas_status check_levels(struct checker *c) {
  for (int i = 0; i < c->s->levels.count; i++) {
    const struct level *l = &c->s->levels.data[i];
    if (l->kind == EXTENT_DYN && l->tail)
      return reject(c, l->line, l->column, "loop '%.40s' depends on data, it has no '%s'", l->name,
                    level_tail_name(l->tail));
  }
  return CANVAS_OK;
}

static canvas_status check_all(struct checker *c) {
  note_children(c, 0);
  TRY(check_children(c, 0));
  TRY(check_levels(c));
  return check_once(c);
}

canvas_status schedule_verify(canvas_context *ctx, const struct schedule *s) {
  struct checker c = {.ctx = ctx, .s = s};
  c.named = mem_alloc((size_t)s->nodes.count);
  c.opened = mem_alloc(((size_t)s->levels.count + 1) * sizeof *c.opened);
  c.leaves = mem_alloc((size_t)s->nodes.count * sizeof *c.leaves);
  canvas_status status = check_all(&c);
  mem_free(c.named);
  mem_free(c.opened);
  mem_free(c.leaves);
  return status;
}
