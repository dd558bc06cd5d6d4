// Identity: kernel_hash is equal for isomorphic kernels and different for all others.
//
// All small kernels are made by brute force, in two ways: every application that the families offer,
// and every wiring of a few primitives that differ in one thing each. An independent canonical form
// decides who is isomorphic: the least writing over all orders of the nodes. Then renaming,
// renumbering and reordering of larger kernels.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "sample/sampler.h"
#include "kernel/kernel.h"

static canvas_context ctx;

/* -- an independent canonical form -- */

enum { PRIMITIVES = 4, NODES = PRIMITIVES + 2 };

struct form {
  struct line {
    enum primitive op;
    int in[2]; /* lines; in order where the primitive commutes */
    struct attrs attrs;
  } line[NODES];
};

static int compare_forms(const void *a, const void *b) {
  return memcmp(a, b, sizeof(struct form));
}

/* The kernel with node order[i] in line i: a commutative binary op of equal shapes names its earlier line
 * first, variables count from x0 in the order in which lines first use them. */
static void write_form(const struct kernel *k, const int order[NODES], struct form *out) {
  int line_of[NODES], number[VARIABLES], numbers = 0;
  memset(out, 0, sizeof *out);
  memset(number, -1, sizeof number);
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[order[i]];
    struct line *line = &out->line[i];
    line_of[order[i]] = i;
    line->op = n->op;
    for (int j = 0; j < 2; j++) line->in[j] = n->in[j] < 0 ? -1 : line_of[n->in[j]];
    bool swaps =
        node_row(n)->facts & FACT_COMMUTES && shape_equal(node_input(k, n, 0), node_input(k, n, 1));
    if (swaps && line->in[0] > line->in[1]) {
      line->in[0] = line_of[n->in[1]];
      line->in[1] = line_of[n->in[0]];
    }
    line->attrs.over = n->attrs.over;
    line->attrs.amount = n->attrs.amount;
    line->attrs.zero_fill = n->attrs.zero_fill;
    line->attrs.dim = n->attrs.dim;
    for (int x = 0; x < VARIABLES; x++) line->attrs.dim.power[SIZE_X0 + x] = 0;
    for (int x = 0; x < VARIABLES; x++) {
      int power = n->attrs.dim.power[SIZE_X0 + x]; /* these kernels hold one variable per dim */
      if (!power) continue;
      if (number[x] < 0) number[x] = numbers++;
      line->attrs.dim.power[SIZE_X0 + number[x]] = (int8_t)power;
    }
  }
}

/* Tries every order in which a node stands below what it reads; the output stays last. */
static void least_form(const struct kernel *k, int order[NODES], int placed, unsigned used,
                       struct form *least) {
  struct form form;
  if (placed == k->count) {
    write_form(k, order, &form);
    if (compare_forms(&form, least) < 0) *least = form;
    return;
  }
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    bool ready = !(used >> i & 1) && (n->op != PRIMITIVE_OUTPUT || placed == k->count - 1);
    for (int j = 0; j < node_row(n)->arity; j++) ready &= used >> n->in[j] & 1;
    if (!ready) continue;
    order[placed] = i;
    least_form(k, order, placed + 1, used | 1u << i, least);
  }
}

struct entry {
  struct form form;
  struct hash hash;
};

static struct entry entry_of(const struct kernel *k) {
  struct entry e;
  int order[NODES];
  memset(&e, 0xff, sizeof e);
  least_form(k, order, 0, 0, &e.form);
  e.hash = kernel_hash(k, NULL);
  return e;
}

static int by_form(const void *a, const void *b) {
  return compare_forms(&((const struct entry *)a)->form, &((const struct entry *)b)->form);
}

static int by_hash(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->hash.high != y->hash.high) return x->hash.high < y->hash.high ? -1 : 1;
  return x->hash.low < y->hash.low ? -1 : x->hash.low > y->hash.low;
}

static const char *text_of(const struct entry *e) {
  static char text[2048];
  size_t at = 0;
  for (int i = 0; i < NODES; i++) {
    const struct line *l = &e->form.line[i];
    struct buf dim = {0};
    dim_print(&l->attrs.dim, &dim);
    at += (size_t)snprintf(text + at, sizeof text - at, "%d = %s %d %d %s over=%u amount=%d%s\n", i,
                           primitive_rows[l->op].word, l->in[0], l->in[1], dim.text, l->attrs.over,
                           l->attrs.amount, l->attrs.zero_fill ? " fill=zero" : "");
    buf_free(&dim);
    if (l->op == PRIMITIVE_OUTPUT) break;
  }
  return text;
}

