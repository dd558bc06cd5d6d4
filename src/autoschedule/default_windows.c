/* Overlapping windows of images, of short reductions: in which order tiles go through them, and the
 * cycles that a tile waits for new elements.
 *
 *     rows     along image rows: L1 holds the lines under a window
 *     strips   as wide as a tile, down the image: L1 holds a strip with all lanes
 *     blocks   along rows, a block of the vector axis after the other: L1 holds a block's lines
 */
#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

/* The own axis along which the next tile follows, other than the vector axis. */
static int next_axis(const struct chooser *c) {
  for (int i = c->f->t->rank - 1; i >= 0; i--) {
    int axis = c->f->order[i];
    if (axis != c->now.vector_axis && c->f->t->axes[axis].size > c->now.rows[axis]) return axis;
  }
  return -1;
}

/* Image lines that the rows of a tile read and write, each a way of L1 or more from the others. */
static double image_lines(const struct chooser *c, const struct default_load *l) {
  int64_t count = 0;
  for (uint32_t left = c->row_axes; left;) {
    int i = chooser_pop_axis(&left), window = chooser_load_of(c, l)->window[i];
    int64_t rows = c->now.rows[i], step = chooser_load_of(c, l)->window_step[i];
    bool far = l->stride[i] * chooser_bytes(c, l) > machine_l1_way(c->machine);
    if (window < 0 || !far) continue;
    count += (rows - 1) * step + c->f->t->axes[window].size + rows;
  }
  return (double)count;
}

/* The reduction that is a window along an own axis other than the vector axis, dilated ones too:
 * the one of the smallest stride that a step of the axis stays within; -1. */
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

/* Bytes from the first to the last row under a window, and from one of its pixels to the next
 * (`pitch`); 0: no window. */
static int64_t window_bytes(const struct chooser *c, const struct default_load *l, int64_t *pitch) {
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

/* All its windows lie within one step of the axis. */
static bool holds_windows(const struct chooser *c, const struct default_load *l, int axis) {
  if (window_along(c, l, axis) >= 0) return false;
  for (int i = 0; i < c->f->t->rank; i++)
    if (window_along(c, l, i) >= 0 && l->depends_on >> axis & 1 && l->stride[axis] < l->stride[i])
      return false;
  return true;
}

bool chooser_counts_images(const struct chooser *c, int axis) {
  bool counts = axis != c->now.vector_axis;
  for (int i = 0; i < c->f->loads; i++) counts = counts && holds_windows(c, &c->f->load[i], axis);
  return counts;
}

/* Enough terms to hide that another order of tiles loads lines more often: more if vectors are
 * parts of lines. */
static bool may_reload(const struct chooser *c, int bytes) {
  bool whole = c->now.steps * bytes >= c->machine->line;
  return c->f->loads > 1 &&
         c->f->reduction >= (whole ? DEFAULT_WINDOW_TERMS : DEFAULT_WIDE_WINDOW_TERMS);
}

/* The tensor is not in memory; or each image fits into L2, windows are wide, and the output is not
 * in memory. */
static bool is_image_cached(const struct chooser *c, const struct chooser_load *load) {
  double image = load->tensor_bytes;
  if (!load->beyond_l3) return true;
  for (int i = 0; i < c->f->t->rank; i++)
    if (chooser_counts_images(c, i)) image /= (double)c->f->t->axes[i].size;
  double written = (double)c->f->points * program_dtype_bytes(c->f->t->dtype);
  return c->f->reduction >= DEFAULT_WIDE_WINDOW_TERMS && image <= (double)c->machine->l2 &&
         !default_is_beyond_l3(c->machine, written);
}

/* Pixels under the windows of a tile: the next tile along an axis without rows uses most of them
 * again. */
static int64_t strip_pixels(const struct chooser *c, const struct default_load *l) {
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
  int64_t l1 = c->machine->l1, way = machine_l1_way(c->machine), pitch;
  int64_t most = (int64_t)(DEFAULT_WINDOW_CACHE * (double)l1);
  bool exceeds = false, strips = true, blocks = v >= 0 && f->t->axes[v].size > c->now.steps;
  if (v < 0 || f->reduction == 1 || f->reduction > DEFAULT_SHORT_REDUCTION) return WINDOWS_IN_ROWS;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    const struct chooser_load *load = &c->load[i];
    bool reload = may_reload(c, load->bytes);
    bool near =
        reload ? is_image_cached(c, load) : 2 * load->tensor_bytes <= (double)c->machine->l2;
    int64_t window = l->stride[v] == 1 ? window_bytes(c, l, &pitch) : 0;
    if (l->depends_on >> v & 1 && !near) return WINDOWS_IN_ROWS;
    if (!window) continue;
    int64_t lanes = f->t->axes[v].size * load->bytes;
    strips = strips && reload && strip_pixels(c, l) * lanes <= most;
    blocks = blocks && window / pitch <= chooser_sets_of(c->machine, pitch) * (most / way);
    blocks = blocks && 2 * window / f->t->axes[v].size * c->now.steps <= l1;
    exceeds = exceeds || window > (reload ? most : l1);
  }
  if (exceeds && strips) return WINDOWS_IN_STRIPS;
  return exceeds && blocks ? WINDOWS_IN_BLOCKS : WINDOWS_IN_ROWS;
}

