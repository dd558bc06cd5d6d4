/* One step of a recurrent layer, as torch.nn.LSTMCell: the gates i, f, g, o are rows of the weights, one after
 * another.
 *
 *   gates[n, o]  = sum of X[n] * W[o] + sum of H[n] * WH[o]  (+ B[o] + BH[o])
 *   cell[n, j]   = sigmoid(f) * C[n, j] + sigmoid(i) * tanh(g)
 *   Y[n, j]      = sigmoid(o) * tanh(cell[n, j])
 */
#include "operator/operator_build.h"

static int product(struct build *b, const char *name, int left, int weight, const char *summed) {
  const char a[] = {'n', *summed, 0}, w[] = {'o', *summed, 0};
  int stage = build_stage(b, name, b->wide, "no");
  build_reduce(b, stage, REDUCE_SUM, summed);
  program_define(b->p, stage, px_mul(b->p, build_load(b, left, a), build_load(b, weight, w)));
  return stage;
}

/* Gate number i at place j of the state. */
static int gate(struct build *b, int gates, int i) {
  b->at['o'] = px_add(b->p, b->at['j'], px_int(b->p, i * b->size['j']));
  return build_load(b, gates, "no");
}

static int add_gates(struct build *b, int bias, int bias_h, int x, int h) {
  struct program *p = b->p;
  int stage = build_stage(b, "gates", b->wide, "no");
  int sum = px_add(p, build_load(b, x, "no"), build_load(b, h, "no"));
  if (bias >= 0) sum = px_add(p, sum, build_load(b, bias, "o"));
  if (bias_h >= 0) sum = px_add(p, sum, build_load(b, bias_h, "o"));
  program_define(p, stage, sum);
  return stage;
}

canvas_status build_lstmcell(struct build *b) {
  struct program *p = b->p;
  bool biased = build_number(b, ARG_BIAS, 0);
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'i', "i", build_number(b, ARG_INPUT_SIZE, 0));
  build_axis(b, 'j', "j", build_number(b, ARG_HIDDEN_SIZE, 0));
  build_axis(b, 'o', "o", 4 * b->size['j']);
  int x = build_input(b, "X", "ni"), h = build_input(b, "H", "nj"), c = build_input(b, "C", "nj");
  int w = build_input(b, "W", "oi"), wh = build_input(b, "WH", "oj");
  int bias = biased ? build_input(b, "B", "o") : -1,
      bias_h = biased ? build_input(b, "BH", "o") : -1;
  int of_x = product(b, "of_x", x, w, "i"), of_h = product(b, "of_h", h, wh, "j");
  int gates = add_gates(b, bias, bias_h, of_x, of_h), cell = build_stage(b, "cell", b->type, "nj");
  int kept = px_mul(p, build_sigmoid(b, gate(b, gates, 1)), build_load(b, c, "nj"));
  int added = px_call(p, PX_TANH, gate(b, gates, 2));
  added = px_mul(p, build_sigmoid(b, gate(b, gates, 0)), added);
  program_define(p, cell, px_add(p, kept, added));
  int y = build_stage(b, "Y", b->type, "nj");
  int shown = px_call(p, PX_TANH, build_load(b, cell, "nj"));
  program_define(p, y, px_mul(p, build_sigmoid(b, gate(b, gates, 3)), shown));
  program_output(p, y);
  program_output(p, cell);
  return CANVAS_OK;
}
