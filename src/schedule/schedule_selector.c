/* Parses the selector form of a schedule into the tree:
 *
 *     BM:= m, nblk, br, R{elem:dyn(nblk), bc:1}       {m, nblk}:para =>
 *     RS:= m, n{nblk, br}                                 elem:dyn(nblk), br:vec, bc:1 =>
 *     BM,RS> {m, nblk}:para                     ==>           @BM = m, nblk, br // elem, bc
 *       BM> {br, elem, bc}:reorder                        br:vec =>
 *         BM> elem, br:vec, bc                                @RS = m, {nblk, br}/n
 *       RS> br:vec
 *
 *     line  = head ":=" [ parts ]                  a stage and its axes; the reductions last
 *           | NAME { "," NAME } ">" [ loops ]      loops for these stages, inside the line above
 *     parts = part { "," part }
 *     part  = NAME { ":" annot } | NAME "{" NAME ... "}" | "R" "{" parts "}"
 *
 * A stage is computed in the deepest line that selects it, after the lines below it. `R` stands
 * for all reductions of the line's only stage, in their order. An R after a vector loop moves
 * before it, so that the vector loop stays innermost. `{a, b}:reorder` opens no loops: it names the
 * set of loops that the deeper lines order.
 */
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule_text.h"

enum { STAGES = 256, NOWHERE = -1 };

struct declared {
  struct schedule_leaf leaf; /* owned by the schedule once it is placed */
  struct token at;
  int line; /* id of the last line that selects it; NOWHERE */
  int node; /* its leaf; 0: not placed yet */
};

struct line {
  int id; /* number of the line */
  struct token at;
  struct place place;
  int stages[STAGES], count;
  struct loop_item set; /* of kind ITEM_REORDER, if it has one */
};

struct selectors {
  struct reader *r;
  struct declared stages[STAGES];
  int count;
  struct line lines[SCHEDULE_DEPTH + 2]; /* the line above and the lines that contain it */
  int open, read;
};

static struct declared *find_stage(struct selectors *x, const struct token *t) {
  for (int i = 0; i < x->count; i++)
    if (strlen(x->stages[i].leaf.stage) == (size_t)t->length &&
        !memcmp(x->stages[i].leaf.stage, t->start, (size_t)t->length))
      return &x->stages[i];
  return NULL;
}

/* ---- declarations -------------------------------------------------------------------------- */

static canvas_status read_digit(struct reader *r, struct schedule_axis *axis) {
  TRY(schedule_read_digit(r, axis));
  return schedule_read_annotations(r, axis->level[axis->count - 1], NULL);
}

/* Parses `m`, `elem:dyn(nblk)` or `n{nblk, br}`. */
static canvas_status read_part(struct reader *r, struct schedule_leaf *leaf) {
  struct lexer *lx = &r->lx;
  struct token at = lx->token;
  struct schedule_axis axis = {.line = at.line, .column = at.column};
  struct lexer ahead = *lx;
  if (leaf->axes.count == PROGRAM_AXES)
    return lexer_fail(lx, &at, "more than %d axes", PROGRAM_AXES);
  lexer_next(&ahead);
  if (at.kind == TOKEN_NAME && lexer_accept(&ahead, "{")) {
    *lx = ahead;
    axis.axis = arena_strndup(&r->s->arena, at.start, (size_t)at.length);
    do {
      TRY(read_digit(r, &axis));
    } while (lexer_accept(lx, ","));
    TRY(lexer_expect(lx, "}", "after the loops of an axis"));
  } else {
    TRY(read_digit(r, &axis));
  }
  VEC_PUSH(&leaf->axes, axis);
  return CANVAS_OK;
}

/* Consumes `R{`. */
static bool accept_reductions(struct lexer *lx) {
  struct lexer ahead = *lx;
  if (!lexer_accept(&ahead, "R") || !lexer_accept(&ahead, "{")) return false;
  *lx = ahead;
  return true;
}

static canvas_status read_reductions(struct reader *r, struct schedule_leaf *leaf) {
  int spatial = leaf->axes.count;
  do {
    TRY(read_part(r, leaf));
  } while (lexer_accept(&r->lx, ","));
  leaf->reductions = leaf->axes.count - spatial;
  return lexer_expect(&r->lx, "}", "after the reductions, which stand last");
}

/* Parses the axes after `NAME:=`. */
static canvas_status read_parts(struct reader *r, struct schedule_leaf *leaf) {
  do {
    if (accept_reductions(&r->lx)) return read_reductions(r, leaf);
    TRY(read_part(r, leaf));
  } while (lexer_accept(&r->lx, ","));
  return CANVAS_OK;
}

