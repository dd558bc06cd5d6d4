/* The walk over a bound tree: loops, the conditions around them, parallel regions. See
 * build_parts.h. */
#include "code/build_parts.h"

/* ---- loops ---- */

static void children(struct builder *b, int node);
static void walk(struct builder *b, int node);

/* Builds the inside of a loop; `data` is its argument. */
typedef void inside(struct builder *b, int node, int data);

static void body(struct builder *b, int node, int data) {
  (void)data;
  if (build_node(b, node)->loop.count > 1) build_prefetch(b, node);
  children(b, node);
}

/* A copy with constant digits: in a block if it begins with declarations, which the next copy
 * repeats. */
static void copy(struct builder *b, int node, inside *in, int data) {
  if (b->copied && b->nodes[node].declares && in == body) {
    struct block block = build_opened(b, code_open_block(b->code));
    b->copied = false;
    in(b, node, data);
    build_close(b, block);
  } else {
    in(b, node, data);
  }
}

static void at_constant(struct builder *b, int node, int level, int64_t value, inside *in,
                        int data) {
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  b->space.digit[level] = px_int(b->px, value);
  copy(b, node, in, data);
  b->space.digit[level] = -1;
  loop_space_rollback(&b->space, m);
}

static void counted_loop(struct builder *b, int node, int level, int64_t from, int64_t to,
                         inside *in, int data) {
  if (to - from == 1) {
    at_constant(b, node, level, from, in, data);
    return;
  }
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct block block = build_open_range(b, b->counter[level], from, to, 1);
  b->space.digit[level] = build_open_axis(b, b->counter[level], from, to - from);
  if (build_node(b, node)->loop.count == 1) build_prefetch(b, node);
  in(b, node, data);
  b->space.digit[level] = -1;
  loop_space_rollback(&b->space, m);
  build_close(b, block);
}

static bool below(const struct bound_stage *bound, int node) {
  return stage_step(bound, node) < bound->steps;
}

/* Of the next level: the iterations that any stage needs (`some`), and those that are full for all
 * stages whose remainder is peeled (`full`). */
static void tiles(struct builder *b, int node, int level, int64_t extent, int64_t *some,
                  int64_t *full) {
  *some = 0;
  *full = extent;
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (!below(bound, node)) continue;
    int at = 0;
    while (bound->path[at].level != level) at++;
    int axis = bound->path[at].axis;
    if (axis < 0 || !bound->tail[axis]) {
      *some = extent;
      continue;
    }
    int64_t size = b->program->tensors.data[bound->tensor].axes[axis].size, inner = 0;
    int64_t weight = bound->path[at].weight;
    for (int j = at + 1; j < bound->steps; j++)
      if (bound->path[j].axis == axis) inner += (bound->path[j].extent - 1) * bound->path[j].weight;
    int outer = space_axis(&b->space, bound, axis);
    struct px_range base = {0};
    if (outer >= 0) base = px_range(b->px, outer);
    int64_t alive = base.low < size ? (size - base.low + weight - 1) / weight : 0;
    int64_t whole = base.high + inner < size ? (size - base.high - inner + weight - 1) / weight : 0;
    if (alive > extent) alive = extent;
    if (alive > *some) *some = alive;
    bool peels = b->tree->loops[node].peels && bound->tail_kind[axis] == TAIL_PEEL;
    if (peels && whole < *full) *full = whole;
  }
}

/* One level: constant, unrolled, or a loop; full tiles first if the remainder is peeled. */
static void level_loop(struct builder *b, int node, int level, int64_t extent, inside *in,
                       int data) {
  int64_t some, full;
  int parallel = b->parallel;
  bool copied = b->copied;
  tiles(b, node, level, extent, &some, &full);
  if (b->tree->loops[node].parallel && (b->region || build_node(b, node)->loop.count > 1))
    some = full = extent;
  if (full > some) full = some;
  if (b->tree->loops[node].unrolled) {
    b->copied |= some > 1;
    for (int64_t i = 0; i < some; i++) at_constant(b, node, level, i, in, data);
  } else {
    b->copied |= full > 0 && full < some;
    if (full > 0) counted_loop(b, node, level, 0, full, in, data);
    b->parallel = parallel;
    if (full < some) counted_loop(b, node, level, full, some, in, data);
  }
  b->copied = copied;
}

