/* How tiles of short sums go through the windows of an image, and what a tile waits for what is new in them. See
 * default.h.
 */
#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

enum {
  STREAMS = 16,          /* lines of an image that are read and written at once without loss ... */
  STREAMS_OF_PARTS = 10, /* ... from memory, by vectors that are less than a line */
  SMALL = 9,             /* terms of a window that is worth it ... */
  WIDE = 16              /* ... and that hides more */
};

static const double STREAMED = 6;       /* what a tile has of such lines above that, each */
static const double FETCHED = 0.16;     /* a byte of a window that comes from memory */
static const double READ_AGAIN = 0.024; /* ... from the second cache, as its lines are too long */

/* The own axis along which one tile comes after another, but for lanes. */
static int next_axis(const struct chooser *c) {
  for (int i = c->f->t->rank - 1; i >= 0; i--) {
    int axis = c->f->order[i];
    if (axis != c->now.vector_axis && c->f->t->axes[axis].size > c->now.rows[axis]) return axis;
  }
  return -1;
}

/* Lines that the rows of a tile read and write, each far from the others. */
static double lines(const struct chooser *c, const struct default_load *l) {
  int64_t count = 0;
  for (uint32_t left = c->rowed; left;) {
    int i = chooser_pop_axis(&left), window = chooser_load_of(c, l)->window[i];
    int64_t rows = c->now.rows[i], step = chooser_load_of(c, l)->window_step[i];
    bool apart = l->stride[i] * chooser_bytes(c, l) > machine_l1_way(c->machine);
    if (window < 0 || !apart) continue;
    count += (rows - 1) * step + c->f->t->axes[window].size + rows;
  }
  return (double)count;
}

/* The reduction that is a window along an own axis without lanes, also one of every second pixel: the nearest one within
 * which a step of the axis ends; -1. */
static int window_along(const struct chooser *c, const struct default_load *l, int axis) {
  const struct program_tensor *t = c->f->t;
  int64_t step = axis == c->now.vector_axis ? 0 : l->stride[axis];
  int window = -1;
  for (int r = t->rank; r < t->rank + t->reductions && step > 0; r++) {
    int64_t within = l->stride[r];
    if (within <= 0 || within * t->axes[r].size <= step) continue;
    if (step % within && within % step) continue;
    if (window < 0 || within < l->stride[window]) window = r;
  }
  return window;
}

/* Bytes from the first to the last row of a window that moves along own axes, and from one of its pixels to
 * the next; 0: there is none. */
static int64_t window_of(const struct chooser *c, const struct default_load *l, int64_t *pitch) {
  const struct default_facts *f = c->f;
  int64_t window = 0, bytes = chooser_bytes(c, l);
  *pitch = 0;
  for (int own = 0; own < f->t->rank; own++) {
    int r = window_along(c, l, own);
    if (r < 0) continue;
    int64_t step = l->stride[r] * bytes, pixel = l->stride[own] * bytes;
    if (step * f->t->axes[r].size > window) window = step * f->t->axes[r].size;
    if (step < pixel) pixel = step;
    if (!*pitch || pixel < *pitch) *pitch = pixel;
  }
  return window;
}

/* Its windows all lie within one step of the axis. */
static bool holds_windows(const struct chooser *c, const struct default_load *l, int axis) {
  if (window_along(c, l, axis) >= 0) return false;
  for (int i = 0; i < c->f->t->rank; i++)
    if (window_along(c, l, i) >= 0 && l->depends_on >> axis & 1 && l->stride[axis] < l->stride[i])
      return false;
  return true;
}

bool chooser_counts_images(const struct chooser *c, int axis) {
  bool around = axis != c->now.vector_axis;
  for (int i = 0; i < c->f->loads; i++) around = around && holds_windows(c, &c->f->load[i], axis);
  return around;
}

/* A tile's vectors are whole lines, or it multiplies so much that this hides how often the parts of lines come. */
static bool may_come_often(const struct chooser *c, int bytes) {
  bool whole = c->now.steps * bytes >= c->machine->line;
  return c->f->loads > 1 && c->f->reduction >= (whole ? SMALL : WIDE);
}

/* It is not in memory; or each image of it stays in the second cache, and of wide windows little is written. */
static bool is_near(const struct chooser *c, const struct chooser_load *known) {
  double image = known->all;
  if (!known->beyond_l3) return true;
  for (int i = 0; i < c->f->t->rank; i++)
    if (chooser_counts_images(c, i)) image /= (double)c->f->t->axes[i].size;
  double written = (double)c->f->points * program_dtype_bytes(c->f->t->dtype);
  return c->f->reduction >= WIDE && image <= (double)c->machine->l2 &&
         !default_is_beyond_l3(c->machine, written);
}

