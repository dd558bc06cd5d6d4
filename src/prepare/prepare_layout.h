/* Layouts of stored tensors. A schedule may give a prepared stage a buffer layout; the stored
 * tensor is an output of one program and an input of the other, which have no layout but their
 * axes. So both programs are rewritten. With `@WP[ob][k][ov] = {ob, ov}/o, k`:
 *
 *     WP[o:64, k:128]        ->      WP[o_o:4, k:128, o_i:16]
 */
#ifndef CANVAS_PREPARE_PREPARE_LAYOUT_H
#define CANVAS_PREPARE_PREPARE_LAYOUT_H

#include "bind/loop_tree.h"

/* The buffer layout of a stage as a text for program_relayout, such as `[o/16, k, o%16]`; the
 * caller frees it. NULL if the schedule gives none, or the stage reduces. */
char *prepare_layout_text(const struct loop_tree *tree, int stage);

/* Gives the leaf the axes of its layout, `@WP = ob/o_o, k, ov/o_i`; `made` is the rewritten
 * stage. */
void prepare_layout_leaf(struct schedule *s, int leaf, const struct program_tensor *made);

#endif