static canvas_status read_declaration(struct selectors *x) {
  struct reader *r = x->r;
  struct token at = r->lx.token;
  if (r->count > 1)
    return lexer_fail(&r->lx, &at,
                      "a declaration stands among the lines of a stage, put it before");
  if (find_stage(x, &at))
    return lexer_fail(&r->lx, &at, "stage '%.*s' is declared twice", shown(&at), at.start);
  if (x->count == STAGES) return lexer_fail(&r->lx, &at, "more than %d stages", STAGES);
  struct declared *d = &x->stages[x->count++];
  *d = (struct declared){.at = at, .line = NOWHERE};
  TRY(schedule_read_head(r, &d->leaf));
  TRY(lexer_expect(&r->lx, ":=", "after the stage"));
  if (!at_line_end(&r->lx)) TRY(read_parts(r, &d->leaf));
  return lexer_end_line(&r->lx, "after the axes, the reductions last");
}

/* ---- closing lines ------------------------------------------------------------------------- */

static canvas_status place_stage(struct selectors *x, struct declared *d, int parent) {
  TRY(schedule_open_leaf(x->r, &d->at, parent, &d->node));
  x->r->s->nodes.data[d->node].leaf = d->leaf;
  memset(&d->leaf.axes, 0, sizeof d->leaf.axes); /* the schedule owns them now */
  memset(&d->leaf.layout, 0, sizeof d->leaf.layout);
  return CANVAS_OK;
}

static bool has_level(const struct schedule_loop *loop, int level) {
  for (int i = 0; i < loop->count; i++)
    if (loop->level[i] == level) return true;
  return false;
}

/* Checks that the loops from the line's set down to its stage are those of the set. */
static canvas_status check_set(struct selectors *x, const struct line *line) {
  const struct schedule *s = x->r->s;
  unsigned seen = 0;
  int node = s->nodes.data[x->stages[line->stages[0]].node].parent;
  for (; node != line->place.node; node = s->nodes.data[node].parent) {
    const struct schedule_node *n = &s->nodes.data[node];
    const struct token at = {.line = n->line, .column = n->column};
    for (int i = 0; i < n->loop.count; i++)
      if (!has_level(&line->set.loop, n->loop.level[i]))
        return lexer_fail(&x->r->lx, &at, "loop '%.40s' is not in the set to reorder, on line %d",
                          s->levels.data[n->loop.level[i]].name, line->at.line);
    for (int i = 0; i < line->set.loop.count; i++)
      if (has_level(&n->loop, line->set.loop.level[i])) seen |= 1u << i;
  }
  for (int i = 0; i < line->set.loop.count; i++)
    if (!(seen >> i & 1))
      return lexer_fail(&x->r->lx, &line->set.at,
                        "loop '%.40s' of the set has no place in an order below",
                        s->levels.data[line->set.loop.level[i]].name);
  return CANVAS_OK;
}

/* Ends the innermost open line: stages that no deeper line selects are computed here. */
static canvas_status close_line(struct selectors *x) {
  const struct line *line = &x->lines[--x->open];
  for (int i = 0; i < line->count; i++) {
    struct declared *d = &x->stages[line->stages[i]];
    if (d->line == line->id) TRY(place_stage(x, d, line->place.node));
  }
  return line->set.kind == ITEM_REORDER ? check_set(x, line) : CANVAS_OK;
}

/* ---- selectors ----------------------------------------------------------------------------- */

static bool selects(const struct selectors *x, const struct line *line, const struct declared *d) {
  for (int i = 0; i < line->count; i++)
    if (&x->stages[line->stages[i]] == d) return true;
  return false;
}

