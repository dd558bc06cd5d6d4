/* What is prepared lies as its schedule says: of `@WP[ob][k][ov] = {ob, ov}/o, k` both programs of prepare.h have
 *
 *     WP[o:64, k:128]        ->      WP[o_o:4, k:128, o_i:16]
 *
 * as what one writes and the other reads has no other layout than its axes.
 */
#ifndef CANVAS_PREPARE_PREPARE_LAYOUT_H
#define CANVAS_PREPARE_PREPARE_LAYOUT_H

#include "bind/loop_tree.h"

/* What the schedule says of a stage, as program_relayout takes it: `[o/16, k, o%16]`. NULL: nothing, or of a stage
 * that reduces. To be freed. */
char *prepare_layout_text(const struct loop_tree *tree, int stage);

/* The leaf's axes are those of its layout, `@WP = ob/o_o, k, ov/o_i`; `made` is the stage that has them. */
void prepare_layout_leaf(struct schedule *s, int leaf, const struct program_tensor *made);

#endif
