// Rearranging primitives cost no stage: the program that a kernel lowers to has index maps in their
// place, and computes what the program with one stage per node does.
#include "check.h"
#include "sanitized.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "lower/lower.h"
#include "program/interpret.h"
#include "program/program_cost.h"
#include "program/program_facts.h"

enum { SAMPLED = SANITIZED ? 40 : 100, ELEMENTS = 40 };

static canvas_context ctx;

// Wider, narrower, strided, odd.
static const char layers[] =
    "same 16 16 8 8 3 1 1\nwider 8 16 9 7 3 2 1\nnarrower 16 8 7 5 3 1 1\n";
/* For kernels that pool their images. */
static const char even_layers[] =
    "same 16 16 8 8 3 1 1\nwider 8 16 15 8 3 2 1\nnarrower 16 8 4 12 3 1 1\n";

struct tally {
  int kernels, programs, stages, nodes;
};

static struct interpreter *interpret(const struct program *p, double **inputs) {
  struct interpreter *in;
  for (int i = 0; i < p->inputs.count; i++) {
    inputs[i] = malloc((size_t)program_elements(p, p->inputs.data[i]) * sizeof(double));
    program_fill(p, i, 3, inputs[i]);
  }
  if (interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in))
    fail_msg("%s", ctx.message);
  return in;
}

// Corners and elements by chance of both programs.
static void check_equal(const struct program *nodes, const struct program *p, struct random *r,
                        const char *name) {
  double *inputs[64], *same_inputs[64], a[ELEMENTS], b[ELEMENTS];
  int64_t at[ELEMENTS], count = program_elements(p, p->outputs.data[0]);
  struct interpreter *first = interpret(nodes, inputs), *second = interpret(p, same_inputs);
  CHECK_INT(nodes->inputs.count, p->inputs.count, name);
  for (int i = 0; i < ELEMENTS; i++)
    at[i] = i == 0 ? 0 : i == 1 ? count - 1 : (int64_t)(random_u64(r) % (uint64_t)count);
  if (interpreter_elements(first, nodes->outputs.data[0], ELEMENTS, at, a) ||
      interpreter_elements(second, p->outputs.data[0], ELEMENTS, at, b))
    fail_msg("%s: %s", name, ctx.message);
  for (int i = 0; i < ELEMENTS; i++) CHECK(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])), name);
  interpreter_free(first);
  interpreter_free(second);
  for (int i = 0; i < p->inputs.count; i++) free(inputs[i]), free(same_inputs[i]);
}

// Every stage computes; only an output may be a copy, of an input or of what others read, too.
static int computing_stages(const struct program *p, const char *name) {
  int stages = 0;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    struct program_cost cost;
    if (t->is_input) continue;
    stages++;
    CHECK_INT(program_cost(&ctx, p, i, &cost), CANVAS_OK, ctx.message);
    if (is_data_movement(p, i) && i != p->outputs.data[0])
      fail_msg("stage '%s' of '%s' only moves data", t->name, name);
  }
  return stages;
}

static void check_binding(const struct pack *pack, int target, struct random *r,
                          struct tally *tally) {
  for (int64_t batch = 1; batch <= 3; batch += 2) {
    struct program *nodes, *p = NULL;
    int tensors[KERNEL_NODES_MAX];
    const struct binding *b = &pack->data[target];
    if (lower_nodes(&ctx, pack->kernel, b, batch, &nodes, tensors) ||
        lower_binding(&ctx, pack->kernel, b, batch, &p))
      fail_msg("'%s': %s", pack->kernel->name, ctx.message);
    CHECK_INT(p->tensors.data[p->outputs.data[0]].axes[0].size, batch, pack->kernel->name);
    tally->programs++;
    tally->nodes += nodes->tensors.count - nodes->inputs.count;
    tally->stages += computing_stages(p, pack->kernel->name);
    check_equal(nodes, p, r, pack->kernel->name);
    program_free(nodes);
    program_free(p);
  }
}

// False if there are no sizes within this budget.
static bool check_kernel(const canvas_kernel *kernel, int64_t groups, const char *budget,
                         struct random *r, struct tally *tally) {
  bool pools = false;
  const struct kernel *k = (const struct kernel *)kernel;
  for (int i = 0; i < k->count; i++) pools |= k->nodes[i].op == PRIMITIVE_POOL;
  const char *at = pools ? even_layers : layers;
  canvas_targets *targets;
  canvas_budget *limits;
  canvas_pack *pack;
  canvas_solve_options options = {.groups = groups, .exempt = true};
  assert_int_equal(canvas_targets_parse(&ctx, at, strlen(at), &targets), CANVAS_OK);
  assert_int_equal(canvas_budget_parse(&ctx, budget, strlen(budget), &limits), CANVAS_OK);
  canvas_status status = canvas_kernel_solve(&ctx, kernel, targets, limits, &options, &pack);
  canvas_targets_free(targets);
  canvas_budget_free(limits);
  if (status != CANVAS_OK) return false;
  tally->kernels++;
  for (int i = 0; i < canvas_pack_count(pack); i++)
    check_binding((const struct pack *)pack, i, r, tally);
  canvas_pack_free(pack);
  return true;
}

static void tell(const struct tally *t) {
  print_message("             %d kernels, %d programs: %d stages of %d\n", t->kernels, t->programs,
                t->stages, t->nodes);
}

static void examples(void **state) {
  char path[1024];
  snprintf(path, sizeof path, "%.*s../../examples/kernels",
           (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
  DIR *folder = opendir(path);
  struct tally tally = {0};
  struct random r;
  random_open(&r, 21, RANDOM_TEST, 0);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    char file[2048], text[8192];
    canvas_kernel *kernel;
    if (!strstr(entry->d_name, ".kernel")) continue;
    snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    FILE *stream = fopen(file, "rb");
    assert_non_null(stream);
    size_t length = fread(text, 1, sizeof text, stream);
    fclose(stream);
    CHECK_INT(canvas_kernel_parse(&ctx, text, length, &kernel), CANVAS_OK, ctx.message);
    if (!check_kernel(kernel, 4, "macs=8x,params=none", &r, &tally))
      fail_msg("%s: %s", entry->d_name, ctx.message);
    canvas_kernel_free(kernel);
  }
  closedir(folder);
  tell(&tally);
  assert_true(tally.kernels >= 13);
}

static void sampled(void **state) {
  struct tally tally = {0};
  canvas_targets *targets;
  canvas_sampler *sampler;
  struct random r;
  random_open(&r, 22, RANDOM_TEST, 0);
  assert_int_equal(canvas_targets_parse(&ctx, layers, strlen(layers), &targets), CANVAS_OK);
  assert_int_equal(canvas_sampler_new(&ctx, targets, "", 0, 5, &sampler), CANVAS_OK);
  for (uint64_t i = 0; tally.kernels < SAMPLED; i++) {
    canvas_kernel *kernel;
    int64_t groups;
    if (canvas_sampler_draw(&ctx, sampler, i, &kernel, &groups) != CANVAS_OK) continue;
    check_kernel(kernel, groups, "macs=0.5x,params=none", &r, &tally);
    canvas_kernel_free(kernel);
  }
  canvas_sampler_free(sampler);
  canvas_targets_free(targets);
  tell(&tally);
  assert_true(tally.stages < tally.nodes * 2 / 3);
}

CHECK_MAIN(cmocka_unit_test(examples), cmocka_unit_test(sampled))
