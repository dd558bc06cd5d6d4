/* What a cost is in JSON. */
#ifndef CANVAS_API_JSON_COST_H
#define CANVAS_API_JSON_COST_H

#include "base/buf.h"

/* "macs": 1, "flops": 2, ... without braces, in the order of authority. */
void json_cost(struct buf *out, const canvas_cost *cost);

#endif
