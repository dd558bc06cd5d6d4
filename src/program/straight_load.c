/* What a load becomes whose index goes straight through most of an axis: one that moves by one with each
 * step there, and what it was elsewhere. See program_straight.c, which says where it does.
 */
#include "program/program_rebuild.h"

int straight_load(struct change *c, const struct px_map *map) {
  const struct straight *s = &c->straight;
  const struct px_node *n = &c->from->nodes.data[c->node];
  int indices[PROGRAM_AXES], own = map->axis[s->axis];
  for (int i = 0; i < c->from->tensors.data[n->tensor].rank; i++)
    indices[i] = i == s->at ? px_add(c->to, own, px_int(c->to, s->step))
                            : px_copy(c->to, c->from, c->from->indices.data[n->first + i], map);
  int rank = c->from->tensors.data[n->tensor].rank;
  int near = map->load(c->to, n->tensor, rank, indices, map->data);
  int far = px_copy(c->to, c->from, c->node, map);
  return px_select(c->to, px_inside(c->to, own, s->low, s->high), near, far);
}
