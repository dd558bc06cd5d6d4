/* See prior.h. */
#include "sample/prior.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/attributes.h"
#include "kernel/kernel_simplify.h"

/* -- numbers by key: a hash table -- */

struct counts {
  struct count {
    uint64_t key; /* 0: free */
    double value;
  } *at;
  int used, room; /* a power of two */
};

static double *counts_at(struct counts *c, uint64_t key);

static void counts_widen(struct counts *c) {
  struct counts old = *c;
  *c = (struct counts){.room = old.room ? 2 * old.room : 1 << 10};
  c->at = mem_alloc((size_t)c->room * sizeof *c->at);
  for (int i = 0; i < old.room; i++)
    if (old.at[i].key) *counts_at(c, old.at[i].key) = old.at[i].value;
  mem_free(old.at);
}

static struct count *counts_place(const struct counts *c, uint64_t key) {
  size_t place = key & (size_t)(c->room - 1);
  while (c->at[place].key && c->at[place].key != key) place = (place + 1) & (size_t)(c->room - 1);
  return &c->at[place];
}

static double *counts_at(struct counts *c, uint64_t key) {
  key |= !key;
  if (2 * c->used >= c->room) counts_widen(c);
  struct count *found = counts_place(c, key);
  c->used += !found->key;
  found->key = key;
  return &found->value;
}

static double counts_of(const struct counts *c, uint64_t key) {
  key |= !key;
  return c->room ? counts_place(c, key)->value : 0;
}

/* Empties scratch and makes room for so many keys: it may be older than the call. */
static void counts_clear(struct counts *c, int keys) {
  int room = c->room;
  while (room <= 2 * keys) room *= 2;
  c->at = mem_grow(c->at, (size_t)room * sizeof *c->at);
  c->room = room;
  memset(c->at, 0, (size_t)room * sizeof *c->at);
  c->used = 0;
}

/* -- contexts -- */

/* What a tensor is to the next step: the input, the newest node, another that nothing reads yet, one
 * that is read. */
enum status { IS_INPUT, IS_NEWEST, IS_OPEN, IS_READ, STATUSES };

enum { CONTEXTS = 3, WIDEST = 0 }; /* from the widest, which is none at all, to the narrowest */

struct prior {
  struct counts events; /* a kind, and the kinds of a second input, in a context */
  struct counts totals; /* all kinds in a context */
  double read[STATUSES], there[STATUSES];
  struct {
    VEC(struct kernel *);
  } kernels;
  int known;          /* of these, of known_kernels */
  struct counts sums; /* scratch: of weights of applications that share a kind */
};

static uint64_t mixed(uint64_t h, uint64_t value) {
  h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 29;
}

static uint64_t kind_key(enum primitive op, const struct attrs *attrs) {
  uint64_t numbers[ATTRS_NUMBERS], h = mixed(1, (uint64_t)op);
  attrs_numbers(attrs, numbers);
  for (int i = 0; i < ATTRS_NUMBERS; i++) h = mixed(h, numbers[i]);
  return h;
}

/* What made an input of node n, 0 where it has none. */
static uint64_t maker(const struct kernel *k, const struct node *n, int input) {
  return n->in[input] < 0 ? 0 : 1 + (uint64_t)k->nodes[n->in[input]].op;
}

/* The contexts of what reads node a. */
static void contexts(const struct kernel *k, int a, uint64_t out[CONTEXTS]) {
  const struct node *n = &k->nodes[a];
  out[WIDEST] = mixed(2, WIDEST);
  out[1] = mixed(mixed(mixed(2, 1), (uint64_t)n->op), shape_roles(&n->shape));
  out[2] = mixed(mixed(2, 2), kind_key(n->op, &n->attrs));
  out[2] = mixed(mixed(mixed(out[2], out[1]), maker(k, n, 0)), maker(k, n, 1));
}

/* That a node of primitive `op` has one made by `second` as its other input. */
static uint64_t pair_key(enum primitive op, enum primitive second) {
  return mixed(mixed(mixed(3, (uint64_t)op), 1), (uint64_t)second);
}

