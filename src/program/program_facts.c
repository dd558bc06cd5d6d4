/* Facts about the stages of a program. See program_facts.h. */
#include "program/program_facts.h"

#include "program/affine.h"

/* Loads inside indices are not counted: they load i32 inputs only, which no edit changes. */
static int expr_loads(const struct program *p, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  int count = 0;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) count += expr_loads(p, n->arg[i], tensor);
  return count + (n->op == PX_LOAD && n->tensor == tensor);
}

int stage_loads(const struct program *p, int stage, int tensor) {
  const struct program_tensor *t = &p->tensors.data[stage];
  return t->is_input ? 0 : expr_loads(p, t->body, tensor);
}

bool is_output(const struct program *p, int tensor) {
  for (int i = 0; i < p->outputs.count; i++)
    if (p->outputs.data[i] == tensor) return true;
  return false;
}

bool is_only_consumer(const struct program *p, int tensor, int consumer) {
  for (int i = tensor + 1; i < p->tensors.count; i++)
    if (i != consumer && stage_loads(p, i, tensor)) return false;
  return !p->tensors.data[tensor].is_input && !is_output(p, tensor);
}

int copied_tensor(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reductions) return -1;
  const struct px_node *n = &p->nodes.data[t->body];
  return n->op == PX_LOAD ? n->tensor : -1;
}

/* Whether the expression is a load or a number, chosen by index conditions. */
static bool moves_data(const struct program *p, int expr, int *loads) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return ++*loads == 1;
  if (n->op == PX_NUMBER) return true;
  return n->op == PX_SELECT && is_index_condition(p, n->arg[0]) &&
         moves_data(p, n->arg[1], loads) && moves_data(p, n->arg[2], loads);
}

bool is_data_movement(const struct program *p, int tensor) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  int loads = 0;
  return !t->is_input && !t->reductions && moves_data(p, t->body, &loads);
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Extends the window to contain the load; `first`: it is the first one. */
static const char *widen(const struct program *p, const struct px_node *load, bool first,
                         struct window *w) {
  int own = w->own, axis = -1;
  struct affine a;
  for (int i = 0; i < p->tensors.data[load->tensor].rank; i++) {
    if (!px_mentions(p, p->indices.data[load->first + i], own)) continue;
    if (axis >= 0) return "is read at that axis along several of its own";
    axis = i;
  }
  if (axis < 0) return "is read without that axis";
  int64_t step;
  bool known = affine_of(p, p->indices.data[load->first + axis], &a) &&
               affine_stride(p, &a, own, &step) && step > 0;
  for (int i = a.count - 1; known && i >= 0; i--)
    if (px_mentions(p, a.term[i].expr, own)) affine_drop(&a, i);
  struct px_range rest = {.overflow = true};
  if (known) rest = affine_range(p, &a, 0);
  if (rest.overflow) return "is read at no multiple of that axis plus a window";
  int64_t low = first || rest.low < w->low ? rest.low : w->low;
  int64_t high = first || rest.high > w->low + w->more ? rest.high : w->low + w->more;
  if (!first && (axis != w->axis || step != w->step)) return "is read in several ways there";
  *w = (struct window){axis, own, step, low, high - low, w->tile};
  return NULL;
}

static const char *widen_all(const struct program *p, int expr, int tensor, int *seen,
                             struct window *w) {
  if (expr < 0) return NULL;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD && n->tensor == tensor) return widen(p, n, !(*seen)++, w);
  for (int i = 0; i < 3; i++) {
    const char *why = widen_all(p, n->arg[i], tensor, seen, w);
    if (why) return why;
  }
  return NULL;
}

const char *find_window(const struct program *p, int consumer, int tensor, int own,
                        struct window *out) {
  int seen = 0;
  out->own = own;
  return widen_all(p, p->tensors.data[consumer].body, tensor, &seen, out);
}

bool winograd_has_tile(int64_t tile) {
#define X(known) \
  if (tile == (known)) return true;
  WINOGRAD_TILES(X)
#undef X
  return false;
}

canvas_status winograd_check_tile(canvas_context *ctx, int64_t tile) {
  if (winograd_has_tile(tile)) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT,
              "Winograd's convolution has tiles of 2x2 and of 4x4, not of %lld", (long long)tile);
}
