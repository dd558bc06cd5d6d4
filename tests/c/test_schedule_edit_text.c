// Edits of a bound schedule as text, through the public functions.
#include <stdlib.h>

#include "base/status.h"
#include "check.h"

static const char program[] =
    "program p\nin A f32 [i:16, k:32]\nin B f32 [k:32, j:64]\n"
    "P[i:16, j:64] = A[i, k] * B[k, j] // sum k:32\nY[i:16, j:64] = max(P[i, j], 0)\nout Y\n";
static const char schedule[] = "i, j, k => @P = i, j // k\ni, j => @Y = i, j\n";

static const struct {
  const char *edit, *expected;  // the schedule below its head, or the error message
} rows[] = {
    {"split i 4",
     "i, i_i:4, j, k =>\n    @P = {i, i_i}/i, j // k\ni, i_i, j =>\n    @Y = {i, i_i}/i, j\n"},
    {"\nsplit i 4\n",
     "i, i_i:4, j, k =>\n    @P = {i, i_i}/i, j // k\ni, i_i, j =>\n    @Y = {i, i_i}/i, j\n"},
    {"mark i of P para", "i:para, j, k =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"mark j of Y vec", "i, j, k =>\n    @P = i, j // k\ni, j:vec =>\n    @Y = i, j\n"},
    {"mark k pf 2", "i, j, k:pf(2) =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"reorder i of P", "j, i, k =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"group i of Y para", "i, j, k =>\n    @P = i, j // k\n{i, j}:para =>\n    @Y = i, j\n"},
    {"extent k open", "i, j, k =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"extent k 32", "i, j, k:32 =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"tail k mask", "i, j, k:mask =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"tail k none", "i, j, k =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"move P to i of Y", "stage 'Y' reads 'P', which is computed after it"},
    {"move P to i of Y before Y",
     "i =>\n    j, k =>\n        @P = i, j // k\n    j =>\n        @Y = i, j\n"},
    {"move P to root before Y", "i, j, k =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"keep P j, i heap", "i, j, k =>\n    @P[j][i]:heap = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"stream P", "':stream' is for outputs, 'P' is not an output"},
    {"keep P j, i", "i, j, k =>\n    @P[j][i] = i, j // k\ni, j =>\n    @Y = i, j\n"},
    {"",
     "line 1, column 1: expected an edit (split, merge, reorder, group, ungroup, mark, tail, "
     "extent, move, keep or stream), found the end of the text"},
    {"fuse i j",
     "line 1, column 1: expected an edit (split, merge, reorder, group, ungroup, mark, "
     "tail, extent, move, keep or stream), found 'fuse'"},
    {"split 4", "line 1, column 7: expected the name of a loop, found '4'"},
    {"split z 4", "line 1, column 7: the schedule has no loop 'z'"},
    {"split i i", "line 1, column 9: expected a whole number, found 'i'"},
    {"split i 4 4", "line 1, column 11: expected the end of the edit, found '4'"},
    {"mark i para", "line 1, column 6: loop 'i' stands 2 times, say 'of STAGE' after it"},
    {"mark k of Y para", "line 1, column 6: loop 'k' does not stand around that stage"},
    {"mark k of Z para", "line 1, column 11: the schedule has no stage 'Z'"},
    {"mark k of 3", "line 1, column 11: expected the name of a stage, found '3'"},
    {"mark k pf 9999999", "line 1, column 8: a prefetch is at most 1048576 ahead"},
    {"tail k all", "line 1, column 8: expected mask, peel or none, found 'all'"},
    {"move P i of Y", "line 1, column 8: expected 'to' and a loop, or root, found 'i'"},
    {"move P to i of Y before P", "line 1, column 25: stage 'P' does not stand in that loop"},
    {"keep P i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, "
     "i, "
     "i, i, i, i",
     "line 1, column 104: expected fewer axes, found 'i'"},
    {"merge i j", "loops 'i' and 'j' are not adjacent everywhere"},
    {"ungroup k", "ungroup needs a group of loops"},
};

struct subject {
  canvas_context *ctx;
  canvas_machine *machine;
  canvas_program *program;
  canvas_schedule *schedule;
  canvas_bound *bound;
};

static void open_subject(struct subject *s) {
  s->ctx = canvas_context_new();
  s->machine = canvas_machine_here();
  CHECK_INT(canvas_program_parse(s->ctx, program, sizeof program - 1, &s->program), CANVAS_OK,
            program);
  CHECK_INT(canvas_schedule_parse(s->ctx, schedule, sizeof schedule - 1, &s->schedule), CANVAS_OK,
            schedule);
  CHECK_INT(canvas_bound_new(s->ctx, s->program, s->schedule, s->machine, &s->bound), CANVAS_OK,
            schedule);
}

static void close_subject(struct subject *s) {
  canvas_bound_free(s->bound);
  canvas_schedule_free(s->schedule);
  canvas_program_free(s->program);
  canvas_machine_free(s->machine);
  canvas_context_free(s->ctx);
}

static void edits(void **state) {
  struct subject s;
  open_subject(&s);
  CHECK_ROWS (rows, row) {
    canvas_bound *edited = NULL;
    canvas_status status = canvas_bound_edit(s.ctx, s.bound, row->edit, strlen(row->edit), &edited);
    if (status != CANVAS_OK) {
      CHECK_TEXT(canvas_context_message(s.ctx), row->expected, row->edit);
      continue;
    }
    char *text = canvas_schedule_print(canvas_bound_schedule(edited));
    CHECK_TEXT(text + strlen("canvas 1\n"), row->expected, row->edit);
    canvas_string_free(text);
    canvas_bound_free(edited);
  }
  close_subject(&s);
}

// A group, and a split, and back.
static void there_and_back(void **state) {
  static const char *const pairs[][2] = {{"group i of Y para", "ungroup i of Y"},
                                         {"split i 4", "merge i i_i"}};
  struct subject s;
  open_subject(&s);
  char *before = canvas_schedule_print(canvas_bound_schedule(s.bound));
  for (int i = 0; i < 2; i++) {
    canvas_bound *there, *back;
    CHECK_INT(canvas_bound_edit(s.ctx, s.bound, pairs[i][0], strlen(pairs[i][0]), &there),
              CANVAS_OK, canvas_context_message(s.ctx));
    CHECK_INT(canvas_bound_edit(s.ctx, there, pairs[i][1], strlen(pairs[i][1]), &back), CANVAS_OK,
              canvas_context_message(s.ctx));
    canvas_bound_free(there);
    char *after = canvas_schedule_print(canvas_bound_schedule(back));
    CHECK_TEXT(after, before, pairs[i][0]);
    canvas_string_free(after);
    canvas_bound_free(back);
  }
  canvas_string_free(before);
  close_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(edits), cmocka_unit_test(there_and_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
