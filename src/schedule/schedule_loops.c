/* Parses loops, annotations and the heads of stages. See schedule_text.h. */
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "schedule/schedule_text.h"

static const char *keep(struct reader *r, const struct token *t) {
  return arena_strndup(&r->s->arena, t->start, (size_t)t->length);
}

/* ---- levels -------------------------------------------------------------------------------- */

canvas_status schedule_read_name(struct reader *r, int *level) {
  struct token t = r->lx.token;
  char name[SCHEDULE_NAME + 1];
  if (t.kind != TOKEN_NAME) return lexer_unexpected(&r->lx, "the name of a loop");
  if (t.length > SCHEDULE_NAME)
    return lexer_fail(&r->lx, &t, "the name of a loop has more than %d bytes", SCHEDULE_NAME);
  memcpy(name, t.start, (size_t)t.length);
  name[t.length] = '\0';
  *level = schedule_level(r->s, name);
  struct level *l = &r->s->levels.data[*level];
  if (!l->line) l->line = t.line, l->column = t.column;
  lexer_next(&r->lx);
  return CANVAS_OK;
}

canvas_status schedule_read_digit(struct reader *r, struct schedule_axis *axis) {
  int level;
  if (axis->count == SCHEDULE_DEPTH)
    return lexer_fail(&r->lx, &r->lx.token, "more than %d loops cover one axis", SCHEDULE_DEPTH);
  TRY(schedule_read_name(r, &level));
  axis->level[axis->count++] = level;
  return CANVAS_OK;
}

static bool same_extent(const struct level *a, const struct level *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case EXTENT_INT: return a->extent == b->extent;
    case EXTENT_DYN: return !strcmp(a->dyn, b->dyn);
    case EXTENT_CHOICE:
      return a->choices.count == b->choices.count &&
             !memcmp(a->choices.data, b->choices.data,
                     (size_t)a->choices.count * sizeof *a->choices.data);
    default: return true;
  }
}

static canvas_status two_extents(struct reader *r, const struct token *at, const struct level *a,
                                 const struct level *b) {
  struct buf first = {0}, second = {0};
  schedule_print_extent(a, &first);
  schedule_print_extent(b, &second);
  canvas_status status = lexer_fail(&r->lx, at, "loop '%.40s' has two extents, %.40s and %.40s",
                                    a->name, first.text, second.text);
  buf_free(&first);
  buf_free(&second);
  return status;
}

/* Gives a level the extent of `given`, and takes its choices over. */
static canvas_status give_extent(struct reader *r, const struct token *at, int level,
                                 struct level *given) {
  struct level *l = &r->s->levels.data[level];
  canvas_status status = CANVAS_OK;
  if (l->kind == EXTENT_OPEN) {
    l->kind = given->kind, l->extent = given->extent;
    l->choices = given->choices, l->dyn = given->dyn;
    return CANVAS_OK;
  }
  if (!same_extent(l, given)) status = two_extents(r, at, l, given);
  mem_free(given->choices.data);
  return status;
}

static canvas_status read_number(struct reader *r, int64_t most, const char *what, int64_t *out) {
  const struct token *t = &r->lx.token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(&r->lx, "a whole number");
  if (t->integer < 1 || t->integer > most)
    return lexer_fail(&r->lx, t, "%lld is no %s, give 1 to %lld", (long long)t->integer, what,
                      (long long)most);
  *out = t->integer;
  lexer_next(&r->lx);
  return CANVAS_OK;
}

/* Inserts a choice in ascending order. */
static canvas_status add_choice(struct reader *r, const struct token *at, struct level *given,
                                int64_t value) {
  if (given->choices.count == SCHEDULE_CHOICES)
    return lexer_fail(&r->lx, at, "more than %d numbers to choose from", SCHEDULE_CHOICES);
  VEC_PUSH(&given->choices, value);
  int64_t *data = given->choices.data;
  int i = given->choices.count - 1;
  for (; i > 0 && data[i - 1] >= value; i--) {
    if (data[i - 1] == value)
      return lexer_fail(&r->lx, at, "%lld stands twice among the numbers", (long long)value);
    data[i] = data[i - 1];
  }
  data[i] = value;
  return CANVAS_OK;
}

