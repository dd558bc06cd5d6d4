/* canvas cost: the cost of a kernel at one target or at all targets of its pack. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

static void print_cost(const char *name, int width, const canvas_cost *c) {
  printf("%-*s %14" PRId64 " %14" PRId64 " %12" PRId64 " %12" PRId64 " %14" PRId64 " %14" PRId64
         "\n",
         width, name, c->macs, 2 * c->macs, c->params, c->activations, c->elementwise, c->bytes);
}

static int name_width(const canvas_pack *pack) {
  size_t width = sizeof "target" - 1;
  for (int i = 0; i < canvas_pack_count(pack); i++)
    if (strlen(canvas_pack_target(pack, i)) > width) width = strlen(canvas_pack_target(pack, i));
  for (int i = 0; i < canvas_pack_kept(pack); i++)
    if (strlen(canvas_pack_kept_target(pack, i)) > width)
      width = strlen(canvas_pack_kept_target(pack, i));
  return (int)width;
}

/* One row per target, and their sum where there are several. Rows of another kernel begin with its
 * name. */
static canvas_status print_table(struct arguments *a, const canvas_pack *pack) {
  int width = name_width(pack), count = canvas_pack_count(pack), kept = canvas_pack_kept(pack);
  const canvas_kernel *kernel = canvas_pack_kernel(pack);
  canvas_cost cost;
  canvas_status status = canvas_pack_cost(a->ctx, pack, -1, &cost);
  if (status != CANVAS_OK) return status;
  printf("# %s\n%-*s %14s %14s %12s %12s %14s %14s\n", canvas_kernel_name(kernel), width, "target",
         "macs", "flops", "params", "activations", "elementwise", "bytes");
  if (count + kept > 1) print_cost("all", width, &cost);
  for (int i = 0; i < count; i++) {
    if (canvas_pack_kernel_of(pack, i) != kernel) {
      kernel = canvas_pack_kernel_of(pack, i);
      printf("# %s\n", canvas_kernel_name(kernel));
    }
    status = canvas_pack_cost(a->ctx, pack, i, &cost);
    if (status != CANVAS_OK) return status;
    print_cost(canvas_pack_target(pack, i), width, &cost);
  }
  if (kept) printf("# kept\n");
  for (int i = 0; i < kept; i++) {
    cost = canvas_pack_kept_cost(pack, i);
    print_cost(canvas_pack_kept_target(pack, i), width, &cost);
  }
  return CANVAS_OK;
}

static canvas_status print_json(struct arguments *a, const canvas_pack *pack) {
  char *text;
  canvas_status status = canvas_pack_cost_json(a->ctx, pack, &text);
  if (status != CANVAS_OK) return status;
  put_text(text);
  putchar('\n');
  return CANVAS_OK;
}

static int cost(struct arguments *a, canvas_pack *pack, void *data) {
  int *shown = data;
  canvas_pack *made;
  const canvas_pack *sized = pack_sized(a, pack, &made);
  if (!sized) return EXIT_BAD;
  bool json = option_given(a, "--json");
  if ((*shown)++ && !json) putchar('\n');
  canvas_status status = json ? print_json(a, sized) : print_table(a, sized);
  if (status != CANVAS_OK) report_kernel(a, canvas_pack_kernel(pack), status);
  canvas_pack_free(made);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

static int run(struct arguments *a) {
  int shown = 0;
  return file_each(a, a->operand[0], cost, &shown);
}

const struct command command_cost = {
    .subcommand = "cost",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "count MACs, params, activations, elementwise operations and bytes",
    .details =
        "The counts are for one sample; flops = 2 * macs; bytes are for fp32. A pack has its\n"
        "sizes. A kernel without bind lines needs --at: C, or Cin and Cout; H and W of the\n"
        "layer's input; K, or KH and KW (default 3); stride (default 1); G and x0, x1, ... if\n"
        "the kernel uses them.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "  canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4 |\n"
        "  canvas cost -",
    .options = {{"--at", "SIZES",
                 "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
                {"--json", NULL, "one JSON object per line"}},
    .run = run,
};
