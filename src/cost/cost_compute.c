/* Cycles of a stage in registers and at L1: see cost_parts.h.
 *
 * The body of the innermost loop is all unrolled code, in vectors. Loop-invariant code is moved
 * out: an operation or a load counts once per iteration of the innermost loop that it depends on.
 * In unrolled code a load counts once per address.
 */
#include <math.h>

#include "cost/cost_parts.h"
#include "cost/policy.h"
#include "program/affine.h"

/* Cycles of a stage, by the unit of the processor that takes them. */
struct counted {
  struct cost_walk *w;
  const struct nest *n;
  double arithmetic; /* multiply-add units, functions included */
  double loads, stores;
  double gathers;
  double parts;      /* latency of partial vector loads, which other work overlaps */
  double operations; /* number of instructions of any kind */
  double loops;      /* overhead of loop iterations */
};

static double max_of(double a, double b) {
  return a > b ? a : b;
}

/* Iterations of the innermost loop among these steps. */
static double runs_of(const struct nest *n, uint32_t steps) {
  uint32_t loops = steps & n->loops;
  int deepest = n->stage->steps;
  while (deepest > 0 && !(loops >> (deepest - 1) & 1)) deepest--;
  return n->begun[deepest] * n->part;
}

static double copies_of(const struct nest *n, uint32_t steps) {
  double copies = 1;
  for (int i = 0; i < n->stage->steps; i++)
    if (steps >> i & 1) copies *= n->copies[i];
  return copies;
}

static bool in_lanes(const struct nest *n, uint32_t steps) {
  return n->lane >= 0 && steps >> n->lane & 1;
}

/* ---- operations ------------------------------------------------------------------------------ */

static int call_of(int op) {
  switch (op) {
#define X(name, ...) \
  case PX_##name: return RATE_##name;
    RATE_CALLS(X)
#undef X
    case PX_EXPM1: return RATE_EXP; /* a few operations more than exp */
    case PX_LOG1P: return RATE_LOG;
    default: return -1;
  }
}

/* Whether vectors fill at most half of a register. */
static bool is_half(const struct counted *c) {
  bool wide = c->n->stage->compute_dtype == PROGRAM_F64;
  int whole = c->w->tree->machine.vector_bytes / (int)(wide ? sizeof(double) : sizeof(float));
  return c->n->lanes <= whole / 2;
}

static void add_operation(struct counted *c, int op, uint32_t steps, double weight) {
  const struct rates *r = c->w->rates;
  bool lanes = in_lanes(c->n, steps);
  double times = weight * runs_of(c->n, steps) * copies_of(c->n, steps);
  int call = call_of(op);
  c->operations += times;
  if (call >= 0)
    c->arithmetic += times * (lanes ? r->vector[call] : r->single[call]);
  else
    c->arithmetic += times / (!lanes ? r->scalar : is_half(c) ? r->half : r->fma);
}

/* The branch of an index condition that is not padding. Loops are partitioned: only it counts. */
static int inside_padding(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  while (n->op == PX_SELECT && is_index_condition(p, n->arg[0])) {
    expr = n->arg[p->nodes.data[n->arg[1]].size < p->nodes.data[n->arg[2]].size ? 2 : 1];
    n = &p->nodes.data[expr];
  }
  return expr;
}

/* Whether the expression contains the load, with or without padding branches. */
static bool stands_in(const struct program *p, int expr, int load, bool borders) {
  const struct px_node *n = &p->nodes.data[borders ? expr : (expr = inside_padding(p, expr))];
  int rank = n->op == PX_LOAD ? p->tensors.data[n->tensor].rank : 0;
  bool is = expr == load;
  for (int i = 0; i < rank && !is; i++)
    is = stands_in(p, p->indices.data[n->first + i], load, borders);
  for (int i = 0; i < PX_ARGS && !is && n->op != PX_LOAD; i++)
    is = n->arg[i] >= 0 && stands_in(p, n->arg[i], load, borders);
  return is;
}

static bool is_value(const struct program *p, int expr, int op) {
  return p->nodes.data[expr].op == op && p->nodes.data[expr].sort == PX_VALUE;
}

/* Whether the sum has a product as operand, so that both are one multiply-add. */
static bool is_fused(const struct counted *c, const struct px_node *n) {
  const struct program *p = c->w->tree->program;
  return c->w->tree->machine.fma && (n->op == PX_ADD || n->op == PX_SUB) &&
         (is_value(p, n->arg[0], PX_MUL) || is_value(p, n->arg[1], PX_MUL));
}

