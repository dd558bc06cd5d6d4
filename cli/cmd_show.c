/* canvas show: print a kernel or pack as canonical text, picture, graph, formula, PyTorch code or
 * TVM's tensor expressions. */
#include <stdio.h>
#include <string.h>

#include "command.h"

struct show {
  const char *as;
  char *picture; /* of an SVG file, held back until it is known to be the only one */
  int shown;
};

static int show_torch(struct arguments *a, canvas_pack *pack) {
  canvas_pack *made;
  char *text;
  const canvas_pack *sized = pack_sized(a, pack, &made);
  if (!sized) return EXIT_BAD;
  canvas_status status = canvas_pack_torch(a->ctx, sized, !option_given(a, "--literal"), &text);
  if (status == CANVAS_OK)
    put_text(text);
  else
    report_kernel(a, canvas_pack_kernel(pack), status);
  canvas_pack_free(made);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

/* Sizes stay symbols: bind lines and --at only add what the layers do around the kernel. */
static int show_formula(struct arguments *a, canvas_pack *pack, bool latex) {
  canvas_pack *made = NULL;
  const canvas_pack *shown = pack;
  if (option_given(a, "--at")) shown = pack_sized(a, pack, &made);
  if (!shown) return EXIT_BAD;
  put_text(canvas_pack_formula(shown, latex));
  canvas_pack_free(made);
  return EXIT_OK;
}

/* Text keeps the bind lines of a pack; --at adds one to a bare kernel. */
static int show_text(struct arguments *a, canvas_pack *pack) {
  canvas_pack *made = NULL;
  const canvas_pack *shown = pack;
  if (option_given(a, "--at")) shown = pack_sized(a, pack, &made);
  if (!shown) return EXIT_BAD;
  put_text(canvas_pack_print(shown));
  canvas_pack_free(made);
  return EXIT_OK;
}

/* A function for each program; targets have functions of their own. */
static int show_tvm(struct arguments *a, const struct program_item *item, void *data) {
  struct show *s = data;
  char *text;
  canvas_status status = canvas_program_tvm(a->ctx, item->program, item->name, &text);
  if (status != CANVAS_OK) return report_status(a, item->name, status);
  if (s->shown++) putchar('\n');
  put_text(text);
  return EXIT_OK;
}

static int show_svg(struct show *s, const canvas_pack *pack) {
  if (s->shown++)
    return report_error("an SVG picture shows one kernel or pack, but the text holds several");
  s->picture = canvas_pack_svg(pack);
  return EXIT_OK;
}

static int show_one(struct arguments *a, canvas_pack *pack, void *data) {
  struct show *s = data;
  if (!strcmp(s->as, "svg")) return show_svg(s, pack);
  if (s->shown++) putchar('\n');
  if (!strcmp(s->as, "torch")) return show_torch(a, pack);
  if (!strcmp(s->as, "text")) return show_text(a, pack);
  if (!strcmp(s->as, "formula")) return show_formula(a, pack, false);
  if (!strcmp(s->as, "latex")) return show_formula(a, pack, true);
  for (int i = 0; i < canvas_pack_kernels(pack); i++) {
    canvas_pack *part = canvas_pack_part(pack, i);
    if (i) putchar('\n');
    put_text(canvas_kernel_dot(canvas_pack_kernel(part)));
    canvas_pack_free(part);
  }
  return EXIT_OK;
}

/* The kernel that takes the stride itself, as a pack without bindings; NULL after an error message. */
static canvas_pack *strided(struct arguments *a, const canvas_pack *pack, const char *mode) {
  const canvas_kernel *kernel = canvas_pack_kernel(pack);
  canvas_kernel *made;
  canvas_pack *out = NULL;
  if (canvas_pack_count(pack)) {
    report_error("'%s' has bind lines, --stride takes kernels alone", canvas_kernel_name(kernel));
    return NULL;
  }
  canvas_status status = canvas_kernel_stride(a->ctx, kernel, mode, &made);
  if (status == CANVAS_OK) {
    char *text = canvas_kernel_print(made);
    status = canvas_pack_parse(a->ctx, text, strlen(text), &out);
    canvas_string_free(text);
    canvas_kernel_free(made);
  }
  if (status != CANVAS_OK) report_kernel(a, kernel, status);
  return out;
}

static int show(struct arguments *a, canvas_pack *pack, void *data) {
  const char *mode = option_text(a, "--stride", NULL);
  if (!mode) return show_one(a, pack, data);
  canvas_pack *made = strided(a, pack, mode);
  int answer = made ? show_one(a, made, data) : EXIT_BAD;
  canvas_pack_free(made);
  return answer;
}

static bool is_form(const char *as) {
  static const char *const forms[] = {"text", "svg", "dot", "formula", "latex", "torch", "tvm"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (!strcmp(forms[i], as)) return true;
  return false;
}

static int run(struct arguments *a) {
  struct show s = {.as = option_text(a, "--as", option_given(a, "--svg") ? "svg" : "text")};
  bool tvm = !strcmp(s.as, "tvm");
  if (!is_form(s.as))
    return report_error("--as takes text, svg, dot, formula, latex, torch or tvm, not '%.60s'",
                        s.as);
  if (option_given(a, "--svg") && option_given(a, "--as"))
    return report_error("--svg means --as svg, give only one of them");
  if (!tvm && (option_given(a, "--target") || option_given(a, "-N")))
    return report_error("--target and -N go with --as tvm");
  if (tvm && (option_given(a, "--stride") || option_given(a, "--literal")))
    return report_error("--stride and --literal do not go with --as tvm");
  if (tvm) return programs_each(a, a->operand[0], show_tvm, &s);
  int answer = file_each(a, a->operand[0], show, &s);
  if (s.picture && answer == EXIT_OK) fputs(s.picture, stdout);
  canvas_string_free(s.picture);
  return answer;
}

const struct command command_show = {
    .subcommand = "show",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "print kernels and packs as text, picture, formula or code",
    .details =
        "PyTorch code and TVM's tensor expressions need sizes: the bind lines of a pack, or\n"
        "--at. With --as tvm FILE may also hold a program or a network.\n",
    .example = "canvas sample --targets \"64,56,56\" | canvas show - --svg",
    .options =
        {{"--as", "text|svg|dot|formula|latex|torch|tvm",
          "canonical text (default), SVG picture, Graphviz graph, sums over indices as text or "
          "LaTeX, "
          "torch.nn.Module, or Python in TVM's tensor expressions"},
         {"--svg", NULL, "the same as --as svg"},
         {"--at", "SIZES",
          "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
         {"--stride", "MODE",
          "pool (default), window or output: where the kernel takes the stride of its layers"},
         {"--literal", NULL, "with --as torch: one operator per primitive, no patterns"},
         {"--target", "NAME", "with --as tvm: only this target of a pack"},
         {"-N", "BATCH", "with --as tvm: batch size (default 1)"}},
    .run = run,
};
