/* What is settled before a line is written: which loops are written out, where values are held, and
 * every name. See emit_base.h.
 *
 * A buffer whose places are all constants, where it is written and wherever it is read, is not an
 * array but a variable for each: compilers keep those in registers. Whether that is so is asked of
 * the index expressions, over loops that all stand open.
 */
#include <stdio.h>
#include <string.h>

#include "base/saturating.h"
#include "emit/emit_base.h"

static const struct schedule_node *node_at(const struct emitter *e, int node) {
  return &e->schedule->nodes.data[node];
}

static bool marked(const struct emitter *e, int node, unsigned mark) {
  const struct schedule_node *n = node_at(e, node);
  return n->kind == NODE_LOOP && (n->loop.marks & mark);
}

int emit_step_of(const struct bound_stage *b, int node) {
  int i = 0;
  while (i < b->steps && b->path[i].node != node) i++;
  return i;
}

/* The step is a digit of an axis that does not reduce. */
bool emit_spatial(const struct emitter *e, const struct bound_stage *b, int step) {
  int axis = b->path[step].axis;
  return axis >= 0 && axis < e->program->tensors.data[b->tensor].rank;
}

static int64_t element_bytes(enum program_dtype dtype) {
  static const int bytes[PROGRAM_DTYPES] = {4, 8, 2, 4};
  return bytes[dtype];
}

int64_t emit_bytes(const struct held *h) {
  return h->elements * element_bytes(h->dtype) * (h->inside ? h->lanes : 1);
}

/* ---- loops ---- */

static void find_stages_below(struct emitter *e) {
  for (int i = 0; i < e->schedule->nodes.count; i++) e->nodes[i].stage = -2;
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    for (int at = b->node; at >= 0; at = node_at(e, at)->parent)
      e->nodes[at].stage = e->nodes[at].stage == -2 ? i : -1;
  }
}

static void find_vec(struct emitter *e, int stage) {
  const struct bound_stage *b = &e->tree->stages[stage];
  e->stages[stage].vec = -1;
  for (int i = 0; i < b->steps; i++)
    if (marked(e, b->path[i].node, LOOP_VEC)) e->stages[stage].vec = b->path[i].node;
}

/* `node`, the compute-at loop or the start of the stage, stands in its vec loop or is it. */
static bool within_vec(const struct emitter *e, int stage, int node, bool itself) {
  const struct bound_stage *b = &e->tree->stages[stage];
  int vec = e->stages[stage].vec, at = emit_step_of(b, node);
  return vec >= 0 && at < b->steps && emit_step_of(b, vec) + !itself <= at;
}

/* A vector holds as many elements as its widest stage's registers do. Where something lives in the
 * loop, all its vectors are of one length. */
static void choose_lanes(struct emitter *e) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    const struct stage_plan *plan = &e->stages[i];
    find_vec(e, i);
    if (plan->vec < 0) continue;
    struct node_plan *n = &e->nodes[plan->vec];
    int64_t extent = e->tree->loops[plan->vec].extent;
    bool lives = within_vec(e, i, b->compute_at, true) || within_vec(e, i, b->start, false);
    int most = e->tree->machine.vector_bytes / (plan->wide ? 8 : 4), lanes = 1;
    if (most > EMIT_LANES) most = EMIT_LANES;
    while (2 * lanes <= most && 2 * lanes <= extent && !(lives && extent % (2 * lanes))) lanes *= 2;
    if (!n->lanes || lanes < n->lanes) n->lanes = lanes;
  }
}

static bool first_digit(const struct bound_stage *b, int step) {
  for (int i = 0; i < step; i++)
    if (b->path[i].axis == b->path[step].axis) return false;
  return true;
}

/* Whether the loop is the outermost of an axis whose full tiles are apart from the rest: inside, the
 * tiles are full, or the rest is one of few. */
