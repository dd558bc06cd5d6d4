/* Computes a network that is too large for the interpreter: large calls run as compiled references
 * in double precision (run/reference.h), which must agree with the interpreter at some elements. */
#ifndef CANVAS_NET_NETWORK_REFERENCE_H
#define CANVAS_NET_NETWORK_REFERENCE_H

#include "net/network_interpret.h"
#include "run/compiler.h"

/* As network_interpret. A call is interpreted if it is small, if it has no reference, or if its
 * reference disagrees. */
canvas_status network_reference(canvas_context *ctx, const struct network *n,
                                const double *const *given, const struct compiler *compiler,
                                double *const *out);

#endif