/* Counts the operations of an expression. Returns the steps that its value depends on. */
static uint32_t add_operations(struct counted *c, int expr) {
  const struct program *p = c->w->tree->program;
  const struct px_node *n = &p->nodes.data[expr = inside_padding(p, expr)];
  uint32_t steps = 0;
  if (n->sort == PX_INDEX || n->op == PX_LOAD || n->op == PX_REAL)
    return nest_depends_on(c->w, c->n, expr);
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) steps |= add_operations(c, n->arg[i]);
  if (scalar_ops[n->op].arity == 0) return 0;
  bool of_indices = n->sort == PX_CONDITION && p->nodes.data[n->arg[0]].sort == PX_INDEX;
  if (n->op == PX_NEG || n->op == PX_AND || n->op == PX_OR || n->op == PX_NOT) return steps;
  if (of_indices)
    add_operation(c, n->op, steps & ~(c->n->lane >= 0 ? 1u << c->n->lane : 0),
                  COST_INDEX_CONDITION);
  else
    add_operation(c, n->op, steps, is_fused(c, n) ? 0 : 1);
  return steps;
}

/* Counts the addition to the accumulator, which is fused with a product. */
static void add_reduction(struct counted *c, uint32_t steps) {
  const struct nest *n = c->n;
  bool fused =
      n->tensor->reducer == REDUCE_SUM && c->w->tree->machine.fma &&
      is_value(c->w->tree->program, inside_padding(c->w->tree->program, n->tensor->body), PX_MUL);
  uint32_t all = (uint32_t)(((uint64_t)1 << n->stage->steps) - 1);
  add_operation(c, PX_ADD, all, fused && in_lanes(n, steps) == in_lanes(n, all) ? 0 : 1);
  if (n->lane >= 0 && n->sums >> n->lane & 1) { /* horizontal reduction */
    double times = runs_of(n, all), vectors = n->copies[n->lane];
    c->arithmetic += times * copies_of(n, all) / vectors * COST_FLAT_STEP * log2((double)n->lanes);
    c->operations += times * copies_of(n, all) / vectors * COST_FLAT_STEP * log2((double)n->lanes);
  }
}

/* ---- loads and stores ------------------------------------------------------------------------ */

/* Addresses of the unrolled steps from `from` on. Overlapping windows have fewer than copies. */
double nest_addresses(const struct nest *n, const struct access *a, int from) {
  double copies = 1, span = 0, least = INFINITY;
  for (int i = from; i < n->stage->steps; i++) {
    if (i == n->lane || n->copies[i] <= 1 || !(a->depends_on >> i & 1)) continue;
    double stride = fabs(a->stride[i]);
    copies *= n->copies[i];
    span += stride * (n->copies[i] - 1);
    if (stride > 0 && stride < least) least = stride;
    if (a->gathered >> i & 1) span = INFINITY;
  }
  if (copies <= 1 || !isfinite(least)) return copies;
  return fmin(copies, floor(span / least) + 1);
}

static double vectors_of(const struct nest *n, const struct access *a) {
  return in_lanes(n, a->depends_on) ? n->copies[n->lane] : 1;
}

/* Registers that hold an operand which is loaded once and used several times in the body. */
static double live_operands(const struct nest *n, const struct access *a) {
  for (int i = 0; i < n->stage->steps; i++) {
    if (n->copies[i] <= 1) continue;
    bool again = i == n->lane
                     ? !in_lanes(n, a->depends_on)
                     : nest_addresses(n, a, i) < n->copies[i] * nest_addresses(n, a, i + 1);
    if (again) return nest_addresses(n, a, i + 1) * (i < n->lane ? vectors_of(n, a) : 1);
  }
  return 0;
}

static bool is_scattered(const struct nest *n, const struct access *a) {
  return in_lanes(n, a->depends_on) && (a->stride[n->lane] != 1 || a->gathered >> n->lane & 1);
}

/* Whether a permutation loads the lanes: all of them exist, as the axis has no masked tail. */
static bool is_shuffled(const struct nest *n, const struct access *a) {
  int axis = n->stage->path[n->lane].axis;
  return a->permuted && (!n->stage->tail[axis] || n->stage->tail_kind[axis] == TAIL_PEEL);
}

static double stored_in_a_cycle(const struct counted *c, bool lanes) {
  const struct rates *r = c->w->rates;
  return !lanes ? COST_SINGLE_STORES * r->stores : is_half(c) ? r->half_stores : r->stores;
}

