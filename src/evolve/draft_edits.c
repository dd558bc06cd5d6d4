/* The edits of drafts: see draft.h. Each draws its place uniformly, then what it does there. */
#include "evolve/draft.h"

const struct edit_row edit_rows[EDIT_COUNT] = {
#define X(id, name, meaning) {name, meaning},
    EDITS(X)
#undef X
};

static int below(struct draft *d, int n) {
  return (int)random_below(d->random, (uint32_t)n);
}

/* -- edges: the inputs of all nodes, and `out`'s -- */

struct edge {
  int node, slot; /* node: k->count is `out` */
};

static struct edge any_edge(struct draft *d) {
  int count = 1;
  for (int i = 1; i < d->k->count; i++) count += node_row(&d->k->nodes[i])->arity;
  int left = below(d, count);
  for (int i = 1; i < d->k->count; i++) {
    int arity = node_row(&d->k->nodes[i])->arity;
    if (left < arity) return (struct edge){i, left};
    left -= arity;
  }
  return (struct edge){d->k->count, 0};
}

static int *edge_source(struct draft *d, struct edge e) {
  return e.node == d->k->count ? &d->root : &d->k->nodes[e.node].in[e.slot];
}

/* Whatever read `old` reads `new`, up to node `end`. */
static void redirect(struct draft *d, int old, int new, int end) {
  for (int i = 1; i < end; i++)
    for (int j = 0; j < node_row(&d->k->nodes[i])->arity; j++)
      if (d->k->nodes[i].in[j] == old) d->k->nodes[i].in[j] = new;
  if (d->root == old) d->root = new;
}

/* -- primitives that a family offers -- */

static struct node node_of(const struct candidate *c) {
  return (struct node){.op = c->op, .in = {c->in[0], c->in[1]}, .attrs = c->attrs};
}

/* A type uniformly among those with an application to node a, then an application uniformly. */
static bool offer_unary(struct draft *d, int a, struct candidate *out) {
  const struct family *order[2 * FAMILIES_MAX];
  struct candidate found[CANDIDATES_MAX];
  int n = 0;
  for (int i = 0; i < d->families->plain_count; i++)
    if (!d->families->plain[i]->binary) order[n++] = d->families->plain[i];
  for (int i = 0; i < d->families->weighted_count; i++) order[n++] = d->families->weighted[i];
  for (; n > 0; n--) {
    int i = below(d, n), count = families_choices(d->families, order[i], d->k, a, -1, found);
    if (count) {
      *out = found[below(d, count)];
      return true;
    }
    order[i] = order[n - 1];
  }
  return false;
}

/* A binary primitive of a and b, in either order; a variable that it needs to be something is made so
 * in the whole draft. */
static bool offer_binary(struct draft *d, int a, int b, struct candidate *out) {
  struct candidate found[4 * CANDIDATES_MAX]; /* most are broadcasts */
  int count = 0;
  for (int i = 0; i < d->families->plain_count; i++) {
    const struct family *f = d->families->plain[i];
    if (!f->binary) continue;
    count += families_choices(d->families, f, d->k, a, b, found + count);
    count += families_choices(d->families, f, d->k, b, a, found + count);
  }
  if (!count) return false;
  *out = found[below(d, count)];
  return true;
}

static void substitute(struct draft *d, const struct candidate *c) {
  if (c->x >= 0) kernel_substitute(d->k, c->x, &c->by);
}

/* -- insert -- */

/* A new primitive of node a at the end of the draft, with its shape; -1 if there is none. */
static int grow(struct draft *d, int a) {
  struct candidate c;
  if (!offer_unary(d, a, &c)) return -1;
  struct node n = node_of(&c);
  if (kernel_shape_of(d->k, &n, &n.shape)) return -1;
  return draft_append(d, &n);
}

/* A new fc takes over what an fc above it had to do, to give the output its channels: that one's width
 * may be free now, as in a bottleneck. */
static void loosen(struct draft *d, int made, int above) {
  const struct row *row = node_row(&d->k->nodes[above]);
  if (!(node_row(&d->k->nodes[made])->attributes & ATTR_TO)) return;
  while (row->arity == 1 && !(row->attributes & ATTR_TO)) {
    above = d->k->nodes[above].in[0];
    row = node_row(&d->k->nodes[above]);
  }
  struct dim *to = &d->k->nodes[above].attrs.dim;
  if (row->attributes & ATTR_TO && dim_variable(to, NULL) == VARIABLES && below(d, 2))
    *to = draft_fresh(d);
}