static bool peeled(const struct emitter *e, int node) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    for (int j = 0; j < b->steps; j++) {
      int axis = b->path[j].node == node ? b->path[j].axis : -1;
      if (axis >= 0 && b->tail[axis] && b->how[axis] == TAIL_PEEL && first_digit(b, j)) return true;
    }
  }
  return false;
}

/* How many statements the node becomes, if what is marked is written out wherever that makes no
 * more than `most`. */
static int64_t weigh(struct emitter *e, int node, int64_t most) {
  const struct schedule_node *n = node_at(e, node);
  struct node_plan *plan = &e->nodes[node];
  if (n->kind == NODE_LEAF) return 1;
  int64_t sum = 0;
  plan->peels_below = 0;
  for (int child = n->first; child >= 0; child = node_at(e, child)->next) {
    sum = saturating_add(sum, weigh(e, child, most));
    int below = e->nodes[child].peels_below + e->nodes[child].peels;
    if (below > plan->peels_below) plan->peels_below = below;
  }
  if (n->kind == NODE_ROOT) return sum;
  int64_t extent = e->tree->loops[node].extent, times = 1;
  if (n->loop.marks & LOOP_VEC) {
    int64_t vectors = (extent + plan->lanes - 1) / plan->lanes;
    plan->pieces = vectors <= EMIT_PIECES && saturating_mul(sum, vectors) <= most;
    times = plan->pieces ? vectors : 1;
    if (extent % plan->lanes) times += 4;
  } else if (n->loop.marks & LOOP_PARA && extent > 1 && !e->tree->loops[node].dyn) {
    plan->parallel = true;
  } else if (n->loop.marks & LOOP_UNROLL) {
    plan->unrolled = saturating_mul(sum, extent) <= most;
    times = plan->unrolled ? extent : 1;
  }
  plan->peels = peeled(e, node) && plan->peels_below < EMIT_PEELED;
  if (plan->peels) times *= 2;
  return saturating_mul(sum, times);
}

static void choose_unrolled(struct emitter *e) {
  for (int64_t most = EMIT_STATEMENTS / 4; most >= 1; most /= 2)
    if (weigh(e, 0, most) <= EMIT_STATEMENTS) return;
}

/* ---- names ---- */

static void name_loop(struct emitter *e, int node) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  struct buf name = {0};
  for (int i = 0; i < loop->count; i++)
    buf_printf(&name, "%s%s", i ? "_" : "", e->schedule->levels.data[loop->level[i]].name);
  e->nodes[node].name = emit_name(e, name.text);
  buf_free(&name);
}

static void name_tensor(struct emitter *e, int tensor) {
  if (!e->tensor_name[tensor])
    e->tensor_name[tensor] = emit_name(e, e->program->tensors.data[tensor].name);
}

/* Parameters first, then loops, then buffers: who comes later yields. */
static void choose_names(struct emitter *e, const char *function) {
  const struct program *p = e->program;
  e->function = emit_function_name(e, function);
  for (int i = 0; i < p->inputs.count; i++) name_tensor(e, p->inputs.data[i]);
  for (int i = 0; i < p->outputs.count; i++) name_tensor(e, p->outputs.data[i]);
  for (int i = 0; i < e->schedule->levels.count; i++)
    e->level_name[i] = emit_name(e, e->schedule->levels.data[i].name);
  for (int i = 0; i < p->tensors.count; i++) name_tensor(e, i);
  for (int i = 0; i < e->schedule->nodes.count; i++) {
    const struct schedule_node *n = node_at(e, i);
    bool reachable = i == 0 || n->parent >= 0;
    if (!reachable || n->kind != NODE_LOOP) continue;
    if (n->loop.count == 1)
      e->nodes[i].name = e->level_name[n->loop.level[0]];
    else if (n->loop.marks & (LOOP_FOLD | LOOP_VEC))
      name_loop(e, i);
  }
}

