/* The expression that the edit `straight` puts in the place of a load. program_straight.c shows it,
 * and chooses the pieces. */
#include "rewrite/program_rebuild.h"

static int load_of(struct change *c, const struct px_map *map, const struct index_piece *x) {
  const struct load_pieces *s = &c->pieces;
  const struct px_node *n = &c->from->nodes.data[c->node];
  int indices[PROGRAM_AXES], own = map->axis[s->axis];
  int rank = c->from->tensors.data[n->tensor].rank;
  int start = px_int(c->to, index_piece_at(x, 0));
  int line = x->slope < 0 ? px_sub(c->to, start, own)
             : x->slope   ? px_add(c->to, own, start)
                          : start;
  for (int i = 0; i < rank; i++)
    indices[i] =
        i == s->index ? line : px_copy(c->to, c->from, c->from->indices.data[n->first + i], map);
  return map->load(c->to, n->tensor, rank, indices, map->data);
}

int piecewise_load(struct change *c, const struct px_map *map) {
  const struct load_pieces *s = &c->pieces;
  int own = map->axis[s->axis], last = s->count - 1;
  int expr =
      s->covers_axis ? load_of(c, map, &s->piece[last]) : px_copy(c->to, c->from, c->node, map);
  if (s->covers_axis) last--;
  for (int i = last; i >= 0; i--) {
    const struct index_piece *x = &s->piece[i];
    expr = px_select(c->to, px_inside(c->to, own, x->low, x->high), load_of(c, map, x), expr);
  }
  return expr;
}
