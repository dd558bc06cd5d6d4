// What the choice of a tile finds once, and what it leaves off. Tiles that are left off before all of their cycles are counted take no fewer than the one that is chosen: the same
// tile is chosen where every one of them is counted, as is done for a sketch, whatever the stage, the order in which
// it and what it reads are kept, the machine and the options.
#include "autoschedule/default_chooser.h"
#include "base/random.h"
#include "check.h"
#include "machines.h"
#include "program/program.h"

static canvas_context ctx;

// Sizes stand for $c (channels), $o, $h, $w and $k (a window); $s is h*2, or $q blocks of $b.
static const char *const programs[] = {
    "in X f32 [c:$c, h:$h, w:$w]\nin W f32 [o:$o, c:$c] const\n"
    "Y[o:$o, h:$h, w:$w] = X[c, h, w] * W[o, c] // sum c:$c\n",
    "in X f32 [h:$s, w:$s, c:$c]\nin W f32 [o:$o, c:$c, i:$k, j:$k] const\n"
    "Y[h:$h, w:$h, o:$o] = X[(h*2+i)%$s, (w*2+j)%$s, c] * W[o, c, i, j] // sum c:$c, i:$k, j:$k\n",
    "in X f32 [c:$c, h:$h, w:$w]\nin W f32 [o:$o, c:$c, i:3, j:3] const\n"
    "Y[o:$o, h:$h, w:$w] = if 1 <= h+i && h+i < $h+1 && 1 <= w+j && w+j < $w+1 then "
    "X[c, h+i-1, w+j-1] * W[o, c, i, j] else 0 // sum c:$c, i:3, j:3\n",
    "in X f32 [c:$c, h:$s, w:$s]\nin W f32 [c:$c, i:$k, j:$k]\n"
    "Y[c:$c, h:$h, w:$h] = X[c, h+i, w+j] * W[c, i, j] // sum i:$k, j:$k\n",
    "in X f32 [h:$s, w:$s, c:$c]\nin W f32 [i:$k, j:$k, c:$c]\n"
    "Y[h:$h, w:$h, c:$c] = X[h+i, w+j, c] * W[i, j, c] // sum i:$k, j:$k\n",
    "in X f32 [h:$h, w:$w, c:$s]\nin W f32 [o:$o, c:$b] const\n"
    "Y[h:$h, w:$w, o:$o] = X[h, w, (o/$b*$b+c)%$s] * W[o, c] // sum c:$b\n",
    "in X f32 [c:$c, h:$h, w:$w]\nin W f32 [c:$c, o:$o, i:4, j:4]\n"
    "Y[o:$o, h:$s, w:$w] = if (h+i)%2 == 0 then X[c, (h+i)/2%$h, (w+j)%$w] * W[c, o, i, j] else 0 "
    "// sum c:$c, i:4, j:4\n",
    "in A f32 [k:$c, i:$h]\nin B f32 [j:$o, k:$c]\nY[i:$h, j:$o] = A[k, i] * B[j, k] // sum k:$c\n",
    "in X f32 [c:$c, h:$s, w:$s]\nY[c:$c, h:$h, w:$h] = X[c, h*2+i, w*2+j] // max i:2, j:2\n",
    "in X f32 [h:$s, w:$s, c:$c]\nY[h:$h, w:$h, c:$c] = X[h+i, w+j, c] // mean i:$k, j:$k\n",
    "in X f32 [c:$c, h:$h, w:$w]\nY[h:$h, w:$w, c:$c] = exp(X[c, h, w]) + X[c, h, w]\n",
    "in X f32 [h:$h, w:$w, c:$s]\nY[h:$h, w:$w, o:$s] = X[h, w, o%$b*$q+o/$b%$q] + 1\n",
    "in X f32 [n:$h, c:$c, w:$w]\nin V f32 [n:$h, w:$w]\nY[n:$h, c:$c] = X[n, c, w] * V[n, w] // "
    "sum w:$w\n",
};

