/* Packs: kernels with their bindings, and the text of a pack.
 *
 *   canvas 1
 *   kernel NAME
 *   ...
 *   out d
 *   norm batch
 *   bind layer1.0.conv1 Cin=64 Cout=128 KH=3 KW=3 H=56 W=56 stride=2 G=4 x0=48   # w0 [2, 48, 64]
 *   kernel OTHER
 *   ...
 *   bind layer2.0.conv1 ...
 *   keep layer3.0.conv1 Cin=128 Cout=128 KH=3 KW=3 H=28 W=28 stride=1
 *
 * H and W are those of the layer's input. groups= and dilation= are printed only if they are not 1,
 * projected= only if it is 1 (its weight is the first of the comment), G only if the kernel uses it,
 * `norm` only if a weight is normalised. The comment shows each weight's layout, copies first. `keep` lines stand at the end. print(parse(t)) is stable.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/pack.h"

struct pack *pack_new(const struct kernel *k) {
  struct pack *p = mem_alloc(sizeof *p);
  p->kernel = kernel_copy(k);
  p->last = p;
  return p;
}

void pack_free(struct pack *p) {
  for (struct pack *next; p; p = next) {
    next = p->next;
    kernel_free(p->kernel);
    targets_free(&p->kept);
    name_table_free(&p->names);
    arena_free(&p->names_texts);
    mem_free(p->data);
    mem_free(p);
  }
}

void pack_add(struct pack *p, const struct kernel *k) {
  p->last = p->last->next = pack_new(k);
}

int pack_kernels(const struct pack *p) {
  int count = 0;
  for (; p; p = p->next) count++;
  return count;
}

int pack_bindings(const struct pack *p) {
  return p ? p->names.count - p->kept.count : 0;
}

const struct pack *pack_of_binding(const struct pack *p, int *index) {
  for (; p && *index >= p->count; p = p->next) *index -= p->count;
  return p;
}

static void add_name(struct pack *list, const char *name, bool kept) {
  const char *text = arena_strndup(&list->names_texts, name, strlen(name));
  name_table_add(&list->names, text, kept);
}

static void add_binding(struct pack *list, const struct binding *b) {
  add_name(list, b->target.name, false);
  VEC_PUSH(list->last, *b);
}

struct pack *pack_part(const struct pack *p, int kernel) {
  while (kernel--) p = p->next;
  struct pack *part = pack_new(p->kernel);
  for (int i = 0; i < p->count; i++) add_binding(part, &p->data[i]);
  return part;
}

/* -- binding -- */

/* Checks that exactly the variables that the kernel uses have a value. */
static canvas_status check_variables(canvas_context *ctx, const struct kernel *k,
                                     const struct binding *b) {
  unsigned used = kernel_variables(k);
  for (int x = 0; x < VARIABLES; x++) {
    int64_t value = b->sizes.value[SIZE_X0 + x];
    const char *name = size_name((enum size)(SIZE_X0 + x));
    if (value && !(used >> x & 1))
      return fail(ctx, CANVAS_BAD_INPUT, "target '%s': kernel '%s' has no %s, leave it out",
                  b->target.name, k->name, name);
    if (!value && used >> x & 1)
      return fail(ctx, CANVAS_BAD_INPUT, "target '%s': kernel '%s' uses %s, give '%s='",
                  b->target.name, k->name, name, name);
    if (value < 0 || value > SIZE_LIMIT)
      return fail(ctx, CANVAS_BAD_INPUT, "target '%s': %s=%lld is not in 1..%lld", b->target.name,
                  name, (long long)value, (long long)SIZE_LIMIT);
  }
  return CANVAS_OK;
}

/* Adds the sizes that follow from the target to G and the variables of `b`. */
static void complete(const struct kernel *k, struct binding *b) {
  struct sizes given = b->sizes;
  target_sizes(&b->target, k, &b->sizes, &b->copies);
  for (int s = SIZE_X0; s < SIZES; s++) b->sizes.value[s] = given.value[s];
  b->sizes.value[SIZE_G] = kernel_uses(k, SIZE_G) ? given.value[SIZE_G] : 1;
}