/* The members of a group, from `member` on, nested. */
static void members(struct builder *b, int node, int member) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  if (member == loop->count) {
    copy(b, node, body, 0);
    return;
  }
  int level = loop->level[member];
  level_loop(b, node, level, b->tree->extents[level], member + 1 == loop->count ? body : members,
             member + 1);
}

/* A group as one loop: its members are quotients and remainders. One step is no loop, so that what is
 * declared there is known behind it. */
static void folded_loop(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  const struct bound_loop *bound = &b->tree->loops[node];
  int64_t extent = bound->extent;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  bool copied = b->copied, constant = bound->unrolled || extent == 1;
  b->copied |= constant && extent > 1;
  for (int64_t i = 0; constant && i < extent; i++) {
    build_group(b, loop, px_int(b->px, i));
    copy(b, node, body, 0);
    build_clear_group(b, loop);
    loop_space_rollback(&b->space, m);
  }
  b->copied = copied;
  if (constant) return;
  struct block block = build_open_range(b, b->nodes[node].counter, 0, extent, 1);
  build_group(b, loop, build_open_axis(b, b->nodes[node].counter, 0, extent));
  build_prefetch(b, node);
  children(b, node);
  build_clear_group(b, loop);
  loop_space_rollback(&b->space, m);
  build_close(b, block);
}

/* A vector of a vec loop, with `steps` steps left. */
static void vec_piece(struct builder *b, int node, int base, int64_t steps) {
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  build_open_lanes(b, node, base, steps);
  copy(b, node, body, 0);
  build_close_lanes(b, node);
  loop_space_rollback(&b->space, m);
}

/* Whole vectors; the last one has the remaining steps. */
static void vec_loop(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  const struct bound_loop *bound = &b->tree->loops[node];
  int64_t extent = bound->extent, some = extent, full, at = 0;
  if (loop->count == 1) tiles(b, node, loop->level[0], extent, &some, &full);
  int64_t whole = (some + bound->lanes - 1) / bound->lanes * bound->lanes;
  if (whole > extent) whole = extent / bound->lanes * bound->lanes;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  bool copied = b->copied;
  b->copied |= some > bound->lanes;
  if (!bound->unrolled && whole > bound->lanes) {
    struct block block = build_open_range(b, b->nodes[node].counter, 0, whole, bound->lanes);
    vec_piece(b, node, build_open_axis(b, b->nodes[node].counter, 0, whole - bound->lanes + 1),
              bound->lanes);
    loop_space_rollback(&b->space, m);
    build_close(b, block);
    at = whole;
  }
  for (; at < some; at += bound->lanes) vec_piece(b, node, px_int(b->px, at), extent - at);
  loop_space_rollback(&b->space, m);
  b->copied = copied;
}

/* for ko in ptr[r]..ptr[r + 1] */
static void dyn_loop(struct builder *b, int node) {
  int level = build_node(b, node)->loop.level[0], stage = 0, step = 0;
  for (; stage < b->tree->count; stage++) {
    step = stage_step(&b->tree->stages[stage], node);
    if (step < b->tree->stages[stage].steps && b->tree->stages[stage].path[step].axis >= 0) break;
  }
  const struct bound_stage *bound = &b->tree->stages[stage];
  const struct program_axis *axis =
      &b->program->tensors.data[bound->tensor].axes[bound->path[step].axis];
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct block block = build_open_data_for(b, bound, axis, b->counter[level]);
  b->space.digit[level] = build_open_axis(b, b->counter[level], axis->first, axis->size);
  build_prefetch(b, node);
  children(b, node);
  b->space.digit[level] = -1;
  loop_space_rollback(&b->space, m);
  build_close(b, block);
}

static void loop_of(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  if (b->tree->loops[node].dyn)
    dyn_loop(b, node);
  else if (loop->marks & LOOP_VEC)
    vec_loop(b, node);
  else if (loop->marks & LOOP_FOLD && loop->count > 1)
    folded_loop(b, node);
  else
    members(b, node, 0);
}

/* ---- parallel loops ---- */

/* Each thread has its own heap buffers: a parallel region around the loop allocates them. */
static void parallel_region(struct builder *b, int node) {
  struct block region = build_opened(b, code_open_region(b->code));
  struct block buffers = build_opened(b, build_allocate(b, node));
  b->region = true;
  loop_of(b, node);
  b->region = false;
  build_close(b, buffers);
  build_close(b, region);
}