static void name_sums(struct emitter *e) {
  int sums = 0;
  for (int i = 0; i < e->tree->count; i++) sums += e->stages[i].reduces && !e->stages[i].direct;
  for (int i = 0; i < e->tree->count; i++) {
    struct stage_plan *plan = &e->stages[i];
    if (!plan->reduces || plan->direct) continue;
    char wish[PROGRAM_NAME + 8];
    snprintf(wish, sizeof wish, "%s_acc", e->tensor_name[e->tree->stages[i].tensor]);
    plan->sum.name = emit_name(e, sums == 1 ? "acc" : wish);
  }
}

/* ---- where values are held ---- */

/* All loops of a stage open, whether written out or not: a step is axis `step`. */
static void open_all(struct emitter *e, const struct bound_stage *b) {
  e->open = 0;
  for (int i = 0; i < b->steps; i++) {
    const struct step *s = &b->path[i];
    int axis = emit_open_axis(e, "", 0, s->extent > 0 ? s->extent : 1);
    e->digit[s->level] = s->extent == 1 && !s->dyn ? px_int(e->px, 0) : axis;
  }
}

static void close_all(struct emitter *e, const struct bound_stage *b) {
  for (int i = 0; i < b->steps; i++) e->digit[b->path[i].level] = -1;
  e->open = 0;
  e->px->nodes.count = e->px->indices.count = 0;
}

/* How a buffer is held by name: its places are (outer * lanes + lane) * across + inner, with constants
 * outer and inner < across. The same wherever it is used; lanes 0: not known yet. */
struct shape {
  int lanes;
  int64_t across;
};

/* The place is a constant, or a constant vector, once the loops are written out. */
static bool constant_place(struct emitter *e, const struct bound_stage *b, int place,
                           struct shape *shape) {
  struct terms t;
  struct shape here = {1, 1};
  emit_terms(e, place, &t);
  for (int i = 0; i < t.count; i++) {
    const struct px_node *n = &e->px->nodes.data[t.term[i].expr];
    if (n->op != PX_AXIS) return false;
    const struct step *s = &b->path[n->integer];
    const struct node_plan *plan = &e->nodes[s->node];
    if (plan->unrolled) continue;
    if (!marked(e, s->node, LOOP_VEC) || !plan->pieces || s->extent % plan->lanes) return false;
    if (node_at(e, s->node)->loop.count > 1 || t.term[i].coef < 1) return false;
    here = (struct shape){plan->lanes, t.term[i].coef};
  }
  int64_t vector = here.lanes * here.across, inner = t.constant % vector;
  for (int i = 0; i < t.count; i++) {
    const struct step *s = &b->path[e->px->nodes.data[t.term[i].expr].integer];
    if (e->nodes[s->node].unrolled && t.term[i].coef % vector)
      inner += t.term[i].coef * (s->extent - 1);
  }
  if (here.lanes > 1 && (inner < 0 || inner >= here.across)) return false;
  if (shape->lanes && (shape->lanes != here.lanes || shape->across != here.across)) return false;
  *shape = here;
  return !t.full;
}

/* Every load of the tensor below the expression has a constant place. */
static bool constant_loads(struct emitter *e, const struct bound_stage *b, int expr, int tensor,
                           struct shape *shape) {
  if (expr < 0) return true;
  struct px_node n = e->px->nodes.data[expr];
  if (n.op == PX_LOAD) {
    int place = e->px->indices.data[n.first];
    return (n.tensor != tensor || constant_place(e, b, place, shape)) &&
           constant_loads(e, b, place, tensor, shape);
  }
  for (int i = 0; i < 3; i++)
    if (!constant_loads(e, b, n.arg[i], tensor, shape)) return false;
  return true;
}

static bool reads(const struct program *p, int expr, int tensor) {
  if (expr < 0) return false;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return n->tensor == tensor; /* a stage is not read within an index */
  return reads(p, n->arg[0], tensor) || reads(p, n->arg[1], tensor) || reads(p, n->arg[2], tensor);
}

