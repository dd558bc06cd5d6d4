/* SUMS_END: a barrier after the sums of a tile whose epilogue loads further values. See print_c.h.
 *
 *     for c                       12 vectors of sums are in registers
 *       Y_0 += X[..] * W[..]
 *       ..
 *     SUMS_END();
 *     Y[..] = Y_0 + B[..]
 *
 * If B[..] is the same for several tiles, gcc loads and broadcasts it before the first of them.
 * With two or three such values in each row there are more vectors than registers, and a sum is
 * spilled in each iteration: a 1x1 convolution of 768 channels with a normalisation after its
 * activation took 2.2 times as long with AVX2.
 */
#include "emit/print_c.h"

enum { MANY = 8 }; /* vectors of sums: half of 16 registers; chosen by hand */

static const struct code_statement *statement_at(const struct printer *p, int statement) {
  return &p->code->statements.data[statement];
}

static bool is_sum(const struct printer *p, const struct code_statement *s) {
  if (s->kind != CODE_ASSIGN || s->how != CODE_ADD) return false;
  const struct code_expr *to = &p->code->exprs.data[s->to];
  return to->op == CODE_VARIABLE && to->type.lanes > 1;
}

static int count_sums(const struct printer *p, int statement) {
  const struct code_statement *s = statement_at(p, statement);
  int count = is_sum(p, s);
  for (int i = s->first; i >= 0; i = statement_at(p, i)->next) count += count_sums(p, i);
  return count;
}

static bool loads(const struct printer *p, int expr) {
  if (expr < 0) return false;
  const struct code_expr *e = &p->code->exprs.data[expr];
  if (e->op == CODE_ELEMENT && code_is_value(e->type)) return true;
  for (int i = 0; i < 3; i++)
    if (loads(p, e->arg[i])) return true;
  return false;
}

/* Something is computed of elements in memory. */
static bool computes_of_loads(const struct printer *p, int statement) {
  const struct code_statement *s = statement_at(p, statement);
  if ((s->kind == CODE_ASSIGN || s->kind == CODE_DECLARE) && loads(p, s->value)) return true;
  for (int i = s->first; i >= 0; i = statement_at(p, i)->next)
    if (computes_of_loads(p, i)) return true;
  return s->kind == CODE_IF && s->other >= 0 && computes_of_loads(p, s->other);
}

bool print_sums_end(const struct printer *p, int statement) {
  const struct code_statement *s = statement_at(p, statement);
  if (s->kind != CODE_FOR || s->next < 0 || count_sums(p, statement) < MANY) return false;
  if (count_sums(p, s->next)) return false;
  for (int i = s->next; i >= 0; i = statement_at(p, i)->next)
    if (computes_of_loads(p, i)) return true;
  return false;
}
