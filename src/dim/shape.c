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

static const struct {
  const char *name, *brief;
  enum size own; /* SIZES: none */
} role_rows[ROLES] = {{"group", "G", SIZE_G}, {"channel", "C", SIZES},  {"KC", "KC", SIZES},
                      {"KH", "KH", SIZE_KH},  {"KW", "KW", SIZE_KW},    {"H", "H", SIZE_H},
                      {"W", "W", SIZE_W},     {"group2", "G2", SIZE_G}, {"channel2", "C2", SIZE_C},
                      {"KC2", "KC2", SIZES},  {"KH2", "KH2", SIZE_KH},  {"KW2", "KW2", SIZE_KW},
                      {"H2", "H2", SIZE_H},   {"W2", "W2", SIZE_W}};

const char *role_name(enum role role) {
  return role_rows[role].name;
}

const char *role_short(enum role role) {
  return role_rows[role].brief;
}

static bool is_text(const char *name, const char *text, int length) {
  return (int)strlen(name) == length && !memcmp(name, text, (size_t)length);
}

bool role_parse(const char *text, int length, enum role *role) {
  for (int i = 0; i < ROLES; i++)
    if (is_text(role_rows[i].name, text, length) || is_text(role_rows[i].brief, text, length)) {
      *role = (enum role)i;
      return true;
    }
  return false;
}

/* The role that a dim printed bare means. */
static enum role bare_role(const struct dim *d) {
  for (int i = 0; i < ROLES_ONCE; i++) {
    if (role_rows[i].own == SIZES) continue;
    struct dim own = dim_size(role_rows[i].own);
    if (dim_equal(d, &own)) return (enum role)i;
    own = dim_div(own, dim_size(SIZE_S));
    if (ROLES_SPATIAL >> i & 1 && dim_equal(d, &own)) return (enum role)i;
  }
  return ROLE_CHANNEL;
}

/* Whether a second axis has the size that its name means: H2. */
static bool is_own_second(enum role role, const struct dim *d) {
  if (role < ROLES_ONCE || role_rows[role].own == SIZES) return false;
  struct dim own = dim_size(role_rows[role].own);
  return dim_equal(d, &own);
}

void shape_print(const struct shape *s, struct buf *out) {
  if (!s->count) buf_puts(out, "scalar");
  for (int i = 0; i < s->count; i++) {
    const struct axis *a = &s->axis[i];
    if (i) buf_puts(out, " ");
    if (is_own_second(a->role, &a->dim)) {
      buf_puts(out, role_short(a->role));
      continue;
    }
    if (bare_role(&a->dim) != a->role) buf_printf(out, "%s=", role_name(a->role));
    dim_print(&a->dim, out);
  }
}

/* `role=dim`, `H2` or a bare dim. `KH` may begin either: it is a role only before `=`. */
static canvas_status parse_axis(struct lexer *lx, struct axis *axis) {
  struct lexer saved = *lx;
  enum role role = ROLES;
  if (lx->token.kind == TOKEN_NAME && role_parse(lx->token.start, lx->token.length, &role)) {
    lexer_next(lx);
    if (!lexer_accept(lx, "=")) {
      if (role >= ROLES_ONCE && role_rows[role].own != SIZES) {
        *axis = (struct axis){role, dim_size(role_rows[role].own)};
        return CANVAS_OK;
      }
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
  return role_sort(role) == ROLE_GROUP ? (int)role + 1 : (int)role;
}

static bool common(const struct axis *a, const struct axis *b) {
  return axis_class(a->role) == axis_class(b->role) && dim_equal(&a->dim, &b->dim);
}

int shape_suffix(const struct shape *l, const struct shape *r) {
  int shorter = l->count < r->count ? l->count : r->count, suffix = 0;
  while (suffix < shorter &&
         common(&l->axis[l->count - 1 - suffix], &r->axis[r->count - 1 - suffix]))
    suffix++;
  return suffix;
}

struct match shape_match(const struct shape *l, const struct shape *r) {
  struct match m = {.left = dim_one(), .right = dim_one()};
  int lefts = 0, rights = 0;
  int shorter = l->count < r->count ? l->count : r->count;
  m.suffix = shape_suffix(l, r);
  while (m.prefix < shorter - m.suffix && common(&l->axis[m.prefix], &r->axis[m.prefix]))
    m.prefix++;
  for (int i = m.prefix; i < l->count - m.suffix; i++) add_factor(&m.left, &lefts, &l->axis[i].dim);
  for (int i = m.prefix; i < r->count - m.suffix; i++)
    add_factor(&m.right, &rights, &r->axis[i].dim);
  m.multiplier = lefts ? dim_div(m.right, m.left) : m.right;
  return m;
}
