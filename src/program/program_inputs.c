/* Checks of input values, and random input values. See interpret.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "program/interpret.h"

/* Numbers drawn before they repeat: a prime, so that no two rows or images are equal. */
enum { PERIOD = 4194301 };

/* Rounds to bf16: eight significant bits, the last one at 2^-133 or above. */
static double to_bf16(double value) {
  int exponent;
  if (value == 0 || !isfinite(value)) return value;
  frexp(value, &exponent);
  int last = exponent - 8 < -133 ? -133 : exponent - 8;
  double rounded = ldexp(nearbyint(ldexp(value, -last)), last);
  return fabs(rounded) < 0x1p128 ? rounded : copysign(HUGE_VAL, value);
}

double program_stored(enum program_dtype dtype, double value) {
  return dtype == PROGRAM_BF16 ? to_bf16(value) : value;
}

static canvas_status bad_element(canvas_context *ctx, const struct program_tensor *t, int64_t at,
                                 double value, const char *why) {
  return fail(ctx, CANVAS_BAD_INPUT, "element %lld of input '%.40s' is %.17g, %s from %lld to %lld",
              (long long)at, t->name, value, why, (long long)t->least, (long long)t->most);
}

canvas_status program_check_input(canvas_context *ctx, const struct program *p, int input,
                                  const double *values) {
  const struct program_tensor *t = &p->tensors.data[p->inputs.data[input]];
  if (t->dtype != PROGRAM_I32) return CANVAS_OK;
  int64_t count = program_elements(p, p->inputs.data[input]);
  int64_t row = t->rank ? t->axes[t->rank - 1].size : 1;
  for (int64_t i = 0; i < count; i++) {
    double v = values[i];
    if (!(v >= (double)t->least && v <= (double)t->most && v == floor(v)))
      return bad_element(ctx, t, i, v, "it has to be a whole number");
    bool first = i % row == 0, last = i % row == row - 1;
    bool rises = (!first || v == (double)t->least) && (!last || v == (double)t->most) &&
                 (first || v >= values[i - 1]);
    if (t->rising && !rises) return bad_element(ctx, t, i, v, "each row has to rise");
  }
  return CANVAS_OK;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void fill_indices(const struct program_tensor *t, int64_t count, struct random *r,
                         double *values) {
  uint64_t choices = (uint64_t)(t->most - t->least) + 1;
  for (int64_t i = 0; i < count; i++)
    values[i] = (double)(t->least + (int64_t)(random_u64(r) % choices));
  if (!t->rising) return;
  int64_t row = t->axes[t->rank - 1].size;
  for (double *v = values; v < values + count; v += row) {
    v[0] = (double)t->least;
    v[row - 1] = (double)t->most;
    qsort(v, (size_t)row, sizeof *v, ascending);
  }
}

void tensor_fill(const struct program_tensor *t, int number, uint64_t seed, double *values) {
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++) count *= t->axes[i].size;
  struct random r;
  random_open(&r, seed, RANDOM_EVAL, (uint64_t)number);
  if (t->dtype == PROGRAM_I32) {
    fill_indices(t, count, &r, values);
    return;
  }
  double scale = number && t->rank ? sqrt((double)t->axes[0].size / (double)count) : 1;
  int64_t drawn = count < PERIOD ? count : PERIOD;
  for (int64_t i = 0; i < drawn; i++) values[i] = random_normal(&r) * scale;
  for (int64_t i = drawn; i < count; i++) values[i] = values[i - PERIOD];
}

/* The input ptr of a reduction over ptr[r]..ptr[r+1] whose rows hold `count` elements in all;
 * -1. */
static int row_starts(const struct program *p, int64_t count) {
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    for (int a = t->rank; !t->is_input && a < t->rank + t->reductions; a++) {
      if (t->axes[a].low < 0 || t->axes[a].high < 0) continue;
      const struct px_node *low = &p->nodes.data[t->axes[a].low];
      const struct px_node *high = &p->nodes.data[t->axes[a].high];
      if (low->op != PX_LOAD || high->op != PX_LOAD || low->tensor != high->tensor) continue;
      const struct program_tensor *ptr = &p->tensors.data[low->tensor];
      if (ptr->is_input && ptr->rising && ptr->rank == 1 && ptr->most == count)
        for (int k = 0; k < p->inputs.count; k++)
          if (p->inputs.data[k] == low->tensor) return k;
    }
  }
  return -1;
}

/* Sorts the columns within each compressed sparse row. Real data is sorted, and schedules are
 * chosen by measurements, so gathers of drawn data should be as local in memory. */
static void sort_rows(const struct program *p, int ptr, uint64_t seed, double *values) {
  const struct program_tensor *t = &p->tensors.data[p->inputs.data[ptr]];
  int64_t ends = t->axes[0].size;
  double *start = mem_alloc((size_t)ends * sizeof *start);
  program_fill(p, ptr, seed, start);
  for (int64_t i = 0; i + 1 < ends; i++)
    qsort(values + (int64_t)start[i], (size_t)(start[i + 1] - start[i]), sizeof *values, ascending);
  mem_free(start);
}

void program_fill(const struct program *p, int input, uint64_t seed, double *values) {
  const struct program_tensor *t = &p->tensors.data[p->inputs.data[input]];
  tensor_fill(t, input, seed, values);
  if (t->dtype != PROGRAM_I32 || t->rising || t->rank != 1) return;
  int ptr = row_starts(p, t->axes[0].size);
  if (ptr >= 0 && p->tensors.data[p->inputs.data[ptr]].least >= 0) sort_rows(p, ptr, seed, values);
}
