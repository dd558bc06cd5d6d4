/* Rates of the machine that runs Canvas: measured once, then cached. */
#ifndef CANVAS_TUNE_RATES_HERE_H
#define CANVAS_TUNE_RATES_HERE_H

#include "cost/rates.h"

/* Rates of this machine for code bound for `machine`, from the cache or measured. Likely rates if
 * there is no compiler or measuring fails; then `measured` is false. */
canvas_status rates_here(canvas_context *ctx, const struct machine *machine, struct rates *out);
/* Rates of any machine: rates_here for machine_here(), likely rates otherwise. */
canvas_status rates_of(canvas_context *ctx, const struct machine *machine, struct rates *out);

#endif
