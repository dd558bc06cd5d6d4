/* The rates of the machine that runs Canvas: measured once, then kept in the cache. */
#ifndef CANVAS_TUNE_RATES_HERE_H
#define CANVAS_TUNE_RATES_HERE_H

#include "cost/rates.h"

/* Those of this machine for code that is bound for `machine`: from the cache, or measured
 * and kept there. Likely ones where there is no compiler, or nothing can be kept or measured; then
 * `measured` is false. */
canvas_status rates_here(canvas_context *ctx, const struct machine *machine, struct rates *out);
/* Of any machine: those of this one if the machine is machine_here(), likely ones of another. */
canvas_status rates_of(canvas_context *ctx, const struct machine *machine, struct rates *out);

#endif
