/* Texts of many packs, and the form that keeps only their kernels. */
#include "fuzz.h"

#include <string.h>

enum { PACKS = 4 }; /* of one text */

static void check_reader(canvas_context *ctx, const char *text, size_t size) {
  canvas_reader *reader = NULL;
  canvas_pack *pack = NULL;
  if (!fine(ctx, canvas_reader_open(ctx, text, size, &reader))) return;
  for (int i = 0; i < PACKS && fine(ctx, canvas_reader_next(ctx, reader, &pack)); i++) {
    if (canvas_pack_count(pack)) check_pack(ctx, pack), check_module(ctx, pack);
    canvas_pack_free(pack);
  }
  canvas_reader_close(reader);
}

static void check_kernels(canvas_context *ctx, const char *text, size_t size) {
  char *once = NULL, *twice = NULL;
  if (!fine(ctx, canvas_kernels_print(ctx, text, size, &once))) return;
  must(fine(ctx, canvas_kernels_print(ctx, once, strlen(once), &twice)), "printed kernels parse");
  must(strcmp(once, twice) == 0, "the text of many kernels is stable");
  canvas_string_free(once);
  canvas_string_free(twice);
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  check_reader(ctx, text, size);
  check_kernels(ctx, text, size);
}
