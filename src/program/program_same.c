/* Whether two programs have the same inputs and outputs. See program.h. */
#include "program/program.h"

/* Whether the sizes agree in order, where one axis may be several of the other: 64, 3249 and 64,
 * 57, 57. */
static bool same_sizes(const struct program_tensor *a, const struct program_tensor *b) {
  int64_t left = 1, right = 1;
  for (int i = 0, j = 0; i < a->rank || j < b->rank || left != right;) {
    if (left <= right && i < a->rank)
      left *= a->axes[i++].size;
    else if (right <= left && j < b->rank)
      right *= b->axes[j++].size;
    else
      return false;
    if (left == right) left = right = 1;
  }
  return true;
}

static bool same_tensor(const struct program_tensor *a, const struct program_tensor *b) {
  if (a->dtype != b->dtype || !same_sizes(a, b)) return false;
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