/* A node that was there before the edge's end, so that no circle closes. */
static int other_source(struct draft *d, struct edge e, int not_this) {
  int w = below(d, e.node);
  return w == not_this ? -1 : w;
}

static bool insert(struct draft *d) {
  struct edge e = any_edge(d);
  bool end = e.node == d->k->count;
  int source = *edge_source(d, e), made, with = -1;
  int way = below(d, 3); /* on the edge; joined; joined through a new primitive */
  if (way > 0) {
    with = way == 1 ? other_source(d, e, source) : below(d, e.node);
    if (way == 2 && with >= 0) with = grow(d, with);
    struct candidate c;
    if (with < 0 || !offer_binary(d, source, with, &c)) return false;
    substitute(d, &c);
    struct node n = node_of(&c);
    made = draft_append(d, &n);
  } else {
    made = grow(d, source);
  }
  if (made < 0) return false;
  if (way == 0) loosen(d, made, source);
  *(end ? &d->root : &d->k->nodes[e.node].in[e.slot]) = made;
  return true;
}

/* -- remove, replace, rewire -- */

static int any_primitive(struct draft *d) {
  return d->k->count < 2 ? 0 : 1 + below(d, d->k->count - 1);
}

static bool remove_one(struct draft *d) {
  int v = any_primitive(d);
  if (!v) return false;
  const struct node *n = &d->k->nodes[v];
  redirect(d, v, n->in[below(d, node_row(n)->arity)], d->k->count);
  return true;
}

static bool replace(struct draft *d) {
  int v = any_primitive(d);
  struct candidate c;
  if (!v) return false;
  struct node *n = &d->k->nodes[v];
  bool binary = node_row(n)->arity == 2;
  if (!(binary ? offer_binary(d, n->in[0], n->in[1], &c) : offer_unary(d, n->in[0], &c)))
    return false;
  if (c.op == n->op && c.in[0] == n->in[0]) return false;
  substitute(d, &c);
  *n = node_of(&c);
  return true;
}

static bool rewire(struct draft *d) {
  struct edge e = any_edge(d);
  int w = other_source(d, e, *edge_source(d, e));
  if (w < 0) return false;
  *edge_source(d, e) = w;
  return true;
}

/* -- resize -- */

enum { VALUES_MAX = VARIABLES + 4 };

/* What to= may become: a free width, the width of another fc, C, C/G. */
static int widths(const struct draft *d, struct dim out[VALUES_MAX]) {
  unsigned used = kernel_names(d->k);
  int count = 0;
  out[count++] = draft_fresh(d);
  out[count++] = dim_size(SIZE_C);
  if (kernel_uses(d->k, SIZE_G)) out[count++] = dim_div(dim_size(SIZE_C), dim_size(SIZE_G));
  for (int x = 0; x < VARIABLES; x++)
    if (used >> x & 1) out[count++] = dim_size((enum size)(SIZE_X0 + x));
  return count;
}

static int group_counts(const struct draft *d, struct dim out[VALUES_MAX]) {
  (void)d;
  out[0] = dim_size(SIZE_G);
  for (int i = 1; i < 4; i++) out[i] = dim_number(1 << i);
  return 4;
}

static bool new_dim(struct draft *d, struct node *n,
                    int (*values)(const struct draft *, struct dim[VALUES_MAX])) {
  struct dim all[VALUES_MAX];
  int i = below(d, values(d, all));
  if (dim_equal(&all[i], &n->attrs.dim)) return false;
  n->attrs.dim = all[i];
  return true;
}

static bool new_amount(struct draft *d, struct node *n, const int *values, int count) {
  int i = below(d, count);
  if (n->attrs.amount == values[i]) return false;
  n->attrs.amount = values[i];
  return true;
}

/* Other attributes of the same primitive, as its family offers them: over=, fill=, the mode's own. */
static bool new_attributes(struct draft *d, struct node *n) {
  struct candidate found[CANDIDATES_MAX];
  int b = node_row(n)->arity == 2 ? n->in[1] : -1;
  int count = families_choices(d->families, node_row(n)->family, d->k, n->in[0], b, found);
  if (!count) return false;
  const struct candidate *c = &found[below(d, count)];
  if (c->op != n->op || (c->attrs.over == n->attrs.over && c->attrs.amount == n->attrs.amount &&
                         c->attrs.zero_fill == n->attrs.zero_fill))
    return false;
  draft_take(n, &c->attrs);
  return true;
}

