/* What is settled before a line is written: every name, and which loops begin with declarations. See
 * emit_base.h.
 */
#include <stdio.h>
#include <string.h>

#include "emit/emit_base.h"

static const struct schedule_node *node_at(const struct emitter *e, int node) {
  return &e->schedule->nodes.data[node];
}

static void find_stages_below(struct emitter *e) {
  for (int i = 0; i < e->schedule->nodes.count; i++) e->nodes[i].stage = -2;
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    for (int at = b->node; at >= 0; at = node_at(e, at)->parent)
      e->nodes[at].stage = e->nodes[at].stage == -2 ? i : -1;
  }
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
  for (int i = 0; i < e->tree->count; i++) sums += e->tree->stages[i].sum.kind != STORAGE_NONE;
  for (int i = 0; i < e->tree->count; i++) {
    if (e->tree->stages[i].sum.kind == STORAGE_NONE) continue;
    char wish[PROGRAM_NAME + 8];
    snprintf(wish, sizeof wish, "%s_acc", e->tensor_name[e->tree->stages[i].tensor]);
    e->stages[i].sum.name = emit_name(e, sums == 1 ? "acc" : wish);
  }
}

/* ---- */

static void find_declarations(struct emitter *e) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    if (b->dead) continue;
    if (b->value.kind == STORAGE_NAMED || b->value.kind == STORAGE_STACK)
      e->nodes[b->compute_at].declares = true;
    if (b->start >= 0 && (!b->direct || b->declares_init) && b->sum.kind != STORAGE_HEAP)
      e->nodes[node_at(e, b->start)->parent].declares = true;
  }
}

void emit_plan(struct emitter *e, const char *function) {
  const struct program *p = e->program;
  const struct schedule *s = e->schedule;
  e->stages = arena_alloc(&e->arena, (size_t)e->tree->count * sizeof *e->stages + 1);
  e->nodes = arena_alloc(&e->arena, (size_t)s->nodes.count * sizeof *e->nodes + 1);
  e->tensor_name = arena_alloc(&e->arena, (size_t)p->tensors.count * sizeof *e->tensor_name + 1);
  e->level_name = arena_alloc(&e->arena, (size_t)s->levels.count * sizeof *e->level_name + 1);
  e->loaded = arena_alloc(&e->arena, (size_t)p->tensors.count * sizeof *e->loaded + 1);
  e->guarded = arena_alloc(&e->arena, (size_t)e->tree->count * sizeof *e->guarded + 1);
  choose_names(e, function);
  find_stages_below(e);
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    e->stages[i].value = (struct held){e->tensor_name[b->tensor], b->value};
    e->stages[i].sum = (struct held){NULL, b->sum};
  }
  name_sums(e);
  find_declarations(e);
}
