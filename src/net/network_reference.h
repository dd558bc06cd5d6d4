/* What a network computes, where the interpreter would take too long: large calls by compiled references in
 * double precision (run/reference.h), which have to agree with the interpreter at some elements. */
#ifndef CANVAS_NET_NETWORK_REFERENCE_H
#define CANVAS_NET_NETWORK_REFERENCE_H

#include "net/network_interpret.h"
#include "run/compiler.h"

/* As network_interpret; a call that has no reference, or one that does not agree, is interpreted. */
canvas_status network_reference(canvas_context *ctx, const struct network *n,
                                const double *const *given, const struct compiler *compiler,
                                double *const *out);

#endif