static uint64_t pairs_key(enum primitive op) {
  return mixed(mixed(3, (uint64_t)op), 2);
}

static enum status status_of(const struct kernel *k, const int *consumers, int node) {
  if (!node) return IS_INPUT;
  if (consumers[node]) return IS_READ;
  return node == k->count - 1 ? IS_NEWEST : IS_OPEN;
}

/* -- counting -- */

struct prior *prior_new(void) {
  struct prior *p = mem_alloc(sizeof *p);
  counts_widen(&p->sums);
  return p;
}

void prior_free(struct prior *p) {
  if (!p) return;
  for (int i = 0; i < p->kernels.count; i++) kernel_free(p->kernels.data[i]);
  mem_free(p->kernels.data);
  mem_free(p->events.at);
  mem_free(p->totals.at);
  mem_free(p->sums.at);
  mem_free(p);
}

static void count_event(struct prior *p, const struct kernel *k, const struct node *n, int first,
                        double times) {
  uint64_t context[CONTEXTS], kind = kind_key(n->op, &n->attrs);
  int second = n->in[0] == first ? n->in[1] : n->in[0];
  contexts(k, first, context);
  for (int i = 0; i < CONTEXTS; i++) {
    *counts_at(&p->events, mixed(context[i], i == WIDEST ? (uint64_t)n->op : kind)) += times;
    *counts_at(&p->totals, context[i]) += times;
  }
  if (second < 0) return;
  *counts_at(&p->events, pair_key(n->op, k->nodes[second].op)) += times;
  *counts_at(&p->totals, pairs_key(n->op)) += times;
}

static void count_reads(struct prior *p, const struct kernel *k, const int *consumers,
                        const struct node *n) {
  for (int t = 0; t < k->count; t++) p->there[status_of(k, consumers, t)]++;
  for (int j = 0; j < node_row(n)->arity; j++)
    if (!j || n->in[1] != n->in[0]) p->read[status_of(k, consumers, n->in[j])]++;
}

void prior_add(struct prior *p, const struct kernel *k) {
  int consumers[KERNEL_NODES_MAX] = {0};
  struct kernel *so_far = kernel_copy(k);
  for (int i = 1; i < k->count - 1; i++) {
    const struct node *n = &k->nodes[i];
    bool either = node_row(n)->facts & FACT_COMMUTES && n->in[0] != n->in[1];
    so_far->count = i;
    count_reads(p, so_far, consumers, n);
    count_event(p, so_far, n, n->in[0], either ? 0.5 : 1);
    if (either) count_event(p, so_far, n, n->in[1], 0.5);
    for (int j = 0; j < node_row(n)->arity; j++) consumers[n->in[j]]++;
  }
  so_far->count = k->count;
  VEC_PUSH(&p->kernels, so_far);
}

static canvas_status add_one(struct lexer *lx, struct prior *p) {
  struct kernel *k;
  if (p->kernels.count == PRIOR_KERNELS_MAX + p->known)
    return lexer_fail(lx, &lx->token, "there are more than %d kernels to learn from",
                      PRIOR_KERNELS_MAX);
  TRY(lexer_is(lx, "canvas") ? kernel_parse(lx, &k) : kernel_parse_body(lx, &k));
  struct kernel *simple = kernel_simplify(k); /* as draws are */
  prior_add(p, simple);
  kernel_free(simple);
  kernel_free(k);
  return CANVAS_OK;
}

canvas_status prior_add_text(struct lexer *lx, struct prior *p) {
  for (lexer_skip_newlines(lx); lx->token.kind != TOKEN_END; lexer_skip_newlines(lx))
    TRY(add_one(lx, p));
  return CANVAS_OK;
}

static bool is_named(const char *text, const char *name, int length) {
  static const char word[] = "kernel ";
  text += sizeof word - 1;
  return !strncmp(text, name, (size_t)length) && text[length] == '\n';
}

