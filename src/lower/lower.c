/* Lowering, stage by stage:
 *
 *   X  -> P   average pooling by the stride: s x s, stride s, ceil mode, padding not counted; none
 *             for a kernel that uses S
 *   P  -> Q   of a projected target: sums over all channels, weighted by `projection` [C_out, C_in]
 *   Q  -> a   the kernel's input: for copy r block r mod (C_in/C) of the channels
 *   a  -> .. -> out   one stage per node (softmax: three; an fc with a bias: two), written by the
 *                     families
 *   out -> Y  blocks side by side (channel co is of block co/C), each the mean of its copies
 */
#include "lower/lower.h"

#include <string.h>

#include "primitive/lowering.h"
#include "rewrite/program_edit.h"

/* Elements of a pooling window along one axis: min(s, size - at*s). */
static int window_size(struct program *p, int at, int64_t s, int64_t size) {
  if (size % s == 0) return px_number(p, (double)s);
  int left = px_sub(p, px_int(p, size), px_mul(p, at, px_int(p, s)));
  return px_real(p, px_min(p, px_int(p, s), left));
}

/* Sums first, then divides by the pixels that a window really has. */
static int pool(struct program *p, int x, const struct target *t, int64_t batch) {
  static const char *const axes[] = {"n", "c", "h", "w"};
  int64_t s = t->stride;
  int64_t sizes[] = {batch, t->cin, (t->h + s - 1) / s, (t->w + s - 1) / s};
  int sum = program_stage(p, "P_sum", PROGRAM_F32, 4, axes, sizes);
  int n = program_axis(p, sum, 0), c = program_axis(p, sum, 1);
  int h = program_axis(p, sum, 2), w = program_axis(p, sum, 3);
  int kh = program_reduce(p, sum, REDUCE_SUM, "kh", s);
  int kw = program_reduce(p, sum, REDUCE_SUM, "kw", s);
  h = px_add(p, px_mul(p, h, px_int(p, s)), kh);
  w = px_add(p, px_mul(p, w, px_int(p, s)), kw);
  int inside = px_and(p, px_inside(p, h, 0, t->h), px_inside(p, w, 0, t->w));
  int load = px_load(p, x, 4, (int[]){n, c, h, w});
  program_define(p, sum, px_select(p, inside, load, px_number(p, 0)));

  int mean = program_stage(p, "P", PROGRAM_F32, 4, axes, sizes), at[4];
  for (int i = 0; i < 4; i++) at[i] = program_axis(p, mean, i);
  int pixels = px_mul(p, window_size(p, at[2], s, t->h), window_size(p, at[3], s, t->w));
  program_define(p, mean, px_div(p, px_load(p, sum, 4, at), pixels));
  return mean;
}

/* The input at C_out channels. */
static int project(struct program *p, int x, const struct binding *b, int64_t batch) {
  static const char *const axes[] = {"n", "c", "h", "w"}, *const weight_axes[] = {"t", "c"};
  const struct target *t = &b->target;
  int64_t sizes[] = {batch, t->cout, b->sizes.value[SIZE_H], b->sizes.value[SIZE_W]};
  int64_t weight_sizes[] = {t->cout, t->cin};
  int weight = program_input(p, "projection", PROGRAM_F32, 2, weight_axes, weight_sizes);
  program_input_constant(p, weight);
  int made = program_stage(p, "Q", PROGRAM_F32, 4, axes, sizes), at[4];
  for (int i = 0; i < 4; i++) at[i] = program_axis(p, made, i);
  int to = at[1];
  at[1] = program_reduce(p, made, REDUCE_SUM, "r", t->cin);
  int factor = px_load(p, weight, 2, (int[]){to, at[1]});
  program_define(p, made, px_mul(p, factor, px_load(p, x, 4, at)));
  return made;
}

/* Node 0: channel c of copy r is channel (r mod (C_in/C))*C + c of the input. */
static void input(struct lowering *l, int x, const struct binding *b) {
  struct place at;
  int stage = lowering_stage(l, 0, "", &l->k->nodes[0].shape, &at);
  int channel = at.axis[0], n = at.lead[at.leads - 1];
  int64_t blocks = target_in_blocks(&b->target);
  if (blocks > 1) {
    int c = px_int(l->p, l->sizes->value[SIZE_C]), block = at.lead[0];
    if (blocks < b->copies) block = px_mod(l->p, block, px_int(l->p, blocks));
    channel = px_add(l->p, px_mul(l->p, block, c), channel);
  }
  program_define(l->p, stage, px_load(l->p, x, 4, (int[]){n, channel, at.axis[1], at.axis[2]}));
  l->tensor[0] = stage;
}

static void output(struct lowering *l, const struct binding *b) {
  static const char *const axes[] = {"n", "c", "h", "w"};
  struct program *p = l->p;
  int from = l->tensor[l->k->count - 1];
  const struct target *t = &b->target;
  int64_t sizes[] = {l->batch, t->cout, (t->h + t->stride - 1) / t->stride,
                     (t->w + t->stride - 1) / t->stride};
  int y = program_stage(p, "Y", PROGRAM_F32, 4, axes, sizes), at[5];
  for (int i = 0; i < 4; i++) at[i + 1] = program_axis(p, y, i);
  int64_t in = target_in_blocks(t);
  int block = -1;
  if (target_out_blocks(t) > 1) {
    int c = px_int(p, l->sizes->value[SIZE_C]);
    block = px_div(p, at[2], c);
    at[2] = px_mod(p, at[2], c);
  }
  at[0] = in > 1 ? program_reduce(p, y, REDUCE_MEAN, "r", in) : block;
  if (in > 1 && block >= 0) at[0] = px_add(p, px_mul(p, block, px_int(p, in)), at[0]);
  bool lead = b->copies > 1;
  program_define(p, y, px_load(p, from, 4 + lead, lead ? at : at + 1));
  program_output(p, y);
}

canvas_status lower_nodes(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                          int64_t batch, struct program **out, int tensors[KERNEL_NODES_MAX]) {
  static const char *const axes[] = {"n", "c", "h", "w"};
  const struct target *t = &b->target;
  struct program *p = program_new(k->name);
  struct lowering l = {.k = k,
                       .sizes = &b->sizes,
                       .copies = b->copies,
                       .batch = batch,
                       .normed = b->norm != NORM_NONE,
                       .p = p};
  int64_t sizes[] = {batch, t->cin, t->h, t->w};
  int x = program_input(p, "X", PROGRAM_F32, 4, axes, sizes);
  if (binding_pooling(b) > 1) x = pool(p, x, t, batch);
  if (t->projected) x = project(p, x, b, batch);
  input(&l, x, b);
  for (int i = 0; i < k->count; i++) node_row(&k->nodes[i])->family->lower(&l, i);
  output(&l, b);
  canvas_status status = program_verify(ctx, p);
  if (status != CANVAS_OK) {
    program_free(p);
    return status;
  }
  memcpy(tensors, l.tensor, sizeof l.tensor);
  *out = p;
  return CANVAS_OK;
}

canvas_status lower_binding(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                            int64_t batch, struct program **out) {
  int tensors[KERNEL_NODES_MAX];
  struct program *nodes;
  TRY(lower_nodes(ctx, k, b, batch, &nodes, tensors));
  if (program_inline_data_movement(ctx, nodes, out) == CANVAS_OK)
    program_free(nodes);
  else
    *out = nodes; /* an index that would be too long stays a stage */
  return CANVAS_OK;
}
