// Tiles that were chosen before are those that are chosen anew: whatever one is made of changes, one thing
// after the other, and of each some change makes another tile.
#include "autoschedule/default_chooser.h"
#include "check.h"
#include "machines.h"
#include "program/program.h"

static canvas_context ctx;

// All that a tile is chosen from.
struct question {
  struct program *p;
  struct program_tensor t;
  struct default_facts f;
  struct machine machine;
  struct default_options options;
  int order[PROGRAM_AXES];
};

#define BEGIN "canvas 1\nprogram p\n"
static const char *const programs[] = {
    BEGIN
    "in A f32 [k:9000, i:256]\nin B f32 [j:256, k:9000]\nY[i:256, j:256] = A[k, i] * B[j, k] // "
    "sum k:9000\nout Y\n",
    BEGIN "in X f32 [h:30, c:48]\nY[h:30, c:48] = if 2 <= c then X[h, c-2] else 0\nout Y\n",
    BEGIN "in X f32 [i:96, c:32]\nY[i:96, o:64] = X[i, o/2] * 2\nout Y\n",
    BEGIN
    "in A f32 [i:256, k:16384]\nin B f32 [k:16384, j:4096] const\nY[i:256, j:4096] = A[i, k] * "
    "B[k, j] // sum k:16384\nout Y\n",
    BEGIN
    "in A f32 [i:96, k:3000]\nin B f32 [k:3000, j:160]\nY[i:96, j:160] = A[i, k] * B[k, j] // "
    "sum k:3000\nout Y\n",
    BEGIN
    "in X f32 [k:64, h:20, w:20]\nin W f32 [c:96, k:64, kh:3, kw:3]\nY[c:96, h:18, w:18] = "
    "X[k, h+kh, w+kw] * W[c, k, kh, kw] // sum k:64, kh:3, kw:3\nout Y\n",
    BEGIN
    "in X f32 [h:30, w:30, c:48]\nY[h:30, w:30, c:48] = if 2 <= w then X[h, w-2, c] else 0\nout "
    "Y\n",
    BEGIN "in X f32 [h:60, w:70]\nY[w:70, h:60] = X[h, w]\nout Y\n",
    BEGIN "in X f32 [h:60, w:70]\nY[w:70, h:60] = X[h, w] * 2\nout Y\n",
    BEGIN "in X f32 [n:8, c:64]\nY[n:8] = X[n, c] // max c:64\nout Y\n",
    BEGIN
    "in X f32 [h:19, c:32]\nin W f32 [k:3, c:32]\nY[h:19, c:32] = (if 1 <= h+k && h+k < 20 then "
    "X[h+k-1, c] else 0) * W[k, c] // sum k:3\nout Y\n",
    BEGIN
    "in X f32 [h:19, c:64]\nin W f32 [c:64, k:3, o:32]\nY[h:19, o:32] = if 1 <= h+k && h+k < 20 "
    "then X[h+k-1, c] * W[c, k, o] else 0 // sum c:64, k:3\nout Y\n",
    BEGIN
    "in X f32 [h:20, c:16]\nin W f32 [k:4, c:16, o:32]\nY[h:40, o:32] = if (h+k)%2 == 0 then "
    "X[(h+k)/2%20, c] * W[k, c, o] else 0 // sum k:4, c:16\nout Y\n",
    BEGIN
    "in X f32 [i:64, c:512]\nin W f32 [o:64, c:512] const\nY[i:64, o:64] = X[i, c] * W[o, c] // "
    "sum c:512\nout Y\n",
    BEGIN
    "in X f32 [h:60, c:512]\nin ind i32 [e:200] 0..512\nin ptr i32 [r:5] 0..201 rising\nin W f32 "
    "[e:200, o:16]\nY[h:60, r:4, o:16] = X[h, ind[k]] * W[k, o] // sum "
    "k:ptr[r]..ptr[r+1]\nout Y\n",
    BEGIN "in X f32 [g:4, i:96, c:16]\nY[g:4, i:96, o:64] = X[g, i, o/4] * X[g, i, o/16]\nout Y\n",
};

static struct question asked(struct program *p, const struct machine *machine) {
  struct question q = {.p = p, .machine = *machine};
  int stage = p->outputs.data[0];
  struct default_layout *kept = mem_alloc((size_t)p->tensors.count * sizeof *kept);
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &kept[i]);
  default_facts(p, stage, kept, &q.f);
  for (int i = 0; i < q.f.t->rank; i++) q.order[i] = q.f.order[i];
  free(kept);
  q.t = p->tensors.data[stage];
  q.options =
      (struct default_options){.pack = true, .lanes = -1, .k_blocking = true, .split = true};
  return q;
}