bool prior_is_known(const char *name, int length) {
  bool is = false;
  for (int i = 0; i < KNOWN_KERNELS; i++) is |= is_named(known_kernels[i], name, length);
  return is;
}

canvas_status prior_add_known(canvas_context *ctx, struct prior *p, const char *without) {
  for (int i = 0; i < KNOWN_KERNELS; i++) {
    struct lexer lx;
    if (is_named(known_kernels[i], without, (int)strlen(without))) continue;
    struct kernel *k; /* they are simple */
    TRY(lexer_open(&lx, ctx, known_kernels[i], strlen(known_kernels[i])));
    TRY(kernel_parse_body(&lx, &k));
    prior_add(p, k);
    kernel_free(k);
    p->known++;
  }
  return CANVAS_OK;
}

int prior_count(const struct prior *p) {
  return p->kernels.count;
}

const struct kernel *prior_kernel(const struct prior *p, int i) {
  return p->kernels.data[i];
}

/* -- weights -- */

/* How often a tensor of this status is read at a step. */
static double reading(const struct prior *p, enum status status) {
  return (p->read[status] + 1) / (p->there[status] + 4);
}

/* How likely the second input of an application is what it is, up to a factor. */
static double second_weight(const struct prior *p, const struct kernel *k, const int *consumers,
                            const struct candidate *c) {
  if (c->in[1] < 0) return 1;
  enum primitive op = k->nodes[c->in[1]].op;
  double pairs = counts_of(&p->events, pair_key(c->op, op)) + 0.25;
  return reading(p, status_of(k, consumers, c->in[1])) * pairs /
         (counts_of(&p->totals, pairs_key(c->op)) + 1);
}

/* Applications to one tensor that differ by second inputs and sizes alone share what is counted. */
static uint64_t sum_key(const struct candidate *c, bool kind) {
  uint64_t h = mixed(mixed(4, kind), (uint64_t)c->in[0]);
  return mixed(h, kind ? kind_key(c->op, &c->attrs) : (uint64_t)c->op);
}

/* The share of c's kind among all that reads its first input. */
static double share_of(const struct prior *p, const uint64_t context[CONTEXTS],
                       const struct candidate *c, double of_op, double of_kind) {
  enum { OTHERS = 2 }; /* how many events of a context its shorter one is worth */
  double total = counts_of(&p->totals, context[WIDEST]);
  double share = (counts_of(&p->events, mixed(context[WIDEST], (uint64_t)c->op)) + 0.5) /
                 (total + 0.5 * PRIMITIVE_COUNT) * of_op;
  for (int i = 1; i < CONTEXTS; i++) {
    uint64_t kind = kind_key(c->op, &c->attrs);
    double met = counts_of(&p->events, mixed(context[i], kind)) * of_kind;
    share = (met + OTHERS * share) / (counts_of(&p->totals, context[i]) + OTHERS);
  }
  return share;
}

void prior_weights(struct prior *p, const struct kernel *k, const int *consumers,
                   const struct candidate *all, int count, double *out) {
  uint64_t context[KERNEL_NODES_MAX][CONTEXTS];
  counts_clear(&p->sums, 2 * count);
  for (int a = 0; a < k->count; a++) contexts(k, a, context[a]);
  for (int i = 0; i < count; i++) {
    out[i] = second_weight(p, k, consumers, &all[i]);
    *counts_at(&p->sums, sum_key(&all[i], false)) += out[i];
    *counts_at(&p->sums, sum_key(&all[i], true)) += out[i];
  }
  for (int i = 0; i < count; i++) {
    const struct candidate *c = &all[i];
    double of_op = out[i] / counts_of(&p->sums, sum_key(c, false));
    double of_kind = out[i] / counts_of(&p->sums, sum_key(c, true));
    out[i] = reading(p, status_of(k, consumers, c->in[0])) *
             share_of(p, context[c->in[0]], c, of_op, of_kind);
  }
}
