/* Writes candidates as C and measures them. See candidates.h. */
#include "tune/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/prepare.h"
#include "prepare/prepared_code.h"

enum { NAME = 32 };

/* ---- texts ----------------------------------------------------------------------------------- */

static const bool *copied(const bool *takes, int count) {
  bool *out = mem_alloc((size_t)count + 1);
  memcpy(out, takes, (size_t)count);
  return out;
}

static canvas_status find_prepared(canvas_context *ctx, const struct loop_tree *tree,
                                   struct measure_prepare *out) {
  struct prepared *p;
  int inputs = tree->program->inputs.count;
  *out = (struct measure_prepare){0};
  TRY(prepare_split(ctx, tree, &p));
  if (p)
    *out = (struct measure_prepare){p->bytes, copied(p->prepare.uses_input, inputs),
                                    copied(p->rest.uses_input, inputs)};
  prepare_free(p);
  return CANVAS_OK;
}

void candidate_forget(struct measure_prepare *prepare) {
  mem_free((bool *)(uintptr_t)prepare->prepare);
  mem_free((bool *)(uintptr_t)prepare->rest);
  *prepare = (struct measure_prepare){0};
}

canvas_status candidate_text(canvas_context *ctx, const struct loop_tree *tree,
                             const char *function, char **text, struct measure_prepare *prepare) {
  const struct emit_options options = {.function = function};
  struct buf out = {0};
  TRY(find_prepared(ctx, tree, prepare));
  canvas_status status = prepared_code(ctx, tree, &options, true, false, &out);
  if (status == CANVAS_OK)
    *text = buf_take(&out);
  else
    candidate_forget(prepare);
  buf_free(&out);
  return status;
}

/* ---- many candidates ------------------------------------------------------------------------- */

struct written {
  char *text; /* NULL: failed, or no tree */
  char name[NAME];
  struct measure_prepare prepare;
};

static void name_of(int at, char name[NAME]) {
  snprintf(name, NAME, "candidate_%d", at);
}

/* Whether the candidate uses Winograd's convolution and the given program does not. */
static bool is_winograd(const struct program *p, const struct program *given) {
  return p->winograd > given->winograd;
}

/* Writes one candidate; a failure becomes its verdict. */
static void write_one(canvas_context *ctx, const struct program *program, int permitted,
                      const struct loop_tree *tree, struct written *w, struct verdict *v) {
  if (!tree) return;
  const struct program *p = tree->program;
  if (!program_same_tensors(p, program))
    verdict_fail(v, FAILED_CHECK,
                 "program '%.100s' has not the inputs and outputs of '%.100s', which is measured",
                 p->name, program->name);
  else if (is_winograd(p, program) && p->winograd > permitted)
    verdict_fail(v, FAILED_CHECK,
                 "program '%.100s' was made by the edit 'winograd' with tiles of %d, which rounds "
                 "more than '%.100s': permit it with winograd = %d",
                 p->name, p->winograd, program->name, p->winograd);
  else if (candidate_text(ctx, tree, w->name, &w->text, &w->prepare) != CANVAS_OK)
    verdict_fail(v, FAILED_CHECK, "%s", ctx->message);
}

canvas_status candidates_measure(canvas_context *ctx, const struct compiler *compiler,
                                 const struct expected *expected, const struct program *program,
                                 const struct loop_tree *const *trees, int count,
                                 const struct batch_options *options, struct verdict *verdicts) {
  struct written *w = mem_alloc((size_t)count * sizeof *w + 1);
  struct batch_candidate *c = mem_alloc((size_t)count * sizeof *c + 1);
  for (int i = 0; i < count; i++) {
    verdicts[i] = (struct verdict){0};
    name_of(i, w[i].name);
    write_one(ctx, program, expected->winograd, trees[i], &w[i], &verdicts[i]);
    c[i] = (struct batch_candidate){w[i].text, w[i].name, w[i].prepare.bytes ? &w[i].prepare : NULL,
                                    trees[i] && is_winograd(trees[i]->program, program)};
  }
  canvas_status status = batch_run(ctx, compiler, expected, c, count, options, verdicts);
  for (int i = 0; i < count; i++) {
    mem_free(w[i].text);
    candidate_forget(&w[i].prepare);
  }
  mem_free(w);
  mem_free(c);
  return status;
}

/* A tree without a text is skipped: it fails when it is measured. */
canvas_status candidate_compile(canvas_context *ctx, const struct compiler *compiler,
                                const struct expected *expected, const struct loop_tree *tree,
                                int at) {
  struct written w = {0};
  canvas_context own;
  name_of(at, w.name);
  if (candidate_text(&own, tree, w.name, &w.text, &w.prepare) != CANVAS_OK) return CANVAS_OK;
  const struct batch_candidate c = {w.text, w.name, w.prepare.bytes ? &w.prepare : NULL, false};
  canvas_status status = batch_compile(ctx, compiler, expected, &c);
  mem_free(w.text);
  candidate_forget(&w.prepare);
  return status;
}