/* A target has one kernel, or none. */
static canvas_status check_new(canvas_context *ctx, const struct pack *p, const char *name) {
  int known = name_table_find(&p->names, name, strlen(name));
  if (known > 0)
    return fail(ctx, CANVAS_BAD_INPUT, "target '%s' is kept, and named once more", name);
  if (known == 0) return fail(ctx, CANVAS_BAD_INPUT, "target '%s' is bound twice", name);
  if (p->names.count < TARGETS_MAX) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "more than %d targets are bound", TARGETS_MAX);
}

canvas_status pack_keep(canvas_context *ctx, struct pack *p, const struct target *t) {
  TRY(target_check(ctx, t));
  TRY(check_new(ctx, p, t->name));
  add_name(p, t->name, true);
  VEC_PUSH(&p->kept, *t);
  p->kept.data[p->kept.count - 1].projected = 0; /* no kernel, no projection */
  return CANVAS_OK;
}

canvas_status pack_bind(canvas_context *ctx, struct pack *list, const struct binding *b) {
  const struct pack *p = list->last;
  struct binding bound = *b;
  TRY(target_check(ctx, &bound.target));
  TRY(check_variables(ctx, p->kernel, &bound));
  complete(p->kernel, &bound);
  if (!kernel_has_inner_weights(p->kernel)) bound.norm = NORM_NONE;
  if (!bound.sizes.value[SIZE_G])
    return fail(ctx, CANVAS_BAD_INPUT,
                "target '%s': kernel '%s' uses G, give 'G=', a factor of %lld channels",
                bound.target.name, p->kernel->name, (long long)bound.sizes.value[SIZE_C]);
  TRY(binding_check(ctx, p->kernel, &bound, ELEMENTS_LIMIT_MAX, true));
  TRY(check_new(ctx, list, bound.target.name));
  add_binding(list, &bound);
  return CANVAS_OK;
}

enum norm pack_norm(const struct pack *p) {
  return p->count ? p->data[0].norm : NORM_NONE;
}

bool pack_cost(const struct pack *p, struct cost *out) {
  *out = (struct cost){0};
  for (int i = 0; i < p->kept.count; i++) {
    struct cost c = target_cost(&p->kept.data[i]);
    if (!cost_add(out, &c, 1)) return false;
  }
  for (; p; p = p->next)
    for (int i = 0; i < p->count; i++) {
      struct cost c;
      if (!binding_cost(p->kernel, &p->data[i], &c) || !cost_add(out, &c, 1)) return false;
    }
  return true;
}

/* -- identity -- */

/* A kernel of a list, while the list is sorted. */
struct place {
  struct hash hash;
  int place;
};

static int by_hash_and_place(const void *a, const void *b) {
  const struct place *l = a, *r = b;
  if (l->hash.high != r->hash.high) return l->hash.high < r->hash.high ? -1 : 1;
  if (l->hash.low != r->hash.low) return l->hash.low < r->hash.low ? -1 : 1;
  return l->place - r->place;
}

struct pack_kernel *pack_identify(const struct pack *p) {
  size_t count = (size_t)pack_kernels(p);
  struct pack_kernel *out = mem_alloc(count * sizeof *out);
  struct place *sorted = mem_alloc(count * sizeof *sorted);
  for (size_t i = 0; i < count; i++, p = p->next) {
    out[i].hash = kernel_hash(p->kernel, &out[i].decided);
    sorted[i] = (struct place){out[i].hash, (int)i};
  }
  qsort(sorted, count, sizeof *sorted, by_hash_and_place);
  for (size_t i = 0, first = 0; i < count; i++) {
    if (!hash_equal(sorted[i].hash, sorted[first].hash)) first = i;
    out[sorted[i].place].first = sorted[first].place;
    out[sorted[i].place].before = (int)(i - first);
  }
  mem_free(sorted);
  return out;
}

