/* The table of passes and the functions that run them. See passes.h. */
#include "net/passes.h"

#include <string.h>

#include "base/nearest.h"

/* clang-format off */
const struct network_pass network_passes[] = {
  {"constants",  .run = pass_constants, .summary = "move calls that depend on weights alone to the front, mark constant inputs"},
  {"duplicates", .run = pass_duplicates, .summary = "common subexpression elimination of programs and calls"},
  {"windows",    .run = pass_windows, .summary = "replace a concatenation of slices of one tensor by that tensor"},
  {"concat",     .run = pass_concat, .summary = "reuse an earlier concatenation as the first part of a longer one"},
  {"compose",    .run = pass_compose, .summary = "merge two contractions with weights in one call, if that takes less work"},
  {"batchnorm",  .run = pass_batchnorm, .summary = "fold a normalisation into the weights before it"},
  {"fuse",       .choose = pass_fuse, .summary = "fuse calls, if that is not slower"},
  {"layout",     .choose = pass_layout, .summary = "choose tensor layouts (NCHW, NHWC, NCHWc)"},
  {"split",      .choose = pass_split, .summary = "split the contractions of one call into calls, if that is faster"},
  {"dead",       .run = pass_dead, .summary = "dead call elimination"},
  {"winograd",   .choose = pass_winograd, .summary = "Winograd for 3x3 convolutions, tiles of 2"},
  {"winograd4",  .choose = pass_winograd4, .summary = "Winograd for 3x3 convolutions, tiles of 2 or 4, which round more"},
};
/* clang-format on */
const int network_pass_count = sizeof network_passes / sizeof *network_passes;

/* Fusion is repeated after layout, since more fusions become profitable. The Winograd passes change
 * rounding and run only by name. */
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
