/* See shape.h. */
#include "dim/shape.h"

#include <assert.h>
#include <string.h>

#include "base/saturating.h"

int shape_find(const struct shape *s, enum role role) {
  for (int i = 0; i < s->count; i++)
    if (s->axis[i].role == role) return i;
  return -1;
}

unsigned shape_roles(const struct shape *s) {
  unsigned roles = 0;
  for (int i = 0; i < s->count; i++) roles |= 1u << s->axis[i].role;
  return roles;
}

void shape_insert(struct shape *s, enum role role, struct dim dim) {
  assert(s->count < AXES_MAX);
  int i = s->count++;
  for (; i > 0 && s->axis[i - 1].role > role; i--) s->axis[i] = s->axis[i - 1];
  s->axis[i].role = role;
  s->axis[i].dim = dim;
}

void shape_remove(struct shape *s, unsigned roles) {
  int kept = 0;
  for (int i = 0; i < s->count; i++)
    if (!(roles >> s->axis[i].role & 1)) s->axis[kept++] = s->axis[i];
  s->count = kept;
}

bool shape_subsample(struct shape *s, enum role role, const struct dim *stride) {
  struct dim *d = &s->axis[shape_find(s, role)].dim;
  if (!dim_is_one(stride) && dim_uses(d, SIZE_S)) return false;
  *d = dim_div(*d, *stride);
  return true;
}

/* *product *= d; the first of *count factors needs no multiplication. */
static void add_factor(struct dim *product, int *count, const struct dim *d) {
  *product = (*count)++ ? dim_mul(*product, *d) : *d;
}

struct dim shape_product(const struct shape *s, unsigned roles) {
  struct dim product = dim_one();
  int count = 0;
  for (int i = 0; i < s->count; i++)
    if (roles >> s->axis[i].role & 1) add_factor(&product, &count, &s->axis[i].dim);
  return product;
}

static bool axis_equal(const struct axis *a, const struct axis *b) {
  return a->role == b->role && dim_equal(&a->dim, &b->dim);
}

bool shape_equal(const struct shape *a, const struct shape *b) {
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++)
    if (!axis_equal(&a->axis[i], &b->axis[i])) return false;
  return true;
}

bool shape_is_whole(const struct shape *s) {
  for (int i = 0; i < s->count; i++)
    if (!dim_is_whole(&s->axis[i].dim)) return false;
  return true;
}

bool shape_elements(const struct shape *s, const struct sizes *sizes, int64_t *elements) {
  int64_t product = 1, value;
  for (int i = 0; i < s->count; i++) {
    if (!dim_value(&s->axis[i].dim, sizes, &value)) return false;
    if (!checked_mul(&product, value)) return false;
  }
  *elements = product;
  return true;
}

static const char *const role_names[ROLES] = {"group", "channel", "KH", "KW", "H", "W"};
static const enum size role_sizes[ROLES] = {SIZE_G, SIZES, SIZE_KH, SIZE_KW, SIZE_H, SIZE_W};

const char *role_name(enum role role) {
  return role_names[role];
}

bool role_parse(const char *text, int length, enum role *role) {
  if (length == 1 && (*text == 'C' || *text == 'G')) { /* as attributes write them: over=C */
    *role = *text == 'C' ? ROLE_CHANNEL : ROLE_GROUP;
    return true;
  }
  for (int i = 0; i < ROLES; i++)
    if ((int)strlen(role_names[i]) == length && !memcmp(role_names[i], text, (size_t)length)) {
      *role = (enum role)i;
      return true;
    }
  return false;
}

/* The role that a dim printed bare means. */
static enum role bare_role(const struct dim *d) {
  for (int i = 0; i < ROLES; i++) {
    if (role_sizes[i] == SIZES) continue;
    struct dim own = dim_size(role_sizes[i]);
    if (dim_equal(d, &own)) return (enum role)i;
    own = dim_div(own, dim_size(SIZE_S));
    if (ROLES_SPATIAL >> i & 1 && dim_equal(d, &own)) return (enum role)i;
  }
  return ROLE_CHANNEL;
}

void shape_print(const struct shape *s, struct buf *out) {
  if (!s->count) buf_puts(out, "scalar");
  for (int i = 0; i < s->count; i++) {
    const struct axis *a = &s->axis[i];
    if (i) buf_puts(out, " ");
    if (bare_role(&a->dim) != a->role) buf_printf(out, "%s=", role_names[a->role]);
    dim_print(&a->dim, out);
  }
}

/* `role=dim` or a bare dim. `KH` may begin either: it is a role only before `=`. */
static canvas_status parse_axis(struct lexer *lx, struct axis *axis) {
  struct lexer saved = *lx;
  enum role role = ROLES;
  if (lx->token.kind == TOKEN_NAME && role_parse(lx->token.start, lx->token.length, &role)) {
    lexer_next(lx);
    if (!lexer_accept(lx, "=")) {
      *lx = saved;
      role = ROLES;
    }
  }
  TRY(dim_parse(lx, &axis->dim));
  axis->role = role == ROLES ? bare_role(&axis->dim) : role;
  return CANVAS_OK;
}

canvas_status shape_parse(struct lexer *lx, struct shape *out) {
  *out = (struct shape){0};
  if (lexer_accept(lx, "scalar")) return CANVAS_OK;
  while (lx->token.kind != TOKEN_NEWLINE && lx->token.kind != TOKEN_END) {
    struct token start = lx->token;
    if (out->count == AXES_MAX)
      return lexer_fail(lx, &start, "shape has more than %d axes", AXES_MAX);
    TRY(parse_axis(lx, &out->axis[out->count]));
    out->count++;
  }
  return out->count ? CANVAS_OK : lexer_unexpected(lx, "a shape");
}

static int axis_class(enum role role) {
  return role == ROLE_GROUP ? ROLE_CHANNEL : (int)role;
}

static bool common(const struct axis *a, const struct axis *b) {
  return axis_class(a->role) == axis_class(b->role) && dim_equal(&a->dim, &b->dim);
}

struct match shape_match(const struct shape *l, const struct shape *r) {
  struct match m = {.left = dim_one(), .right = dim_one()};
  int lefts = 0, rights = 0;
  int shorter = l->count < r->count ? l->count : r->count;
  while (m.suffix < shorter &&
         common(&l->axis[l->count - 1 - m.suffix], &r->axis[r->count - 1 - m.suffix]))
    m.suffix++;
  while (m.prefix < shorter - m.suffix && common(&l->axis[m.prefix], &r->axis[m.prefix]))
    m.prefix++;
  for (int i = m.prefix; i < l->count - m.suffix; i++) add_factor(&m.left, &lefts, &l->axis[i].dim);
  for (int i = m.prefix; i < r->count - m.suffix; i++)
    add_factor(&m.right, &rights, &r->axis[i].dim);
  m.multiplier = lefts ? dim_div(m.right, m.left) : m.right;
  return m;
}