/* What one target has: the hash of its kernel, 0 where it is kept. */
struct choice {
  const char *target;
  struct hash kernel;
};

static int by_target(const void *a, const void *b) {
  return strcmp(((const struct choice *)a)->target, ((const struct choice *)b)->target);
}

/* The hash of what each target of the list has. */
static struct hash hash_choices(const struct pack *p, const struct pack_kernel *kernels) {
  struct {
    VEC(struct choice);
  } all = {0};
  for (int i = 0; i < p->kept.count; i++)
    VEC_PUSH(&all, ((struct choice){p->kept.data[i].name, {0, 0}}));
  for (; p; p = p->next, kernels++)
    for (int i = 0; i < p->count; i++)
      VEC_PUSH(&all, ((struct choice){p->data[i].target.name, kernels->hash}));
  qsort(all.data, (size_t)all.count, sizeof *all.data, by_target);
  struct hash hash = {0, 0};
  for (int i = 0; i < all.count; i++) {
    for (const char *c = all.data[i].target; *c; c++) hash = hash_add(hash, (unsigned char)*c);
    hash = hash_add(hash_add(hash, all.data[i].kernel.high), all.data[i].kernel.low);
  }
  mem_free(all.data);
  return hash;
}

struct hash pack_hash(const struct pack *p, bool *decided) {
  struct pack_kernel *kernels = pack_identify(p);
  bool one = !p->kept.count;
  *decided = true;
  for (int i = 0; i < pack_kernels(p); i++) {
    *decided &= kernels[i].decided;
    one &= kernels[i].first == 0;
  }
  struct hash hash = one ? kernels->hash : hash_choices(p, kernels);
  mem_free(kernels);
  return hash;
}

/* -- sizes as text: `Cin=64 H=56 ...` -- */

enum key {
  KEY_C,
  KEY_CIN,
  KEY_COUT,
  KEY_H,
  KEY_W,
  KEY_K,
  KEY_KH,
  KEY_KW,
  KEY_STRIDE,
  KEY_GROUPS,
  KEY_DILATION,
  KEY_PROJECTED,
  KEY_G,
  KEY_X0,
  KEYS = KEY_X0 + VARIABLES
};

static const char *const key_names[KEY_X0] = {"C",        "Cin",       "Cout", "H",      "W",
                                              "K",        "KH",        "KW",   "stride", "groups",
                                              "dilation", "projected", "G"};

static const char *key_name(int key) {
  return key < KEY_X0 ? key_names[key] : size_name((enum size)(SIZE_X0 + key - KEY_X0));
}

static int find_key(const struct token *t) {
  for (int i = 0; i < KEYS; i++)
    if ((int)strlen(key_name(i)) == t->length && !memcmp(key_name(i), t->start, (size_t)t->length))
      return i;
  return -1;
}

static const char *const norm_names[] = {[NORM_NONE] = "none", [NORM_BATCH] = "batch"};

canvas_status norm_parse(struct lexer *lx, enum norm *out) {
  for (size_t i = 0; i < sizeof norm_names / sizeof *norm_names; i++)
    if (lexer_accept(lx, norm_names[i])) {
      *out = (enum norm)i;
      return CANVAS_OK;
    }
  return lexer_unexpected(lx, "'batch' or 'none'");
}

/* Parses `name=t0` or `norm=batch`, which bind lines do not have. */
static canvas_status parse_word(struct lexer *lx, struct binding *b) {
  bool naming = lexer_is(lx, "name");
  lexer_next(lx);
  TRY(lexer_expect(lx, "=", naming ? "after 'name'" : "after 'norm'"));
  return naming ? target_name_parse(lx, b->target.name) : norm_parse(lx, &b->norm);
}