static int64_t one_of(struct random *r, const int64_t *sizes, uint32_t count) {
  return sizes[random_below(r, count)];
}

// The text with sizes in place of letters.
static struct program *drawn(struct random *r, const char *text) {
  static const int64_t channels[] = {1, 3, 4, 8, 16, 20, 32, 48, 64, 100, 256, 512, 2048};
  static const int64_t pixels[] = {1, 2, 4, 5, 7, 8, 14, 28, 31, 56, 112};
  static const int64_t windows[] = {1, 2, 3, 3, 5, 7}, blocks[] = {1, 2, 4, 8, 16, 32};
  int64_t block = one_of(r, blocks, 6), h = one_of(r, pixels, 11), window = one_of(r, windows, 6);
  if (2 * h < h + window) window = 1; /* what a window is over is 2*h high */
  int64_t size[256] = {['c'] = one_of(r, channels, 13),
                       ['o'] = one_of(r, channels, 13),
                       ['h'] = h,
                       ['w'] = one_of(r, pixels, 11),
                       ['k'] = window,
                       ['b'] = block};
  bool blocked = strstr(text, "$b") != NULL;
  size['q'] = 1 + random_below(r, 4);
  size['s'] = blocked ? block * size['q'] : 2 * h;
  struct buf out = {0};
  struct program *p;
  buf_puts(&out, "canvas 1\nprogram p\n");
  for (const char *at = text; *at; at++)
    if (*at == '$')
      buf_printf(&out, "%lld", (long long)size[(unsigned char)*++at]);
    else
      buf_printf(&out, "%c", *at);
  buf_puts(&out, "out Y\n");
  if (program_parse(&ctx, out.text, out.length, &p)) fail_msg("%s in %s", ctx.message, out.text);
  buf_free(&out);
  return p;
}

