/* Making one child: see mutate.h.
 *
 *   1. how many edits, which                                  (uniform each; a graft first, of two)
 *   2. edit by edit on a draft, each tried again at another place where it leads to no kernel
 *   3. the output, simplification, and step by step the checks of a draw
 *
 * A try that fails is begun again from the same stream, at most TRIES times.
 */
#include "evolve/mutate.h"

#include <string.h>

#include "kernel/kernel_simplify.h"
#include "sample/partial.h"

enum { TRIES = 400, EDITS_MOST = 3, EDIT_TRIES = 6 };

struct family_tree {
  struct sampler *s;
  const struct parent *parents;
  int count;
  struct rules rules;              /* those that this child keeps */
  bool matmul;                     /* it must hold one */
  struct hash hashes[PARENTS_MAX]; /* of each parent, simplified as a child is */
  struct draft draft;
  struct kernel *before; /* the draft before an edit that may fail */
  struct random random;
};

/* -- edits -- */

static void copy_nodes(struct kernel *to, const struct kernel *from) {
  to->count = from->count;
  memcpy(to->nodes, from->nodes, (size_t)from->count * sizeof *from->nodes);
}

static bool edit_once(struct family_tree *t, enum edit edit) {
  int root = t->draft.root;
  copy_nodes(t->before, t->draft.k);
  for (int i = 0; i < EDIT_TRIES; i++) {
    if (draft_edit(&t->draft, edit) && draft_build(&t->draft)) return true;
    copy_nodes(t->draft.k, t->before);
    t->draft.root = root;
  }
  return false;
}

static bool edit_some(struct family_tree *t, struct child *out) {
  int count = 1 + (int)random_below(&t->random, EDITS_MOST);
  out->edits = 0;
  draft_load(&t->draft, t->parents[0].kernel);
  for (int i = 0; i < count; i++) {
    bool graft = i == 0 && t->count > 1;
    enum edit edit = graft ? EDIT_GRAFT : (enum edit)random_below(&t->random, EDIT_GRAFT);
    if (!edit_once(t, edit)) return false;
    out->edits |= 1u << edit;
  }
  return true;
}

/* -- from a draft to a kernel -- */

/* Adds the output; where its channels do not come out as C, the nearest fc may have any width. */
static bool finish(struct family_tree *t, int64_t g) {
  struct draft *d = &t->draft;
  struct partial p;
  int illegal;
  sampler_partial(t->s, g, d->k, &p);
  for (int i = 0; i < 2; i++) {
    p.k = d->k;
    if (partial_output(&p)) return !kernel_recheck(d->k, &illegal);
    if (i || !draft_free_width(d) || !draft_build(d)) return false;
  }
  return false;
}

static bool is_parent(const struct family_tree *t, const struct kernel *k) {
  struct hash h = kernel_hash(k, NULL);
  bool is = false;
  for (int i = 0; i < t->count; i++) is |= hash_equal(h, t->hashes[i]);
  return is;
}

/* The one place for everything that a child must be, beside legal. */
static bool acceptable(struct family_tree *t, const struct kernel *k, int64_t g) {
  int primitives = kernel_primitives(k);
  if (!primitives || primitives > sampler_options(t->s)->most) return false;
  return sampler_wanted(t->s, k, t->matmul) && sampler_may_draw(t->s, &t->rules, k, g) &&
         !is_parent(t, k);
}

static bool try_child(struct family_tree *t, struct child *out) {
  if (!edit_some(t, out)) return false;
  if (sampler_options(t->s)->require_reach &&
      kernel_reach_on(t->draft.k, sampler_images(t->s, t->draft.k)))
    return false;
  if (!finish(t, out->g)) return false;
  out->kernel = kernel_simplify(t->draft.k);
  if (acceptable(t, out->kernel, out->g)) return true;
  kernel_free(out->kernel);
  return false;
}

/* -- all of it -- */

static void open_tree(struct family_tree *t, struct sampler *s, uint64_t index,
                      const struct parent *parents, int count) {
  *t = (struct family_tree){.s = s, .parents = parents, .count = count};
  random_open(&t->random, sampler_seed(s), RANDOM_MUTATE, index);
  t->rules = sampler_rules(s, &t->random);
  t->matmul = sampler_matmul(s, &t->random);
  draft_open(&t->draft, sampler_families(s), sampler_images(s, parents[0].kernel), &t->random);
  t->draft.other = count > 1 ? parents[1].kernel : NULL;
  t->before = kernel_new("");
  for (int i = 0; i < count; i++) {
    struct kernel *simple = kernel_simplify(parents[i].kernel);
    t->hashes[i] = kernel_hash(simple, NULL);
    kernel_free(simple);
  }
}

static void close_tree(struct family_tree *t) {
  draft_close(&t->draft);
  kernel_free(t->before);
}

static void name_child(struct child *c, uint64_t index) {
  struct kernel *named = sampler_finished(c->kernel, index);
  kernel_free(c->kernel);
  c->kernel = named;
}

canvas_status kernel_mutate(canvas_context *ctx, struct sampler *s, uint64_t index,
                            const struct parent *parents, int count, struct child *out) {
  struct family_tree t;
  struct child c = {.g = parents[0].g};
  bool found = false;
  open_tree(&t, s, index, parents, count);
  if (!sampler_has_groups(s, c.g)) c.g = sampler_groups(s, &t.random);
  for (int i = 0; i < TRIES && !found; i++) found = try_child(&t, &c);
  close_tree(&t);
  if (!found)
    return fail(ctx, CANVAS_NONE, "child %llu found no legal kernel in %d tries",
                (unsigned long long)index, TRIES);
  name_child(&c, index);
  *out = c;
  return CANVAS_OK;
}
