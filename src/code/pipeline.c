/* The table of passes over code, and what runs them. See pipeline.h. */
#include "code/pipeline.h"

#include <string.h>

#include "base/buf.h"
#include "code/build.h"

#ifdef CANVAS_VERIFY_PASSES
enum { VERIFY_EACH = 1 };
#else
enum { VERIFY_EACH = 0 };
#endif

static const char built[] = "build"; /* the name of the tree before all passes */

static void drop_dead_code(struct code *c) {
  if (code_drop_dead_code(c)) code_simplify(c);
}

static void share_gathers(struct code *c) {
  if (code_share_gathers(c)) code_simplify(c);
}

static void permute_gathers(struct code *c) {
  if (code_permute_gathers(c)) code_simplify(c);
}

static void join_pieces(struct code *c) {
  code_join_pieces(c);
}

static void transpose(struct code *c) {
  code_transpose(c);
}

/* clang-format off */
const struct code_pass code_passes[] = {
  {"simplify", code_simplify,
   "every effect stays, in its order; sums across lanes may add in another order"},
  {"partition-loops", code_partition_loops,
   "each iteration runs once, in its order; terms that are 0 are left out of sums"},
  {"drop-dead-code", drop_dead_code,
   "every value that is read stays, and so do outputs and allocated buffers"},
  {"share-gathers", share_gathers,
   "a vector is gathered in the block of its uses, from arrays that the block does not write"},
  {"permute-gathers", permute_gathers,
   "each lane gets the same element, and every load stays inside its array"},
  {"split-lanes", code_split_lanes,
   "each lane is computed once, and every load stays inside its array"},
  {"join-pieces", join_pieces,
   "each lane gets the same value, and only elements of the pieces are read"},
  {"transpose", transpose,
   "every lane that was stored is stored at its place, and no other element is written"},
  {"drop-dead-code-again", drop_dead_code,
   "as drop-dead-code, after the passes since then"},
  {"share-divisions", code_share_divisions,
   "every index keeps its value"},
  {"promote-sums", code_promote_sums,
   "each sum gets the same terms in another grouping; the loop only adds to its array"},
  {"block-sums", code_block_sums,
   "each sum gets the same terms, grouped in blocks; sums of f64 and in memory stay"},
  {"share-loads", code_share_loads,
   "the block does not write the array of a named load, and runs the load whenever it runs"},
  {"share-indices", code_share_indices,
   "named indices fit in 64 bits; a load among them runs whenever the loop's body does"},
  {NULL, NULL, NULL},
};
/* clang-format on */

static canvas_status check_known(canvas_context *ctx, const struct code_pass *passes,
                                 const char *after) {
  if (!after || !strcmp(after, built)) return CANVAS_OK;
  struct buf names = {0};
  for (const struct code_pass *pass = passes; pass->name; pass++) {
    if (!strcmp(after, pass->name)) {
      buf_free(&names);
      return CANVAS_OK;
    }
    buf_printf(&names, ", %s", pass->name);
  }
  fail(ctx, CANVAS_BAD_INPUT, "unknown pass '%.40s', choose one of %s%s", after, built,
       names.text ? names.text : "");
  buf_free(&names);
  return CANVAS_BAD_INPUT;
}

canvas_status pipeline_apply(canvas_context *ctx, const struct code_pass *passes, const char *after,
                             struct code *c) {
  const char *last = built;
  TRY(check_known(ctx, passes, after));
  for (const struct code_pass *pass = passes; pass->name && !(after && !strcmp(last, after));
       pass++) {
    if (VERIFY_EACH) TRY(code_verify(ctx, c, last));
    pass->run(c);
    last = pass->name;
  }
  return code_verify(ctx, c, last);
}

canvas_status pipeline_run(canvas_context *ctx, const struct loop_tree *tree, const char *after,
                           struct code **out) {
  struct code *code;
  TRY(check_known(ctx, code_passes, after));
  TRY(code_build(ctx, tree, &code));
  canvas_status status = pipeline_apply(ctx, code_passes, after, code);
  if (status == CANVAS_OK)
    *out = code;
  else
    code_free(code);
  return status;
}