/* -- all small kernels -- */

struct entries {
  VEC(struct entry);
};

/* The applications to try on a kernel. */
struct steps {
  VEC(struct candidate);
};
typedef void list_steps(const struct kernel *k, struct steps *out);

static void list_families(const struct kernel *k, struct steps *out) {
  static const struct families paper = {.space = SPACE_PAPER};
  static const struct family *const families[] = {&family_group,   &family_shift,    &family_unfold,
                                                  &family_fc,      &family_map,      &family_fold,
                                                  &family_softmax, &family_broadcast};
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (int a = 0; a < k->count; a++)
      for (int b = families[f]->binary ? 0 : k->count - 1; b < k->count; b++) {
        struct candidate found[CANDIDATES_MAX];
        int count = families_choices(&paper, families[f], k, a, b, found);
        for (int i = 0; i < count; i++) {
          /* one function stands for all: the others differ in the op alone */
          bool map = families[f] == &family_map;
          if (map && found[i].op != PRIMITIVE_RELU && found[i].op != PRIMITIVE_NEG) continue;
          if (found[i].op == PRIMITIVE_MIN || found[i].op == PRIMITIVE_MAX) continue;
          VEC_PUSH(out, found[i]);
        }
      }
}

/* Every wiring of relu, add, sub (a - a too), shifts either way round with either fill, softmax with
 * and without scale, and fc to C, to every variable so far, its square, and a new variable. */
static void list_wirings(const struct kernel *k, struct steps *out) {
  struct dim one = dim_one(), w = dim_size(SIZE_W);
  unsigned used = kernel_variables(k);
  int fresh = 0;
  while (used >> fresh & 1) fresh++;
  for (int a = 0; a < k->count; a++) {
    struct candidate c = {.op = PRIMITIVE_RELU, .in = {a, -1}, .attrs.dim = one, .x = -1};
    VEC_PUSH(out, c);
    c.op = PRIMITIVE_SOFTMAX;
    c.attrs.over = 1 << ROLE_W;
    VEC_PUSH(out, c);
    c.attrs.dim = w;
    VEC_PUSH(out, c);
    c.op = PRIMITIVE_SHIFT;
    c.attrs.dim = one;
    for (int i = 0; i < 4; i++) {
      c.attrs.amount = i & 1 ? 1 : -1;
      c.attrs.zero_fill = i & 2;
      VEC_PUSH(out, c);
    }
    c = (struct candidate){
        .op = PRIMITIVE_FC, .in = {a, -1}, .attrs.dim = dim_size(SIZE_C), .x = -1};
    VEC_PUSH(out, c);
    for (int x = 0; x <= fresh; x++) {
      struct dim v = dim_size((enum size)(SIZE_X0 + x));
      c.attrs.dim = v;
      VEC_PUSH(out, c);
      c.attrs.dim = dim_mul(v, v);
      VEC_PUSH(out, c);
    }
    for (int b = 0; b < k->count; b++) {
      c = (struct candidate){.op = PRIMITIVE_ADD, .in = {a, b}, .attrs.dim = one, .x = -1};
      VEC_PUSH(out, c);
      c.op = PRIMITIVE_SUB;
      VEC_PUSH(out, c);
    }
  }
}

/* A node that nobody reads must be the last: every binary op can take away one. */
static bool can_end(const struct kernel *k, int left) {
  uint64_t used = 0;
  int unread = 0;
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++)
      used |= UINT64_C(1) << k->nodes[i].in[j];
  for (int i = 0; i < k->count; i++) unread += !(used >> i & 1);
  return unread - 1 <= left;
}

