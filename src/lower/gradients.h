/* Gradients of a program by reverse mode: which numbers of its constant inputs the output depends on.
 *
 * Functions of the C library differ in the last bit from machine to machine. Here rational functions
 * of the same sign, slope and symmetry stand for them, and every operation is one of IEEE 754: the
 * result is the same on every machine.
 */
#ifndef CANVAS_LOWER_GRADIENTS_H
#define CANVAS_LOWER_GRADIENTS_H

#include "program/program.h"

struct gradients;

/* Of a verified program whose first input is the image and whose others are weights. apart (may be
 * NULL): by weight, whether what it meets need not depend on the image. Borrows both. */
struct gradients *gradients_new(const struct program *p, const bool *apart);
void gradients_free(struct gradients *g);

/* The numbers of all weights, one after another in the order of the inputs. */
int gradients_numbers(const struct gradients *g);

/* How many operations a pass has. */
int gradients_operations(const struct gradients *g);

/* One random image with random weights. Sets matters[i] where number i multiplies what depends on the
 * image (unless its weight is apart) and the product changes the output. `smooth`: max, min and abs have a slope on both sides, so
 * that what does not matter here does not matter anywhere, but for accidents. */
void gradients_pass(struct gradients *g, uint64_t index, bool smooth, bool *matters);

#endif