/* Parses `key=value`; values[key] is 0 until then. */
static canvas_status parse_pair(struct lexer *lx, int64_t values[KEYS]) {
  const struct token at = lx->token;
  int key = at.kind == TOKEN_NAME ? find_key(&at) : -1;
  if (at.kind != TOKEN_NAME) return lexer_unexpected(lx, "a size such as 'H=56'");
  if (key < 0)
    return lexer_fail(lx, &at,
                      "unknown size '%.*s', known are C, Cin, Cout, H, W, K, KH, KW, "
                      "stride, groups, dilation, projected, G, x0..x15",
                      at.length < 40 ? at.length : 40, at.start);
  lexer_next(lx);
  TRY(lexer_expect(lx, "=", "after the name of a size"));
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  bool is_switch = key == KEY_PROJECTED;
  int64_t least = is_switch ? 0 : 1, most = is_switch ? 1 : SIZE_LIMIT;
  if (t->integer < least || t->integer > most)
    return lexer_fail(lx, t, "%s=%lld is not in %lld..%lld", key_name(key), (long long)t->integer,
                      (long long)least, (long long)most);
  if (values[key]) return lexer_fail(lx, &at, "%s stands twice", key_name(key));
  values[key] = t->integer;
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status need(struct lexer *lx, const struct token *at, const int64_t values[KEYS],
                          enum key key) {
  if (values[key]) return CANVAS_OK;
  return lexer_fail(lx, at, "%s is missing, give '%s='", key_name(key), key_name(key));
}

/* Expands C to Cin and Cout, K to KH and KW. */
static canvas_status settle_short(struct lexer *lx, const struct token *at, int64_t v[KEYS]) {
  if (v[KEY_C] && (v[KEY_CIN] || v[KEY_COUT]))
    return lexer_fail(lx, at, "give either C or Cin and Cout");
  if (v[KEY_K] && (v[KEY_KH] || v[KEY_KW])) return lexer_fail(lx, at, "give either K or KH and KW");
  if (v[KEY_C]) v[KEY_CIN] = v[KEY_COUT] = v[KEY_C];
  if (v[KEY_K]) v[KEY_KH] = v[KEY_KW] = v[KEY_K];
  return CANVAS_OK;
}

static canvas_status settle(struct lexer *lx, const struct token *at, int64_t v[KEYS],
                            struct binding *b) {
  TRY(settle_short(lx, at, v));
  for (enum key k = KEY_CIN; k <= KEY_W; k++) TRY(need(lx, at, v, k));
  struct target *t = &b->target;
  t->cin = v[KEY_CIN];
  t->cout = v[KEY_COUT];
  t->h = v[KEY_H];
  t->w = v[KEY_W];
  t->kh = v[KEY_KH] ? v[KEY_KH] : 3;
  t->kw = v[KEY_KW] ? v[KEY_KW] : 3;
  t->stride = v[KEY_STRIDE] ? v[KEY_STRIDE] : 1;
  t->groups = v[KEY_GROUPS] ? v[KEY_GROUPS] : 1;
  t->dilation = v[KEY_DILATION] ? v[KEY_DILATION] : 1;
  t->projected = v[KEY_PROJECTED];
  b->sizes.value[SIZE_G] = v[KEY_G];
  for (int x = 0; x < VARIABLES; x++) b->sizes.value[SIZE_X0 + x] = v[KEY_X0 + x];
  return CANVAS_OK;
}

static canvas_status parse_at(struct lexer *lx, struct binding *out) {
  const struct token at = lx->token;
  int64_t values[KEYS] = {0};
  *out = (struct binding){.target.name = "t0"};
  lexer_skip_newlines(lx);
  while (lx->token.kind != TOKEN_END) {
    bool word = lexer_is(lx, "name") || lexer_is(lx, "norm");
    TRY(word ? parse_word(lx, out) : parse_pair(lx, values));
    if (lexer_accept(lx, ",") && lx->token.kind == TOKEN_END)
      return lexer_unexpected(lx, "a size such as 'H=56'");
    lexer_skip_newlines(lx);
  }
  TRY(settle(lx, &at, values, out));
  return target_check(lx->ctx, &out->target);
}

canvas_status binding_parse_at(canvas_context *ctx, const char *text, size_t length,
                               struct binding *out) {
  struct lexer lx;
  TRY(lexer_open(&lx, ctx, text, length));
  return parse_at(&lx, out);
}

/* -- packs as text -- */

/* The target and the sizes of a `bind` or `keep` line; *at: where it stands. */
static canvas_status parse_line(struct lexer *lx, struct binding *b, struct token *at) {
  int64_t values[KEYS] = {0};
  *at = lx->token;
  lexer_next(lx);
  TRY(target_name_parse(lx, b->target.name));
  while (lx->token.kind == TOKEN_NAME) TRY(parse_pair(lx, values));
  TRY(lexer_end_line(lx, "or a size such as 'H=56'"));
  return settle(lx, at, values, b);
}

/* The message of the context, with the place of the line in front of it. */
static canvas_status fail_at(struct lexer *lx, const struct token *at) {
  char why[MESSAGE_SIZE];
  memcpy(why, lx->ctx->message, sizeof why);
  return lexer_fail(lx, at, "%.900s", why);
}

static canvas_status parse_bind(struct lexer *lx, struct pack *p, enum norm norm) {
  struct binding b = {.norm = norm};
  struct token at;
  TRY(parse_line(lx, &b, &at));
  return pack_bind(lx->ctx, p, &b) == CANVAS_OK ? CANVAS_OK : fail_at(lx, &at);
}

/* A kept target has the sizes of its layer alone. */
static canvas_status parse_keep(struct lexer *lx, struct pack *p) {
  struct binding b = {0};
  struct token at;
  TRY(parse_line(lx, &b, &at));
  for (int s = 0; s < SIZES; s++)
    if (b.sizes.value[s])
      return lexer_fail(lx, &at, "target '%s' is kept, leave out %s", b.target.name,
                        size_name((enum size)s));
  return pack_keep(lx->ctx, p, &b.target) == CANVAS_OK ? CANVAS_OK : fail_at(lx, &at);
}

static canvas_status parse_norm(struct lexer *lx, enum norm *out) {
  const struct token at = lx->token;
  lexer_skip_newlines(lx);
  if (!lexer_accept(lx, "norm")) return CANVAS_OK;
  TRY(norm_parse(lx, out));
  TRY(lexer_end_line(lx, "after the norm"));
  lexer_skip_newlines(lx);
  if (lx->token.kind != TOKEN_END) return CANVAS_OK;
  return lexer_fail(lx, &at, "'norm' stands above bind lines, a kernel without sizes has none");
}

/* The norm and the bind lines of one kernel. */
static canvas_status parse_binds(struct lexer *lx, struct pack *p) {
  enum norm norm = NORM_NONE;
  TRY(parse_norm(lx, &norm));
  lexer_skip_newlines(lx);
  while (lexer_is(lx, "bind")) {
    TRY(parse_bind(lx, p, norm));
    lexer_skip_newlines(lx);
  }
  return CANVAS_OK;
}

/* A kernel in a text of several replaces something: the first one is checked when the second
 * comes, as it may stand alone without sizes. */
static canvas_status parse_next_kernel(struct lexer *lx, struct pack *p) {
  const struct token at = lx->token;
  struct kernel *k;
  TRY(kernel_parse_body(lx, &k));
  if (!p->count) {
    kernel_free(k);
    return lexer_fail(lx, &at,
                      "kernel '%s' above has no bind line, a pack of several kernels "
                      "gives each its targets",
                      p->kernel->name);
  }
  pack_add(p, k);
  kernel_free(k);
  TRY(parse_binds(lx, p));
  const struct pack *added = p->last;
  if (added->count) return CANVAS_OK;
  return lexer_fail(lx, &at,
                    "kernel '%s' has no bind line, a pack of several kernels gives each "
                    "its targets",
                    added->kernel->name);
}

static canvas_status parse_rest(struct lexer *lx, struct pack *p) {
  TRY(parse_binds(lx, p));
  while (lexer_is(lx, "kernel")) TRY(parse_next_kernel(lx, p));
  if (lexer_is(lx, "keep") && !p->count)
    return lexer_unexpected(lx, "a bind line before the 'keep' lines");
  while (lexer_is(lx, "keep")) {
    TRY(parse_keep(lx, p));
    lexer_skip_newlines(lx);
  }
  if (lx->token.kind == TOKEN_END) return CANVAS_OK;
  return lexer_unexpected(lx, "'bind' and sizes, 'keep', 'kernel' or the end of the pack");
}

canvas_status pack_parse(canvas_context *ctx, const char *text, size_t length, struct pack **out) {
  struct lexer lx;
  struct kernel *k;
  TRY(lexer_open(&lx, ctx, text, length));
  TRY(kernel_parse(&lx, &k));
  struct pack *p = pack_new(k);
  kernel_free(k);
  canvas_status status = parse_rest(&lx, p);
  if (status != CANVAS_OK) {
    pack_free(p);
    return status;
  }
  *out = p;
  return CANVAS_OK;
}

static void print_weights(const struct kernel *k, const struct binding *b, struct buf *out) {
  const struct target *t = &b->target;
  const char *before = "   # ";
  int weights = 0;
  if (t->projected) {
    buf_printf(out, "%sprojection [1, %lld, %lld]", before, (long long)t->cout, (long long)t->cin);
    before = ", ";
  }
  for (int i = 0; i < k->count; i++) {
    int64_t axes[WEIGHT_AXES];
    int count = weight_shape(k, b, i, axes);
    if (!count) continue;
    buf_printf(out, "%sw%d [", before, weights);
    before = ", ";
    for (int a = 0; a < count; a++) buf_printf(out, a ? ", %lld" : "%lld", (long long)axes[a]);
    buf_puts(out, "]");
    weights++;
  }
}

/* `bind` or `keep`, the target's name and its sizes. */
static void print_target(const char *word, const struct target *t, struct buf *out) {
  buf_printf(out, "%s %s Cin=%lld Cout=%lld KH=%lld KW=%lld H=%lld W=%lld stride=%lld", word,
             t->name, (long long)t->cin, (long long)t->cout, (long long)t->kh, (long long)t->kw,
             (long long)t->h, (long long)t->w, (long long)t->stride);
  if (t->groups != 1) buf_printf(out, " groups=%lld", (long long)t->groups);
  if (t->dilation != 1) buf_printf(out, " dilation=%lld", (long long)t->dilation);
  if (t->projected) buf_printf(out, " projected=%lld", (long long)t->projected);
}

void binding_print(const struct kernel *k, const struct binding *b, struct buf *out) {
  print_target("bind", &b->target, out);
  if (kernel_uses(k, SIZE_G)) buf_printf(out, " G=%lld", (long long)b->sizes.value[SIZE_G]);
  for (int s = SIZE_X0; s < SIZES; s++)
    if (b->sizes.value[s])
      buf_printf(out, " %s=%lld", size_name((enum size)s), (long long)b->sizes.value[s]);
  print_weights(k, b, out);
  buf_puts(out, "\n");
}

void pack_print(const struct pack *p, struct buf *out) {
  const struct targets *kept = &p->kept;
  kernel_print_version(out);
  for (; p; p = p->next) {
    kernel_print_body(p->kernel, out);
    if (pack_norm(p) != NORM_NONE) buf_printf(out, "norm %s\n", norm_names[pack_norm(p)]);
    for (int i = 0; i < p->count; i++) binding_print(p->kernel, &p->data[i], out);
  }
  for (int i = 0; i < kept->count; i++) {
    print_target("keep", &kept->data[i], out);
    buf_puts(out, "\n");
  }
}