/* k itself with an output if it is complete, then all that is one step larger. */
static void grow(struct entries *all, struct kernel *k, list_steps *list, int left) {
  struct node out = {.op = PRIMITIVE_OUTPUT, .in = {k->count - 1, -1}, .attrs.dim = dim_one()};
  struct steps steps = {0};
  if (!can_end(k, left)) return;
  if (can_end(k, 0) && kernel_add(&ctx, k, &out) == CANVAS_OK) {
    if (kernel_verify(&ctx, k) == CANVAS_OK) VEC_PUSH(all, entry_of(k));
    k->count--;
  }
  if (left) list(k, &steps);
  for (int i = 0; i < steps.count; i++) {
    const struct candidate *c = &steps.data[i];
    struct node n = {.op = c->op, .in = {c->in[0], c->in[1]}, .attrs = c->attrs};
    if (c->x >= 0) {
      struct kernel *other = kernel_copy(k);
      kernel_substitute(other, c->x, &c->by);
      if (kernel_add(&ctx, other, &n) == CANVAS_OK) grow(all, other, list, left - 1);
      kernel_free(other);
    } else if (kernel_add(&ctx, k, &n) == CANVAS_OK) {
      grow(all, k, list, left - 1);
      k->count--;
    }
  }
  free(steps.data);
}

/* The hash must split these kernels exactly as the canonical form does: sorted by either, neighbours
 * that agree in one agree in the other. */
static void check_all(list_steps *list, int primitives, int least) {
  struct entries all = {0};
  struct kernel *k = kernel_new("t");
  int equal = 0, different = 0;
  grow(&all, k, list, primitives);
  kernel_free(k);
  qsort(all.data, (size_t)all.count, sizeof *all.data, by_form);
  for (int i = 1; i < all.count; i++) {
    const struct entry *a = &all.data[i - 1], *b = &all.data[i];
    if (by_form(a, b) != 0) {
      different++;
      continue;
    }
    CHECK(hash_equal(a->hash, b->hash), text_of(a));
    equal++;
  }
  qsort(all.data, (size_t)all.count, sizeof *all.data, by_hash);
  for (int i = 1; i < all.count; i++)
    if (by_hash(&all.data[i - 1], &all.data[i]) == 0)
      CHECK(by_form(&all.data[i - 1], &all.data[i]) == 0, text_of(&all.data[i]));
  print_message("%d primitives: %d kernels, %d of them different\n", primitives, all.count,
                different + 1);
  CHECK(different >= least && equal > 100, "the number of kernels");
  free(all.data);
}

static bool long_versions(void) {
  const char *all = getenv("CANVAS_TEST_ALL");
  return all && !strcmp(all, "1");
}

static void decides_all_applications(void **state) {
  check_all(list_families, long_versions() ? 4 : 3, 3000);
}

static void decides_all_wirings(void **state) {
  check_all(list_wirings, 4, 10000);
}

/* The size of a hidden layer is all that tells these apart: numbers and powers. */
static struct hash hash_of(const char *body);
static void sees_every_size(void **state) {
  enum { NUMBERS = 12, POWERS = 8 };
  struct hash seen[NUMBERS * POWERS];
  for (int i = 0; i < NUMBERS * POWERS; i++) {
    char body[256];
    int at = snprintf(body, sizeof body, "b = fc a to=%d", i / POWERS + 1);
    for (int p = 0; p <= i % POWERS; p++)
      at += snprintf(body + at, sizeof body - (size_t)at, "*x0");
    snprintf(body + at, sizeof body - (size_t)at, "\nc = fc b to=C\nout c");
    seen[i] = hash_of(body);
    for (int j = 0; j < i; j++) CHECK(!hash_equal(seen[i], seen[j]), body);
  }
}

/* -- larger kernels, by text -- */

static struct hash hash_of(const char *body) {
  char text[4096];
  struct lexer lx;
  struct kernel *k;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
  struct hash h = kernel_hash(k, NULL);
  kernel_free(k);
  return h;
}

