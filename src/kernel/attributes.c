/* Parses, prints and compares attributes of nodes. See attributes.h. */
#include "kernel/attributes.h"

#include <string.h>

const struct attribute_row attributes[ATTRIBUTE_COUNT] = {
#define X(id, key, form, kind, optional) {key, form, VALUE_##kind, optional},
    ATTRIBUTES(X)
#undef X
};

/* ---- text ------------------------------------------------------------------------------------ */

enum { AMOUNT_LIMIT = 1 << 20 };

static canvas_status parse_axes(struct lexer *lx, const char *key, unsigned *over) {
  do {
    enum role role;
    const struct token *t = &lx->token;
    if (t->kind != TOKEN_NAME || !role_parse(t->start, t->length, &role))
      return lexer_unexpected(lx, "an axis (G, C, KC, KH, KW, H, W, or G2, C2, .. W2)");
    if (*over >> role & 1)
      return lexer_fail(lx, t, "axis '%s' stands twice in %s=", role_name(role), key);
    *over |= 1u << role;
    lexer_next(lx);
  } while (lexer_accept(lx, ","));
  return CANVAS_OK;
}

static canvas_status parse_amount(struct lexer *lx, int *amount, bool sign) {
  const struct token start = lx->token;
  bool minus = sign && lexer_accept(lx, "-");
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  if (t->integer > AMOUNT_LIMIT)
    return lexer_fail(lx, &start, "number is over the limit of %d", AMOUNT_LIMIT);
  *amount = minus ? -(int)t->integer : (int)t->integer;
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_window(struct lexer *lx, int *amount) {
  const struct token start = lx->token;
  *amount = 0;
  if (lexer_accept(lx, "K")) return CANVAS_OK;
  TRY(parse_amount(lx, amount, false));
  if (*amount < 1) return lexer_fail(lx, &start, "window k=0 is not K or an odd number");
  return CANVAS_OK;
}

static canvas_status parse_distance(struct lexer *lx, int *distance) {
  const struct token start = lx->token;
  TRY(parse_amount(lx, distance, false));
  if (*distance < 1) return lexer_fail(lx, &start, "dilation=0 is not a number of at least 1");
  if (*distance == 1) *distance = 0;
  return CANVAS_OK;
}

canvas_status attribute_parse(struct lexer *lx, enum attribute attribute, struct attrs *a) {
  switch (attributes[attribute].kind) {
    case VALUE_DIM: return dim_parse(lx, &a->dim);
    case VALUE_AXES: return parse_axes(lx, "over", &a->over);
    case VALUE_AXES2: return parse_axes(lx, "with", &a->with);
    case VALUE_AXES3: return parse_axes(lx, "each", &a->each);
    case VALUE_INDEX: return parse_amount(lx, &a->amount, false);
    case VALUE_WINDOW: return parse_window(lx, &a->amount);
    case VALUE_PIXELS: return parse_amount(lx, &a->amount, true);
    case VALUE_DISTANCE: return parse_distance(lx, &a->dilation);
    default: a->zero_fill = true; return lexer_expect(lx, "zero", "after 'fill='");
  }
}

static void print_axes(unsigned over, struct buf *out) {
  const char *comma = "";
  for (enum role r = ROLE_GROUP; r < ROLES; r++)
    if (over >> r & 1) buf_printf(out, "%s%s", comma, role_short(r)), comma = ",";
}

/* Whether an optional attribute has its default value and is not printed. */
static bool says_nothing(const struct attribute_row *row, const struct attrs *a) {
  if (!row->optional) return false;
  if (row->kind == VALUE_DISTANCE) return !a->dilation;
  if (row->kind == VALUE_AXES) return !a->over;
  if (row->kind == VALUE_AXES2) return !a->with;
  if (row->kind == VALUE_AXES3) return !a->each;
  return row->kind == VALUE_ZERO ? !a->zero_fill : dim_is_one(&a->dim);
}

static void print_value(enum value_kind kind, const struct attrs *a, struct buf *out) {
  switch (kind) {
    case VALUE_DIM: dim_print(&a->dim, out); return;
    case VALUE_AXES: print_axes(a->over, out); return;
    case VALUE_AXES2: print_axes(a->with, out); return;
    case VALUE_AXES3: print_axes(a->each, out); return;
    case VALUE_INDEX: buf_printf(out, "%d", a->amount); return;
    case VALUE_ZERO: buf_puts(out, "zero"); return;
    case VALUE_DISTANCE: buf_printf(out, "%d", a->dilation); return;
    default:
      if (kind == VALUE_WINDOW && !a->amount)
        buf_puts(out, "K");
      else
        buf_printf(out, "%d", a->amount);
  }
}

void attributes_print(unsigned which, const struct attrs *a, struct buf *out) {
  for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
    if (!(which >> i & 1) || says_nothing(&attributes[i], a)) continue;
    buf_printf(out, " %s=", attributes[i].key);
    print_value(attributes[i].kind, a, out);
  }
}

/* ---- identity -------------------------------------------------------------------------------- */

/* The roles of Table 1 have the bits that they had before there were others: a kernel keeps its hash. */
static uint64_t axes_number(unsigned mask) {
  static const uint8_t bits[ROLES] = {0, 1, 6, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13};
  uint64_t number = 0;
  for (int r = 0; mask >> r; r++) number |= (uint64_t)(mask >> r & 1) << bits[r];
  return number;
}

void attrs_numbers(const struct attrs *a, uint64_t out[ATTRS_NUMBERS]) {
  out[0] = axes_number(a->over) | axes_number(a->with) << 14 | (uint64_t)a->zero_fill << 32 |
           (uint64_t)(unsigned)a->dilation << 40 | axes_number(a->each) << 48;
  out[1] = (uint64_t)(int64_t)a->amount;
}

bool attrs_equal(const struct attrs *a, const struct attrs *b) {
  uint64_t x[ATTRS_NUMBERS], y[ATTRS_NUMBERS];
  attrs_numbers(a, x);
  attrs_numbers(b, y);
  return !memcmp(x, y, sizeof x) && dim_equal(&a->dim, &b->dim);
}