static canvas_status select_stage(struct selectors *x, struct line *line) {
  struct lexer *lx = &x->r->lx;
  const struct token *t = &lx->token;
  const struct line *above = x->open ? &x->lines[x->open - 1] : NULL;
  if (t->kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a stage");
  struct declared *d = find_stage(x, t);
  if (!d)
    return lexer_fail(lx, t, "unknown stage '%.*s', declare it above: '%.*s:= axes'", shown(t),
                      t->start, shown(t), t->start);
  if (above && !selects(x, above, d))
    return lexer_fail(lx, t, "stage '%.*s' is not among those of the line above", shown(t),
                      t->start);
  if (d->line != (above ? above->id : NOWHERE))
    return lexer_fail(lx, t, "stage '%.*s' has its loops already", shown(t), t->start);
  d->line = line->id;
  line->stages[line->count++] = (int)(d - x->stages);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status open_reductions(struct selectors *x, struct line *line,
                                     const struct loop_item *item) {
  const struct schedule_leaf *leaf = &x->stages[line->stages[0]].leaf;
  if (line->count > 1)
    return lexer_fail(&x->r->lx, &item->at, "R is the reductions of one stage, the line has %d",
                      line->count);
  for (int i = leaf->axes.count - leaf->reductions; i < leaf->axes.count; i++)
    for (int j = 0; j < leaf->axes.data[i].count; j++) {
      struct loop_item loop = {.at = item->at};
      loop.loop = (struct schedule_loop){.level = {leaf->axes.data[i].level[j]}, .count = 1};
      TRY(schedule_open_loop(x->r, &loop, &line->place));
    }
  return CANVAS_OK;
}

/* Moves an R before the first vector loop, if one precedes it. */
static void move_reductions(struct loop_list *loops) {
  int vec = 0, at = 0;
  while (vec < loops->count && !(loops->data[vec].loop.marks & LOOP_VEC)) vec++;
  while (at < loops->count && loops->data[at].kind != ITEM_REDUCTIONS) at++;
  if (at == loops->count || vec > at) return;
  struct loop_item item = loops->data[at];
  memmove(&loops->data[vec + 1], &loops->data[vec], (size_t)(at - vec) * sizeof item);
  loops->data[vec] = item;
}

static canvas_status open_set(struct selectors *x, struct line *line, const struct loop_item *item,
                              bool last) {
  if (line->count > 1)
    return lexer_fail(&x->r->lx, &item->at, "a set to reorder is of one stage, the line has %d",
                      line->count);
  if (!last) return lexer_fail(&x->r->lx, &item->at, "a set to reorder stands last in its line");
  line->set = *item;
  return CANVAS_OK;
}

static canvas_status open_loops(struct selectors *x, struct line *line) {
  struct loop_list loops;
  TRY(schedule_read_loops(x->r, true, &loops));
  move_reductions(&loops);
  for (int i = 0; i < loops.count; i++) {
    const struct loop_item *item = &loops.data[i];
    switch (item->kind) {
      case ITEM_LOOP: TRY(schedule_open_loop(x->r, item, &line->place)); break;
      case ITEM_REDUCTIONS: TRY(open_reductions(x, line, item)); break;
      case ITEM_REORDER: TRY(open_set(x, line, item, i + 1 == loops.count)); break;
    }
  }
  return CANVAS_OK;
}

static canvas_status read_selector(struct selectors *x) {
  struct reader *r = x->r;
  struct line *line = &x->lines[x->open];
  *line = (struct line){.id = x->read++, .at = r->lx.token};
  line->place = r->blocks[r->count - 1].place;
  do {
    TRY(select_stage(x, line));
  } while (lexer_accept(&r->lx, ","));
  TRY(lexer_expect(&r->lx, ">", "after the stages of a line"));
  if (!at_line_end(&r->lx)) TRY(open_loops(x, line));
  x->open++;
  r->opens = true;
  r->below = line->place;
  return lexer_end_line(&r->lx, "after the loops");
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool declares(const struct lexer *lx) {
  struct lexer ahead = *lx;
  while (!at_line_end(&ahead) && !lexer_is(&ahead, ":=")) lexer_next(&ahead);
  return !at_line_end(&ahead);
}

static canvas_status read_line(struct selectors *x) {
  struct reader *r = x->r;
  bool declaration = declares(&r->lx);
  TRY(schedule_read_indent(r));
  while (x->open >= r->count) TRY(close_line(x));
  r->opens = false;
  return declaration ? read_declaration(x) : read_selector(x);
}

static canvas_status read_lines(struct selectors *x) {
  struct lexer *lx = &x->r->lx;
  for (; lx->token.kind != TOKEN_END; lexer_skip_newlines(lx)) TRY(read_line(x));
  while (x->open) TRY(close_line(x));
  for (int i = 0; i < x->count; i++)
    if (!x->stages[i].node)
      return lexer_fail(lx, &x->stages[i].at,
                        "stage '%.40s' is declared, and no line gives it loops",
                        x->stages[i].leaf.stage);
  return CANVAS_OK;
}

canvas_status schedule_read_selectors(struct reader *r) {
  struct selectors *x = mem_alloc(sizeof *x);
  x->r = r;
  canvas_status status = read_lines(x);
  for (int i = 0; i < x->count; i++) {
    mem_free(x->stages[i].leaf.axes.data);
    mem_free(x->stages[i].leaf.layout.data);
  }
  mem_free(x);
  return status;
}
