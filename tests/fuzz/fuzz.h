/* Fuzzing: any bytes whatever end in an object that keeps its promises or in one message.
 *
 * A target is a file fuzz_NAME.c that defines `fuzz`: it parses its input as one kind of text and hands
 * what it gets to the properties below, which end the process where one of them is broken. Linked with libFuzzer and mutator.c it searches (`./dev fuzz NAME`); linked with replay.c it
 * runs over the files in corpus/NAME as a plain test, with any compiler.
 */
#ifndef CANVAS_TESTS_FUZZ_H
#define CANVAS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "canvas.h"

void fuzz(canvas_context *ctx, const char *text, size_t size);

/* What libFuzzer and replay.c call: `fuzz` with a context of its own, and within its time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with `what` unless it holds. */
void must(bool holds, const char *what);

/* True for CANVAS_OK. Any other status must have left one message: not empty, in one line, printable,
 * shorter than the context's room for it, which would mean that its end was cut off. */
bool fine(const canvas_context *ctx, canvas_status status);

/* 64-byte vectors, the same everywhere; to be freed. */
canvas_machine *fuzz_machine(canvas_context *ctx);

/* print -> parse -> print is stable, the hash survives it, facts and pictures are there; its pack for
 * small layers, if there is one, keeps check_pack and check_module. */
void check_kernel(canvas_context *ctx, const canvas_kernel *kernel);

/* print -> parse -> print is stable, the cost is the sum over the targets, every target lowers to a
 * program that keeps check_program. */
void check_pack(canvas_context *ctx, const canvas_pack *pack);

/* PyTorch's text is written, with and without patterns; estimating its gains takes a while. */
void check_module(canvas_context *ctx, const canvas_pack *pack);

/* print -> parse -> print is stable; where the inputs are small some elements of the first output
 * evaluate to a number or an error message. `whole`: an index out of range is our own mistake. */
void check_program(canvas_context *ctx, const canvas_program *program, bool whole);

/* print -> parse -> print is stable, and so is the plan of its memory. */
void check_network(canvas_context *ctx, const canvas_network *network);

#endif
