/* Gathers from few places near each other become vector loads and a permutation. See code.h.
 *
 *     for lane in 0..8                     ->  lanes0 = permute(X[w*16, 8 lanes],
 *       lanes0[lane] = X[w*16 + lane/2*4 + 1]      X[w*16 + 8, 8 lanes]: 1 1 5 5 9 9 13 13)
 *
 *     for lane in 0..8                     ->  lanes0 = permute(X[w] in all, X[w + 9] in all:
 *       lanes0[lane] = X[w + lane/4*9]             0 0 0 0 8 8 8 8)
 *
 * Keeps: nothing is read but what lies between two elements of the lanes, or in the same block of
 * one or two vectors as all of them if the array consists of such blocks. Results are the same
 * without this file.
 */
#include "code/code.h"

enum {
  PLACES = 4
}; /* so many numbers, each in all lanes, are no more work than one vector that is gathered */

struct permuted {
  struct code *c;
  int element; /* of the lane 0: X[base + offset[0]] */
  int lanes;
  int64_t offset[CODE_LANES]; /* of each lane, in elements from `base`, which is the same for all
                                 lanes */
  int64_t least, most;
  int place[CODE_LANES];  /* of each lane: the position of its offset in `places` */
  int64_t places[PLACES]; /* the distinct offsets */
  int count;              /* number of distinct offsets; above PLACES only the first are listed */
};

static const struct code_expr *expr_at(const struct permuted *p, int expr) {
  return &p->c->exprs.data[expr];
}

/* Adds to each lane's offset what it makes of the term; false: that is not known. */
static bool add_term(struct permuted *p, int expr, int64_t coef, int counter) {
  int64_t product;
  for (int lane = 0; lane < p->lanes; lane++) {
    int value = code_bare(p->c, code_substitute(p->c, expr, counter, lane));
    if (expr_at(p, value)->op != PX_INT ||
        __builtin_mul_overflow(expr_at(p, value)->integer, coef, &product) ||
        __builtin_add_overflow(p->offset[lane], product, &p->offset[lane]))
      return false;
  }
  return true;
}

/* The index as what no lane moves, with the constant, and the lanes' offsets. */
static bool find_offsets(struct permuted *p, int index, int counter, struct affine *base) {
  const struct code_expr e = *expr_at(p, index); /* a copy: the array may move */
  *base = (struct affine){0};
  if (e.op != CODE_SUM) return add_term(p, index, 1, counter);
  base->constant = e.integer;
  for (int i = 0; i < e.count; i++) {
    struct affine_term t = p->c->terms.data[e.first + i];
    if (!code_mentions(p->c, t.expr, counter))
      base->term[base->count++] = t;
    else if (!add_term(p, t.expr, t.coef, counter))
      return false;
  }
  return true;
}

static void find_places(struct permuted *p) {
  p->least = p->most = p->offset[0];
  for (int lane = 0; lane < p->lanes; lane++) {
    int64_t offset = p->offset[lane];
    int at = 0;
    if (offset < p->least) p->least = offset;
    if (offset > p->most) p->most = offset;
    while (at < p->count && at < PLACES && p->places[at] != offset) at++;
    if (at == p->count && at < PLACES) p->places[at] = offset;
    if (at == p->count) p->count++;
    p->place[lane] = at;
  }
}

static int element_at(struct permuted *p, const struct affine *base, int64_t offset) {
  int variable = expr_at(p, p->element)->variable;
  int index = code_sum(p->c, base->term, base->count, base->constant + offset);
  return code_element(p->c, variable, index);
}

static int vector_at(struct permuted *p, const struct affine *base, int64_t offset) {
  return code_vector(p->c, element_at(p, base, offset), p->lanes);
}

/* ---- from a block ---------------------------------------------------------------------------- */

static int64_t remainder_of(int64_t x, int64_t by) {
  return (x % by + by) % by;
}

/* All lanes lie in the same block of so many elements, of which the array is made: where it begins,
 * from the base; false: that is not so, or not known. */
static bool in_block(const struct permuted *p, const struct affine *base, int64_t size,
                     int64_t *begin) {
  if (p->c->variables.data[expr_at(p, p->element)->variable].count % size) return false;
  for (int i = 0; i < base->count; i++)
    if (base->term[i].coef % size) return false;
  *begin = p->least - remainder_of(base->constant + p->least, size);
  return p->most - *begin < size;
}

/* Of one vector at `first`, or of another at `second`, too. */
static int of_vectors(struct permuted *p, const struct affine *base, int64_t first,
                      int64_t second) {
  int lane[CODE_LANES];
  bool two = first != second;
  for (int i = 0; i < p->lanes; i++) {
    int64_t at = p->offset[i] - first;
    lane[i] = (int)(at < p->lanes ? at : p->lanes + p->offset[i] - second);
  }
  int x = vector_at(p, base, first), y = two ? vector_at(p, base, second) : -1;
  return code_permute(p->c, x, y, lane);
}

/* ---- from a few places ----------------------------------------------------------------------- */

static int in_all(struct permuted *p, const struct affine *base, int place) {
  return code_broadcast(p->c, element_at(p, base, p->places[place]), p->lanes);
}

/* Lanes that are the same in both: of x those whose place is before `second`. */
static int joined(struct permuted *p, int x, int y, int second) {
  int lane[CODE_LANES];
  for (int i = 0; i < p->lanes; i++) lane[i] = p->place[i] < second ? i : p->lanes + i;
  return code_permute(p->c, x, y, lane);
}

static int of_places(struct permuted *p, const struct affine *base) {
  int x = in_all(p, base, 0);
  if (p->count > 1) x = joined(p, x, in_all(p, base, 1), 1);
  if (p->count < 3) return x;
  int y = in_all(p, base, 2);
  if (p->count > 3) y = joined(p, y, in_all(p, base, 3), 3);
  return joined(p, x, y, 2);
}

/* ---- */

int code_permuted(struct code *c, int element, int counter, int lanes) {
  struct permuted p = {.c = c, .element = element, .lanes = lanes};
  const struct code_expr e = c->exprs.data[element];
  struct affine base;
  int64_t begin;
  if (e.op != CODE_ELEMENT || (e.type.element != PROGRAM_F32 && e.type.element != PROGRAM_F64) ||
      !find_offsets(&p, e.arg[0], counter, &base))
    return -1;
  find_places(&p);
  if (in_block(&p, &base, lanes, &begin)) return of_vectors(&p, &base, begin, begin);
  if (p.count <= 2) return of_places(&p, &base);
  if (in_block(&p, &base, 2 * (int64_t)lanes, &begin))
    return of_vectors(&p, &base, begin, begin + lanes);
  int64_t last = p.most - lanes + 1;
  if (last >= p.least && last <= p.least + lanes) return of_vectors(&p, &base, p.least, last);
  return p.count <= PLACES && 2 * p.count <= lanes ? of_places(&p, &base) : -1;
}
