/* Analyses each load of a stage once, for all candidate tiles: bytes of a step along each axis,
 * overlapping windows, the cache lines that its reduction reads. Also what candidates need of the
 * stage itself. The results are fields of struct chooser and struct chooser_load. */
#include <stdlib.h>

#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

static int end_of(const struct default_facts *f) {
  return f->t->rank + f->t->reductions;
}

/* ---- one load ---- */

bool default_is_beyond_l3(const struct machine *machine, double bytes) {
  return bytes > (double)machine_l3_share(machine);
}

/* The window of an own axis: the last reduction that a step of the axis stays within. */
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

/* Every reduction of more than a few steps strides by the machine's prefetch_stride or more. */
static bool strides_by_pages(const struct chooser *c, const struct chooser_load *load) {
  const struct default_facts *f = c->f;
  int64_t least = 0;
  for (int i = f->t->rank; i < end_of(f); i++) {
    int64_t step = load->byte_step[i];
    if (step && f->t->axes[i].size > DEFAULT_WINDOW_STEPS && (!least || step < least)) least = step;
  }
  return least >= machine_prefetch_stride(c->machine);
}

/* Its rows begin at quarters of a cache line, so that few vectors cross a line. */
static bool is_line_aligned(const struct chooser *c, const struct default_load *l, int bytes) {
  for (int i = 0; i < end_of(c->f); i++)
    if (l->stride[i] != 1 && DEFAULT_LINE_PARTS * l->stride[i] * bytes % c->machine->line)
      return false;
  return true;
}

int64_t chooser_sets_of(const struct machine *machine, int64_t pitch) {
  int64_t sets = machine_l1_way(machine) / machine->line, step = pitch / machine->line;
  if (pitch % machine->line) return sets;
  while (sets > 1 && step % 2 == 0) {
    sets /= 2;
    step /= 2;
  }
  return sets;
}

/* Reduction steps fall into few sets of L1, and need more lines than these have ways. */
static bool exceeds_sets(const struct chooser *c, const struct chooser_load *load) {
  const struct default_facts *f = c->f;
  for (int i = f->t->rank; i < end_of(f); i++) {
    int64_t pitch = load->byte_step[i];
    int64_t lines = chooser_sets_of(c->machine, pitch) * machine_l1_ways(c->machine);
    if (pitch >= c->machine->line && f->t->axes[i].size > lines) return true;
  }
  return false;
}

/* Runs of lines that the reduction reads for one element, and the span of a run: see
 * chooser_line_bytes. */
static void find_lines(const struct chooser *c, struct chooser_load *out) {
  const struct default_facts *f = c->f;
  out->line_runs = 1;
  out->span = 0;
  for (int i = f->t->rank; i < end_of(f); i++) {
    int64_t steps = f->t->axes[i].size;
    if (out->byte_step[i] >= c->machine->line)
      out->line_runs *= (double)steps;
    else if (out->byte_step[i])
      out->span += (steps - 1) * out->byte_step[i];
  }
}

/* No line of the reduction is near the one before, as in pixels of an image whose channels come in
 * blocks of a line. */
static bool has_isolated_lines(const struct chooser *c, const struct chooser_load *load) {
  const struct default_facts *f = c->f;
  int64_t near = machine_prefetch_stride(c->machine);
  if (load->span >= 2 * c->machine->line) return false;
  for (int i = f->t->rank; i < end_of(f); i++)
    if (load->byte_step[i] >= c->machine->line && load->byte_step[i] < near &&
        f->t->axes[i].size > 1)
      return false;
  return true;
}

