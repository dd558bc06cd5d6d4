/* Uses Winograd's algorithm for 3x3 convolutions if that is predicted to be faster:
 *
 *     conv: S[n, h, w, o] = X[..] * W[..] // sum c, kh:3, kw:3
 *       -> transforms of W and X, 16 matrix products, and the transform of the result
 *
 * The pass makes the edit `winograd` with tiles of 2, and as `winograd4` also of 4
 * (program_edit.h). The transform of constant weights runs at load time. The passes run only by
 * name, since they change rounding: unless one term dominates, tiles of 2 have half the error of
 * the plain reduction, tiles of 4 seven times (docs/reports/winograd.md).
 */
#include <math.h>
#include <stdlib.h>

#include "autoschedule/winograd_nest.h"
#include "net/fuse_cost.h"
#include "net/passes.h"
#include "program/program_cost.h"
#include "rewrite/program_edit.h"
#include "schedule/schedule.h"

/* Limit of the predicted time over that of the plain contraction; predictions are a third or more
 * too high. */
static const double MOST = 1.2;
/* Limit of tiles of 4 over tiles of 2; their weights are loaded from memory faster than
 * predicted. */
static const double LARGER = 1.25;
/* Limit of a stage in bytes: a larger one is reloaded from memory, which takes longer than the
 * products save. */
static const int64_t CACHED = 14 << 20;

/* Whether the stages run block by block, so that only one block of each is stored. */
static bool has_blocks(const struct program *p, const struct machine *machine) {
  struct schedule *s = default_winograd(p, machine);
  schedule_free(s);
  return s != NULL;
}

/* Whether a stage of each run exceeds the last cache. */
static bool spills(const struct program *p, const struct machine *machine) {
  if (has_blocks(p, machine)) return false;
  bool *constant = program_constants(p), found = false;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    bool kept = !t->is_input && !constant[i];
    found |= kept && program_elements(p, i) * program_dtype_bytes(t->dtype) > CACHED;
  }
  mem_free(constant);
  return found;
}

/* The program with the tiles predicted to be fastest; NULL: unchanged. */
static struct program *better_of(struct fuse_costs *costs, const struct program *p, int most) {
  struct program *best = NULL;
  double least = MOST * fuse_cost(costs, p), limit = least;
  for (int tile = 2; tile <= most; tile += 2) {
    struct program *made = p->winograd ? NULL : program_with_winograd(p, tile);
    double seconds = made ? fuse_cost(costs, made) : INFINITY;
    bool better = seconds <= limit && seconds <= (best ? LARGER : 1) * least &&
                  !spills(made, &costs->machine);
    if (better) least = seconds;
    program_free(better ? best : made);
    if (better) best = made;
  }
  return best;
}

/* By program: called in each run, not only at load time. */
static bool *find_called(const struct network *n) {
  bool *called = mem_alloc((size_t)n->programs.count + 1);
  for (int i = 0; i < n->calls.count; i++)
    if (n->calls.data[i].varies) called[n->calls.data[i].program] = true;
  return called;
}

static canvas_status in_tiles(struct network *n, struct fuse_costs *costs, int most) {
  network_settle(n);
  bool *called = find_called(n);
  for (int i = 0; i < n->programs.count; i++) {
    struct program *made = called[i] ? better_of(costs, n->programs.data[i], most) : NULL;
    if (!made) continue;
    program_free(n->programs.data[i]);
    n->programs.data[i] = made;
  }
  network_index_programs(n);
  mem_free(called);
  return CANVAS_OK;
}

canvas_status pass_winograd(canvas_context *ctx, struct network *n, struct fuse_costs *costs) {
  (void)ctx;
  return in_tiles(n, costs, 2);
}

canvas_status pass_winograd4(canvas_context *ctx, struct network *n, struct fuse_costs *costs) {
  (void)ctx;
  return in_tiles(n, costs, 4);
}
