/* input: the target's input inside the kernel, [C, H, W]; lower/ pools it and cuts it into copies. */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  (void)k, (void)n;
  *out = (struct shape){0};
  shape_insert(out, ROLE_CHANNEL, dim_size(SIZE_C));
  shape_insert(out, ROLE_H, dim_size(SIZE_H));
  shape_insert(out, ROLE_W, dim_size(SIZE_W));
  return NULL;
}

/* lower/ makes the stage of node 0 before it asks the families. */
static void lower(struct lowering *l, int node) {
  (void)l, (void)node;
}

/* The parameter of `template` has the node's name already. */
static void torch(struct spelling *s, int node) {
  (void)s, (void)node;
}

/* x, which no line defines. */
static void formula(struct formula *f, int node) {
  (void)f, (void)node;
}

const struct family family_input = {
    .name = "input", .shape = shape, .lower = lower, .torch = torch, .formula = formula};
