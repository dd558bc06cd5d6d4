/* Facts about the stages of a program, for edits, schedules and code. */
#ifndef CANVAS_PROGRAM_PROGRAM_FACTS_H
#define CANVAS_PROGRAM_PROGRAM_FACTS_H

#include "program/program.h"

bool is_output(const struct program *p, int tensor);
/* The number of loads of the tensor, which is not of i32, in the stage's expression; 0 for an
 * input. */
int stage_loads(const struct program *p, int stage, int tensor);
/* Whether the tensor is neither input nor output, and only `consumer` loads it. */
bool is_only_consumer(const struct program *p, int tensor, int consumer);
/* Whether the stage computes nothing: its expression is a load or a number, chosen by index
 * conditions. */
bool is_data_movement(const struct program *p, int tensor);
/* The tensor that the stage copies element by element, in any order of axes; -1 if it is no
 * copy. */
int copied_tensor(const struct program *p, int stage);

/* A sliding window: for each value y of its own axis `own`, a stage reads a tensor along the
 * tensor's axis `axis` from step * y + low to step * y + low + more. A tile has `tile` values of
 * y. */
struct window {
  int axis, own;
  int64_t step, low, more, tile;
};
/* Finds the window of `tensor` that the consumer reads along its own axis `own`. Returns NULL, or a
 * clause why there is none. */
const char *find_window(const struct program *p, int consumer, int tensor, int own,
                        struct window *out);

/* Sizes of the output tiles that Winograd's convolution can have, in rows and columns. */
#define WINOGRAD_TILES(X) X(2) X(4)
bool winograd_has_tile(int64_t tile);
canvas_status winograd_check_tile(canvas_context *ctx, int64_t tile);

#endif
