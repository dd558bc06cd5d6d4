/* Layouts: parsing, and the indices both ways. See program_layout.h.
 *
 * The parser splits each index into digits. The digits of one layout axis, and those of one tensor
 * axis, have to form a mixed radix: the smallest has the step 1, each next one the product of the
 * extents below it.
 */
#include "rewrite/program_layout.h"

#include <stdlib.h>
#include <string.h>

struct reading {
  struct lexer *lx;
  struct token at; /* of the index that is being parsed */
  struct layout *layout;
};

static const struct program_tensor *tensor_of(const struct layout *l) {
  return &l->scratch->tensors.data[0];
}

/* ---- digits -------------------------------------------------------------------------------- */

static bool by_constant(const struct program *p, const struct px_node *n, int64_t *value) {
  if (n->arg[1] < 0 || p->nodes.data[n->arg[1]].op != PX_INT) return false;
  *value = p->nodes.data[n->arg[1]].integer;
  return *value >= 1;
}

/* Parses a digit: an axis, or a quotient or remainder of a digit. False if the expression is
 * none. */
static bool read_digit(const struct layout *l, int expr, struct digit *d) {
  const struct program *p = l->scratch;
  const struct px_node *n = &p->nodes.data[expr];
  int64_t c;
  if (n->op == PX_AXIS) {
    *d = (struct digit){.axis = (int)n->integer, .weight = 1};
    d->extent = tensor_of(l)->axes[n->integer].size;
    return true;
  }
  if ((n->op != PX_DIV && n->op != PX_MOD) || !by_constant(p, n, &c)) return false;
  if (!read_digit(l, n->arg[0], d)) return false;
  if (n->op == PX_MOD) {
    if (c < d->extent) d->extent = c;
    return true;
  }
  bool whole = d->weight == 1 && d->extent == tensor_of(l)->axes[d->axis].size;
  if (!whole && d->extent % c) return false;
  d->extent = (d->extent - 1) / c + 1;
  d->weight *= c; /* below 2^40: c divides the extent, or the extent is 1 */
  return d->weight <= PROGRAM_ELEMENTS;
}

/* Adds the digits of step * expr; false if expr is not a sum of digits. */
static bool read_digits(struct layout *l, int expr, int64_t step) {
  const struct program *p = l->scratch;
  const struct px_node *n = &p->nodes.data[expr];
  struct digit d;
  int64_t c;
  if (n->op == PX_INT)
    return n->integer == 0; /* an axis of size 1, or a block as large as its axis */
  if (n->op == PX_ADD) return read_digits(l, n->arg[0], step) && read_digits(l, n->arg[1], step);
  if (n->op == PX_MUL && by_constant(p, n, &c))
    return c <= PROGRAM_ELEMENTS / step && read_digits(l, n->arg[0], c * step);
  if (!read_digit(l, expr, &d) || l->count == 2 * PROGRAM_AXES) return false;
  d.place = l->rank;
  d.step = step;
  l->digits[l->count++] = d;
  return true;
}

/* The first digit of a tensor axis (or, with axis -1, of a layout axis) that is not taken and has
 * the weight (or step) `unit`; 0: any. -1 if there is none. Digits of extent 1 do not count. */
static int find_digit(const struct layout *l, int axis, int place, int64_t unit,
                      const bool *taken) {
  for (int i = 0; i < l->count; i++) {
    const struct digit *d = &l->digits[i];
    bool here = axis >= 0 ? d->axis == axis : d->place == place;
    if (!here || taken[i] || d->extent == 1) continue;
    if (!unit || unit == (axis >= 0 ? d->weight : d->step)) return i;
  }
  return -1;
}

/* The product of the extents of the digits of a tensor axis (or, with axis -1, of a layout axis) if
 * they form a mixed radix; 0 if not. */
static int64_t radix(const struct layout *l, int axis, int place) {
  bool taken[2 * PROGRAM_AXES] = {false};
  int64_t product = 1;
  for (int i; (i = find_digit(l, axis, place, product, taken)) >= 0;) {
    taken[i] = true;
    if (l->digits[i].extent > PROGRAM_ELEMENTS / product) return 0;
    product *= l->digits[i].extent;
  }
  return find_digit(l, axis, place, 0, taken) < 0 ? product : 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static canvas_status no_digit(const struct reading *r) {
  return lexer_fail(r->lx, &r->at,
                    "an index of a layout is a sum of axes, axis/N and axis%%N, each times the "
                    "product of those after it");
}

static void append_axes(const struct program *p, int expr, struct buf *name) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_AXIS)
    buf_printf(name, "%s%s", name->length ? "_" : "", p->tensors.data[0].axes[n->integer].name);
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) append_axes(p, n->arg[i], name);
}

/* The name of a layout axis without one: co for co, co_o for co/32, co_i for co%32, co_m for
 * co/4%8, and ci_kh_kw for a sum of digits. */
