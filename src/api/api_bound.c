/* A program, a schedule and a machine, bound once: what all that follows takes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "autoschedule/default.h"
#include "base/json.h"
#include "edit/schedule_edit_text.h"
#include "explain/explain.h"
#include "prepare/prepare.h"
#include "prepare/prepare_cost.h"
#include "prepare/prepared_code.h"
#include "rewrite/program_edit.h"
#include "tune/rates_here.h"

static canvas_status bind_default(canvas_context *ctx, const struct program *program,
                                  const struct machine *machine, struct canvas_bound *b) {
  struct default_bound made;
  TRY(default_bind(ctx, program, machine, &made));
  b->made = made.schedule;
  b->tree = made.tree;
  if (!made.edited) return CANVAS_OK;
  b->edited = mem_alloc(sizeof *b->edited);
  *b->edited = (struct shared_program){made.edited, NULL, 1};
  return CANVAS_OK;
}

API_STATUS(canvas_bound_new,
           (canvas_context * ctx, const canvas_program *program, const canvas_schedule *schedule,
            const canvas_machine *machine, canvas_bound **out),
           (ctx, program, schedule, machine, out)) {
  NEED(program);
  NEED(machine);
  NEED(out);
  struct canvas_bound b = {.given = program_of(program)};
  if (schedule)
    TRY(loop_tree_bind(ctx, program_of(program), schedule_of(schedule), machine_of(machine),
                       &b.tree));
  else
    TRY(bind_default(ctx, program_of(program), machine_of(machine), &b));
  *out = mem_alloc(sizeof **out);
  **out = b;
  return CANVAS_OK;
}

API_STATUS(canvas_bound_edit,
           (canvas_context * ctx, const canvas_bound *bound, const char *edit, size_t length,
            canvas_bound **out),
           (ctx, bound, edit, length, out)) {
  NEED(bound);
  NEED(out);
  struct canvas_bound b = {0};
  TRY(schedule_edit_text(ctx, bound->tree, edit, length, &b.tree));
  b.edited = bound->edited;
  b.given = bound->given;
  struct canvas_bound *made = mem_alloc(sizeof *made);
  if (b.edited) __atomic_add_fetch(&b.edited->users, 1, __ATOMIC_RELAXED);
  *made = b;
  *out = made;
  return CANVAS_OK;
}

void canvas_bound_free(canvas_bound *bound) {
  if (!bound) return;
  loop_tree_free(bound->tree);
  schedule_free(bound->made);
  if (bound->edited && !__atomic_sub_fetch(&bound->edited->users, 1, __ATOMIC_ACQ_REL)) {
    program_free(bound->edited->program);
    program_free(bound->edited->given);
    mem_free(bound->edited);
  }
  mem_free(bound);
}

const canvas_schedule *canvas_bound_schedule(const canvas_bound *bound) {
  if (!bound) return NULL;
  return (const canvas_schedule *)bound->tree->schedule;
}

/* ---- facts ----------------------------------------------------------------------------------- */

API_VALUE(char *, canvas_bound_holes, (const canvas_bound *bound), (bound), NULL) {
  if (!bound) return NULL;
  const struct loop_tree *tree = bound->tree;
  struct buf out = {0};
  buf_puts(&out, "");
  for (int i = 0; i < tree->schedule->levels.count; i++)
    if (tree->holes[i])
      buf_printf(&out, "%s%s", out.length ? ", " : "", tree->schedule->levels.data[i].name);
  return buf_take(&out);
}

struct counter {
  const struct loop_tree *tree;
  bool *seen; /* by level */
  canvas_bound_facts *facts;
  int unknown; /* levels without an extent, holes included */
};

static void count_loop(struct counter *c, const struct schedule_loop *loop) {
  c->facts->loops++;
  for (int i = 0; i < loop->count; i++) {
    int level = loop->level[i];
    c->unknown += !c->seen[level] && !c->tree->extents[level];
    c->seen[level] = true;
  }
}

static void count_below(struct counter *c, int node) {
  const struct schedule_node *nodes = c->tree->schedule->nodes.data;
  for (int child = nodes[node].first; child >= 0; child = nodes[child].next) {
    if (nodes[child].kind == NODE_LOOP)
      count_loop(c, &nodes[child].loop);
    else
      c->facts->stages++;
    count_below(c, child);
  }
}

API_VALUE(canvas_bound_facts, canvas_bound_describe, (const canvas_bound *bound), (bound),
          (canvas_bound_facts){0}) {
  if (!bound) return (canvas_bound_facts){0};
  const struct loop_tree *tree = bound->tree;
  canvas_bound_facts facts = {.holes = tree->open_holes};
  struct counter c = {tree, mem_alloc((size_t)tree->schedule->levels.count + 1), &facts, 0};
  count_below(&c, 0);
  mem_free(c.seen);
  facts.following = c.unknown - tree->open_holes;
  return facts;
}

