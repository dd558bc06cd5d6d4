/* Identity of what kernels compute, as a second key beside kernel_hash.
 *
 * The program of a kernel is evaluated exactly over the field of 2^61 - 1 elements, at two small
 * bindings and on keyed random images. Sums, differences, products and quotients are those of the
 * field, so that all forms of a polynomial are equal. A function is a keyed random map with the
 * symmetry of the function. Elements have a keyed random order in which -a < -b if b < a: max, min,
 * relu and abs choose by it, and keep the laws of a lattice; a fold max is a symmetric map. An
 * identity that holds for random orders and maps holds for real numbers; one that needs more
 * (exp(a + b)) is not recognised.
 *
 * A weight is drawn by the value of the tensor that it contracts and by its sizes: neither names
 * nor the order of nodes matter. Weights that are equal in both are numbered by their nodes.
 */
#ifndef CANVAS_LOWER_KERNEL_VALUE_H
#define CANVAS_LOWER_KERNEL_VALUE_H

#include "kernel/kernel.h"

/* Equal for kernels that compute the same by these laws, with equally many weights on equal
 * tensors; different for others, up to collisions. Ask for simplified kernels: simplification also
 * knows laws of data movement before weights. False: no small binding is legal. */
bool kernel_value(const struct kernel *k, struct hash *out);

#endif
