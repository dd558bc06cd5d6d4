/* See lowering.h. */
#include "primitive/lowering.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

int64_t lowering_size(const struct lowering *l, const struct dim *d) {
  int64_t value = 0;
  bool whole = dim_value(d, l->sizes, &value);
  assert(whole);
  (void)whole;
  return value;
}

int lowering_strided(struct lowering *l, int index, const struct dim *stride) {
  int64_t s = lowering_size(l, stride);
  return s == 1 ? index : px_mul(l->p, index, px_int(l->p, s));
}

const char *role_axis(enum role role) {
  static const char *const names[ROLES] = {"g",   "c",   "kc",   "kh",   "kw",   "h",   "w",
                                           "g_2", "c_2", "kc_2", "kh_2", "kw_2", "h_2", "w_2"};
  return names[role];
}

/* X, Y, P, Q, result, w0, w1, ... and with norms b0, b1, ... are the program's own names, and its
 * language has words: a node that has one of these names gets a `_`. */
static bool is_taken(const struct lowering *l, const char *name) {
  static const char *const own[] = {"X", "Y", "P", "P_sum", "Q", "projection", "result"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (!strcmp(name, own[i])) return true;
  bool operand = name[0] == 'w' || (l->normed && name[0] == 'b');
  return program_is_word(name) || (operand && isdigit((unsigned char)name[1]));
}

static void stage_name(const struct lowering *l, int node, const char *suffix, char *out,
                       size_t size) {
  bool output = l->k->nodes[node].op == PRIMITIVE_OUTPUT;
  const char *name = output ? "result" : l->k->nodes[node].name;
  snprintf(out, size, "%s%s%s", name, !output && is_taken(l, name) ? "_" : "", suffix);
  while (program_find(l->p, out) >= 0 && strlen(out) + 2 < size) strcat(out, "_");
}

int lowering_stage(struct lowering *l, int node, const char *suffix, const struct shape *shape,
                   struct place *at) {
  const char *axes[AXES_MAX + 2];
  int64_t sizes[AXES_MAX + 2];
  char name[PROGRAM_NAME];
  int rank = 0;
  if (l->copies > 1) axes[rank] = "r", sizes[rank++] = l->copies;
  axes[rank] = "n", sizes[rank++] = l->batch;
  at->leads = rank;
  for (int i = 0; i < shape->count; i++) {
    axes[rank] = role_axis(shape->axis[i].role);
    sizes[rank++] = lowering_size(l, &shape->axis[i].dim);
  }
  stage_name(l, node, suffix, name, sizeof name);
  int stage = program_stage(l->p, name, PROGRAM_F32, rank, axes, sizes);
  for (int i = 0; i < at->leads; i++) at->lead[i] = program_axis(l->p, stage, i);
  for (int i = 0; i < shape->count; i++) at->axis[i] = program_axis(l->p, stage, at->leads + i);
  return stage;
}

int lowering_load(struct lowering *l, int tensor, const struct place *at, int rank) {
  int index[AXES_MAX + 2];
  for (int i = 0; i < at->leads; i++) index[i] = at->lead[i];
  for (int i = 0; i < rank; i++) index[at->leads + i] = at->axis[i];
  return px_load(l->p, tensor, at->leads + rank, index);
}

int lowering_weight(struct lowering *l, int node) {
  const char *axes[AXES_MAX + 1] = {"r"};
  int64_t sizes[AXES_MAX + 1] = {l->copies};
  struct shape w;
  char name[16];
  int lead = l->copies > 1;
  node_weight(l->k, node, &w);
  for (int i = 0; i < w.count; i++) {
    axes[lead + i] = i ? role_axis(w.axis[i].role) : "t";
    sizes[lead + i] = lowering_size(l, &w.axis[i].dim);
  }
  snprintf(name, sizeof name, "w%d", l->weights++);
  int weight = program_input(l->p, name, PROGRAM_F32, lead + w.count, axes, sizes);
  program_input_constant(l->p, weight);
  return weight;
}

static bool has_bias(const struct lowering *l, int node) {
  return l->normed && node_is_inner(l->k, node);
}

int lowering_weighted(struct lowering *l, int node, struct place *at) {
  return lowering_stage(l, node, has_bias(l, node) ? "_sum" : "", &l->k->nodes[node].shape, at);
}

/* The weight of the node was the last to be declared. */
int lowering_biased(struct lowering *l, int node, int sum) {
  const char *axes[] = {"r", "t"};
  const struct node *n = &l->k->nodes[node];
  struct shape w;
  struct place at;
  char name[16];
  int lead = l->copies > 1;
  if (!has_bias(l, node)) return sum;
  node_weight(l->k, node, &w);
  int64_t sizes[] = {l->copies, lowering_size(l, &w.axis[0].dim)};
  snprintf(name, sizeof name, "b%d", l->weights - 1);
  int bias = program_input(l->p, name, PROGRAM_F32, 1 + lead, axes + !lead, sizes + !lead);
  program_input_constant(l->p, bias);
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  int index[] = {at.lead[0], at.axis[0]};
  int value = px_load(l->p, bias, 1 + lead, index + !lead);
  value = px_add(l->p, lowering_load(l, sum, &at, n->shape.count), value);
  program_define(l->p, stage, value);
  return stage;
}

int lowering_flatten(struct lowering *l, const struct shape *s, const struct place *at, int first,
                     int count) {
  int flat = px_int(l->p, 0);
  for (int i = first; i < first + count; i++) {
    int size = px_int(l->p, lowering_size(l, &s->axis[i].dim));
    flat = px_add(l->p, px_mul(l->p, flat, size), at->axis[i]);
  }
  return flat;
}

void lowering_unflatten(struct lowering *l, const struct shape *s, int flat, int first, int count,
                        struct place *at) {
  for (int i = first + count - 1; i >= first; i--) {
    int size = px_int(l->p, lowering_size(l, &s->axis[i].dim));
    at->axis[i] = i == first ? flat : px_mod(l->p, flat, size);
    flat = px_div(l->p, flat, size);
  }
}