API_VALUE(char *, canvas_bound_warnings, (const canvas_bound *bound), (bound), NULL) {
  if (!bound) return NULL;
  struct buf text = {0};
  buf_puts(&text, "");
  loop_tree_print_warnings(bound->tree, &text);
  return buf_take(&text);
}

/* ---- texts ----------------------------------------------------------------------------------- */

API_STATUS(canvas_bound_explain, (canvas_context * ctx, const canvas_bound *bound, char **out),
           (ctx, bound, out)) {
  NEED(bound);
  NEED(out);
  struct rates rates = {0};
  struct buf text = {0};
  if (!bound->tree->open_holes) TRY(rates_of(ctx, &bound->tree->machine, &rates));
  canvas_status status = schedule_explain(ctx, bound->tree, &rates, &text);
  if (status == CANVAS_OK) *out = buf_take(&text);
  buf_free(&text);
  return status;
}

API_STATUS(canvas_bound_cost_json, (canvas_context * ctx, const canvas_bound *bound, char **out),
           (ctx, bound, out)) {
  NEED(bound);
  NEED(out);
  const struct rates rates = rates_likely(&bound->tree->machine);
  struct cost_parts c;
  TRY(prepare_cost(ctx, bound->tree, &rates, &c));
  const struct {
    const char *name;
    double seconds;
  } rows[] = {{"seconds", c.seconds}, {"compute", c.compute}, {"loads", c.loads},
              {"waits", c.waits},     {"l2", c.l2},           {"l3", c.l3},
              {"memory", c.memory}};
  struct buf text = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    buf_printf(&text, "%s\"%s\": ", i ? ", " : "{", rows[i].name);
    json_number(&text, rows[i].seconds);
  }
  buf_puts(&text, "}\n");
  *out = buf_take(&text);
  return CANVAS_OK;
}

API_VALUE(char *, canvas_bound_program_print, (const canvas_bound *bound), (bound), NULL) {
  if (!bound) return NULL;
  struct buf text = {0};
  program_print(bound->tree->program, &text);
  return buf_take(&text);
}

API_VALUE(char *, canvas_bound_edits, (const canvas_bound *bound), (bound), NULL) {
  if (!bound) return NULL;
  const char *edits = bound->given ? program_edits_since(bound->tree->program, bound->given) : NULL;
  return mem_strdup(edits ? edits : "");
}

API_VALUE(char *, canvas_bound_dot, (const canvas_bound *bound), (bound), NULL) {
  if (!bound) return NULL;
  struct buf text = {0};
  schedule_dot(bound->tree, &text);
  return buf_take(&text);
}

/* What stands in C as it was given; words that mean something there get another letter (emit_names.c). */
static bool is_c_name(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return *name && !name[strspn(name, letters)] && !isdigit((unsigned char)*name);
}

/* ---- code ------------------------------------------------------------------------------------- */

API_STATUS(canvas_bound_emit,
           (canvas_context * ctx, const canvas_bound *bound, const canvas_emit_options *options,
            char **out),
           (ctx, bound, options, out)) {
  NEED(bound);
  NEED(out);
  struct buf text = {0};
  const char *function = options ? options->function : NULL;
  if (function && !is_c_name(function))
    return fail(ctx, CANVAS_BAD_INPUT,
                "'%.200s' is no name of a C function, give letters, digits and '_'", function);
  const struct emit_options given = {
      .function = function, .source = options ? options->source : NULL, .given = bound->given};
  bool prepare = options && options->prepare, header = options && options->header;
  canvas_status status = prepared_code(ctx, bound->tree, &given, prepare, header, &text);
  if (status == CANVAS_OK) *out = buf_take(&text);
  buf_free(&text);
  return status;
}

API_STATUS(canvas_bound_statements,
           (canvas_context * ctx, const canvas_bound *bound, const char *after, char **out),
           (ctx, bound, after, out)) {
  NEED(bound);
  NEED(out);
  struct buf text = {0};
  canvas_status status = prepared_statements(ctx, bound->tree, after, &text);
  if (status == CANVAS_OK) *out = buf_take(&text);
  buf_free(&text);
  return status;
}

API_STATUS(canvas_bound_prepared,
           (canvas_context * ctx, const canvas_bound *bound, canvas_prepared *out),
           (ctx, bound, out)) {
  NEED(bound);
  NEED(out);
  struct prepared *p;
  TRY(prepare_split(ctx, bound->tree, &p));
  int inputs = bound->tree->program->inputs.count;
  canvas_prepared made = {.bytes = p ? p->bytes : 0};
  if (p) {
    made.prepare = mem_alloc((size_t)inputs + 1);
    made.rest = mem_alloc((size_t)inputs + 1);
    memcpy(made.prepare, p->prepare.uses_input, (size_t)inputs);
    memcpy(made.rest, p->rest.uses_input, (size_t)inputs);
  }
  prepare_free(p);
  *out = made;
  return CANVAS_OK;
}

void canvas_prepared_free(canvas_prepared *prepared) {
  if (!prepared) return;
  mem_free(prepared->prepare);
  mem_free(prepared->rest);
  *prepared = (canvas_prepared){0};
}
