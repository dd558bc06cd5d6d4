/* Whether two programs take and give the same tensors. See program.h. */
#include "program/program.h"

static bool same_tensor(const struct program_tensor *a, const struct program_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->axes[i].size != b->axes[i].size) return false;
  return a->least == b->least && a->most == b->most && a->rising == b->rising;
}

static bool same_tensors(const struct program *p, const struct program *q, bool inputs) {
  int count = inputs ? p->inputs.count : p->outputs.count;
  const int *of_p = inputs ? p->inputs.data : p->outputs.data;
  const int *of_q = inputs ? q->inputs.data : q->outputs.data;
  if (count != (inputs ? q->inputs.count : q->outputs.count)) return false;
  for (int i = 0; i < count; i++)
    if (!same_tensor(&p->tensors.data[of_p[i]], &q->tensors.data[of_q[i]])) return false;
  return true;
}

bool program_same_tensors(const struct program *p, const struct program *q) {
  return same_tensors(p, q, true) && same_tensors(p, q, false);
}
