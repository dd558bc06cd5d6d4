/* Bound schedules of one program, written as C and measured: what the search and canvas_measurer share. */
#ifndef CANVAS_TUNE_CANDIDATES_H
#define CANVAS_TUNE_CANDIDATES_H

#include "bind/loop_tree.h"
#include "run/batch.h"

/* C of NAME, and before it NAME_prepare, where stages depend on constant inputs only (prepare/prepare.h);
 * what NAME_prepare takes then stands in *prepare, whose arrays are freed with candidate_forget. */
canvas_status candidate_text(canvas_context *ctx, const struct loop_tree *tree,
                             const char *function, char **text, struct measure_prepare *prepare);
void candidate_forget(struct measure_prepare *prepare);

/* A verdict for each tree, of `program` or of what edits made of it; where there is none, NULL, it is empty.
 * Whatever one does, the others are judged. A status other than CANVAS_OK: nothing was. */
canvas_status candidates_measure(canvas_context *ctx, const struct compiler *compiler,
                                 const struct expected *expected, const struct program *program,
                                 const struct loop_tree *const *trees, int count,
                                 const struct batch_options *options, struct verdict *verdicts);

/* Compiles the tree that stands at `at` among others, as it will be measured where they are apart. */
canvas_status candidate_compile(canvas_context *ctx, const struct compiler *compiler,
                                const struct expected *expected, const struct loop_tree *tree,
                                int at);

#endif
