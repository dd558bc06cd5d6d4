/* Places values greedily, the largest first, each at the lowest offset that is free during its
 * lifetime. See memory_plan.h.
 *
 * Values that share memory (in place, or parts of another value) form one block. The block lives as
 * long as any of them.
 */
#include "net/memory_plan.h"

#include <stdlib.h>

struct block {
  int first, last;
  int64_t bytes, offset;
  int value; /* the first value of the block */
};

struct planner {
  const struct network *n;
  struct memory_plan plan;
  bool *is_output;
  bool *shared;  /* by tensor: it is part of another value or has parts */
  int *block_of; /* by tensor: number of its block; -1: none */
  bool (*may)(const void *data, int call, int output,
              int input); /* may overwrite it; NULL: always */
  const void *data;
  struct {
    VEC(struct block);
  } blocks;
};

static int64_t rounded(int64_t bytes) {
  return (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

static void find_lives(struct planner *pl) {
  const struct network *n = pl->n;
  struct planned_value *values = pl->plan.values;
  for (int i = 0; i < n->tensors.count; i++) {
    int call = n->tensors.data[i].call;
    values[i] = (struct planned_value){.offset = -1,
                                       .bytes = network_bytes(&n->tensors.data[i]),
                                       .first = call,
                                       .last = call,
                                       .in_place_of = -1,
                                       .part_of = -1};
  }
  for (int c = 0; c < n->calls.count; c++)
    for (int k = 0; k < n->calls.data[c].arguments.count; k++)
      values[n->calls.data[c].arguments.data[k]].last = c;
  for (int i = 0; i < n->outputs.count; i++) {
    pl->is_output[n->outputs.data[i]] = true;
    values[n->outputs.data[i]].last = n->calls.count - 1;
  }
}

static bool in_arena(const struct planner *pl, int tensor) {
  return pl->n->tensors.data[tensor].kind == NET_VALUE && !pl->is_output[tensor] &&
         !network_constant(pl->n, tensor);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void find_parts(struct planner *pl) {
  bool *arena = mem_alloc((size_t)pl->n->tensors.count + 1);
  for (int i = 0; i < pl->n->tensors.count; i++) arena[i] = in_arena(pl, i);
  find_parts_in_place(pl->n, arena, &pl->plan);
  for (int i = 0; i < pl->n->tensors.count; i++) {
    if (pl->plan.values[i].part_of < 0) continue;
    pl->shared[i] = true;
    pl->shared[pl->plan.values[i].part_of] = true;
  }
  mem_free(arena);
}

/* The argument whose memory the result may take over: passed once, dead after the call, not taken
 * by another result; -1: none. */
static int place_for(const struct planner *pl, int call, int result) {
  const struct net_call *c = &pl->n->calls.data[call];
  const struct program *p = pl->n->programs.data[c->program];
  for (int i = 0; i < c->arguments.count; i++) {
    int argument = c->arguments.data[i], given = 0, taken = 0;
    if (!in_arena(pl, argument) || pl->plan.values[argument].last != call) continue;
    if (pl->shared[argument]) continue;
    for (int k = 0; k < c->arguments.count; k++) given += c->arguments.data[k] == argument;
    for (int k = 0; k < c->results.count; k++)
      taken += pl->plan.values[c->results.data[k]].in_place_of == argument;
    if (given > 1 || taken) continue;
    if (!program_in_place(p, p->outputs.data[result], p->inputs.data[i])) continue;
    if (!pl->may || pl->may(pl->data, call, result, i)) return argument;
  }
  return -1;
}

static void add_to_block(struct planner *pl, int value, int block) {
  struct planned_value *v = &pl->plan.values[value];
  if (block < 0) {
    struct block b = {
        .first = v->first, .last = v->last, .bytes = rounded(v->bytes), .value = value};
    VEC_PUSH(&pl->blocks, b);
    block = pl->blocks.count - 1;
  }
  struct block *b = &pl->blocks.data[block];
  if (v->first < b->first) b->first = v->first;
  if (v->last > b->last) b->last = v->last;
  pl->block_of[value] = block;
}

/* Parts join the block of their whole value. */
static void add_parts(struct planner *pl) {
  int64_t within;
  for (int i = 0; i < pl->n->tensors.count; i++) {
    if (pl->plan.values[i].part_of < 0) continue;
    add_to_block(pl, i, pl->block_of[whole_of(&pl->plan, i, &within)]);
  }
}

static void make_blocks(struct planner *pl) {
  for (int c = 0; c < pl->n->calls.count; c++) {
    const struct net_call *call = &pl->n->calls.data[c];
    for (int i = 0; i < call->results.count; i++) {
      int value = call->results.data[i];
      if (!in_arena(pl, value) || pl->plan.values[value].part_of >= 0) continue;
      int argument = pl->shared[value] ? -1 : place_for(pl, c, i);
      pl->plan.values[value].in_place_of = argument;
      add_to_block(pl, value, argument < 0 ? -1 : pl->block_of[argument]);
    }
  }
  add_parts(pl);
}

/* ---- offsets --------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b) {
  const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->value - y->value;
}

static int lower_first(const void *a, const void *b) {
  const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->value - y->value;
}

/* `placed`: blocks alive at the same time, by offset. */
static int64_t lowest_gap(const struct block *b, struct block **placed, int count) {
  int64_t offset = 0;
  for (int i = 0; i < count; i++) {
    if (placed[i]->offset - offset >= b->bytes) break;
    int64_t end = placed[i]->offset + placed[i]->bytes;
    if (end > offset) offset = end;
  }
  return offset;
}

static void place_block(struct planner *pl, struct block **order, int number) {
  struct block *b = order[number], **beside;
  int count = 0;
  beside = mem_alloc((size_t)(number + 1) * sizeof *beside);
  for (int i = 0; i < number; i++)
    if (order[i]->first <= b->last && b->first <= order[i]->last) beside[count++] = order[i];
  qsort(beside, (size_t)count, sizeof *beside, lower_first);
  b->offset = lowest_gap(b, beside, count);
  mem_free(beside);
  if (b->offset + b->bytes > pl->plan.bytes) pl->plan.bytes = b->offset + b->bytes;
}

static void place_blocks(struct planner *pl) {
  int count = pl->blocks.count;
  struct block **order = mem_alloc((size_t)(count + 1) * sizeof *order);
  for (int i = 0; i < count; i++) order[i] = &pl->blocks.data[i];
  qsort(order, (size_t)count, sizeof *order, larger_first);
  for (int i = 0; i < count; i++) place_block(pl, order, i);
  mem_free(order);
  for (int i = 0; i < pl->n->tensors.count; i++) {
    int64_t within;
    if (!in_arena(pl, i)) continue;
    whole_of(&pl->plan, i, &within);
    pl->plan.values[i].offset = pl->blocks.data[pl->block_of[i]].offset + within;
  }
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void find_sums(struct planner *pl) {
  int calls = pl->n->calls.count;
  int64_t *change = mem_alloc((size_t)(calls + 2) * sizeof *change), alive = 0;
  for (int i = 0; i < pl->n->tensors.count; i++)
    if (in_arena(pl, i)) pl->plan.unshared += rounded(pl->plan.values[i].bytes);
  for (int i = 0; i < pl->blocks.count; i++) {
    change[pl->blocks.data[i].first] += pl->blocks.data[i].bytes;
    change[pl->blocks.data[i].last + 1] -= pl->blocks.data[i].bytes;
  }
  for (int c = 0; c < calls; c++) {
    alive += change[c];
    if (alive > pl->plan.least) pl->plan.least = alive;
  }
  mem_free(change);
}

struct memory_plan memory_plan_of(const struct network *n) {
  return memory_plan_where(n, NULL, NULL);
}

struct memory_plan memory_plan_where(const struct network *n,
                                     bool (*may)(const void *data, int call, int output, int input),
                                     const void *data) {
  size_t tensors = (size_t)n->tensors.count + 1;
  struct planner pl = {.n = n,
                       .may = may,
                       .data = data,
                       .is_output = mem_alloc(tensors * sizeof(bool)),
                       .shared = mem_alloc(tensors * sizeof(bool)),
                       .block_of = mem_alloc(tensors * sizeof(int))};
  pl.plan.values = mem_alloc(tensors * sizeof *pl.plan.values);
  for (int i = 0; i < n->tensors.count; i++) pl.block_of[i] = -1;
  pl.plan.skipped = mem_alloc((size_t)n->calls.count + 1);
  find_lives(&pl);
  find_parts(&pl);
  make_blocks(&pl);
  place_blocks(&pl);
  find_sums(&pl);
  mem_free(pl.is_output);
  mem_free(pl.shared);
  mem_free(pl.block_of);
  mem_free(pl.blocks.data);
  return pl.plan;
}

void memory_plan_free(struct memory_plan *plan) {
  mem_free(plan->values);
  mem_free(plan->skipped);
  *plan = (struct memory_plan){0};
}
