/* An index of one axis as affine pieces. See index_pieces.h.
 *
 * Each operation is applied where the pieces of its two operands overlap. A minimum, maximum,
 * quotient or remainder splits such an interval further.
 */
#include "rewrite/index_pieces.h"

/* The axis that the pieces belong to. */
struct along {
  const struct program *p;
  int axis;
  int64_t size;
};

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

int64_t index_piece_at(const struct index_piece *x, int64_t place) {
  return x->at + x->slope * (place - x->low);
}

/* The part of the piece on [low, high), which is not empty. */
static struct index_piece part_of(const struct index_piece *x, int64_t low, int64_t high) {
  return (struct index_piece){low, high, index_piece_at(x, low), high - low > 1 ? x->slope : 0};
}

/* ---- lists of pieces ---- */

/* Whether two adjacent pieces lie on one line. A piece of one place fits any line through it. */
static bool joins(const struct index_piece *x, const struct index_piece *y, int64_t *slope) {
  int64_t step = y->at - index_piece_at(x, y->low - 1);
  bool one = x->high - x->low == 1, other = y->high - y->low == 1;
  *slope = one ? other ? step : y->slope : x->slope;
  return *slope == step && (one || other || x->slope == y->slope);
}

/* A place where two lines cross belongs to the first one. */
static void give_crossing(struct index_piece *last, struct index_piece *x) {
  bool crosses = index_piece_at(last, x->low) == x->at && last->slope != x->slope;
  if (!crosses || last->high - last->low == 1 || x->high - x->low == 1) return;
  last->high++;
  *x = part_of(x, last->high, x->high);
}

/* Appends a piece, or extends the last one; false if there are too many. */
static bool add(struct index_pieces *out, struct index_piece x) {
  struct index_piece *last = out->count ? &out->piece[out->count - 1] : NULL;
  int64_t slope;
  if (last) give_crossing(last, &x);
  if (last && joins(last, &x, &slope)) {
    last->slope = slope;
    last->high = x.high;
    return true;
  }
  if (out->count == INDEX_PIECES) return false;
  out->piece[out->count++] = x;
  return true;
}

/* ---- operations on an interval where both operands are affine ---- */

static bool add_product(struct index_pieces *out, struct index_piece x, struct index_piece y) {
  if (x.slope && y.slope) return false;
  int64_t slope = x.slope * y.at + y.slope * x.at;
  return add(out, (struct index_piece){x.low, x.high, x.at * y.at, slope});
}

/* The minimum or maximum, which switches between the two lines at most once. */
static bool add_extreme(struct index_pieces *out, struct index_piece x, struct index_piece y,
                        bool least) {
  int64_t first = x.at - y.at, slope = x.slope - y.slope,
          last = first + slope * (x.high - 1 - x.low);
  if (first > 0 || (first == 0 && last > 0)) return add_extreme(out, y, x, least);
  if (last <= 0) return add(out, least ? x : y);        /* x <= y everywhere */
  int64_t change = x.low + (slope - 1 - first) / slope; /* the first place where x >= y */
  struct index_piece low = least ? x : y, high = least ? y : x;
  return add(out, part_of(&low, x.low, change)) && add(out, part_of(&high, change, x.high));
}

/* The quotient, or the remainder: one piece for each interval on which the quotient is constant. */
static bool add_quotient(struct index_pieces *out, struct index_piece x, int64_t by, bool rest) {
  while (x.low < x.high) {
    int64_t q = floor_div(x.at, by), end = x.high;
    if (x.slope % by == 0) {
      int64_t slope = rest ? 0 : x.slope / by;
      return add(out, (struct index_piece){x.low, end, rest ? x.at - q * by : q, slope});
    }
    int64_t left = x.at - q * by, steps = x.slope > 0 ? (by - 1 - left) / x.slope : left / -x.slope;
    if (steps < end - 1 - x.low) end = x.low + steps + 1;
    int64_t slope = rest && end - x.low > 1 ? x.slope : 0;
    if (!add(out, (struct index_piece){x.low, end, rest ? left : q, slope})) return false;
    if (end < x.high)
      x = part_of(&x, end, x.high);
    else
      x.low = end;
  }
  return true;
}

static bool add_operation(struct index_pieces *out, int op, struct index_piece x,
                          struct index_piece y) {
  switch (op) {
    case PX_ADD:
      return add(out, (struct index_piece){x.low, x.high, x.at + y.at, x.slope + y.slope});
    case PX_SUB:
      return add(out, (struct index_piece){x.low, x.high, x.at - y.at, x.slope - y.slope});
    case PX_MUL: return add_product(out, x, y);
    case PX_MIN:
    case PX_MAX: return add_extreme(out, x, y, op == PX_MIN);
    case PX_DIV:
    case PX_MOD: return !y.slope && y.at > 0 && add_quotient(out, x, y.at, op == PX_MOD);
    default: return false;
  }
}

/* ---- expressions ---- */

static bool pieces_of(const struct along *s, int expr, struct index_pieces *out);

static bool operate(const struct along *s, const struct px_node *n, struct index_pieces *out) {
  struct index_pieces a, b;
  if (!pieces_of(s, n->arg[0], &a) || !pieces_of(s, n->arg[1], &b)) return false;
  for (int i = 0, j = 0; i < a.count && j < b.count;) {
    const struct index_piece *x = &a.piece[i], *y = &b.piece[j];
    int64_t low = x->low > y->low ? x->low : y->low, high = x->high < y->high ? x->high : y->high;
    if (!add_operation(out, n->op, part_of(x, low, high), part_of(y, low, high))) return false;
    i += x->high == high;
    j += y->high == high;
  }
  return true;
}

static bool negate(const struct along *s, const struct px_node *n, struct index_pieces *out) {
  if (!pieces_of(s, n->arg[0], out)) return false;
  for (int i = 0; i < out->count; i++) {
    out->piece[i].at = -out->piece[i].at;
    out->piece[i].slope = -out->piece[i].slope;
  }
  return true;
}

static bool pieces_of(const struct along *s, int expr, struct index_pieces *out) {
  const struct px_node *n = &s->p->nodes.data[expr];
  out->count = 0;
  switch (n->op) {
    case PX_NEG: return negate(s, n, out);
    case PX_INT: return add(out, (struct index_piece){0, s->size, n->integer, 0});
    case PX_AXIS:
      return n->integer == s->axis && add(out, (struct index_piece){0, s->size, 0, s->size > 1});
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_MIN:
    case PX_MAX:
    case PX_DIV:
    case PX_MOD: return operate(s, n, out);
    default: return false;
  }
}

bool index_pieces(const struct program *p, int expr, int axis, int64_t size,
                  struct index_pieces *out) {
  struct along s = {p, axis, size};
  return size > 0 && !px_range(p, expr).overflow && pieces_of(&s, expr, out);
}
