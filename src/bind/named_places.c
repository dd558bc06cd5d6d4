/* Which buffers can be variables: those whose indices are constants after unrolling, in every store
 * and load.
 *
 * A vector variable holds the places (outer * lanes + lane) * lane_stride + inner, with constants
 * outer and inner < lane_stride. Lanes and lane_stride are the same in every use.
 */
#include "bind/bind.h"

/* Checks a loop that a place depends on with this coefficient: it has to be unrolled. A vec loop
 * sets the lanes. */
static bool take_step(const struct binder *b, const struct step *step, int64_t coef,
                      struct named_places *here) {
  const struct bound_loop *loop = &b->tree->loops[step->node];
  if (!loop->unrolled) return false;
  if (!(loop_marks(b->tree, step->node) & LOOP_VEC)) return true;
  if (step->extent % loop->lanes || b->s->nodes.data[step->node].loop.count > 1 || coef < 1)
    return false;
  *here = (struct named_places){loop->lanes, coef, NULL, -1};
  return true;
}

/* The maximum offset that unrolled loops add to a place inside one vector. */
static int64_t inner_place(const struct binder *b, const struct bound_stage *at,
                           const struct affine *place, int64_t vector) {
  int64_t inner = place->constant % vector;
  for (int i = 0; i < place->count; i++) {
    const struct step *s = &at->path[b->space.p->nodes.data[place->term[i].expr].integer];
    bool vec = loop_marks(b->tree, s->node) & LOOP_VEC;
    if (!vec && place->term[i].coef % vector) inner += place->term[i].coef * (s->extent - 1);
  }
  return inner;
}

static bool constant_place(const struct binder *b, const struct bound_stage *at, int expr,
                           struct named_places *places) {
  const struct program *p = b->space.p;
  struct affine place;
  struct named_places here = {1, 1, NULL, -1};
  places->at = at;
  if (!affine_of(p, expr, &place)) return false;
  for (int i = 0; i < place.count; i++) {
    const struct px_node *n = &p->nodes.data[place.term[i].expr];
    if (n->op != PX_AXIS) return false;
    const struct step *step = &at->path[n->integer];
    if (take_step(b, step, place.term[i].coef, &here)) continue;
    places->loop = step->node;
    return false;
  }
  int64_t inner = inner_place(b, at, &place, here.lanes * here.lane_stride);
  if (here.lanes > 1 && (inner < 0 || inner >= here.lane_stride)) return false;
  if (places->lanes && (places->lanes != here.lanes || places->lane_stride != here.lane_stride))
    return false;
  *places = here;
  return true;
}

/* Whether every load of the tensor in the expression has a constant place. */
static bool constant_loads(const struct binder *b, const struct bound_stage *consumer, int expr,
                           int tensor, struct named_places *places) {
  const struct program *p = b->space.p;
  if (expr < 0) return true;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) {
    int place = p->indices.data[n->first];
    return (n->tensor != tensor || constant_place(b, consumer, place, places)) &&
           constant_loads(b, consumer, place, tensor, places);
  }
  for (int i = 0; i < 3; i++)
    if (!constant_loads(b, consumer, n->arg[i], tensor, places)) return false;
  return true;
}

bool find_named_places(struct binder *b, const struct bound_stage *stage,
                       struct named_places *places) {
  *places = (struct named_places){.loop = -1};
  loop_space_enter(&b->space, stage);
  bool constant = constant_place(b, stage, space_place(&b->space, stage), places);
  for (int i = 0, last = -1; constant && i < b->reads.count; i++) {
    const struct read *r = &b->reads.data[i];
    const struct bound_stage *consumer = &b->tree->stages[r->consumer];
    if (&b->tree->stages[r->producer] != stage || r->consumer == last) continue;
    last = r->consumer;
    loop_space_enter(&b->space, consumer);
    int body = space_expr(&b->space, consumer, stage_tensor(b, consumer)->body);
    constant = !b->space.p->failed && constant_loads(b, consumer, body, stage->tensor, places);
  }
  return constant && !b->space.p->failed;
}