// ---- what changes: its axes are those of the stage ----

static void nothing(struct question *q) {}
static void packing(struct question *q) {
  q->options.pack = !q->options.pack;
}
static void inner(struct question *q) {
  q->options.free_layout = !q->options.free_layout;
}
static void lanes(struct question *q) {
  if (q->t.axes[0].size <= 20) q->options.lanes = 0;
}
static void turned(struct question *q) {
  q->options.non_affine = 2;
}
static void outside(struct question *q) {
  q->options.outside = 1;
}
static void parts(struct question *q) {
  q->options.k_blocking = !q->options.k_blocking;
}
static void stored(struct question *q) {
  q->options.stored = !q->options.stored;
}
static void splitting(struct question *q) {
  q->options.split = !q->options.split;
}

static void whole(struct question *q) {
  q->options.whole = true;
}

static void registers(struct question *q) {
  q->machine.registers /= 2;
}
static void vectors(struct question *q) {
  q->machine.vector_bytes /= 2;
}
static void line(struct question *q) {
  q->machine.line *= 64;
}
static void first_cache(struct question *q) {
  q->machine.l1 /= 16;
}
static void second_cache(struct question *q) {
  q->machine.l2 /= 64;
}

static void element(struct question *q) {
  q->t.dtype = PROGRAM_F64;
}
static void reducer(struct question *q) {
  q->t.reducer = REDUCE_MAX;
}
static void size(struct question *q) {
  q->t.axes[q->t.rank - 1].size = 13;
}
static void steps(struct question *q) {
  q->t.axes[q->t.rank].size = 7;
}
static void bounded(struct question *q) {
  q->t.axes[q->t.rank].low = q->t.body;
}
static void body(struct question *q) {
  for (int i = 0; i < q->p->nodes.count; i++)
    if (q->p->nodes.data[i].op != PX_LOAD) q->t.body = i;
}

static void order(struct question *q) {
  int last = q->t.rank - 1, first = q->order[0];
  q->order[0] = q->order[last];
  q->order[last] = first;
}
static void written(struct question *q) {
  for (int i = 0; i < q->t.rank; i++) q->f.out_stride[i] = q->f.out_stride[i] == 1 ? 77 : 1;
}
static void written_apart(struct question *q) {
  for (int i = 0; i < q->t.rank; i++) q->f.out_stride[i] = q->f.out_stride[i] == 1 ? 1 : 1 << 14;
}
static void within(struct question *q) {
  q->f.has_boundary = true;
  for (int i = 0; i < q->t.rank; i++) q->f.inside_share[i] = i ? 1 : 0.2;
}
static void period(struct question *q) {
  q->f.period[0] = q->f.period[0] ? 0 : 2;
}
static void conditions(struct question *q) {
  q->f.guarded ^= 1;
}
static void roughness(struct question *q) {
  q->f.non_monotone |= 1;
}
static void bounds(struct question *q) {
  q->f.bounds_reduction |= 1;
}
static void share(struct question *q) {
  q->f.bounded_share = 0.001;
}
static void operations(struct question *q) {
  q->f.operations += 20;
}
static void points(struct question *q) {
  q->f.points *= 1000;
}
static void reduction(struct question *q) {
  q->f.reduction = 1;
}
static void many(struct question *q) {
  q->f.truncated = true;
}
static void phased(struct question *q) {
  q->f.periodic = !q->f.periodic;
}
static void loads(struct question *q) {
  q->f.loads--;
}

static void stride(struct question *q) {
  q->f.load[0].stride[q->t.rank - 1] = 999;
}
static void block(struct question *q) {
  q->f.load[0].block[q->t.rank - 1] = 3;
}
static void jump(struct question *q) {
  q->f.load[0].jump[q->t.rank - 1] = 9999;
}
static void twisted(struct question *q) {
  q->f.load[0].non_affine |= 1u << (q->t.rank - 1);
}
static void moves(struct question *q) {
  q->f.load[0].depends_on ^= 1;
}
static void under(struct question *q) {
  q->f.load[0].guarded ^= 1u << (q->t.rank - 1);
}
static void plain(struct question *q) {
  q->f.load[0].packable = !q->f.load[0].packable;
}
static void indirect(struct question *q) {
  q->f.load[0].indirect = !q->f.load[0].indirect;
}
static void rare(struct question *q) {
  q->f.load[0].cold = !q->f.load[0].cold;
}
static void outer_axes(struct question *q) {
  q->f.load[q->f.loads - 1].outer = ~0u;
}
static void same_tensor(struct question *q) {
  q->f.load[1].tensor = q->f.load[0].tensor;
}
static void elements(struct question *q) {
  q->p->tensors.data[q->f.load[0].tensor].axes[0].size *= 1 << 20;
}
static void constant(struct question *q) {
  struct program_tensor *t = &q->p->tensors.data[q->f.load[q->f.loads - 1].tensor];
  t->constant = !t->constant;
}
static void stored_type(struct question *q) {
  q->p->tensors.data[q->f.load[0].tensor].dtype = PROGRAM_F64;
}

