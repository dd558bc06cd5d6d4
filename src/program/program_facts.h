/* Facts about the stages of a program that edits, schedules and code ask for. */
#ifndef CANVAS_PROGRAM_PROGRAM_FACTS_H
#define CANVAS_PROGRAM_PROGRAM_FACTS_H

#include "program/program.h"

bool is_output(const struct program *p, int tensor);
/* How often the stage loads the tensor, which is not of i32; 0 if the stage is an input. */
int stage_loads(const struct program *p, int stage, int tensor);
/* The tensor is no input and no output, and no stage but `consumer` loads it. */
bool is_only_consumer(const struct program *p, int tensor, int consumer);
/* A stage that computes nothing: one load, or a number chosen by index conditions. */
bool is_data_movement(const struct program *p, int tensor);
/* The tensor that the stage copies element by element, in any order; -1 if it does more than that. */
int copied_tensor(const struct program *p, int stage);

/* A stage reads a tensor along `axis` of it at step * y + low .. step * y + low + more, where y is its
 * own axis `own`; a tile has `tile` values of y. */
struct window {
  int axis, own;
  int64_t step, low, more, tile;
};
/* Finds the window of `tensor` that the consumer reads along its own axis `own`. Returns NULL, or a clause
 * that says why it is no window. */
const char *find_window(const struct program *p, int consumer, int tensor, int own,
                        struct window *out);

/* Rows and columns of the tiles that Winograd's convolution can have. */
#define WINOGRAD_TILES(X) X(2) X(4)
bool winograd_has_tile(int64_t tile);
canvas_status winograd_check_tile(canvas_context *ctx, int64_t tile);

#endif