/* After the `{`. */
static canvas_status read_choices(struct reader *r, struct level *given) {
  do {
    struct token at = r->lx.token;
    int64_t value;
    TRY(read_number(r, PROGRAM_ELEMENTS, "extent", &value));
    TRY(add_choice(r, &at, given, value));
  } while (lexer_accept(&r->lx, ","));
  return lexer_expect(&r->lx, "}", "after the numbers");
}

static canvas_status read_dyn(struct reader *r, struct level *given) {
  TRY(lexer_expect(&r->lx, "(", "and an axis after 'dyn'"));
  if (r->lx.token.kind != TOKEN_NAME) return lexer_unexpected(&r->lx, "the name of an axis");
  given->dyn = keep(r, &r->lx.token);
  lexer_next(&r->lx);
  return lexer_expect(&r->lx, ")", "after the axis");
}

/* ---- annotations --------------------------------------------------------------------------- */

/* Every word that may follow a colon. */
enum word {
  WORD_DYN,
  WORD_MASK,
  WORD_PEEL,
#define X(id, ...) WORD_##id,
  LOOP_MARKS(X)
#undef X
      WORD_PF,
  WORD_REORDER,
  WORDS
};
/* clang-format off */
static const char *const words[WORDS] = {
    "dyn", "mask", "peel",
#define X(id, text, ...) text,
    LOOP_MARKS(X)
#undef X
    "pf", "reorder"};
/* clang-format on */

/* Rejects a second annotation of a kind. `seen`: a bit per word; bit WORDS for the extent. */
static canvas_status once(struct reader *r, const struct token *at, unsigned *seen, int bit) {
  if (*seen >> bit & 1)
    return bit == WORDS ? lexer_fail(&r->lx, at, "a second extent of one loop")
                        : lexer_fail(&r->lx, at, "'%s' stands twice at one loop", words[bit]);
  *seen |= 1u << bit;
  return CANVAS_OK;
}

static canvas_status read_extent(struct reader *r, int level, unsigned *seen) {
  struct token at = r->lx.token;
  struct level given = {.kind = EXTENT_INT, .name = ""};
  canvas_status status;
  TRY(once(r, &at, seen, WORDS));
  if (lexer_accept(&r->lx, "?")) {
    given.kind = EXTENT_HOLE;
    status = CANVAS_OK;
  } else if (lexer_accept(&r->lx, "{")) {
    given.kind = EXTENT_CHOICE;
    status = read_choices(r, &given);
  } else if (lexer_accept(&r->lx, words[WORD_DYN])) {
    given.kind = EXTENT_DYN;
    status = read_dyn(r, &given);
  } else {
    status = read_number(r, PROGRAM_ELEMENTS, "extent", &given.extent);
  }
  if (status == CANVAS_OK) return give_extent(r, &at, level, &given);
  mem_free(given.choices.data);
  return status;
}

static canvas_status give_tail(struct reader *r, const struct token *at, int level,
                               enum level_tail tail) {
  struct level *l = &r->s->levels.data[level];
  if (l->tail && l->tail != tail)
    return lexer_fail(&r->lx, at, "loop '%.40s' has two tails, %s and %s", l->name,
                      level_tail_name(l->tail), level_tail_name(tail));
  l->tail = tail;
  return CANVAS_OK;
}

static canvas_status read_prefetch(struct reader *r, struct loop_item *item) {
  int64_t ahead;
  TRY(lexer_expect(&r->lx, "(", "and the iterations ahead after 'pf'"));
  TRY(read_number(r, SCHEDULE_PREFETCH, "number of iterations ahead", &ahead));
  item->loop.prefetch = (int)ahead;
  return lexer_expect(&r->lx, ")", "after the iterations ahead");
}

static canvas_status read_mark(struct reader *r, enum word word, struct loop_item *item) {
  if (word == WORD_PF) return read_prefetch(r, item);
  if (word == WORD_REORDER)
    item->kind = ITEM_REORDER;
  else
    item->loop.marks |= 1u << (word - WORD_PEEL - 1);
  return CANVAS_OK;
}

