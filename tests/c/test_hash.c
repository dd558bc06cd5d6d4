// Identity: kernel_hash is equal for isomorphic kernels and different for all others.
//
// All kernels of up to three primitives are made by brute force (every choice of every family at
// every step), and every pair is decided by an independent, exact test: a search over all matchings
// of nodes and variables. Then renaming, renumbering and reordering of larger kernels.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "kernel/kernel.h"

static canvas_context ctx;

/* -- the exact test -- */

struct matching {
  const struct kernel *a, *b;
  int node[KERNEL_NODES_MAX]; /* of b for each of a, -1 */
  int variable[VARIABLES];    /* of b for each of a, -1 */
};

static bool dims_match(struct matching *m, const struct dim *a, const struct dim *b) {
  if (a->num != b->num || a->den != b->den) return false;
  for (int s = 0; s < SIZE_X0; s++)
    if (a->power[s] != b->power[s]) return false;
  for (int x = 0; x < VARIABLES; x++) {
    int power = a->power[SIZE_X0 + x];
    if (!power) continue;
    int y = m->variable[x]; /* these kernels hold one variable per dim */
    for (int v = 0; y < 0 && v < VARIABLES; v++) {
      bool taken = false;
      for (int w = 0; w < VARIABLES; w++) taken |= m->variable[w] == v;
      if (!taken && b->power[SIZE_X0 + v] == power) y = v;
    }
    if (y < 0 || b->power[SIZE_X0 + y] != power) return false;
    m->variable[x] = y;
  }
  int in_a = 0, in_b = 0;
  for (int x = 0; x < VARIABLES; x++) {
    in_a += a->power[SIZE_X0 + x] != 0;
    in_b += b->power[SIZE_X0 + x] != 0;
  }
  return in_a == in_b;
}

static bool inputs_match(const struct matching *m, const struct node *x, const struct node *y) {
  int arity = node_row(x)->arity;
  bool straight = true, crossed = arity == 2;
  for (int j = 0; j < arity; j++) {
    straight &= m->node[x->in[j]] == y->in[j];
    crossed = crossed && m->node[x->in[j]] == y->in[1 - j];
  }
  bool swaps = arity == 2 && node_row(x)->facts & FACT_COMMUTES &&
               shape_equal(node_input(m->a, x, 0), node_input(m->a, x, 1));
  return straight || (swaps && crossed);
}

static bool extend(struct matching *m, int i) {
  if (i == m->a->count) return true;
  const struct node *x = &m->a->nodes[i];
  for (int j = 0; j < m->b->count; j++) {
    const struct node *y = &m->b->nodes[j];
    struct matching saved = *m;
    bool used = false;
    for (int p = 0; p < i; p++) used |= m->node[p] == j;
    if (used || x->op != y->op || x->attrs.over != y->attrs.over ||
        x->attrs.amount != y->attrs.amount || !inputs_match(m, x, y) ||
        !dims_match(m, &x->attrs.dim, &y->attrs.dim)) {
      *m = saved;
      continue;
    }
    m->node[i] = j;
    if (extend(m, i + 1)) return true;
    *m = saved;
  }
  return false;
}

static bool isomorphic(const struct kernel *a, const struct kernel *b) {
  struct matching m = {.a = a, .b = b};
  memset(m.node, -1, sizeof m.node);
  memset(m.variable, -1, sizeof m.variable);
  return a->count == b->count && extend(&m, 0);
}

/* -- all small kernels -- */

struct kernels {
  VEC(struct kernel *);
};

static bool complete(const struct kernel *k) {
  return kernel_verify(&ctx, k) == CANVAS_OK;
}

static void keep(struct kernels *all, const struct kernel *k) {
  struct kernel *copy = kernel_copy(k);
  struct node out = {.op = PRIMITIVE_OUTPUT, .in = {k->count - 1, -1}, .attrs.dim = dim_number(1)};
  for (int last = k->count - 1; last >= 0; last--) {
    out.in[0] = last;
    *copy = *k;
    if (kernel_add(&ctx, copy, &out) == CANVAS_OK && complete(copy)) {
      VEC_PUSH(all, copy);
      copy = kernel_copy(k);
    }
  }
  kernel_free(copy);
}

static void grow(struct kernels *all, const struct kernel *k, int left);

static void apply(struct kernels *all, const struct kernel *k, const struct candidate *c,
                  int left) {
  struct kernel *next = kernel_copy(k);
  struct node n = {.op = c->op, .in = {c->in[0], c->in[1]}, .attrs = c->attrs};
  if (c->x >= 0) kernel_substitute(next, c->x, &c->by);
  if (kernel_add(&ctx, next, &n) == CANVAS_OK) grow(all, next, left - 1);
  kernel_free(next);
}