/* Elements of windows that a tile loads and the tile before it did not; also none of other tiles in
 * the order of strips or blocks, where L1 keeps them. 0: no windows. */
static double new_elements(const struct chooser *c, const struct default_load *l) {
  double elements = (double)(chooser_vectors(c) * chooser_lanes(c));
  bool any = false, in_l1 = chooser_windows(c) != WINDOWS_IN_ROWS;
  int next = next_axis(c);
  for (int i = 0; i < c->f->t->rank; i++) {
    if (i == c->now.vector_axis || l->stride[i] <= 0) continue;
    int window = chooser_load_of(c, l)->window[i];
    int64_t step = chooser_load_of(c, l)->window_step[i], rows = c->now.rows[i];
    int64_t size = window < 0 ? 1 : c->f->t->axes[window].size;
    int64_t all = (rows - 1) * step + size, moved = rows * step;
    elements *= (double)((in_l1 || i == next) && moved < all ? moved : all);
    any = any || window >= 0;
  }
  return any ? elements : 0;
}

/* Bytes of a tile's window that are loaded from L2 again, as the lines under a window exceed L1. */
static double reloaded_bytes(const struct chooser *c, const struct default_load *l) {
  int64_t pitch;
  if (l->stride[c->now.vector_axis] != 1 || window_bytes(c, l, &pitch) <= c->machine->l1) return 0;
  if (chooser_windows(c) != WINDOWS_IN_ROWS) return 0;
  return new_elements(c, l) * chooser_bytes(c, l);
}

/* 0 for long reductions, which hide these cycles. Memory delivers more at once to tiles of several
 * image lines, but too many lines are not prefetched. */
double chooser_window_fetch(const struct chooser *c) {
  double cycles = 0;
  if (c->f->reduction == 1 || c->f->reduction > DEFAULT_SHORT_REDUCTION || c->now.vector_axis < 0)
    return 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    int size = chooser_bytes(c, l);
    double bytes = chooser_load_of(c, l)->tensor_bytes;
    bool in_memory = chooser_load_of(c, l)->beyond_l3;
    bool parts = in_memory && c->now.steps * size < c->machine->line;
    double again = reloaded_bytes(c, l);
    double more = image_lines(c, l) - (parts ? DEFAULT_PREFETCHED_PARTS : DEFAULT_PREFETCHED_LINES);
    cycles +=
        in_memory ? DEFAULT_MEMORY_BYTE * new_elements(c, l) * size : DEFAULT_RELOADED_BYTE * again;
    if (more > 0 && (again > 0 || bytes > (double)c->machine->l2))
      cycles += DEFAULT_LINE_NOT_PREFETCHED * more;
  }
  return cycles;
}
