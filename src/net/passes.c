/* The table of passes, and what runs them. See passes.h. */
#include "net/passes.h"

#include <string.h>

#include "base/nearest.h"

/* clang-format off */
const struct network_pass network_passes[] = {
  {"constants",  .run = pass_constants, .summary = "what is computed of weights alone comes first and is marked"},
  {"duplicates", .run = pass_duplicates, .summary = "programs that say the same are one, and calls that compute the same"},
  {"windows",    .run = pass_windows, .summary = "what is put together of parts of one value reads that value"},
  {"concat",     .run = pass_concat, .summary = "what an earlier concatenation put together is put together once"},
  {"compose",    .run = pass_compose, .summary = "two sums of products with weights in one call are one, where that is less"},
  {"batchnorm",  .run = pass_batchnorm, .summary = "a normalisation becomes part of the weights before it"},
  {"fuse",       .choose = pass_fuse, .summary = "calls become one, where that is no slower"},
  {"layout",     .choose = pass_layout, .summary = "values of images lie as what computes and reads them is fastest"},
  {"split",      .choose = pass_split, .summary = "sums of products in one call become calls, where that is faster"},
  {"dead",       .run = pass_dead, .summary = "calls whose results nobody wants are gone"},
  {"winograd",   .choose = pass_winograd, .summary = "convolutions with windows of 3x3 take fewer products"},
  {"winograd4",  .choose = pass_winograd4, .summary = "... in tiles of 4 where that is faster, which round more"},
};
/* clang-format on */
const int network_pass_count = sizeof network_passes / sizeof *network_passes;

/* With other layouts more calls are no slower as one. Both of Winograd's round otherwise than the sums do, and have to
 * be named. */
static const char usual[] =
    "constants, duplicates, dead, windows, concat, dead, compose, batchnorm, fuse, layout, fuse, "
    "split, duplicates, dead";

static canvas_status run_pass(canvas_context *ctx, struct network *n,
                              const struct network_pass *pass, struct fuse_costs *costs) {
  TRY(pass->run ? pass->run(ctx, n) : pass->choose(ctx, n, costs));
  network_settle(n);
  return network_verify(ctx, n);
}

static canvas_status unknown_pass(canvas_context *ctx, const char *name, int length) {
  const char *names[16];
  for (int i = 0; i < network_pass_count; i++) names[i] = network_passes[i].name;
  const char *near = word_nearest(name, length, names, network_pass_count);
  if (near)
    return fail(ctx, CANVAS_BAD_INPUT, "unknown pass '%.*s', did you mean '%s'?",
                length < 40 ? length : 40, name, near);
  return fail(ctx, CANVAS_BAD_INPUT, "unknown pass '%.*s', 'canvas help network' lists them",
              length < 40 ? length : 40, name);
}

static canvas_status run_named(canvas_context *ctx, struct network *n, const char *name, int length,
                               struct fuse_costs *costs) {
  for (int i = 0; i < network_pass_count; i++)
    if ((int)strlen(network_passes[i].name) == length &&
        !strncmp(network_passes[i].name, name, (size_t)length))
      return run_pass(ctx, n, &network_passes[i], costs);
  return unknown_pass(ctx, name, length);
}

static canvas_status run_each(canvas_context *ctx, struct network *n, const char *names,
                              struct fuse_costs *costs) {
  for (names += strspn(names, ", "); *names; names += strspn(names, ", ")) {
    int length = (int)strcspn(names, ", ");
    TRY(run_named(ctx, n, names, length, costs));
    names += length;
  }
  return CANVAS_OK;
}

canvas_status network_optimize(canvas_context *ctx, struct network *n, const char *names,
                               const struct machine *machine) {
  struct fuse_costs costs = fuse_costs_open(machine);
  canvas_status status = run_each(ctx, n, names ? names : usual, &costs);
  fuse_costs_close(&costs);
  return status;
}
