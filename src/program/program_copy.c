/* A program of its own that says the same. See program.h. */
#include <stdlib.h>

#include "program/program.h"

struct program *program_copy(const struct program *p) {
  canvas_context ctx;
  struct program *out;
  struct buf text = {0};
  program_print(p, &text);
  if (program_parse(&ctx, text.text, text.length, &out) != CANVAS_OK)
    abort(); /* what a verified program prints parses back */
  buf_free(&text);
  return out;
}
