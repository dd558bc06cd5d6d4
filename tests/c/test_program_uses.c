// Uses of a program: for each pair of tensors they agree with stage_loads.
#include "check.h"
#include "program/program_facts.h"
#include "program/program_uses.h"
#include "random_program.h"

static canvas_context ctx;

// The loads of `other` in the list of `tensor`; 0 if it is not there. Lists are ascending.
static int listed(const struct program_use_list *list, int tensor, int other) {
  int found = 0;
  for (int i = list->first[tensor]; i < list->first[tensor + 1]; i++) {
    if (i > list->first[tensor]) assert_true(list->use[i - 1].tensor < list->use[i].tensor);
    assert_true(list->use[i].loads > 0);
    if (list->use[i].tensor == other) found = list->use[i].loads;
  }
  return found;
}

static void agree(const struct program *p, const char *label) {
  struct program_uses uses = program_find_uses(p);
  for (int stage = 0; stage < p->tensors.count; stage++)
    for (int t = 0; t < p->tensors.count; t++) {
      if (p->tensors.data[t].dtype == PROGRAM_I32) continue;
      int loads = stage_loads(p, stage, t);
      CHECK_INT(listed(&uses.operands, stage, t), loads, label);
      CHECK_INT(listed(&uses.consumers, t, stage), loads, label);
    }
  program_free_uses(&uses);
}

static void random_programs(void **state) {
  for (uint64_t seed = 0; seed < 300; seed++) {
    char label[32];
    struct program *p = random_program(seed);
    snprintf(label, sizeof label, "program %d", (int)seed);
    agree(p, label);
    program_free(p);
  }
}

static void several_loads(void **state) {
  const char *text =
      "canvas 1\nprogram p\nin X f32 [n:8]\nin I i32 [n:8] 0..8\n"
      "A[n:8] = X[n] * X[n] + X[I[n]]\nB[n:8] = A[n]\nC[n:8] = B[n] - A[7-n]\nout C\n";
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  struct program_uses uses = program_find_uses(p);
  int a = program_find(p, "A"), x = program_find(p, "X"), i = program_find(p, "I");
  CHECK_INT(listed(&uses.operands, a, x), 3, "loads of X");
  CHECK_INT(listed(&uses.operands, a, i), 0, "index tensors are no operands");
  CHECK_INT(uses.consumers.first[a + 1] - uses.consumers.first[a], 2, "consumers of A");
  program_free_uses(&uses);
  agree(p, "several loads");
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(random_programs), cmocka_unit_test(several_loads))