static void ignores_spelling_only(void **state) {
  static const struct {
    const char *a, *b;
    bool equal;
  } rows[] = {
      {"b = relu a\nc = sub a b\nout c", "b = relu a\nc = sub b a\nout c", false},
      {"b = relu a\nc = add a b\nout c", "z = relu a\nc = add z a\nout c", true},
      {"b = fc a to=x0\nc = fc b to=C\nout c", "b = fc a to=x7\nc = fc b to=C\nout c", true},
      {"b = fc a to=x0\nc = sin a\nd = fc b to=C\ne = mul c d\nout e",
       "c = sin a\nb = fc a to=x3\nq = fc b to=C\ne = mul q c\nout e", true},
      /* one fc read twice is not two fc */
      {"b = fc a to=C\nc = sin b\nd = mul b c\nout d",
       "b = fc a to=C\ne = fc a to=C\nc = sin b\nd = mul e c\nout d", false},
      /* the same variable twice is not two variables */
      {"b = fc a to=x0\nc = fc b to=x0\nd = fc c to=C\nout d",
       "b = fc a to=x0\nc = fc b to=x1\nd = fc c to=C\nout d", false},
      {"b = fc a to=x0\nc = fc b to=x0\nd = fc c to=x1\ne = fc d to=C\nout e",
       "b = fc a to=x0\nc = fc b to=x1\nd = fc c to=x0\ne = fc d to=C\nout e", false},
      {"b = fc a to=x0\nc = fc b to=x1\nd = fc c to=x1\ne = fc d to=x0\nf = fc e to=C\nout f",
       "b = fc a to=x0\nc = fc b to=x1\nd = fc c to=x0\ne = fc d to=x1\nf = fc e to=C\nout f",
       false},
      {"b = shift a over=H by=1\nout b", "b = shift a over=H by=-1\nout b", false},
      {"b = shift a over=H by=1\nout b", "b = shift a over=W by=1\nout b", false},
      {"b = shift a over=H by=1\nout b", "b = shift a over=H by=1 fill=zero\nout b", false},
      {"b = softmax a over=H\nout b", "b = softmax a over=H scale=H\nout b", false},
      {"b = softmax a over=H\nout b", "b = softmax a over=H scale=1\nout b", true},
      {"b = unfold a over=H k=K\nc = fc b to=C\nout c",
       "b = unfold a over=H k=3\nc = fc b to=C\nout c", false},
      {"b = fold a mean over=C\nc = add b a\nout c", "b = fold a max over=C\nc = add b a\nout c",
       false},
      /* two equal branches may be named either way round */
      {"b = fc a to=x0\nc = fc a to=x1\nd = relu b\ne = fc d to=C\nf = fc c to=C\ng = add e f\nout "
       "g",
       "b = fc a to=x1\nc = fc a to=x0\nd = relu b\ne = fc d to=C\nf = fc c to=C\ng = add f e\nout "
       "g",
       true},
  };
  CHECK_ROWS (rows, row) {
    CHECK_INT(hash_equal(hash_of(row->a), hash_of(row->b)), row->equal, row->a);
  }
}

static void swap(int *a, int *b) {
  int t = *a;
  *a = *b;
  *b = t;
}

/* Eight branches, alike but for whom branch i goes together with: branch turn[i]. `shared` says how:
 * by reading its node (`mul`: in either order), or by a variable. They are summed up as a tree. The same kernel is written in
 * many ways: the branches stand in any `order`, a bit of `flips` swaps two halves of the tree.
 * A `crowd` of sixteen equal branches, added as a tree, stands beside them if asked for. */