/* Loads per vector: some compilers reload a vector for each row that uses it, if rows are few. */
static double reloads(const struct counted *c, const struct access *a) {
  double rows = 1;
  for (int i = 0; i < c->n->stage->steps; i++)
    if (i != c->n->lane && !(a->depends_on >> i & 1)) rows *= c->n->copies[i];
  bool keeps = c->w->rates->tile * c->w->rates->fma < COST_RELOADING_TILE;
  return keeps || a->node < 0 || !in_lanes(c->n, a->depends_on) || rows > COST_RELOADING_ROWS
             ? 1
             : rows;
}

/* Whether the caller owns the tensor. Its last elements allow no load of a whole vector. */
static bool is_from_caller(const struct counted *c, int tensor) {
  const struct cost_walk *w = c->w;
  if (w->tree->program->tensors.data[tensor].is_input) return true;
  int stage = loop_tree_stage(w->tree, tensor);
  return stage >= 0 && w->nests[stage].prepared;
}

/* Whether the last vector of an axis is partial. Buffers have room for the whole vector. */
static bool is_masked(const struct counted *c, const struct access *a) {
  int axis = c->n->lane < 0 ? -1 : c->n->stage->path[c->n->lane].axis;
  if (axis < 0 || !in_lanes(c->n, a->depends_on) || !c->n->stage->tail[axis]) return false;
  bool output = a->node < 0 && c->n->stage->is_output;
  return c->n->stage->tail_kind[axis] == TAIL_MASK && (output || is_from_caller(c, a->tensor));
}

/* The share of partial vectors along the vector axis: only the last one can be partial. */
static double part_masked(const struct nest *n) {
  int axis = n->stage->path[n->lane].axis;
  double steps = 1;
  if (n->tensor->axes[axis].size % n->lanes == 0) return 0;
  for (int i = 0; i < n->stage->steps; i++)
    if (n->stage->path[i].axis == axis) steps *= n->extent[i];
  return fmin(1, n->lanes / steps);
}

/* A vector too short for masked loads is built in memory, and nothing overlaps with that. */
static bool is_narrow(const struct counted *c, const struct access *a) {
  return c->n->lanes * a->bytes < c->w->tree->machine.vector_bytes;
}

/* Only the last of unrolled loads may be partial, but each of unrolled stores. */
static void add_masked(struct counted *c, const struct access *a, double times) {
  const struct nest *n = c->n;
  const struct rates *r = c->w->rates;
  double part = part_masked(n), loads = runs_of(n, a->depends_on) * vectors_of(n, a) * part;
  c->operations += 2 * times;
  if (a->node < 0)
    c->gathers += times * COST_PARTIAL_STORE * part;
  else if (is_narrow(c, a))
    c->gathers += loads * r->narrow;
  else
    c->parts += loads * r->partial;
}

/* Whether the load occurs in padding branches only, which are cold. */
static bool is_cold(const struct counted *c, const struct access *a) {
  const struct program *p = c->w->tree->program;
  int body = c->n->tensor->body;
  return a->node >= 0 && stands_in(p, body, a->node, true) && !stands_in(p, body, a->node, false);
}