static void grow(struct kernels *all, const struct kernel *k, int left) {
  static const struct family *const families[] = {&family_group,   &family_shift,    &family_unfold,
                                                  &family_fc,      &family_map,      &family_fold,
                                                  &family_softmax, &family_broadcast};
  keep(all, k);
  if (!left) return;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (int a = 0; a < k->count; a++)
      for (int b = families[f]->blends ? 0 : k->count - 1; b < k->count; b++) {
        struct candidate found[CANDIDATES_MAX];
        int count = families[f]->choices(k, a, b, found);
        for (int i = 0; i < count; i++) {
          /* one function stands for all: the others differ in the op alone */
          bool map = families[f] == &family_map;
          if (map && found[i].op != PRIMITIVE_RELU && found[i].op != PRIMITIVE_NEG) continue;
          if (found[i].op == PRIMITIVE_MIN || found[i].op == PRIMITIVE_MAX) continue;
          apply(all, k, &found[i], left);
        }
      }
}

struct entry {
  struct hash hash;
  const struct kernel *k;
};

static int by_hash(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->hash.high != y->hash.high) return x->hash.high < y->hash.high ? -1 : 1;
  return x->hash.low < y->hash.low ? -1 : x->hash.low > y->hash.low;
}

/* A coarse invariant: kernels that differ in it cannot be isomorphic, the others are compared. */
static uint64_t coarse(const struct kernel *k) {
  uint64_t sum = (uint64_t)k->count;
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    uint64_t h = (uint64_t)n->op * 1000003 + n->attrs.over * 7919 + (uint64_t)n->shape.count;
    sum += h * h * 2654435761u;
  }
  return sum;
}

static int by_coarse(const void *a, const void *b) {
  uint64_t x = coarse(((const struct entry *)a)->k), y = coarse(((const struct entry *)b)->k);
  return x < y ? -1 : x > y;
}

static struct kernels all_kernels(int primitives) {
  struct kernels all = {0};
  struct kernel *k = kernel_new("t");
  grow(&all, k, primitives);
  kernel_free(k);
  return all;
}

static const char *text_of(const struct kernel *a, const struct kernel *b) {
  static char text[4096];
  struct buf out = {0};
  kernel_print(a, &out);
  kernel_print(b, &out);
  snprintf(text, sizeof text, "%s", out.text);
  buf_free(&out);
  return text;
}

static void decides_all_small_kernels(void **state) {
  struct kernels all = all_kernels(3);
  struct entry *entries = mem_alloc((size_t)all.count * sizeof *entries);
  int pairs = 0, equal = 0;
  CHECK(all.count > 3000, "the number of kernels");
  for (int i = 0; i < all.count; i++)
    entries[i] = (struct entry){kernel_hash(all.data[i]), all.data[i]};

  /* equal hash: must be isomorphic */
  qsort(entries, (size_t)all.count, sizeof *entries, by_hash);
  for (int i = 1; i < all.count; i++)
    if (hash_equal(entries[i - 1].hash, entries[i].hash)) {
      CHECK(isomorphic(entries[i - 1].k, entries[i].k), text_of(entries[i - 1].k, entries[i].k));
      equal++;
    }
  CHECK(equal > 100, "the number of isomorphic pairs");

  /* different hash: must not be */
  qsort(entries, (size_t)all.count, sizeof *entries, by_coarse);
  for (int i = 0; i < all.count; i++)
    for (int j = i + 1; j < all.count && coarse(entries[i].k) == coarse(entries[j].k); j++) {
      if (hash_equal(entries[i].hash, entries[j].hash)) continue;
      CHECK(!isomorphic(entries[i].k, entries[j].k), text_of(entries[i].k, entries[j].k));
      pairs++;
    }
  CHECK(pairs > 1000, "the number of pairs compared");
  for (int i = 0; i < all.count; i++) kernel_free(all.data[i]);
  free(all.data);
  free(entries);
}

/* -- larger kernels, by text -- */

static struct hash hash_of(const char *body) {
  char text[4096];
  struct lexer lx;
  struct kernel *k;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
  struct hash h = kernel_hash(k);
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

/* Forty equal branches: far beyond the search's limit, still invariant and quick. */
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

CHECK_MAIN(cmocka_unit_test(decides_all_small_kernels), cmocka_unit_test(ignores_spelling_only),
           cmocka_unit_test(survives_symmetry))
