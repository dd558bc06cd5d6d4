/* What a load is to all tiles of a stage, and what is asked of the stage itself for each of them: how far a step of each
 * axis goes, which windows overlap, which lines a reduction goes through. See default_chooser.h.
 */
#include <stdlib.h>

#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

enum { SHORT = 9 }; /* steps of a reduction that count as one */

static int end_of(const struct default_facts *f) {
  return f->t->rank + f->t->reductions;
}

/* ---- one load ---- */

bool default_is_beyond_l3(const struct machine *machine, double bytes) {
  return bytes > (double)machine_l3_share(machine);
}

/* Of reductions the last one within whose steps a step of the axis ends. */
static void find_window(const struct default_facts *f, const struct default_load *l, int axis,
                        struct chooser_load *out) {
  out->window[axis] = -1;
  for (int r = f->t->rank; r < end_of(f) && l->stride[axis]; r++)
    if (l->stride[r] > 0 && l->stride[axis] % l->stride[r] == 0 &&
        l->stride[axis] / l->stride[r] < f->t->axes[r].size)
      out->window[axis] = r;
  out->window_step[axis] =
      out->window[axis] < 0 ? 1 : l->stride[axis] / l->stride[out->window[axis]];
}

/* Its reductions of more than a few steps go to another page in each of them. */
static bool goes_to_pages(const struct chooser *c, const struct chooser_load *known) {
  const struct default_facts *f = c->f;
  int64_t least = 0;
  for (int i = f->t->rank; i < end_of(f); i++) {
    int64_t step = known->byte_step[i];
    if (step && f->t->axes[i].size > SHORT && (!least || step < least)) least = step;
  }
  return least >= machine_prefetch_stride(c->machine);
}

/* Its rows begin at quarters of a line: few of its vectors lie in two. */
static bool is_in_lines(const struct default_facts *f, const struct default_load *l, int bytes) {
  for (int i = 0; i < end_of(f); i++)
    if (l->stride[i] != 1 && 4 * l->stride[i] * bytes % CHOOSER_LINE) return false;
  return true;
}

int64_t chooser_sets_of(const struct machine *machine, int64_t pitch) {
  int64_t sets = machine_l1_way(machine) / CHOOSER_LINE, step = pitch / CHOOSER_LINE;
  if (pitch % CHOOSER_LINE) return sets;
  while (sets > 1 && step % 2 == 0) {
    sets /= 2;
    step /= 2;
  }
  return sets;
}

/* Steps of its reduction are lines that all lie in a few sets, more of them than these hold. */
static bool is_in_few_sets(const struct chooser *c, const struct chooser_load *known) {
  const struct default_facts *f = c->f;
  for (int i = f->t->rank; i < end_of(f); i++) {
    int64_t pitch = known->byte_step[i];
    int64_t lines = chooser_sets_of(c->machine, pitch) * machine_l1_ways(c->machine);
    if (pitch >= CHOOSER_LINE && f->t->axes[i].size > lines) return true;
  }
  return false;
}

/* Lines and bytes of one tile's reduction: see chooser_lines. */
static void find_lines(const struct default_facts *f, struct chooser_load *out) {
  out->line_footprint = 1;
  out->span = 0;
  for (int i = f->t->rank; i < end_of(f); i++) {
    int64_t steps = f->t->axes[i].size;
    if (out->byte_step[i] >= CHOOSER_LINE)
      out->line_footprint *= (double)steps;
    else if (out->byte_step[i])
      out->span += (steps - 1) * out->byte_step[i];
  }
}

/* In lines of which none is near the one before, as pixels of an image whose channels come in blocks of a line. */
static bool goes_alone(const struct chooser *c, const struct chooser_load *known) {
  const struct default_facts *f = c->f;
  int64_t near = machine_prefetch_stride(c->machine);
  if (known->span >= 2 * CHOOSER_LINE) return false;
  for (int i = f->t->rank; i < end_of(f); i++)
    if (known->byte_step[i] >= CHOOSER_LINE && known->byte_step[i] < near && f->t->axes[i].size > 1)
      return false;
  return true;
}

