/* Text of finished code (code/pipeline.h): printers of a tree of statements, one for each language.
 * print_c.h lists the files that print C.
 *
 * The C that is written compiles alone with `cc -O2 -c`, without warnings, with gcc and clang, with
 * or without -fopenmp. One function:
 *
 *     int NAME(const float *X, const int32_t *ptr, ..., float *Y);
 *
 * inputs, then outputs, in the program's order, whole tensors, row-major: float, double, uint16_t
 * (bf16), int32_t. It returns 0, or 1 where there was no memory for its buffers. Nothing it is
 * given is kept; two threads may call it at once. Where its buffers are too large for the stack
 * there are three more functions: emit_workspace.c.
 */
#ifndef CANVAS_EMIT_EMIT_H
#define CANVAS_EMIT_EMIT_H

#include "base/buf.h"
#include "bind/loop_tree.h"
#include "code/code.h"

/* Tensors in one piece of memory: in the place of the last inputs, or of the outputs, there is one
 * parameter, `const void *packed` after the inputs, or `void *packed`. */
struct emit_packed {
  int count;
  const int64_t *offset; /* of each, in bytes */
  bool outputs;
};

struct emit_options {
  const char *function; /* NULL: the program's name, made a C name */
  const char *source;   /* for the head comment: where it came from (a kernel's text); or NULL */
  const struct emit_packed *packed; /* NULL: every tensor is a parameter of its own */
  const bool *shared; /* by tensor of the parameters: an output may be written in the place of an
                         input, so that neither is `restrict`; NULL: none */
  bool local;         /* the function is `static` */
  /* Whose axes a header shows, of tensors with these names, as edits merge some; NULL: those of the
   * tree. */
  const struct program *given;
  /* Not NULL: the function takes memory for its buffers as its last argument, `void *workspace`,
   * and these are its bytes, at a multiple of 64; with 0 it takes none. */
  int64_t *workspace;
};

/* The head comment shows the program and the schedule of `tree`, from which the code was built.
 * Fails with CANVAS_BAD_INPUT where the text becomes too long. */
canvas_status emit_c(canvas_context *ctx, const struct code *code, const struct loop_tree *tree,
                     const struct emit_options *options, struct buf *out);

/* The name that emit_c gives to a function of this name: that of no keyword, type or library
 * function. Freed with mem_free. */
char *emit_c_function(const char *hint);

/* The declaration with its comment (shapes, layout of each tensor), guarded, also for C++. With
 * `prepare`, what fills the memory of options->packed, that of NAME_prepare before it, and the
 * bytes of the memory, NAME_packed_bytes. */
struct emit_prepare {
  const struct program *program;
  int64_t bytes;
};
void emit_c_header(const struct code *code, const struct program *program,
                   const struct emit_options *options, const struct emit_prepare *prepare,
                   struct buf *out);

#endif