/* Pixels under the windows of a tile, of which the next one along an axis without rows has most, too. */
static int64_t strip_of(const struct chooser *c, const struct default_load *l) {
  int64_t pixels = 1;
  for (int i = 0; i < c->f->t->rank; i++) {
    int r = window_along(c, l, i);
    if (r < 0) continue;
    int64_t step = l->stride[i], within = l->stride[r], rows = c->now.rows[i] - 1;
    int64_t window = c->f->t->axes[r].size - 1;
    pixels *=
        1 + (step < within ? rows + window * (within / step) : rows * (step / within) + window);
  }
  return pixels;
}

enum chooser_windows chooser_windows(const struct chooser *c) {
  const struct default_facts *f = c->f;
  int v = c->now.vector_axis;
  int64_t l1 = c->machine->l1, way = machine_l1_way(c->machine), most = 3 * l1 / 4, pitch;
  bool more = false, strips = true, blocks = v >= 0 && f->t->axes[v].size > c->now.steps;
  if (v < 0 || f->reduction == 1 || f->reduction > DEFAULT_FEW) return WINDOWS_IN_ROWS;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    const struct chooser_load *known = &c->load[i];
    bool often = may_come_often(c, known->bytes);
    bool near = often ? is_near(c, known) : 2 * known->all <= (double)c->machine->l2;
    int64_t window = l->stride[v] == 1 ? window_of(c, l, &pitch) : 0;
    if (l->depends_on >> v & 1 && !near) return WINDOWS_IN_ROWS;
    if (!window) continue;
    int64_t lanes = f->t->axes[v].size * known->bytes;
    strips = strips && often && strip_of(c, l) * lanes <= most;
    blocks = blocks && window / pitch <= chooser_sets_of(c->machine, pitch) * (most / way);
    blocks = blocks && 2 * window / f->t->axes[v].size * c->now.steps <= l1;
    more = more || window > (often ? most : l1);
  }
  return more && strips ? WINDOWS_IN_STRIPS : more && blocks ? WINDOWS_IN_BLOCKS : WINDOWS_IN_ROWS;
}

/* Elements of windows that a tile loads and the one before it did not, nor any other where the first cache keeps
 * them; 0: there are no windows. */
static double fresh(const struct chooser *c, const struct default_load *l) {
  double elements = (double)(chooser_vectors(c) * chooser_lanes(c));
  bool any = false, stay = chooser_windows(c) != WINDOWS_IN_ROWS;
  int next = next_axis(c);
  for (int i = 0; i < c->f->t->rank; i++) {
    if (i == c->now.vector_axis || l->stride[i] <= 0) continue;
    int window = chooser_load_of(c, l)->window[i];
    int64_t step = chooser_load_of(c, l)->window_step[i], rows = c->now.rows[i];
    int64_t size = window < 0 ? 1 : c->f->t->axes[window].size;
    int64_t all = (rows - 1) * step + size, moved = rows * step;
    elements *= (double)((stay || i == next) && moved < all ? moved : all);
    any = any || window >= 0;
  }
  return any ? elements : 0;
}

/* Bytes of a tile's window that the tile before it did not load; other tiles did so long ago, as the lines under
 * the window are more than the first cache. */
static double read_again(const struct chooser *c, const struct default_load *l) {
  int64_t pitch;
  if (l->stride[c->now.vector_axis] != 1 || window_of(c, l, &pitch) <= c->machine->l1) return 0;
  if (chooser_windows(c) != WINDOWS_IN_ROWS) return 0;
  return fresh(c, l) * chooser_bytes(c, l);
}

/* Cycles of a tile until windows of a short sum have come from beyond the first cache: long ones take
 * longer to compute. From memory comes more at once where a tile has several lines of an image; where it
 * has too many of them, they are not fetched ahead. */
double chooser_window_fetch(const struct chooser *c) {
  double cycles = 0;
  if (c->f->reduction == 1 || c->f->reduction > DEFAULT_FEW || c->now.vector_axis < 0) return 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    int size = chooser_bytes(c, l);
    double bytes = chooser_load_of(c, l)->all;
    bool far = chooser_load_of(c, l)->beyond_l3;
    bool parts = far && c->now.steps * size < c->machine->line;
    double more = lines(c, l) - (parts ? STREAMS_OF_PARTS : STREAMS), again = read_again(c, l);
    cycles += far ? FETCHED * fresh(c, l) * size : READ_AGAIN * again;
    if (more > 0 && (again > 0 || bytes > (double)c->machine->l2)) cycles += STREAMED * more;
  }
  return cycles;
}