static bool resize(struct draft *d) {
  static const int windows[] = {0, 3, 5, 7}, pixels[] = {-2, -1, 1, 2};
  int v = any_primitive(d);
  struct node *n = &d->k->nodes[v];
  unsigned attributes = node_row(n)->attributes;
  if (!v || !attributes || !node_row(n)->family->choices) return false;
  if (attributes & ATTR_TO) return new_dim(d, n, widths);
  if (attributes & ATTR_BY) return new_dim(d, n, group_counts);
  if (attributes & (ATTR_K | ATTR_SHIFT) && below(d, 2))
    return new_amount(d, n, attributes & ATTR_K ? windows : pixels, 4);
  return new_attributes(d, n);
}

/* -- graft -- */

enum { PART_MAX = 6 };

/* A connected part of the other kernel: a primitive and some of those above it. */
static uint64_t any_part(struct draft *d) {
  const struct kernel *o = d->other;
  uint64_t part = UINT64_C(1) << (1 + below(d, o->count - 2));
  for (int wanted = below(d, PART_MAX); wanted > 0; wanted--) {
    int rim[2 * KERNEL_NODES_MAX], count = 0;
    for (int i = 1; i < o->count - 1; i++)
      for (int j = 0; part >> i & 1 && j < node_row(&o->nodes[i])->arity; j++)
        if (o->nodes[i].in[j] && !(part >> o->nodes[i].in[j] & 1)) rim[count++] = o->nodes[i].in[j];
    if (!count) break;
    part |= UINT64_C(1) << rim[below(d, count)];
  }
  return part;
}

/* For each variable of the other kernel one that the draft does not name: its widths stay its own.
 * False if there are not as many. */
static bool new_names(const struct draft *d, int to[VARIABLES]) {
  unsigned used = kernel_names(d->k), wanted = kernel_names(d->other);
  int next = 0;
  for (int x = 0; x < VARIABLES; x++) {
    if (!(wanted >> x & 1)) continue;
    while (next < VARIABLES && used >> next & 1) next++;
    if (next == VARIABLES) return false;
    to[x] = next++;
  }
  return true;
}

static void rename(struct dim *d, const int to[VARIABLES]) {
  const struct dim old = *d;
  for (int x = 0; x < VARIABLES; x++) d->power[SIZE_X0 + x] = 0;
  for (int x = 0; x < VARIABLES; x++)
    if (old.power[SIZE_X0 + x]) d->power[SIZE_X0 + to[x]] = old.power[SIZE_X0 + x];
}

/* Appends the part; what it read outside is read from `feed`, or from any node above v. */
static int append_part(struct draft *d, uint64_t part, int v, int feed) {
  const struct kernel *o = d->other;
  int to[KERNEL_NODES_MAX], names[VARIABLES], last = -1;
  bool fed = false;
  if (!new_names(d, names)) return -1;
  for (int i = 1; i < o->count - 1; i++) {
    if (!(part >> i & 1)) continue;
    struct node n = o->nodes[i];
    rename(&n.attrs.dim, names);
    for (int j = 0; j < node_row(&n)->arity; j++) {
      bool inside = part >> n.in[j] & 1;
      n.in[j] = inside ? to[n.in[j]] : fed && below(d, 2) ? below(d, v) : feed;
      fed |= !inside;
    }
    last = to[i] = draft_append(d, &n);
    if (last < 0) return -1;
  }
  return last;
}

static bool graft(struct draft *d) {
  int v = any_primitive(d), end = d->k->count;
  if (!v || !d->other || d->other->count < 3) return false;
  const struct node *n = &d->k->nodes[v];
  int feed = n->in[below(d, node_row(n)->arity)];
  uint64_t part = any_part(d);
  int made = append_part(d, part, v, feed);
  if (made >= 0) redirect(d, v, made, end);
  return made >= 0;
}

bool draft_edit(struct draft *d, enum edit edit) {
  static bool (*const edits[EDIT_COUNT])(struct draft *d) = {
      [EDIT_INSERT] = insert, [EDIT_REMOVE] = remove_one, [EDIT_REPLACE] = replace,
      [EDIT_REWIRE] = rewire, [EDIT_RESIZE] = resize,     [EDIT_GRAFT] = graft};
  return edits[edit](d);
}
