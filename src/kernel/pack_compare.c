/* Whether two packs mean the same: target by target, isomorphic kernels of equal sizes and norms, or
 * a convolution that is kept in both. Names of kernels and the order of lines do not count.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/pack.h"

/* What a target has. */
struct assignment {
  const struct target *target;
  const struct kernel *kernel; /* NULL: the target is kept */
  const struct binding *binding;
};
struct assignments {
  VEC(struct assignment);
};

struct comparison {
  struct assignments left, right;
  struct name_table at; /* places in `right` by name */
  int steps;            /* limit of kernel_hash_within */
  bool decided;         /* of the kernels compared last */
  const char *open;     /* the first target whose kernels were not decided; NULL */
};

static struct assignments assignments_of(const struct pack *p) {
  struct assignments out = {0};
  const struct targets *kept = &p->kept;
  for (; p; p = p->next)
    for (int i = 0; i < p->count; i++)
      VEC_PUSH(&out, ((struct assignment){&p->data[i].target, p->kernel, &p->data[i]}));
  for (int i = 0; i < kept->count; i++)
    VEC_PUSH(&out, ((struct assignment){&kept->data[i], NULL, NULL}));
  return out;
}

/* Sizes NULL: they do not count. */
static bool isomorphic(struct comparison *c, const struct kernel *a, const struct sizes *sizes_a,
                       const struct kernel *b, const struct sizes *sizes_b) {
  bool known[2];
  struct hash left = kernel_hash_within(a, sizes_a, c->steps, &known[0]);
  struct hash right = kernel_hash_within(b, sizes_b, c->steps, &known[1]);
  bool equal = hash_equal(left, right);
  c->decided = equal || (known[0] && known[1]);
  return equal;
}

/* What differs, as the rest of "target 'NAME' ...", or NULL. */
static const char *difference_of(struct comparison *c, const struct assignment *a,
                                 const struct assignment *b) {
  static const char sizes[] = "has different sizes";
  c->decided = true;
  if (!a->kernel != !b->kernel) return "is kept in only one of them";
  if (a->kernel && !isomorphic(c, a->kernel, NULL, b->kernel, NULL)) return "has different kernels";
  if (!target_same(a->target, b->target)) return sizes;
  if (!a->kernel) return NULL;
  if (!isomorphic(c, a->kernel, &a->binding->sizes, b->kernel, &b->binding->sizes)) return sizes;
  return a->binding->norm == b->binding->norm ? NULL : "has a norm in only one of them";
}

/* Appends the first difference. A target that is not decided is noted, and the next ones are compared. */
static void compare(struct comparison *c, const struct pack *left, struct buf *out) {
  static const char alone[] = "stands in only one of them";
  for (int i = 0; i < c->left.count && !out->length; i++) {
    const struct assignment *own = &c->left.data[i];
    const char *name = own->target->name;
    int other = name_table_find(&c->at, name, strlen(name));
    c->decided = true;
    const char *difference = other < 0 ? alone : difference_of(c, own, &c->right.data[other]);
    if (!c->decided && !c->open) c->open = name;
    if (difference && c->decided) buf_printf(out, "target '%s' %s", name, difference);
  }
  for (int i = 0; i < c->right.count && !out->length; i++) {
    const char *name = c->right.data[i].target->name;
    if (name_table_find(&left->names, name, strlen(name)) < 0)
      buf_printf(out, "target '%s' %s", name, alone);
  }
}

canvas_status pack_compare(canvas_context *ctx, const struct pack *a, const struct pack *b,
                           int steps, struct buf *out) {
  struct comparison c = {assignments_of(a), assignments_of(b), .steps = steps};
  for (int i = 0; i < c.right.count; i++) name_table_add(&c.at, c.right.data[i].target->name, i);
  compare(&c, a, out);
  if (!c.left.count && !c.right.count && !isomorphic(&c, a->kernel, NULL, b->kernel, NULL)) {
    if (c.decided)
      buf_puts(out, "the kernels differ");
    else
      c.open = a->kernel->name;
  }
  name_table_free(&c.at);
  mem_free(c.left.data);
  mem_free(c.right.data);
  if (!c.open || out->length) return CANVAS_OK;
  return fail(ctx, CANVAS_NONE, "a kernel of '%s' is too symmetric to decide", c.open);
}