static void parallel_loop(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  b->parallel = 0;
  for (int i = 0; i < loop->count; i++) b->parallel += b->tree->extents[loop->level[i]] > 1;
  if (loop->marks & LOOP_FOLD) b->parallel = 1;
  if (build_heaps(b, node))
    parallel_region(b, node);
  else
    loop_of(b, node);
  b->parallel = 0;
}

/* ---- the walk ---- */

/* Guards of a stage's tails that are known before its innermost loops: of axes all of whose digits
 * are open, unless the stage computes beyond their end. */
static int known_guard(struct builder *b, int stage, int node, uint64_t *axes) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  const struct program_tensor *t = &b->program->tensors.data[bound->tensor];
  bool computes = build_computes_beyond(b, stage, node);
  int condition = px_bool(b->px, true);
  *axes = 0;
  for (int i = 0; i < t->rank + t->reductions; i++) {
    bool known = bound->tail[i] && !(b->guarded[stage] >> i & 1) && !(computes && i < t->rank);
    for (int j = 0; known && j < bound->steps; j++)
      known = bound->path[j].axis != i || b->space.digit[bound->path[j].level] >= 0;
    int value = known ? space_axis(&b->space, bound, i) : -1;
    if (value < 0 || (b->lane >= 0 && px_mentions(b->px, value, b->lane))) continue;
    *axes |= (uint64_t)1 << i;
    condition =
        px_and(b->px, condition, px_compare(b->px, PX_LT, value, px_int(b->px, t->axes[i].size)));
  }
  return condition;
}

static void child_of(struct builder *b, int child) {
  for (int i = 0; i < b->tree->count; i++)
    if (b->tree->stages[i].start == child && !b->tree->stages[i].dead) build_begin_sums(b, i);
  walk(b, child);
  for (int i = 0; i < b->tree->count; i++)
    if (b->tree->stages[i].start == child && !b->tree->stages[i].dead) build_end_sums(b, i);
}

/* A loop with one stage below, under the guards of its tails that are known already. */
static void guarded_child(struct builder *b, int child) {
  int stage = b->nodes[child].stage;
  uint64_t axes = 0;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  int condition = known_guard(b, stage, child, &axes);
  struct px_node n = {.op = PX_BOOL, .integer = true};
  if (!b->px->failed) n = b->px->nodes.data[condition];
  if (n.op == PX_BOOL && n.integer) {
    loop_space_rollback(&b->space, m);
    child_of(b, child);
  } else if (n.op != PX_BOOL) {
    struct block block = build_opened(b, code_open_if(b->code, build_condition(b, condition)));
    loop_space_rollback(&b->space, m);
    b->copied = false;
    b->guarded[stage] |= axes;
    child_of(b, child);
    b->guarded[stage] &= ~axes;
    build_close(b, block);
  }
  loop_space_rollback(&b->space, m);
}

static void children(struct builder *b, int node) {
  b->parallel = 0;
  bool region = b->region;
  b->region = false;
  build_declare_at(b, node);
  for (int child = build_node(b, node)->first; child >= 0; child = build_node(b, child)->next)
    if (build_node(b, child)->kind == NODE_LOOP && b->nodes[child].stage >= 0)
      guarded_child(b, child);
    else
      child_of(b, child);
  b->region = region;
}

static void walk(struct builder *b, int node) {
  const struct schedule_node *n = build_node(b, node);
  if (b->code->exprs.count > CODE_EXPRS || b->px->failed) return;
  if (n->kind == NODE_LOOP && b->tree->loops[node].parallel) {
    parallel_loop(b, node);
  } else if (n->kind == NODE_LOOP) {
    loop_of(b, node);
  } else {
    int stage = b->nodes[node].stage;
    if (!b->tree->stages[stage].dead) build_statement(b, stage, PHASE_UPDATE);
  }
}

void build_walk(struct builder *b) {
  b->lane = -1;
  b->lanes = b->lane_steps = 1;
  struct block buffers = {0};
  bool heap = build_heaps(b, 0) > 0;
  if (heap) buffers = build_opened(b, build_allocate(b, 0));
  children(b, 0);
  if (heap) build_close(b, buffers);
}