static bool all_places_constant(struct emitter *e, int stage, struct shape *shape) {
  const struct bound_stage *b = &e->tree->stages[stage];
  open_all(e, b);
  bool constant = constant_place(e, b, emit_place(e, b), shape);
  close_all(e, b);
  for (int i = 0; constant && i < e->tree->count; i++) {
    const struct bound_stage *reader = &e->tree->stages[i];
    int body = e->program->tensors.data[reader->tensor].body;
    if (!reads(e->program, body, b->tensor)) continue;
    open_all(e, reader);
    constant = constant_loads(e, reader, emit_copy(e, reader, body), b->tensor, shape);
    close_all(e, reader);
  }
  return constant && !e->px->failed;
}

static void hold_values(struct emitter *e, int stage) {
  const struct bound_stage *b = &e->tree->stages[stage];
  struct stage_plan *plan = &e->stages[stage];
  struct held *h = &plan->at;
  struct shape shape = {0};
  *h = (struct held){.name = e->tensor_name[b->tensor],
                     .dtype = e->program->tensors.data[b->tensor].dtype,
                     .elements = b->elements,
                     .lanes = 1,
                     .across = 1};
  if (b->is_output) return;
  h->inside = within_vec(e, stage, b->compute_at, true);
  if (b->elements <= EMIT_NAMES * EMIT_LANES && all_places_constant(e, stage, &shape))
    h->named = b->elements / shape.lanes <= EMIT_NAMES;
  if (h->inside) {
    h->lanes = e->nodes[plan->vec].lanes;
  } else if (h->named) {
    h->lanes = shape.lanes;
    h->across = shape.across;
  }
  if (h->named || h->inside) h->dtype = plan->wide ? PROGRAM_F64 : PROGRAM_F32;
}

/* What no output needs is not computed. */
static void find_dead(struct emitter *e) {
  const struct program *p = e->program;
  for (int i = e->tree->count - 1; i >= 0; i--) e->stages[i].dead = !e->tree->stages[i].is_output;
  for (int reader = p->tensors.count - 1; reader >= 0; reader--) {
    int stage = e->stage_of[reader];
    if (stage < 0 || e->stages[stage].dead) continue;
    for (int i = 0; i < e->tree->count; i++)
      if (e->stages[i].dead && reads(p, p->tensors.data[reader].body, e->tree->stages[i].tensor))
        e->stages[i].dead = false;
  }
}

/* Accumulators have the shape of the loops within `start` that do not reduce. */
static void hold_sums(struct emitter *e, int stage) {
  const struct bound_stage *b = &e->tree->stages[stage];
  struct stage_plan *plan = &e->stages[stage];
  struct held *h = &plan->sum;
  plan->reduces = b->start >= 0;
  if (!plan->reduces) return;
  int start = emit_step_of(b, b->start);
  *h = (struct held){
      .dtype = plan->wide ? PROGRAM_F64 : PROGRAM_F32, .elements = 1, .lanes = 1, .across = 1};
  h->named = true;
  for (int i = start; i < b->steps; i++) {
    const struct step *s = &b->path[i];
    const struct node_plan *n = &e->nodes[s->node];
    if (!emit_spatial(e, b, i) || s->extent == 1) continue;
    h->elements *= s->extent;
    if (s->node == plan->vec) {
      h->lanes = n->lanes;
      if (!n->pieces || s->extent % n->lanes || node_at(e, s->node)->loop.count > 1)
        h->named = false;
    } else if (!n->unrolled) {
      h->named = false;
    }
  }
  if (h->elements / h->lanes > EMIT_NAMES) h->named = false;
  if (within_vec(e, stage, b->start, false)) {
    h->inside = true;
    h->lanes = e->nodes[plan->vec].lanes;
  } else if (!h->named) {
    h->lanes = 1;
  }
  bool rounds = e->program->tensors.data[b->tensor].dtype == PROGRAM_BF16;
  plan->direct = !rounds && (plan->at.named || !h->named);
  int around = node_at(e, b->start)->parent;
  while (around != b->compute_at && e->tree->loops[around].extent == 1)
    around = node_at(e, around)->parent;
  plan->begins = plan->direct && plan->at.named && around == b->compute_at;
  for (int i = 0; i < PROGRAM_AXES; i++) plan->begins &= !b->tail[i];
}