static const char *default_name(struct layout *l, int expr) {
  const struct px_node *n = &l->scratch->nodes.data[expr];
  struct buf name = {0};
  append_axes(l->scratch, expr, &name);
  if (!name.length) buf_puts(&name, "one");
  bool middle = n->op == PX_MOD && l->scratch->nodes.data[n->arg[0]].op == PX_DIV;
  if (n->op == PX_DIV || n->op == PX_MOD)
    buf_puts(&name, n->op == PX_DIV ? "_o" : middle ? "_m" : "_i");
  for (int i = 0; i < l->rank; i++)
    if (strcmp(l->names[i], name.text) == 0) buf_printf(&name, "%d", l->rank), i = -1;
  const char *kept = arena_strndup(&l->scratch->arena, name.text, name.length);
  buf_free(&name);
  return kept;
}

static void read_name(struct reading *r, const char **name) {
  struct lexer ahead = *r->lx;
  struct token t = ahead.token;
  lexer_next(&ahead);
  if (t.kind != TOKEN_NAME || !lexer_accept(&ahead, ":")) return;
  *r->lx = ahead;
  *name = arena_strndup(&r->layout->scratch->arena, t.start, (size_t)t.length);
}

static canvas_status read_index(struct reading *r) {
  struct layout *l = r->layout;
  const char *name = NULL;
  int axis[PROGRAM_AXES], expr;
  r->at = r->lx->token;
  if (l->rank == PROGRAM_AXES) return lexer_fail(r->lx, &r->at, "more than %d axes", PROGRAM_AXES);
  read_name(r, &name);
  TRY(program_parse_index(r->lx, l->scratch, 0, &expr));
  if (!name) name = default_name(l, expr);
  for (int i = 0; i < tensor_of(l)->rank; i++)
    axis[i] = px_raw_leaf(
        l->scratch, (struct px_node){.op = PX_AXIS, .sort = PX_INDEX, .tensor = 0, .integer = i});
  expr = px_copy(l->scratch, l->scratch, expr, &(struct px_map){.axis = axis});
  if (expr < 0 || !read_digits(l, expr, 1)) return no_digit(r);
  int64_t size = radix(l, -1, l->rank);
  if (!size) return no_digit(r);
  l->indices[l->rank] = expr;
  l->names[l->rank] = name;
  l->sizes[l->rank++] = size;
  return CANVAS_OK;
}

/* Checks that the digits give back every axis of the tensor. */
static canvas_status check_axes(const struct reading *r, const struct token *open) {
  const struct layout *l = r->layout;
  const struct program_tensor *t = tensor_of(l);
  for (int i = 0; i < t->rank; i++) {
    int64_t covered = radix(l, i, -1);
    if (!covered)
      return lexer_fail(r->lx, open, "the parts of axis '%.40s' in the layout do not fit together",
                        t->axes[i].name);
    if (covered < t->axes[i].size)
      return lexer_fail(r->lx, open, "the layout has %lld of the %lld places of axis '%.40s'",
                        (long long)covered, (long long)t->axes[i].size, t->axes[i].name);
  }
  return CANVAS_OK;
}

/* A program whose only tensor is this one, as an input. */
static struct program *scratch_of(const struct program_tensor *t) {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  struct program *p = program_new("layout");
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  program_input(p, t->name, t->dtype, t->rank, names, sizes);
  return p;
}

static int heavier(const void *a, const void *b) {
  const struct digit *x = a, *y = b;
  return (x->weight < y->weight) - (x->weight > y->weight);
}

canvas_status layout_parse(struct lexer *lx, const struct program *p, int tensor,
                           struct layout *out) {
  struct reading r = {.lx = lx, .layout = out};
  struct token open = lx->token;
  *out = (struct layout){.scratch = scratch_of(&p->tensors.data[tensor])};
  TRY(lexer_expect(lx, "[", "and the axes of the layout"));
  do TRY(read_index(&r));
  while (lexer_accept(lx, ","));
  TRY(lexer_expect(lx, "]", "or ',' after an axis of the layout"));
  qsort(out->digits, (size_t)out->count, sizeof *out->digits, heavier); /* as sums are written */
  return check_axes(&r, &open);
}

void layout_free(struct layout *layout) {
  program_free(layout->scratch);
  layout->scratch = NULL;
}

/* ---- indices in both directions ------------------------------------------------------------ */

void layout_place(const struct layout *l, struct program *to, const int *tensor_indices,
                  int *layout_indices) {
  struct px_map map = {.axis = tensor_indices};
  for (int i = 0; i < l->rank; i++)
    layout_indices[i] = px_copy(to, l->scratch, l->indices[i], &map);
}

static int digit_value(const struct layout *l, struct program *to, const struct digit *d,
                       const int *layout_indices) {
  int value = layout_indices[d->place];
  if (d->extent != l->sizes[d->place])
    value = px_mod(to, px_div(to, value, px_int(to, d->step)), px_int(to, d->extent));
  return px_mul(to, value, px_int(to, d->weight));
}

int layout_element(const struct layout *l, struct program *to, const int *layout_indices,
                   int *tensor_indices) {
  const struct program_tensor *t = tensor_of(l);
  int inside = px_bool(to, true);
  for (int i = 0; i < t->rank; i++) {
    int sum = px_int(to, 0);
    for (int d = 0; d < l->count; d++)
      if (l->digits[d].axis == i)
        sum = px_add(to, sum, digit_value(l, to, &l->digits[d], layout_indices));
    tensor_indices[i] = sum;
    inside = px_and(to, inside, px_compare(to, PX_LT, sum, px_int(to, t->axes[i].size)));
  }
  return inside;
}