static void shuffle(struct random *r, int *order, int count) {
  for (int i = count - 1; i > 0; i--) {
    int j = (int)random_below(r, (uint32_t)i + 1), other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

static bool same_tile(const struct default_tile *a, const struct default_tile *b, int axes) {
  bool same = a->vector_axis == b->vector_axis && a->steps == b->steps &&
              a->sliding == b->sliding && a->packed == b->packed && a->masked == b->masked &&
              a->cycles == b->cycles;
  for (int i = 0; i < axes && same; i++) same = a->rows[i] == b->rows[i];
  return same;
}

// Two machines that caches make smaller differ in what is read from which.
static struct machine a_machine(struct random *r) {
  struct machine m = *machine_model((int)random_below(r, MACHINES));
  if (random_below(r, 3) == 0) m.l1 /= 8;
  if (random_below(r, 3) == 0) m.l2 /= 16;
  return m;
}

static void compare(struct random *r, const struct program *p) {
  struct default_facts f;
  struct default_tile quick, whole;
  struct default_candidates seen = {0};
  struct default_constraint wish = {.tile = false}, noted = {.tile = false, .candidates = &seen};
  struct machine machine = a_machine(r);
  int stage = p->outputs.data[0];
  struct default_layout *kept = mem_alloc((size_t)p->tensors.count * sizeof *kept);
  for (int i = 0; i < p->tensors.count; i++) {
    default_row_major(&p->tensors.data[i], &kept[i]);
    if (random_below(r, 3) == 0) shuffle(r, kept[i].order, p->tensors.data[i].rank);
  }
  default_facts(p, stage, kept, &f);
  struct default_options options = {.pack = random_below(r, 2),
                                    .free_layout = f.t->reductions && random_below(r, 2),
                                    .lanes = -1,
                                    .non_affine = random_below(r, 4) ? 0 : 1 + random_below(r, 6),
                                    .outside = random_below(r, 4) ? 0 : 1,
                                    .split = random_below(r, 2)};
  options.constraint = &wish;
  chooser_tile(&f, &machine, options, &quick);
  options.constraint = &noted;
  chooser_tile(&f, &machine, options, &whole);
  struct buf text = {0};
  program_print(p, &text);
  CHECK(same_tile(&quick, &whole, f.t->rank), text.text);
  for (int i = 0; i < seen.count; i++)
    CHECK(0.999 * quick.cycles <= seen.data[i].cycles, text.text);
  buf_free(&text);
  free(seen.data);
  free(kept);
}

static void what_is_left_off_takes_longer(void **state) {
  (void)state;
  struct random r;
  random_open(&r, 11, RANDOM_TEST, 0);
  for (int round = 0; round < 400; round++)
    CHECK_ROWS (programs, text) {
      struct program *p = drawn(&r, *text);
      compare(&r, p);
      program_free(p);
    }
}

#define PIXELS                                                                          \
  "canvas 1\nprogram p\nin X f32 [h:20, w:20, c:64]\nin W f32 [i:3, j:3, c:64, o:32]\n" \
  "Y[h:18, w:18, o:32] = X[h+i, w+j, c] * W[i, j, c, o] // sum i:3, j:3, c:64\nout Y\n"
#define PLANES                                                                \
  "canvas 1\nprogram p\nin X f32 [c:64, h:28, w:28]\nin W f32 [o:16, c:64]\n" \
  "Y[o:16, h:28, w:28] = X[c, h, w] * W[o, c] // sum c:64\nout Y\n"

// What is found once of a load, by hand: own axes are bits from the first on, then come those of the sum.
static const struct {
  const char *text;
  int load;
  uint32_t apart, still;
  bool pages, repeats, far, alone;
  double all, panel, lines;
  int64_t span;
  int window[3];
} loads[] = {
    {PIXELS, 0, 3, 4, false, true, false, false, 102400, 576, 9, 252, {3, 4, -1}},
    {PIXELS, 1, 0, 3, false, true, false, false, 73728, 576, 576, 0, {-1, -1, -1}},
    {PLANES, 0, 2, 1, true, true, true, true, 200704, 64, 64, 0, {-1, -1, -1}},
    {PLANES, 1, 1, 6, false, true, false, false, 4096, 64, 1, 252, {-1, -1, -1}},
};

static void loads_are_found(void **state) {
  (void)state;
  struct machine small = machine_avx2;  // what is more than 8 times its second cache is far
  small.l2 = 16 << 10;
  CHECK_ROWS (loads, row) {
    struct program *p;
    struct default_facts f;
    struct default_layout kept[3];
    struct chooser_load found[DEFAULT_LOADS];
    if (program_parse(&ctx, row->text, strlen(row->text), &p)) fail_msg("%s", ctx.message);
    for (int i = 0; i < 3; i++) default_row_major(&p->tensors.data[i], &kept[i]);
    default_facts(p, 2, kept, &f);
    struct chooser c = {.f = &f, .machine = &small, .lanes = 8, .k_block_share = 1};
    chooser_find_loads(&c, found);
    const struct chooser_load *l = &found[row->load];
    CHECK_INT(l->strided, row->apart, row->text);
    CHECK_INT(l->invariant, row->still, row->text);
    CHECK(l->crosses_pages == row->pages, row->text);
    CHECK(l->stays_in_l1 == row->repeats, row->text);
    CHECK(l->beyond_l3 == row->far, row->text);
    CHECK(l->isolated_lines == row->alone, row->text);
    CHECK(l->tensor_bytes == row->all && l->reduction_elements == row->panel, row->text);
    CHECK(l->line_runs == row->lines && l->span == row->span, row->text);
    for (int i = 0; i < 3; i++) CHECK_INT(l->window[i], row->window[i], row->text);
    CHECK(c.overlapping_windows == !strcmp(row->text, PIXELS), row->text);
    program_free(p);
  }
}

CHECK_MAIN(cmocka_unit_test(what_is_left_off_takes_longer), cmocka_unit_test(loads_are_found))