/* The loop whose body allocates what lives as long as one iteration of `compute_at`: a parallel one,
 * where each thread needs its own, or else the function. */
static int region_of(const struct emitter *e, int compute_at) {
  for (int at = compute_at; at >= 0; at = node_at(e, at)->parent)
    if (e->nodes[at].parallel) return at;
  return 0;
}

static void find_declarations(struct emitter *e) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    const struct stage_plan *plan = &e->stages[i];
    if (plan->dead) continue;
    if (!b->is_output && !plan->at.heap) e->nodes[b->compute_at].declares = true;
    if (plan->reduces && (!plan->direct || plan->begins) && !plan->sum.heap)
      e->nodes[node_at(e, b->start)->parent].declares = true;
  }
}

static void choose_memory(struct emitter *e) {
  int64_t left = EMIT_STACKS;
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    struct stage_plan *plan = &e->stages[i];
    struct held *helds[2] = {b->is_output ? NULL : &plan->at,
                             plan->reduces && !plan->direct ? &plan->sum : NULL};
    if (plan->dead) continue;
    int around[2] = {b->compute_at, b->start >= 0 ? node_at(e, b->start)->parent : 0};
    for (int j = 0; j < 2; j++) {
      struct held *h = helds[j];
      if (!h || h->named) continue;
      int64_t bytes = emit_bytes(h);
      h->heap = bytes > EMIT_STACK || bytes > left || (j == 0 && b->scope == SCOPE_HEAP);
      h->region = region_of(e, around[j]);
      if (!h->heap) left -= bytes;
    }
  }
}

void emit_plan(struct emitter *e, const char *function) {
  const struct program *p = e->program;
  const struct schedule *s = e->schedule;
  e->stages = arena_alloc(&e->arena, (size_t)e->tree->count * sizeof *e->stages + 1);
  e->nodes = arena_alloc(&e->arena, (size_t)s->nodes.count * sizeof *e->nodes + 1);
  e->tensor_name = arena_alloc(&e->arena, (size_t)p->tensors.count * sizeof *e->tensor_name + 1);
  e->level_name = arena_alloc(&e->arena, (size_t)s->levels.count * sizeof *e->level_name + 1);
  e->stage_of = arena_alloc(&e->arena, (size_t)p->tensors.count * sizeof *e->stage_of + 1);
  e->digit = arena_alloc(&e->arena, (size_t)s->levels.count * sizeof *e->digit + 1);
  e->loaded = arena_alloc(&e->arena, (size_t)p->tensors.count * sizeof *e->loaded + 1);
  e->guarded = arena_alloc(&e->arena, (size_t)e->tree->count * sizeof *e->guarded + 1);
  for (int i = 0; i < s->levels.count; i++) e->digit[i] = -1;
  for (int i = 0; i < p->tensors.count; i++) e->stage_of[i] = -1;
  for (int i = 0; i < e->tree->count; i++) {
    int tensor = e->tree->stages[i].tensor;
    e->stage_of[tensor] = i;
    e->stages[i].wide = p->tensors.data[tensor].dtype == PROGRAM_F64;
  }
  choose_names(e, function);
  find_stages_below(e);
  choose_lanes(e);
  choose_unrolled(e);
  for (int i = 0; i < e->tree->count; i++) hold_values(e, i);
  for (int i = 0; i < e->tree->count; i++) hold_sums(e, i);
  find_dead(e);
  name_sums(e);
  choose_memory(e);
  find_declarations(e);
}