static void find_load(const struct chooser *c, const struct default_load *l,
                      struct chooser_load *out) {
  const struct default_facts *f = c->f;
  const struct program_tensor *t = f->t;
  out->bytes = program_dtype_bytes(f->p->tensors.data[l->tensor].dtype);
  out->tensor_bytes = (double)program_elements(f->p, l->tensor) * out->bytes;
  out->beyond_l3 = default_is_beyond_l3(c->machine, out->tensor_bytes);
  out->reduction_elements = 1;
  out->strided = out->invariant = 0;
  for (int i = 0; i < end_of(f); i++) {
    out->byte_step[i] = llabs(l->stride[i]) * out->bytes;
    bool depends = l->depends_on >> i & 1;
    if (i >= t->rank && depends) out->reduction_elements *= (double)t->axes[i].size;
    if (i >= t->rank) continue;
    if (l->stride[i] * out->bytes >= c->machine->line) out->strided |= 1u << i;
    if (!depends && t->axes[i].size > 1) out->invariant |= 1u << i;
    find_window(f, l, i, out);
  }
  find_lines(c, out);
  out->crosses_pages = strides_by_pages(c, out);
  out->isolated_lines = has_isolated_lines(c, out);
  out->stays_in_l1 =
      chooser_has_few_registers(c) && is_line_aligned(c, l, out->bytes) && !exceeds_sets(c, out);
}

/* ---- the stage ---- */

/* Terms per element. */
static double average_terms(const struct default_facts *f) {
  double steps = f->reduction > 1 ? (double)f->reduction * f->bounded_share : 1;
  for (int i = f->t->rank; i < end_of(f); i++)
    if (f->period[i]) steps /= (double)f->period[i];
  return steps;
}

/* A lower bound of the terms of all elements; 0 where periods select them. */
static double least_terms(const struct default_facts *f) {
  double count = (double)f->points * (double)f->reduction * f->bounded_share * DEFAULT_ROUNDING;
  for (int i = 0; i < f->t->rank; i++) count *= f->inside_share[i];
  return f->periodic ? 0 : count;
}

/* Cycles to move the data of an element-wise stage. */
static double cache_cycles(const struct default_facts *f) {
  double bytes = (double)(f->loads + 1) * program_dtype_bytes(f->t->dtype);
  return f->reduction > 1 ? 0 : DEFAULT_L2_BYTE * bytes * (double)f->points;
}

double default_flat_cycles(const struct default_facts *f) {
  return DEFAULT_L2_BYTE * (f->loads + 1) * program_dtype_bytes(f->t->dtype) * (double)f->points;
}

/* Windows of one tensor beside each other, as in a pooling. */
static bool has_disjoint_windows(const struct default_facts *f) {
  if (f->reduction == 1 || f->reduction > DEFAULT_SHORT_REDUCTION || f->loads != 1 || f->guarded)
    return false;
  const struct default_load *l = &f->load[0];
  if (l->non_affine) return false;
  for (int r = f->t->rank; r < end_of(f); r++) {
    bool adjacent = false;
    for (int i = 0; i < f->t->rank; i++)
      adjacent = adjacent || (l->stride[r] && l->stride[i] == l->stride[r] * f->t->axes[r].size);
    if (!adjacent) return false;
  }
  return true;
}

/* Short reductions of a fixed size, in stages without functions. */
static uint32_t sliding_reductions(const struct default_facts *f) {
  uint32_t axes = 0;
  if (f->operations >= DEFAULT_HEAVY_OPERATIONS || f->non_monotone) return 0;
  for (int i = f->t->rank; i < end_of(f); i++) {
    const struct program_axis *a = &f->t->axes[i];
    if (a->size >= 2 && a->size <= DEFAULT_WINDOW_STEPS && a->low < 0 && !f->period[i])
      axes |= 1u << i;
  }
  return axes;
}

void chooser_find_loads(struct chooser *c, struct chooser_load *load) {
  for (int i = 0; i < c->f->loads; i++) find_load(c, &c->f->load[i], &load[i]);
  c->load = load;
  c->average_terms = average_terms(c->f);
  c->least_terms = least_terms(c->f);
  c->cache_cycles = cache_cycles(c->f);
  c->disjoint_windows = has_disjoint_windows(c->f);
  c->sliding_reductions = sliding_reductions(c->f);
  c->overlapping_windows = false;
  for (int i = 0; i < c->f->loads; i++)
    for (int axis = 0; axis < c->f->t->rank; axis++)
      c->overlapping_windows = c->overlapping_windows || load[i].window[axis] >= 0;
}