/* Suggests our word for that of another schedule language. */
static const char *called_here(const struct token *t) {
  static const char *const others[][2] = {
      {"vectorize", "vec"},   {"vectorized", "vec"}, {"parallel", "para"}, {"parallelize", "para"},
      {"unrolled", "unroll"}, {"prefetch", "pf(4)"}, {"fuse", "fold"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if ((int)strlen(others[i][0]) == t->length &&
        !strncmp(others[i][0], t->start, strlen(others[i][0])))
      return others[i][1];
  return NULL;
}

static canvas_status unknown_word(struct reader *r) {
  const struct token *t = &r->lx.token;
  if (t->kind != TOKEN_NAME) return lexer_unexpected(&r->lx, "an annotation after the ':'");
  const char *near = called_here(t);
  if (!near) near = word_nearest(t->start, t->length, words, WORDS);
  if (near)
    return lexer_fail(&r->lx, t, "unknown annotation '%.*s', did you mean '%s'?", shown(t),
                      t->start, near);
  struct buf marks = {0};
  for (int i = 0; i < MARKS; i++) buf_printf(&marks, "%s, ", loop_mark_names[i]);
  canvas_status status =
      lexer_fail(&r->lx, t,
                 "unknown annotation '%.*s', there are a number, ?, {6,7}, dyn(x), mask, peel, "
                 "%spf(4) and reorder",
                 shown(t), t->start, marks.text);
  buf_free(&marks);
  return status;
}

static bool at_extent(const struct lexer *lx) {
  return lx->token.kind == TOKEN_INTEGER || lexer_is(lx, "?") || lexer_is(lx, "{") ||
         lexer_is(lx, words[WORD_DYN]);
}

/* Parses one annotation. A group has no level (-1), a member of a group no item (NULL). */
static canvas_status read_annotation(struct reader *r, int level, struct loop_item *item,
                                     unsigned *seen) {
  struct token at = r->lx.token;
  bool extent = at_extent(&r->lx);
  int word = 0;
  while (!extent && word < WORDS && !lexer_is(&r->lx, words[word])) word++;
  if (word == WORDS) return unknown_word(r);
  if ((extent || word <= WORD_PEEL) && level < 0)
    return lexer_fail(&r->lx, &at, "'%.*s' is for one loop, give it to a member of the group",
                      shown(&at), at.start);
  if (extent) return read_extent(r, level, seen);
  if (word > WORD_PEEL && !item)
    return lexer_fail(&r->lx, &at,
                      "'%s' is for a loop where it stands, not for a name in a group or a "
                      "declaration",
                      words[word]);
  TRY(once(r, &at, seen, word));
  lexer_next(&r->lx);
  if (word > WORD_PEEL) return read_mark(r, (enum word)word, item);
  return give_tail(r, &at, level, word == WORD_MASK ? TAIL_MASK : TAIL_PEEL);
}

canvas_status schedule_read_annotations(struct reader *r, int level, struct loop_item *item) {
  unsigned seen = 0;
  while (lexer_accept(&r->lx, ":")) TRY(read_annotation(r, level, item, &seen));
  return CANVAS_OK;
}

/* ---- loops --------------------------------------------------------------------------------- */

/* After the `{`. */
static canvas_status read_group(struct reader *r, struct loop_item *item) {
  do {
    struct token at = r->lx.token;
    int level;
    if (item->loop.count == GROUP_MOST)
      return lexer_fail(&r->lx, &at, "more than %d loops in a group", GROUP_MOST);
    TRY(schedule_read_name(r, &level));
    TRY(schedule_read_annotations(r, level, NULL));
    item->loop.level[item->loop.count++] = level;
  } while (lexer_accept(&r->lx, ","));
  TRY(lexer_expect(&r->lx, "}", "after the loops of a group"));
  bool single = item->loop.count == 1;
  return schedule_read_annotations(r, single ? item->loop.level[0] : -1, item);
}

static canvas_status check_item(struct reader *r, bool selector, const struct loop_item *item) {
  bool reorder = item->kind == ITEM_REORDER;
  if (reorder && !selector)
    return lexer_fail(&r->lx, &item->at, "'reorder' is for the lines of selectors, 'STAGE> loops'");
  if (reorder && (item->loop.marks || item->loop.prefetch))
    return lexer_fail(&r->lx, &item->at,
                      "a set to reorder has no marks, its loops have them below");
  if (!reorder && item->loop.count > 1 && !(item->loop.marks & LOOP_GROUPS))
    return lexer_fail(&r->lx, &item->at,
                      selector ? "a group is one loop: say so by ':para' or ':fold', or ':reorder'"
                               : "a group is one loop: say so by ':para' or ':fold'");
  return CANVAS_OK;
}

static canvas_status read_loop(struct reader *r, bool selector, struct loop_item *item) {
  *item = (struct loop_item){.at = r->lx.token};
  if (lexer_accept(&r->lx, "{")) {
    TRY(read_group(r, item));
  } else if (selector && lexer_accept(&r->lx, "R")) {
    item->kind = ITEM_REDUCTIONS;
    if (lexer_is(&r->lx, ":"))
      return lexer_fail(&r->lx, &r->lx.token,
                        "R is all reductions of a stage: name the loop that "
                        "the annotation is for");
    return CANVAS_OK;
  } else {
    TRY(schedule_read_name(r, &item->loop.level[0]));
    item->loop.count = 1;
    TRY(schedule_read_annotations(r, item->loop.level[0], item));
  }
  return check_item(r, selector, item);
}

canvas_status schedule_read_loops(struct reader *r, bool selector, struct loop_list *out) {
  out->count = 0;
  do {
    if (out->count == SCHEDULE_DEPTH)
      return lexer_fail(&r->lx, &r->lx.token, "more than %d loops around one stage",
                        SCHEDULE_DEPTH);
    TRY(read_loop(r, selector, &out->data[out->count]));
    out->count++;
  } while (lexer_accept(&r->lx, ","));
  return CANVAS_OK;
}

static canvas_status check_nodes(struct reader *r, const struct token *at) {
  if (r->s->nodes.count < SCHEDULE_NODES) return CANVAS_OK;
  return lexer_fail(&r->lx, at, "more than %d loops and stages", SCHEDULE_NODES - 1);
}

canvas_status schedule_open_loop(struct reader *r, const struct loop_item *item,
                                 struct place *place) {
  TRY(check_nodes(r, &item->at));
  place->depth += item->loop.count;
  if (place->depth > SCHEDULE_DEPTH)
    return lexer_fail(&r->lx, &item->at, "more than %d loops around one stage", SCHEDULE_DEPTH);
  place->node = schedule_add_loop(r->s, place->node, 0, 0);
  struct schedule_node *node = &r->s->nodes.data[place->node];
  node->loop = item->loop;
  node->line = item->at.line;
  node->column = item->at.column;
  return CANVAS_OK;
}

/* ---- stages -------------------------------------------------------------------------------- */

canvas_status schedule_open_leaf(struct reader *r, const struct token *at, int parent, int *leaf) {
  TRY(check_nodes(r, at));
  *leaf = schedule_add_leaf(r->s, parent, "");
  r->s->nodes.data[*leaf].line = at->line;
  r->s->nodes.data[*leaf].column = at->column;
  return CANVAS_OK;
}

static canvas_status read_scope(struct reader *r, struct schedule_leaf *leaf) {
  const struct token *t = &r->lx.token;
  for (int scope = SCOPE_REG; scope <= SCOPE_STREAM; scope++)
    if (lexer_accept(&r->lx, buffer_scope_name((enum buffer_scope)scope))) {
      leaf->scope = (enum buffer_scope)scope;
      return CANVAS_OK;
    }
  if (t->kind != TOKEN_NAME) return lexer_unexpected(&r->lx, "a scope (reg, l1, heap or stream)");
  return lexer_fail(&r->lx, t, "unknown scope '%.*s', there are reg, l1, heap and stream", shown(t),
                    t->start);
}

canvas_status schedule_read_head(struct reader *r, struct schedule_leaf *leaf) {
  if (r->lx.token.kind != TOKEN_NAME) return lexer_unexpected(&r->lx, "the name of a stage");
  leaf->stage = keep(r, &r->lx.token);
  lexer_next(&r->lx);
  while (lexer_accept(&r->lx, "[")) {
    const struct token *t = &r->lx.token;
    if (leaf->layout.count == SCHEDULE_DEPTH)
      return lexer_fail(&r->lx, t, "more than %d axes in a layout", SCHEDULE_DEPTH);
    if (t->kind != TOKEN_NAME) return lexer_unexpected(&r->lx, "an axis or a loop of the layout");
    VEC_PUSH(&leaf->layout, keep(r, t));
    lexer_next(&r->lx);
    TRY(lexer_expect(&r->lx, "]", "after a name in the layout"));
  }
  return lexer_accept(&r->lx, ":") ? read_scope(r, leaf) : CANVAS_OK;
}
