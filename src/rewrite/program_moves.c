/* Inlining of data movement, and transposition (the edit `turn`). See program_edit.h.
 *
 *     P[c:64, h:58] = if 1 <= h && h < 57 then X[c, h-1] else 0                    data movement
 *     Y[k:32, h:56] = P[c, h+kh] * W[k, c, kh] // sum c:64, kh:3
 * program_inline_data_movement ->
 *     Y[k:32, h:56] = (if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] else 0) * W[k, c, kh]
 *                     // sum c:64, kh:3         (one line in a file)
 */
#include <stdlib.h>

#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* Marks the chain of stages that end in `stage` by copies, as long as each has no other
 * consumer. */
static void inline_copied(const struct program *p, int stage, bool *inlined) {
  for (int t; (t = copied_tensor(p, stage)) >= 0; stage = t) {
    int loads = 0;
    for (int i = t + 1; i < p->tensors.count; i++) loads += stage_loads(p, i, t);
    const struct program_tensor *from = &p->tensors.data[t];
    if (loads != 1 || from->is_input || not_inlined(p, t)) return;
    inlined[t] = true;
  }
}

canvas_status program_inline_data_movement(canvas_context *ctx, const struct program *p,
                                           struct program **out) {
  struct change c = change_open(CHANGE_INLINE, p);
  for (int i = 0; i < p->tensors.count; i++)
    c.inlined[i] = is_data_movement(p, i) && !not_inlined(p, i);
  for (int i = 0; i < p->outputs.count; i++) inline_copied(p, p->outputs.data[i], c.inlined);
  return change_finish(ctx, &c, out);
}

struct program *program_transposed(const struct program *p, int stage, int axis, const char *name) {
  if (p->tensors.data[stage].reductions || not_inlined(p, stage)) return NULL;
  struct change c = change_open(CHANGE_TRANSPOSE, p);
  c.tensor = stage;
  c.axis = axis;
  c.name = name;
  return change_make(&c);
}
