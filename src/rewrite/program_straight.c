/* A load whose index goes straight through pieces of an axis becomes one for each piece, or where these are
 * many, one for the longest of them, which moves by one with each step, and what it was for the other places. See
 * program_edit.h.
 *
 *     Y[w:56] = X[(w+20)%56]   ->   if w < 36 then X[w+20] else X[w-36]
 *
 *     Y[w:56] = X[w*5%8 + w/8*8]   stays: there is no piece that is most of it
 */
#include "rewrite/index_pieces.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

enum { SHORTEST = 4 }; /* steps of a piece, on average: shorter ones cost more than they save */

static const double MOSTLY = 0.75; /* of the axis: such a piece is worth it alone */

/* The index of the load that depends on the axis, and on nothing else; -1. */
static int index_of(const struct program *p, int node, int axis) {
  const struct px_node *n = &p->nodes.data[node];
  int found = -1;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++) {
    struct px_range range = px_range(p, p->indices.data[n->first + i]);
    if (!(range.axes >> axis & 1)) continue;
    if (found >= 0 || range.axes != 1u << axis || range.data) return -1;
    found = i;
  }
  return found;
}

/* The longest first. */
static void sort(struct load_pieces *s) {
  for (int i = 1; i < s->count; i++)
    for (int j = i; j > 0; j--) {
      struct index_piece *a = &s->piece[j - 1], *b = &s->piece[j], other = *a;
      if (a->high - a->low >= b->high - b->low) break;
      *a = *b;
      *b = other;
    }
}

/* Few pieces that move by one or not at all, or most of the axis in one of them. */
static bool find_pieces(const struct program *p, int index, int axis, int64_t size,
                        struct load_pieces *out) {
  struct index_pieces all;
  bool even = true;
  if (!index_pieces(p, index, axis, size, &all) || all.count < 2) return false;
  for (int i = 0; i < all.count; i++)
    even = even && all.piece[i].slope >= -1 && all.piece[i].slope <= 1;
  out->covers_axis = even && all.count <= LOAD_PIECES && size >= SHORTEST * all.count;
  if (out->covers_axis) {
    out->count = all.count;
    for (int i = 0; i < all.count; i++) out->piece[i] = all.piece[i];
    sort(out);
    return true;
  }
  for (int i = 0; i < all.count; i++) {
    const struct index_piece *x = &all.piece[i];
    if (x->slope != 1 || (double)(x->high - x->low) < MOSTLY * (double)size) continue;
    out->piece[0] = *x;
    out->count = 1;
    return true;
  }
  return false;
}

bool find_load_pieces(struct change *c, int axis) {
  const struct program *p = c->from;
  c->pieces.axis = axis;
  c->pieces.index = index_of(p, c->node, axis);
  if (c->pieces.index < 0) return false;
  int index = p->indices.data[p->nodes.data[c->node].first + c->pieces.index];
  return find_pieces(p, index, axis, p->tensors.data[c->consumer].axes[axis].size, &c->pieces);
}

struct program *program_split_load(const struct program *p, int stage, int node, int axis) {
  struct change c = change_open(CHANGE_STRAIGHT, p);
  struct program *out = NULL;
  canvas_context ctx;
  c.tensor = -1;
  c.consumer = stage;
  c.node = node;
  if (find_load_pieces(&c, axis)) {
    if (change_finish(&ctx, &c, &out) != CANVAS_OK) return NULL;
    return out;
  }
  change_close(&c);
  program_free(c.to);
  return NULL;
}
