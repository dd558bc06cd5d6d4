/* Edits of a bound schedule: what comes out is legal again and can be edited once more. */
#include "fuzz.h"

#include <string.h>

static const char program_text[] =
    "program p\nin A f32 [i:16, k:32]\nin B f32 [k:32, j:64]\n"
    "P[i:16, j:64] = A[i, k] * B[k, j] // sum k:32\nY[i:16, j:64] = max(P[i, j], 0)\nout Y\n";
static const char schedule_text[] =
    "i, jo, k, ji:16:vec => @P = i, {jo, ji}/j // k\ni, {jo, ji}:para => @Y = i, {jo, ji}/j\n";

static void check_edit(canvas_context *ctx, const canvas_program *program,
                       const canvas_machine *machine, const canvas_bound *bound, const char *text,
                       size_t size) {
  canvas_bound *once = NULL, *twice = NULL, *again = NULL;
  if (!fine(ctx, canvas_bound_edit(ctx, bound, text, size, &once))) return;
  must(fine(ctx, canvas_bound_new(ctx, program, canvas_bound_schedule(once), machine, &again)),
       "what an edit makes is legal");
  fine(ctx, canvas_bound_edit(ctx, once, text, size, &twice));
  canvas_bound_free(twice);
  canvas_bound_free(again);
  canvas_bound_free(once);
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_machine *machine = fuzz_machine(ctx);
  canvas_program *program = NULL;
  canvas_schedule *schedule = NULL;
  canvas_bound *bound = NULL;
  must(fine(ctx, canvas_program_parse(ctx, program_text, strlen(program_text), &program)),
       "a program parses");
  must(fine(ctx, canvas_schedule_parse(ctx, schedule_text, strlen(schedule_text), &schedule)),
       "a schedule parses");
  must(fine(ctx, canvas_bound_new(ctx, program, schedule, machine, &bound)), "it is legal");
  check_edit(ctx, program, machine, bound, text, size);
  canvas_bound_free(bound);
  canvas_schedule_free(schedule);
  canvas_program_free(program);
  canvas_machine_free(machine);
}