/* Counts an access. Lanes that are not contiguous are gathered one by one. */
static void add_access(struct counted *c, const struct access *a) {
  const struct nest *n = c->n;
  const struct rates *r = c->w->rates;
  bool shuffled = is_scattered(n, a) && is_shuffled(n, a), apart = is_scattered(n, a) && !shuffled;
  bool store = a->node < 0;
  double runs = a->accumulates ? runs_of(n, n->loops) : runs_of(n, a->depends_on);
  double times = runs * nest_addresses(n, a, 0) * vectors_of(n, a) * reloads(c, a);
  double single = apart ? n->lanes : 1;
  c->operations += times * single;
  if (apart) c->gathers += times * n->lanes * r->gather;
  if (shuffled) c->gathers += times * COST_PERMUTED;
  if (is_masked(c, a)) add_masked(c, a, times);
  if (a->nonaffine & n->loops)
    c->gathers += runs_of(n, a->nonaffine) * nest_addresses(n, a, 0) * COST_DIVIDED_INDEX;
  if (store || a->accumulates)
    c->stores += times * single / stored_in_a_cycle(c, in_lanes(n, a->depends_on) && !apart);
  if (!store || a->accumulates)
    c->loads += times * single / (in_lanes(n, a->depends_on) && !apart ? r->loads : r->broadcasts);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static double accumulators(const struct nest *n) {
  double all = 1;
  for (int i = 0; i < n->stage->steps; i++)
    if (!(n->sums >> i & 1)) all *= n->copies[i];
  return all;
}

static bool sums_in_memory(const struct counted *c) {
  const struct nest *n = c->n;
  for (int i = 0; i < n->count; i++)
    if (c->w->accesses.data[n->first + i].accumulates) return true;
  return false;
}

/* Whether the reduction is alone in its loop, so that successive reductions overlap. */
static bool is_alone(const struct counted *c) {
  const struct schedule_node *nodes = c->w->tree->schedule->nodes.data;
  int around = nodes[c->n->stage->start].parent;
  return nodes[around].first == nodes[around].last;
}

/* Cycles of the dependent additions of a reduction. Accumulators in memory are stored and loaded
 * for each addition. Short reductions overlap, as far as the processor executes out of order. */
static double chain(const struct counted *c) {
  const struct nest *n = c->n;
  double sums = 1, between = 1;
  uint32_t loops = n->sums & n->loops;
  if (n->stage->start < 0) return 0;
  for (int i = 0; i < n->stage->steps; i++) {
    if (n->sums >> i & 1) sums *= n->copies[i];
    if (!(loops >> i >> 1) && n->loops >> i & 1 && !(n->sums >> i & 1)) between *= n->trips[i];
  }
  if (!loops) between = 1;
  double wait = c->w->rates->latency + (sums_in_memory(c) ? COST_FORWARD : 0);
  double begun = n->begun[stage_step(n->stage, n->stage->start)] * n->part;
  double together = is_alone(c) ? 1 + COST_REORDER * begun / fmax(c->operations, begun) : 1;
  return n->begun[n->stage->steps] * n->part * sums * wait / between / together;
}

static bool is_unrolled(const struct counted *c, int node) {
  return c->w->tree->loops[node].unrolled;
}

/* Cycles of loops that begin and end. A loop that stages share counts for the first of them. */
static double loops_of(struct counted *c) {
  const struct nest *n = c->n;
  const struct rates *r = c->w->rates;
  double cycles = 0;
  for (int i = 0; i < n->stage->steps; i++) {
    int node = n->stage->path[i].node;
    if (!(n->loops >> i & 1) || c->w->counted[node] || is_unrolled(c, node)) continue;
    c->w->counted[node] = true;
    cycles += n->part * n->begun[i] * r->begin;
    c->operations += n->part * n->begun[i + 1] * COST_LOOP_INSTRUCTIONS;
    c->loops += n->part * n->begun[i + 1] * r->loop;
  }
  return cycles;
}

/* Cycles of spilled registers. A tile needs its accumulators and its live operands; what exceeds
 * the registers of the machine is stored and loaded in every iteration. */
static double spills(struct counted *c) {
  const struct nest *n = c->n;
  const struct rates *r = c->w->rates;
  double sums = sums_in_memory(c) || n->stage->start < 0 ? 0 : accumulators(n), loaded = 0;
  for (int i = 0; i < n->count; i++) {
    const struct access *a = &c->w->accesses.data[n->first + i];
    if (a->node >= 0 && !is_cold(c, a)) loaded += live_operands(n, a);
  }
  double more = sums + loaded + 1 - c->w->tree->machine.registers;
  if (more <= 0) return 0;
  double kept = fmin(more, sums), reloaded = fmin(more - kept, loaded);
  double times = runs_of(n, n->loops);
  c->operations += times * 2 * (kept + reloaded);
  return times * (kept + COST_SPILLED_LOAD * reloaded) * (1 / r->loads + 1 / r->stores);
}

struct cycles nest_cycles(struct cost_walk *w, int stage) {
  const struct nest *n = &w->nests[stage];
  struct counted c = {.w = w, .n = n};
  if (n->stage->dead || n->prepared) return (struct cycles){0};
  uint32_t steps = add_operations(&c, n->tensor->body);
  if (n->stage->start >= 0) add_reduction(&c, steps);
  for (int i = 0; i < n->count; i++)
    if (!is_cold(&c, &w->accesses.data[n->first + i]))
      add_access(&c, &w->accesses.data[n->first + i]);
  double begun = loops_of(&c), waiting = max_of(chain(&c), c.parts), spilled = spills(&c);
  double moved = max_of(c.loads, c.stores);
  double all = max_of(max_of(c.arithmetic, moved),
                      max_of(max_of(waiting, c.loops), c.operations / COST_ISSUED));
  return (struct cycles){c.arithmetic, moved + c.gathers + spilled, waiting + begun,
                         all + c.gathers + spilled + begun};
}
