/* Writes bound schedules of one program as C and measures them, for searches and
 * canvas_measurer. */
#ifndef CANVAS_TUNE_CANDIDATES_H
#define CANVAS_TUNE_CANDIDATES_H

#include "bind/loop_tree.h"
#include "run/batch.h"

/* C of NAME, preceded by NAME_prepare if stages depend on constant inputs only (prepare/prepare.h).
 * *prepare then has the arguments of NAME_prepare; candidate_forget frees its arrays. */
canvas_status candidate_text(canvas_context *ctx, const struct loop_tree *tree,
                             const char *function, char **text, struct measure_prepare *prepare);
void candidate_forget(struct measure_prepare *prepare);

/* Fills a verdict for each tree of `program` or of an edited version; NULL: an empty verdict. A
 * failing tree does not affect others. Another status than CANVAS_OK: nothing was measured. */
canvas_status candidates_measure(canvas_context *ctx, const struct compiler *compiler,
                                 const struct expected *expected, const struct program *program,
                                 const struct loop_tree *const *trees, int count,
                                 const struct batch_options *options, struct verdict *verdicts);

/* Compiles the tree number `at` exactly as candidates_measure with `separate` will. */
canvas_status candidate_compile(canvas_context *ctx, const struct compiler *compiler,
                                const struct expected *expected, const struct loop_tree *tree,
                                int at);

#endif