static void find_load(const struct chooser *c, const struct default_load *l,
                      struct chooser_load *out) {
  const struct default_facts *f = c->f;
  const struct program_tensor *t = f->t;
  out->bytes = program_dtype_bytes(f->p->tensors.data[l->tensor].dtype);
  out->all = (double)program_elements(f->p, l->tensor) * out->bytes;
  out->beyond_l3 = default_is_beyond_l3(c->machine, out->all);
  out->panel = 1;
  out->strided = out->invariant = 0;
  for (int i = 0; i < end_of(f); i++) {
    out->byte_step[i] = llabs(l->stride[i]) * out->bytes;
    bool moves = l->depends_on >> i & 1;
    if (i >= t->rank && moves) out->panel *= (double)t->axes[i].size;
    if (i >= t->rank) continue;
    if (l->stride[i] * out->bytes >= c->machine->line) out->strided |= 1u << i;
    if (!moves && t->axes[i].size > 1) out->invariant |= 1u << i;
    find_window(f, l, i, out);
  }
  find_lines(f, out);
  out->crosses_pages = goes_to_pages(c, out);
  out->alone = goes_alone(c, out);
  out->repeats =
      chooser_has_few_registers(c) && is_in_lines(f, l, out->bytes) && !is_in_few_sets(c, out);
}

/* ---- the stage ---- */

static double terms(const struct default_facts *f) {
  double steps = f->reduction > 1 ? (double)f->reduction : 1;
  for (int i = f->t->rank; i < end_of(f); i++)
    if (f->period[i]) steps /= (double)f->period[i];
  return steps;
}

static const double MOVED = 0.04; /* cycles of a byte, in the second cache */

/* Terms that are there, at least: periods say which of them are. */
static double least_terms(const struct default_facts *f) {
  double count = (double)f->points * (double)f->reduction * CHOOSER_ROUNDED;
  for (int i = 0; i < f->t->rank; i++) count *= f->inside_share[i];
  return f->periodic ? 0 : count;
}

static double moving(const struct default_facts *f) {
  double bytes = (double)(f->loads + 1) * program_dtype_bytes(f->t->dtype);
  return f->reduction > 1 ? 0 : MOVED * bytes * (double)f->points;
}

double default_flat_cycles(const struct default_facts *f) {
  return MOVED * (f->loads + 1) * program_dtype_bytes(f->t->dtype) * (double)f->points;
}

/* Windows of one image beside each other, as of a pooling. */
static bool is_read_once(const struct default_facts *f) {
  if (f->reduction == 1 || f->reduction > DEFAULT_FEW || f->loads != 1 || f->guarded) return false;
  const struct default_load *l = &f->load[0];
  if (l->non_affine) return false;
  for (int r = f->t->rank; r < end_of(f); r++) {
    bool beside = false;
    for (int i = 0; i < f->t->rank; i++)
      beside = beside || (l->stride[r] && l->stride[i] == l->stride[r] * f->t->axes[r].size);
    if (!beside) return false;
  }
  return true;
}

/* Short ones that always run whole, of a stage that computes little beside its products. */
static uint32_t slides(const struct default_facts *f) {
  uint32_t axes = 0;
  if (f->operations >= DEFAULT_CALLS || f->non_monotone) return 0;
  for (int i = f->t->rank; i < end_of(f); i++) {
    const struct program_axis *a = &f->t->axes[i];
    if (a->size >= 2 && a->size <= SHORT && a->low < 0 && !f->period[i]) axes |= 1u << i;
  }
  return axes;
}

void chooser_find_loads(struct chooser *c, struct chooser_load *load) {
  for (int i = 0; i < c->f->loads; i++) find_load(c, &c->f->load[i], &load[i]);
  c->load = load;
  c->terms = terms(c->f);
  c->least_terms = least_terms(c->f);
  c->cache_cycles = moving(c->f);
  c->read_once = is_read_once(c->f);
  c->slides = slides(c->f);
  c->windows = false;
  for (int i = 0; i < c->f->loads; i++)
    for (int axis = 0; axis < c->f->t->rank; axis++)
      c->windows = c->windows || load[i].window[axis] >= 0;
}