struct change {
  const char *name;
  void (*make)(struct question *q);
};
#define CHANGE(f) {#f, f}
static const struct change changes[] = {
    CHANGE(packing),      CHANGE(inner),         CHANGE(lanes),      CHANGE(turned),
    CHANGE(outside),      CHANGE(parts),         CHANGE(stored),     CHANGE(splitting),
    CHANGE(registers),    CHANGE(vectors),       CHANGE(line),       CHANGE(first_cache),
    CHANGE(element),      CHANGE(reducer),       CHANGE(size),       CHANGE(steps),
    CHANGE(bounded),      CHANGE(body),          CHANGE(order),      CHANGE(written),
    CHANGE(within),       CHANGE(period),        CHANGE(conditions), CHANGE(roughness),
    CHANGE(bounds),       CHANGE(operations),    CHANGE(points),     CHANGE(reduction),
    CHANGE(many),         CHANGE(phased),        CHANGE(loads),      CHANGE(stride),
    CHANGE(block),        CHANGE(jump),          CHANGE(twisted),    CHANGE(moves),
    CHANGE(under),        CHANGE(plain),         CHANGE(rare),       CHANGE(outer_axes),
    CHANGE(same_tensor),  CHANGE(elements),      CHANGE(constant),   CHANGE(stored_type),
    CHANGE(second_cache), CHANGE(written_apart), CHANGE(whole),      CHANGE(share),
    CHANGE(indirect),
};

// ---- the same tile ----

static bool same_tile(const struct default_tile *a, const struct default_tile *b, int axes) {
  for (int i = 0; i < axes; i++)
    if (a->rows[i] != b->rows[i] || a->order[i] != b->order[i]) return false;
  return a->vector_axis == b->vector_axis && a->steps == b->steps &&
         a->cache_block == b->cache_block && a->block_axis == b->block_axis &&
         a->bands == b->bands && a->streams == b->streams && a->symbolic == b->symbolic &&
         a->masked == b->masked && a->peeled == b->peeled && a->packed == b->packed &&
         a->rolled == b->rolled && a->unrolled == b->unrolled &&
         a->reuses_vectors == b->reuses_vectors && a->phases == b->phases &&
         a->sliding == b->sliding && a->k_block == b->k_block && a->cycles == b->cycles;
}

static struct default_tile told(struct question *q, bool anew) {
  struct default_tile tile;
  q->f.t = &q->t;
  q->f.order = q->order;
  (anew ? chooser_tile : default_choose_tile)(&q->f, &q->machine, q->options, &tile);
  return tile;
}

// Whether the change makes another tile.
static bool changes_tile(const char *text, const struct machine *machine,
                         const struct change *change) {
  struct program *p, *other;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  CHECK_INT(program_parse(&ctx, text, strlen(text), &other), CANVAS_OK, ctx.message);
  struct question q = asked(p, machine), changed = asked(other, machine);
  int axes = q.t.rank + q.t.reductions;
  change->make(&changed);
  struct default_tile first = told(&q, false), again = told(&q, false), anew = told(&changed, true);
  struct default_tile known = told(&changed, false);
  CHECK(same_tile(&first, &again, axes), change->name);
  CHECK(same_tile(&anew, &known, axes), change->name);
  program_free(p);
  program_free(other);
  return !same_tile(&first, &anew, axes);
}

static void is_as_anew(void **state) {
  static const struct machine *const machines[] = {&machine_avx512, &machine_avx2};
  static const struct change none = CHANGE(nothing);
  int idle = 0;
  CHECK_ROWS (changes, change) {
    int count = 0;
    CHECK_ROWS (programs, text)
      CHECK_ROWS (machines, machine) {
        CHECK(!changes_tile(*text, *machine, &none), "nothing changes");
        count += changes_tile(*text, *machine, change);
      }
    if (!count) print_error("no tile depends on '%s'\n", change->name);
    idle += !count;
  }
  CHECK_INT(idle, 0, "changes that make no other tile");
}

CHECK_MAIN(cmocka_unit_test(is_as_anew))
