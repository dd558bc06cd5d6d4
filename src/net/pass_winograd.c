/* Convolutions with windows of 3x3 take fewer products where that is predicted to be faster:
 *
 *     conv: S[n, h, w, o] = X[..] * W[..] // sum c, kh:3, kw:3      ->      transforms of W and X,
 *                                                                           16 products of matrices, and back
 *
 * The edit `winograd` in tiles of 2, as pass `winograd4` also of 4 (program_edit.h); the transform of constant
 * weights is computed when they are loaded. It runs only where it is named. Results are rounded otherwise: tiles of 2
 * have half of the error of the sums, of 4 seven times as much (docs/reports/winograd.md), but where one term is much
 * larger than the others.
 */
#include <math.h>
#include <stdlib.h>

#include "autoschedule/winograd_nest.h"
#include "net/fuse_cost.h"
#include "net/passes.h"
#include "program/program_cost.h"
#include "rewrite/program_edit.h"
#include "schedule/schedule.h"

/* What it may take, by predictions, of what the sum takes: they find it dearer than it is, by a third and more. */
static const double MOST = 1.2;
/* Tiles of 4 of what tiles of 2 take: their weights are predicted to come from memory more slowly than they do. */
static const double LARGER = 1.25;
/* Bytes of a stage that comes back from memory, and then takes longer than the products save. */
static const int64_t CACHED = 14 << 20;

/* Its stages are computed block by block: of each no more than a block is there. */
static bool has_blocks(const struct program *p, const struct machine *machine) {
  struct schedule *s = default_winograd(p, machine);
  schedule_free(s);
  return s != NULL;
}

/* Some stage that is computed in each run does not stay in the last cache. */
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

/* In the tiles that are predicted to be fastest; NULL: the program stays. */
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

/* By program: a call that is made in each run calls it. */
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
