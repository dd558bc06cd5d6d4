/* The few pieces of JSON that the API prints. */
#ifndef CANVAS_API_JSON_H
#define CANVAS_API_JSON_H

#include "base/buf.h"

void json_string(struct buf *out, const char *text); /* quoted and escaped; the text is ASCII */
/* "macs": 1, "flops": 2, ... without braces, in the order of authority. */
void json_cost(struct buf *out, const canvas_cost *cost);

#endif