static struct hash ring(const char *shared, const int turn[8], const int order[8], unsigned flips,
                        const char *crowd) {
  char body[4096] = "", name = 'e';
  int place[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  size_t at = 0;
#define LINE(...) at += (size_t)snprintf(body + at, sizeof body - at, __VA_ARGS__)
  bool late = *crowd && flips >> 7 & 1; /* the first sum of the crowd stands behind all branches */
  for (int i = 0; *crowd && i < 16; i++) LINE("n%d = fc a to=C\n", i);
  if (*crowd && !late) LINE("o0 = %s n0 n1\n", crowd);
  for (int n = 0; n < 8; n++)
    LINE(*shared == 'x' ? "b%d = fc a to=x%d\n" : "b%d = fc a to=C\n", order[n], order[n]);
  for (int n = 0, i = order[0]; n < 8; i = order[++n % 8]) {
    if (*shared == 'x') LINE("c%d = fc b%d to=x%d\nd%d = fc c%d to=C\n", i, i, turn[i], i, i);
    if (*shared != 'x') LINE("d%d = %s b%d b%d\n", i, *shared == 'm' ? "mul" : "sub", i, turn[i]);
  }
  for (int half = 1; half < 8; half *= 2)
    for (int i = 0; i < 8; i += 2 * half, flips >>= 1)
      for (int j = i; flips & 1 && j < i + half; j++) swap(&place[j], &place[j + half]);
  for (int i = 0; i < 4; i++) LINE("e%d = add d%d d%d\n", i, place[2 * i], place[2 * i + 1]);
  for (int width = 2; width; width /= 2, name++)
    for (int i = 0; i < width; i++)
      LINE("%c%d = add %c%d %c%d\n", name + 1, i, name, 2 * i, name, 2 * i + 1);
  if (late) LINE("o0 = %s n0 n1\n", crowd);
  for (int width = 8, n = 'n'; *crowd && width; width /= 2, n++)
    for (int i = width == 8; i < width; i++)
      LINE("%c%d = %s %c%d %c%d\n", n + 1, i, crowd, n, 2 * i, n, 2 * i + 1);
  if (*crowd) LINE("z0 = sub %c0 r0\n", name), name = 'z';
  LINE("out %c0", name);
#undef LINE
  return hash_of(body);
}

static const int in_order[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* No colour tells these branches apart: only what follows once one of them is set apart does. */
static void tells_rings_apart(void **state) {
  static const char *const shared[] = {"node", "mul", "x"};
  static const int around_all[8] = {1, 2, 3, 4, 5, 6, 7, 0};
  static const int around_halves[8] = {1, 2, 3, 0, 5, 6, 7, 4};
  static const int from_three[8] = {3, 4, 5, 6, 7, 0, 1, 2};
  CHECK_ROWS (shared, row) {
    struct hash one = ring(*row, around_all, in_order, 0, "");
    struct hash two = ring(*row, around_halves, in_order, 0, "");
    CHECK(!hash_equal(one, two), *row);
    CHECK(hash_equal(one, ring(*row, around_all, from_three, 0, "")), *row);
    CHECK(hash_equal(two, ring(*row, around_halves, from_three, 0, "")), *row);
  }
}

static void shuffle(struct random *r, int items[8]) {
  for (int i = 7; i > 0; i--) swap(&items[i], &items[random_below(r, (uint32_t)i + 1)]);
}

/* Branches that no colour tells apart and no symmetry exchanges: setting one apart or another gives
 * different certificates, and the least of them does not depend on how the kernel is written. */
static void least_of_all(const char *crowd, int kernels, int ways) {
  struct random r;
  random_open(&r, 1, RANDOM_TEST, 0);
  for (int i = 0; i < kernels; i++) {
    const char *shared = i % 2 && !*crowd ? "x" : "node"; /* both would be too many nodes */
    int turn[8], order[8];
    memcpy(turn, in_order, sizeof turn);
    memcpy(order, in_order, sizeof order);
    shuffle(&r, turn);
    for (int j = 0; j < 8; j++)
      if (turn[j] == j) swap(&turn[j], &turn[(j + 1) % 8]);
    struct hash first = ring(shared, turn, order, 0, crowd);
    for (int way = 0; way < ways; way++) {
      shuffle(&r, order);
      CHECK(hash_equal(first, ring(shared, turn, order, random_below(&r, 256), crowd)), shared);
    }
  }
}

static void finds_the_least_of_all(void **state) {
  least_of_all("", 60, 6);
}

/* Sixteen equal branches beside the ring have 2^15 leaves: their symmetry is used. */
static void decides_beside_a_crowd(void **state) {
  static const char *const crowds[] = {"add", "mul", "min", "max"};
  static const int around_all[8] = {1, 2, 3, 4, 5, 6, 7, 0};
  static const int around_halves[8] = {1, 2, 3, 0, 5, 6, 7, 4};
  CHECK_ROWS (crowds, row) {
    least_of_all(*row, 4, 2);
    for (const char *const *shared = (const char *const[]){"node", "mul", NULL}; *shared;
         shared++) {
      struct hash one = ring(*shared, around_all, in_order, 0, *row);
      struct hash two = ring(*shared, around_halves, in_order, 0, *row);
      CHECK(!hash_equal(one, two), *row);
    }
  }
}

/* -- against an independent decision -- */

/* A map of a's nodes and variables to b's, as far as it is known; -1: not yet. The outputs are mapped,
 * then what a mapped node reads, in both orders where it commutes. */
struct mapping {
  const struct kernel *a, *b;
  int of[KERNEL_NODES_MAX], from[KERNEL_NODES_MAX], variable[VARIABLES], back[VARIABLES];
};

/* Joins two that are not joined to others; *joined: they were not before. */
static bool join(int of[], int from[], int a, int b, bool *joined) {
  *joined = of[a] < 0 && from[b] < 0;
  if (*joined) of[a] = b, from[b] = a;
  return of[a] == b;
}

static bool maps_attributes(struct mapping *m, const struct attrs *a, const struct attrs *b) {
  int x = dim_variable(&a->dim, NULL), y = dim_variable(&b->dim, NULL);
  bool joined;
  if (x == VARIABLES || y == VARIABLES) return dim_equal(&a->dim, &b->dim);
  return join(m->variable, m->back, x, y, &joined); /* these kernels hold lone variables */
}

static bool maps_down(struct mapping *m, int node) {
  if (node < 0) return true;
  const struct node *a = &m->a->nodes[node], *b = &m->b->nodes[m->of[node]];
  const struct mapping before = *m;
  if (a->op != b->op || !maps_attributes(m, &a->attrs, &b->attrs)) return false;
  int arity = node_row(a)->arity;
  bool swaps = arity == 2 && node_row(a)->facts & FACT_COMMUTES &&
               shape_equal(node_input(m->a, a, 0), node_input(m->a, a, 1));
  const struct mapping here = *m;
  for (int order = 0; order <= swaps; order++) {
    bool fits = true, joined;
    *m = here;
    for (int j = 0; j < arity; j++)
      fits = fits && join(m->of, m->from, a->in[j], b->in[j ^ order], &joined);
    if (fits && maps_down(m, node - 1)) return true;
  }
  *m = before;
  return false;
}

static bool isomorphic(const struct kernel *a, const struct kernel *b) {
  struct mapping m;
  bool joined;
  memset(&m, -1, sizeof m);
  m.a = a, m.b = b;
  return a->count == b->count && join(m.of, m.from, a->count - 1, b->count - 1, &joined) &&
         maps_down(&m, a->count - 1);
}

static void add(struct kernel *k, enum primitive op, int a, int b, struct dim dim) {
  struct node n = {.op = op, .in = {a, b}, .attrs.dim = dim};
  CHECK_INT(kernel_add(&ctx, k, &n), CANVAS_OK, ctx.message);
}

/* `leaves` equal fcs, or fcs to variables of their own, and as many nodes that each join two of them:
 * products, or pairs of fcs that share variables. Neighbours are added up as a tree. */
static struct kernel *symmetric(struct random *r, int leaves) {
  struct kernel *k = kernel_new("symmetric");
  bool variables = random_below(r, 3) == 0;
  int turn[8] = {0, 1, 2, 3, 4, 5, 6, 7}, sum[8];
  for (int i = leaves - 1; i > 0; i--) swap(&turn[i], &turn[random_below(r, (uint32_t)i + 1)]);
  for (int i = 0; i < leaves; i++)
    add(k, PRIMITIVE_FC, 0, -1, dim_size(variables ? (enum size)(SIZE_X0 + i) : SIZE_C));
  for (int i = 0; i < leaves; i++) {
    int other = turn[i] == i ? turn[(i + 1) % leaves] : turn[i];
    if (variables) {
      add(k, PRIMITIVE_FC, 1 + i, -1, dim_size((enum size)(SIZE_X0 + other)));
      add(k, PRIMITIVE_FC, k->count - 1, -1, dim_size(SIZE_C));
    } else {
      add(k, PRIMITIVE_MUL, 1 + i, 1 + other, dim_one());
    }
    sum[i] = k->count - 1;
  }
  for (int left = leaves; left > 1; left = (left + 1) / 2)
    for (int i = 0; i < left; i += 2) {
      if (i + 1 < left) add(k, PRIMITIVE_ADD, sum[i], sum[i + 1], dim_one());
      sum[i / 2] = i + 1 < left ? k->count - 1 : sum[i];
    }
  add(k, PRIMITIVE_OUTPUT, k->count - 1, -1, dim_one());
  return k;
}

/* The same kernel with its nodes in another order, inputs that commute swapped by chance, and its
 * variables renumbered. */
static struct kernel *rewritten(struct random *r, const struct kernel *k) {
  struct kernel *out = kernel_new("rewritten");
  int place[KERNEL_NODES_MAX] = {0}, placed = 1, shift = (int)random_below(r, 8);
  bool done[KERNEL_NODES_MAX] = {true};
  while (placed < k->count) {
    int i = 1 + (int)random_below(r, (uint32_t)k->count - 1);
    struct node n = k->nodes[i];
    bool ready = !done[i] && (n.op != PRIMITIVE_OUTPUT || placed == k->count - 1);
    for (int j = 0; j < node_row(&n)->arity; j++) ready &= done[n.in[j]];
    if (!ready) continue;
    for (int j = 0; j < node_row(&n)->arity; j++) n.in[j] = place[n.in[j]];
    if (node_row(&n)->facts & FACT_COMMUTES && random_below(r, 2)) swap(&n.in[0], &n.in[1]);
    int x = dim_variable(&n.attrs.dim, NULL);
    if (x < VARIABLES) n.attrs.dim = dim_size((enum size)(SIZE_X0 + (x + shift) % VARIABLES));
    *n.name = '\0';
    CHECK_INT(kernel_add(&ctx, out, &n), CANVAS_OK, ctx.message);
    place[i] = placed++, done[i] = true;
  }
  return out;
}

enum { RANDOM_KERNELS = 240 };

static void agrees_with_all_mappings(void **state) {
  struct kernel *k[RANDOM_KERNELS];
  struct hash hash[RANDOM_KERNELS];
  struct random r;
  int equal = 0;
  random_open(&r, 2, RANDOM_TEST, 0);
  for (int i = 0; i < RANDOM_KERNELS; i++) {
    bool decided;
    k[i] = i % 4 == 3 ? rewritten(&r, k[i - 1]) : symmetric(&r, 3 + (int)random_below(&r, 6));
    hash[i] = kernel_hash(k[i], &decided);
    CHECK(decided, "a random kernel");
    if (i % 4 == 3) CHECK(hash_equal(hash[i], hash[i - 1]), "rewritten");
  }
  for (int i = 0; i < RANDOM_KERNELS; i++)
    for (int j = 0; j < i; j++) {
      bool same = isomorphic(k[i], k[j]);
      CHECK_INT(hash_equal(hash[i], hash[j]), same, "two random kernels");
      equal += same;
    }
  CHECK(equal > RANDOM_KERNELS / 4, "not only rewritten ones are equal");
  for (int i = 0; i < RANDOM_KERNELS; i++) kernel_free(k[i]);
}

/* Beyond the limit no two spellings are called equal, and the answer says that it is none. */
static void says_what_it_does_not_decide(void **state) {
  struct random r;
  bool decided;
  int given_up = 0;
  random_open(&r, 3, RANDOM_TEST, 0);
  for (int i = 0; i < 40; i++) {
    struct kernel *a = symmetric(&r, 8), *b = rewritten(&r, a), *c = symmetric(&r, 8);
    struct hash whole = kernel_hash(a, &decided), first = kernel_hash_within(a, NULL, 2, &decided);
    given_up += !decided;
    CHECK_INT(hash_equal(whole, first), decided, "the hash of what is decided is another");
    CHECK(hash_equal(first, kernel_hash_within(a, NULL, 2, &decided)), "the same text");
    if (!decided)
      CHECK(!hash_equal(first, kernel_hash_within(b, NULL, 2, &decided)), "other spelling");
    CHECK(!hash_equal(first, kernel_hash_within(c, NULL, 2, &decided)) || isomorphic(a, c),
          "another");
    kernel_free(a), kernel_free(b), kernel_free(c);
  }
  CHECK(given_up > 10, "some are symmetric enough");
}

/* Twenty branches in a chain. */
static void survives_symmetry(void **state) {
  char forward[4096] = "", backward[4096] = "";
  for (int i = 0; i < 20; i++) {
    char line[64];
    snprintf(line, sizeof line, "n%d = fc a to=C\n", i);
    strcat(forward, line);
    snprintf(line, sizeof line, "n%d = fc a to=C\n", 19 - i);
    strcat(backward, line);
  }
  for (int i = 0; i < 19; i++) {
    char line[64];
    snprintf(line, sizeof line, "s%d = add n%d %s%d\n", i, i + 1, i ? "s" : "n", i ? i - 1 : 0);
    strcat(forward, line);
    snprintf(line, sizeof line, "s%d = add %s%d n%d\n", i, i ? "s" : "n", i ? i - 1 : 0, i + 1);
    strcat(backward, line);
  }
  strcat(forward, "out s18");
  strcat(backward, "out s18");
  CHECK(hash_equal(hash_of(forward), hash_of(backward)), "twenty equal branches");
}

CHECK_MAIN(cmocka_unit_test(decides_all_applications), cmocka_unit_test(decides_all_wirings),
           cmocka_unit_test(sees_every_size), cmocka_unit_test(ignores_spelling_only),
           cmocka_unit_test(tells_rings_apart), cmocka_unit_test(finds_the_least_of_all),
           cmocka_unit_test(decides_beside_a_crowd), cmocka_unit_test(agrees_with_all_mappings),
           cmocka_unit_test(says_what_it_does_not_decide), cmocka_unit_test(survives_symmetry))
