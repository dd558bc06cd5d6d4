/* The edit `straight`: splits a load by the affine pieces of its index, so that vectors load
 * contiguous elements.
 *
 *     Y[n:8, w:56] = X[n, (w+20)%56]
 * `straight Y X[n, (w+20)%56] w` ->
 *     Y[n:8, w:56] = if w < 36 then X[n, w+20] else X[n, w-36]
 *
 * If there are many pieces but one of them covers most of the axis, that one becomes a load and the
 * original load remains for the rest. X[w*5%8 + w/8*8] stays as it is: no piece is long.
 */
#include "rewrite/index_pieces.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

enum { SHORTEST = 4 }; /* average length of the pieces, in elements: shorter ones do not pay */

static const double MOSTLY = 0.75; /* fraction of the axis from which a single piece pays */

/* The number of the only index of the load that depends on the axis, if it depends on nothing else;
 * -1. */
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

/* Sorts the pieces, the longest first. */
static void sort(struct load_pieces *s) {
  for (int i = 1; i < s->count; i++)
    for (int j = i; j > 0; j--) {
      struct index_piece *a = &s->piece[j - 1], *b = &s->piece[j], other = *a;
      if (a->high - a->low >= b->high - b->low) break;
      *a = *b;
      *b = other;
    }
}

/* Accepts all pieces if they are few and have slopes of -1, 0 or 1; otherwise one piece of slope 1
 * that covers most of the axis. */
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
