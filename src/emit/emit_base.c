/* The walk over a bound tree: loops, the conditions around them, buffers, and where reductions begin
 * and end. See emit_base.h.
 */
#include "emit/emit_base.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const struct schedule_node *node_at(const struct emitter *e, int node) {
  return &e->schedule->nodes.data[node];
}

/* ---- lines ---- */

enum { COLUMNS = 100 };

/* Where a line that is too long is broken: at the blank that stands in the fewest brackets, after a
 * comma if there is one, of those in the second half the last. */
static size_t find_break(const char *text, size_t room) {
  size_t best = 0;
  int depth = 0, least = 1 << 30;
  for (size_t i = 1; i <= room; i++) {
    depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
    int rank = 2 * depth + (text[i - 1] != ',');
    if (text[i] != ' ' || (i < room / 2 && best)) continue;
    if (rank <= least || best < room / 2) {
      best = i;
      least = rank;
    }
  }
  return best;
}

void emit_wrapped(const char *text, size_t length, int depth, struct buf *out) {
  size_t indent = 2 * (size_t)depth;
  for (;; indent = 2 * (size_t)depth + 4) {
    buf_pad(out, out->length, indent);
    size_t room = indent + 40 < COLUMNS ? COLUMNS - indent : 40;
    size_t cut = length > room ? find_break(text, room) : 0;
    if (!cut) break;
    buf_bytes(out, text, cut);
    buf_puts(out, "\n");
    text += cut + 1;
    length -= cut + 1;
  }
  buf_bytes(out, text, length);
}

static void print_into(struct buf *out, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = text_vformat(NULL, 0, format, again);
  va_end(again);
  char *text = mem_alloc((size_t)length + 1);
  text_vformat(text, (size_t)length + 1, format, args);
  buf_bytes(out, text, (size_t)length);
  free(text);
}

void emit_line(struct emitter *e, const char *format, ...) {
  struct buf text = {0};
  va_list args;
  va_start(args, format);
  print_into(&text, format, args);
  va_end(args);
  emit_wrapped(text.text, text.length, e->depth, &e->out);
  buf_puts(&e->out, "\n");
  buf_free(&text);
  e->statements++;
  e->effects++;
}

/* `text;` without effect of its own */
static void put_declaration(struct emitter *e, const char *text) {
  emit_line(e, "%s", text);
  e->effects--;
}

struct block emit_open(struct emitter *e, const char *format, ...) {
  struct block block = {.start = e->out.length,
                        .statements = e->statements,
                        .effects = e->effects,
                        .copied = e->copied};
  struct buf text = {0};
  va_list args;
  va_start(args, format);
  print_into(&text, format, args);
  va_end(args);
  emit_wrapped(text.text, text.length, e->depth, &e->out);
  buf_free(&text);
  block.head = e->out.length;
  buf_puts(&e->out, "\n");
  e->depth++;
  e->statements = e->effects = 0;
  return block;
}

static void insert(struct buf *out, size_t at, const char *text) {
  size_t length = strlen(text), rest = out->length - at;
  buf_puts(out, text);
  memmove(out->text + at + length, out->text + at, rest);
  memcpy(out->text + at, text, length);
}

void emit_close(struct emitter *e, struct block block) {
  bool bare = e->out.text[block.head - 1] == '{';
  e->depth--;
  e->copied = block.copied;
  if (!e->effects) {
    e->out.length = block.start;
    e->statements = block.statements;
    e->effects = block.effects;
    return;
  }
  if (bare || e->statements > 1) {
    if (!bare) insert(&e->out, block.head, " {");
    buf_pad(&e->out, e->out.length, 2 * (size_t)e->depth);
    buf_puts(&e->out, "}\n");
  }
  e->statements = block.statements + 1;
  e->effects = block.effects + 1;
}

/* ---- buffers ---- */

static const char *held_type(struct emitter *e, const struct held *h, char name[16]) {
  if (h->at.kind != STORAGE_NAMED && !h->at.per_lane) return e->words->type[h->at.dtype];
  return emit_vector_type(e, h->at.dtype == PROGRAM_F64, h->at.lanes, name);
}

/* v16 acc_0 = START, acc_1 = START; without a start where that comes by a statement */
static void declare_names(struct emitter *e, const struct held *h, const char *start) {
  struct buf text = {0};
  char type[16];
  int64_t variables = storage_variables(&h->at);
  buf_printf(&text, "%s ", held_type(e, h, type));
  for (int64_t i = 0; i < variables; i++) {
    buf_printf(&text, "%s%s", i ? ", " : "", h->name);
    if (variables > 1) buf_printf(&text, "_%" PRId64, i);
    buf_printf(&text, "%s%s", start ? " = " : "", start ? start : "");
  }
  buf_puts(&text, ";");
  put_declaration(e, text.text);
  buf_free(&text);
}

static void declare_array(struct emitter *e, const struct held *h) {
  char type[16], text[256];
  snprintf(text, sizeof text, "_Alignas(64) %s %s[%" PRId64 "];", held_type(e, h, type), h->name,
           h->at.elements);
  put_declaration(e, text);
}

static void declare(struct emitter *e, const struct held *h, const char *start) {
  if (h->at.kind == STORAGE_HEAP) return;
  if (h->at.kind == STORAGE_NAMED)
    declare_names(e, h, start);
  else
    declare_array(e, h);
}

/* The buffers that live as long as one iteration of the loop. */
static void declare_at(struct emitter *e, int compute_at) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    if (b->compute_at == compute_at && !b->is_output && !b->dead && !b->declares_init)
      declare(e, &e->stages[i].value, NULL);
  }
}

/* (void)NAME; for the variables that are not `read` */
static void excuse(struct emitter *e, const struct held *h, uint64_t read) {
  int64_t variables = h->at.kind == STORAGE_NAMED ? storage_variables(&h->at) : 1;
  for (int j = 0; j < variables; j++) {
    if (read >> j & 1) continue;
    char number[16] = "";
    if (variables > 1) snprintf(number, sizeof number, "_%d", j);
    emit_line(e, "(void)%s%s;", h->name, number);
    e->effects--;
  }
}

/* For what is computed there though nothing reads it, as edges of tiles are. */
static void excuse_unread(struct emitter *e, int compute_at) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    struct stage_plan *plan = &e->stages[i];
    const struct held *h = &plan->value;
    if (b->compute_at != compute_at || b->is_output || b->dead) continue;
    excuse(e, h, h->at.kind == STORAGE_NAMED ? plan->read : e->loaded[b->tensor]);
    plan->read = 0;
    e->loaded[b->tensor] = false;
  }
}

typedef void on_held(struct emitter *e, const struct held *h, void *data);

static void each_heap(struct emitter *e, int region, on_held *call, void *data) {
  for (int i = 0; i < e->tree->count; i++) {
    const struct stage_plan *plan = &e->stages[i];
    if (plan->value.at.kind == STORAGE_HEAP && plan->value.at.region == region)
      call(e, &plan->value, data);
    if (plan->sum.at.kind == STORAGE_HEAP && plan->sum.at.region == region)
      call(e, &plan->sum, data);
  }
}

static void allocate(struct emitter *e, const struct held *h, void *data) {
  struct buf *missing = data;
  char type[16], text[256];
  e->used |= HELP_HEAP;
  const char *name = held_type(e, h, type);
  snprintf(text, sizeof text, "%s *%s = aligned_alloc(64, %" PRId64 ");", name, h->name,
           (storage_bytes(&h->at) + 63) / 64 * 64);
  put_declaration(e, text);
  buf_printf(missing, "%s!%s", missing->length ? " || " : "", h->name);
}

static void release(struct emitter *e, const struct held *h, void *data) {
  (void)data;
  emit_line(e, "free(%s);", h->name);
}

static void count_heap(struct emitter *e, const struct held *h, void *data) {
  (void)e;
  (void)h;
  ++*(int *)data;
}

static int heaps(struct emitter *e, int region) {
  int count = 0;
  each_heap(e, region, count_heap, &count);
  return count;
}

/* ---- loops ---- */

static void children(struct emitter *e, int node);
static void walk(struct emitter *e, int node);
static void prefetch(struct emitter *e, int node);

/* The inside of a loop; `data` is what the loop is of. */
typedef void inside(struct emitter *e, int node, int data);

static void body(struct emitter *e, int node, int data) {
  (void)data;
  if (node_at(e, node)->loop.count > 1) prefetch(e, node);
  children(e, node);
}

/* What stands where the digits are constants: in braces if it begins with variables that the next
 * copy declares, too. */
static void copy(struct emitter *e, int node, inside *in, int data) {
  if (e->copied && e->nodes[node].declares && in == body) {
    struct block block = emit_open(e, "{");
    e->copied = false;
    in(e, node, data);
    e->copied = true;
    emit_close(e, block);
  } else {
    in(e, node, data);
  }
}

static void at_constant(struct emitter *e, int node, int level, int64_t value, inside *in,
                        int data) {
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  e->digit[level] = px_int(e->px, value);
  copy(e, node, in, data);
  e->digit[level] = -1;
  loop_space_rollback(&e->space, m);
}

/* for (long NAME = from; NAME < to; NAME++), in parallel if that is asked for */
static struct block open_for(struct emitter *e, const char *name, int64_t from, int64_t to,
                             int64_t step) {
  size_t start = e->out.length;
  char steps[40] = "++";
  if (step > 1) snprintf(steps, sizeof steps, " += %" PRId64, step);
  if (e->parallel) {
    int statements = e->statements, effects = e->effects;
    char loops[40] = "";
    if (e->parallel > 1) snprintf(loops, sizeof loops, " collapse(%d)", e->parallel);
    emit_line(e, "PRAGMA(omp %sfor%s)", e->region ? "" : "parallel ", loops);
    e->used |= HELP_PARALLEL;
    e->parallel = 0;
    e->statements = statements;
    e->effects = effects;
  }
  struct block block = emit_open(e, "for (%s %s = %" PRId64 "; %s < %" PRId64 "; %s%s)",
                                 e->words->index, name, from, name, to, name, steps);
  block.start = start;
  block.copied = e->copied;
  e->copied = false;
  return block;
}

static void counted_loop(struct emitter *e, int node, int level, int64_t from, int64_t to,
                         inside *in, int data) {
  if (to - from == 1) {
    at_constant(e, node, level, from, in, data);
    return;
  }
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  struct block block = open_for(e, e->level_name[level], from, to, 1);
  e->digit[level] = loop_space_axis(&e->space, e->level_name[level], from, to - from);
  if (node_at(e, node)->loop.count == 1) prefetch(e, node);
  in(e, node, data);
  e->digit[level] = -1;
  loop_space_rollback(&e->space, m);
  emit_close(e, block);
}

static bool below(const struct bound_stage *b, int node) {
  return stage_step(b, node) < b->steps;
}

/* Of a level that is opened next: how many of its iterations any stage needs (`some`), and how
 * many are full for all stages that want full tiles without a condition. */
static void tiles(struct emitter *e, int node, int level, int64_t extent, int64_t *some,
                  int64_t *full) {
  *some = 0;
  *full = extent;
  for (int i = 0; i < e->tree->count; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    if (!below(b, node)) continue;
    int at = 0;
    while (b->path[at].level != level) at++;
    int axis = b->path[at].axis;
    if (axis < 0 || !b->tail[axis]) {
      *some = extent;
      continue;
    }
    int64_t size = e->program->tensors.data[b->tensor].axes[axis].size, inner = 0;
    int64_t weight = b->path[at].weight;
    for (int j = at + 1; j < b->steps; j++)
      if (b->path[j].axis == axis) inner += (b->path[j].extent - 1) * b->path[j].weight;
    int outer = space_axis(&e->space, b, axis);
    struct px_range base = {0};
    if (outer >= 0) base = px_range(e->px, outer);
    int64_t alive = base.low < size ? (size - base.low + weight - 1) / weight : 0;
    int64_t whole = base.high + inner < size ? (size - base.high - inner + weight - 1) / weight : 0;
    if (alive > extent) alive = extent;
    if (alive > *some) *some = alive;
    bool peels = e->tree->loops[node].peels && b->how[axis] == TAIL_PEEL;
    if (peels && whole < *full) *full = whole;
  }
}

/* One level: constant, written out, or a loop; full tiles first where the rest is peeled. */
static void level_loop(struct emitter *e, int node, int level, int64_t extent, inside *in,
                       int data) {
  int64_t some, full;
  int parallel = e->parallel;
  bool copied = e->copied;
  tiles(e, node, level, extent, &some, &full);
  if (e->tree->loops[node].parallel && (e->region || node_at(e, node)->loop.count > 1))
    some = full = extent;
  if (full > some) full = some;
  if (e->tree->loops[node].unrolled) {
    e->copied |= some > 1;
    for (int64_t i = 0; i < some; i++) at_constant(e, node, level, i, in, data);
  } else {
    e->copied |= full > 0 && full < some;
    if (full > 0) counted_loop(e, node, level, 0, full, in, data);
    e->parallel = parallel;
    if (full < some) counted_loop(e, node, level, full, some, in, data);
  }
  e->copied = copied;
}

/* The members of a group, from `member` on, one in the other. */
static void members(struct emitter *e, int node, int member) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  if (member == loop->count) {
    copy(e, node, body, 0);
    return;
  }
  int level = loop->level[member];
  level_loop(e, node, level, e->tree->extents[level], member + 1 == loop->count ? body : members,
             member + 1);
}

static void set_group(struct emitter *e, const struct schedule_loop *loop, int at) {
  int64_t inner = 1;
  for (int i = loop->count - 1; i >= 0; i--) {
    int64_t extent = e->tree->extents[loop->level[i]];
    int digit = px_div(e->px, at, px_int(e->px, inner));
    if (i > 0) digit = px_mod(e->px, digit, px_int(e->px, extent));
    e->digit[loop->level[i]] = digit;
    inner *= extent;
  }
}

static void clear_group(struct emitter *e, const struct schedule_loop *loop) {
  for (int i = 0; i < loop->count; i++) e->digit[loop->level[i]] = -1;
}

/* A group as one loop: its members are quotients and remainders. */
static void folded_loop(struct emitter *e, int node) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  const struct bound_loop *bound = &e->tree->loops[node];
  int64_t extent = e->tree->loops[node].extent;
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  bool copied = e->copied;
  e->copied |= bound->unrolled;
  for (int64_t i = 0; bound->unrolled && i < extent; i++) {
    set_group(e, loop, px_int(e->px, i));
    copy(e, node, body, 0);
    clear_group(e, loop);
    loop_space_rollback(&e->space, m);
  }
  e->copied = copied;
  if (bound->unrolled) return;
  struct block block = open_for(e, e->nodes[node].name, 0, extent, 1);
  set_group(e, loop, loop_space_axis(&e->space, e->nodes[node].name, 0, extent));
  prefetch(e, node);
  children(e, node);
  clear_group(e, loop);
  loop_space_rollback(&e->space, m);
  emit_close(e, block);
}

/* A piece of a vec loop: so many lanes from `base` on. */
static void vec_piece(struct emitter *e, int node, int base, int lanes) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  int at = base;
  e->lanes = lanes;
  if (lanes > 1) {
    int lane = loop_space_axis(&e->space, "lane", 0, lanes);
    e->lane = e->space.open - 1;
    at = px_add(e->px, base, lane);
  }
  set_group(e, loop, at);
  copy(e, node, body, 0);
  clear_group(e, loop);
  e->lane = -1;
  e->lanes = 1;
}

static void vec_loop(struct emitter *e, int node) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  const struct bound_loop *bound = &e->tree->loops[node];
  int64_t extent = e->tree->loops[node].extent, some = extent, full, at = 0;
  if (loop->count == 1) tiles(e, node, loop->level[0], extent, &some, &full);
  int64_t whole = some == extent ? extent / bound->lanes * bound->lanes
                                 : (some + bound->lanes - 1) / bound->lanes * bound->lanes;
  if (whole > extent) whole = extent / bound->lanes * bound->lanes;
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  bool copied = e->copied;
  e->copied |= some > bound->lanes;
  if (!bound->unrolled && whole > bound->lanes) {
    struct block block = open_for(e, e->nodes[node].name, 0, whole, bound->lanes);
    int base = loop_space_axis(&e->space, e->nodes[node].name, 0, whole - bound->lanes + 1);
    vec_piece(e, node, base, bound->lanes);
    loop_space_rollback(&e->space, m);
    emit_close(e, block);
    at = whole;
  }
  while (at < extent && at < some) {
    int lanes = bound->lanes;
    while (at + lanes > extent) lanes /= 2;
    vec_piece(e, node, px_int(e->px, at), lanes);
    loop_space_rollback(&e->space, m);
    at += lanes;
  }
  e->copied = copied;
}

/* for (long ko = ptr[r]; ko < ptr[r + 1]; ko++) */
static void dyn_loop(struct emitter *e, int node) {
  int level = node_at(e, node)->loop.level[0], stage = 0, step = 0;
  for (; stage < e->tree->count; stage++) {
    step = stage_step(&e->tree->stages[stage], node);
    if (step < e->tree->stages[stage].steps && e->tree->stages[stage].path[step].axis >= 0) break;
  }
  const struct bound_stage *b = &e->tree->stages[stage];
  const struct program_axis *axis = &e->program->tensors.data[b->tensor].axes[b->path[step].axis];
  const char *name = e->level_name[level];
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  struct buf low = {0}, high = {0};
  emit_index(e, space_expr(&e->space, b, axis->low), 0, &low);
  emit_index(e, space_expr(&e->space, b, axis->high), 1, &high);
  struct block block = emit_open(e, "for (%s %s = %s; %s < %s; %s++)", e->words->index, name,
                                 low.text, name, high.text, name);
  e->digit[level] = loop_space_axis(&e->space, name, axis->first, axis->size);
  prefetch(e, node);
  children(e, node);
  e->digit[level] = -1;
  loop_space_rollback(&e->space, m);
  emit_close(e, block);
  buf_free(&low);
  buf_free(&high);
}

static void loop_of(struct emitter *e, int node) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  if (e->tree->loops[node].dyn)
    dyn_loop(e, node);
  else if (loop->marks & LOOP_VEC)
    vec_loop(e, node);
  else if (loop->marks & LOOP_FOLD && loop->count > 1)
    folded_loop(e, node);
  else
    members(e, node, 0);
}

/* ---- parallel loops ---- */

/* Buffers on the heap are each thread's own: a parallel region around the loop allocates them. */
static void parallel_region(struct emitter *e, int node) {
  struct buf missing = {0};
  struct block outer = emit_open(e, "{");
  put_declaration(e, "int failed = 0;");
  size_t start = e->out.length;
  emit_line(e, "PRAGMA(omp parallel reduction(| : failed))");
  struct block inner = emit_open(e, "{");
  inner.start = start;
  each_heap(e, node, allocate, &missing);
  emit_line(e, "failed = %s;", missing.text);
  e->region = true;
  loop_of(e, node);
  e->region = false;
  each_heap(e, node, release, NULL);
  emit_close(e, inner);
  emit_line(e, heaps(e, 0) ? "if (failed) goto done;" : "if (failed) return 1;");
  emit_close(e, outer);
  buf_free(&missing);
}

static void parallel_loop(struct emitter *e, int node) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  e->parallel = 0;
  for (int i = 0; i < loop->count; i++) e->parallel += e->tree->extents[loop->level[i]] > 1;
  if (loop->marks & LOOP_FOLD) e->parallel = 1;
  if (heaps(e, node))
    parallel_region(e, node);
  else
    loop_of(e, node);
  e->parallel = 0;
}

/* ---- reductions ---- */

/* The loops of a stage from `step` on that do not reduce, around a statement of that moment. */
static void nest(struct emitter *e, int stage, int step, enum moment moment);

static void nest_level(struct emitter *e, int stage, int step, enum moment moment, int64_t from,
                       int64_t to) {
  const struct bound_stage *b = &e->tree->stages[stage];
  const struct step *s = &b->path[step];
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  if (to - from == 1) {
    e->digit[s->level] = px_int(e->px, from);
    nest(e, stage, step + 1, moment);
    e->digit[s->level] = -1;
    loop_space_rollback(&e->space, m);
    return;
  }
  struct block block = open_for(e, e->level_name[s->level], from, to, 1);
  e->digit[s->level] = loop_space_axis(&e->space, e->level_name[s->level], from, to - from);
  nest(e, stage, step + 1, moment);
  e->digit[s->level] = -1;
  loop_space_rollback(&e->space, m);
  emit_close(e, block);
}

static void nest_vec(struct emitter *e, int stage, int step, enum moment moment) {
  const struct bound_stage *b = &e->tree->stages[stage];
  int node = b->path[step].node, next = step;
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  const struct bound_loop *bound = &e->tree->loops[node];
  int64_t extent = e->tree->loops[node].extent, whole = extent / bound->lanes * bound->lanes,
          at = 0;
  while (next < b->steps && b->path[next].node == node) next++;
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  while (at < extent) {
    int lanes = bound->lanes;
    while (at + lanes > extent) lanes /= 2;
    bool rolled = !bound->unrolled && at == 0 && whole > lanes;
    struct block block = {0};
    int base = px_int(e->px, at);
    if (rolled) {
      block = open_for(e, e->nodes[node].name, 0, whole, lanes);
      base = loop_space_axis(&e->space, e->nodes[node].name, 0, whole - lanes + 1);
    }
    e->lanes = lanes;
    if (lanes > 1) {
      int lane = loop_space_axis(&e->space, "lane", 0, lanes);
      e->lane = e->space.open - 1;
      base = px_add(e->px, base, lane);
    }
    set_group(e, loop, base);
    nest(e, stage, next, moment);
    clear_group(e, loop);
    e->lane = -1;
    e->lanes = 1;
    loop_space_rollback(&e->space, m);
    if (rolled) emit_close(e, block);
    at = rolled ? whole : at + lanes;
  }
}

static void nest(struct emitter *e, int stage, int step, enum moment moment) {
  const struct bound_stage *b = &e->tree->stages[stage];
  while (step < b->steps && !stage_spatial(e->tree, b, step)) step++;
  if (step == b->steps) {
    emit_statement(e, stage, moment);
    return;
  }
  const struct step *s = &b->path[step];
  if (node_at(e, s->node)->loop.marks & LOOP_VEC) {
    nest_vec(e, stage, step, moment);
  } else if (e->tree->loops[s->node].unrolled) {
    for (int64_t i = 0; i < s->extent; i++) nest_level(e, stage, step, moment, i, i + 1);
  } else {
    nest_level(e, stage, step, moment, 0, s->extent);
  }
}

/* Variables are declared with the value that they begin from; arrays are filled with it. */
static void begin_sums(struct emitter *e, int stage) {
  const struct bound_stage *b = &e->tree->stages[stage];
  const struct stage_plan *plan = &e->stages[stage];
  const struct held *h = b->direct ? &plan->value : &plan->sum;
  enum program_reducer reducer = e->program->tensors.data[b->tensor].reducer;
  e->wide = b->wide;
  if (b->direct ? b->declares_init : h->at.kind == STORAGE_NAMED) {
    struct buf start = {0};
    int lanes = h->at.per_lane ? e->lanes : h->at.lanes;
    if (lanes > 1 && emit_start_of(reducer) == 0)
      buf_puts(&start, "{0}");
    else
      emit_start_value(e, reducer, lanes, &start);
    declare(e, h, start.text);
    buf_free(&start);
    return;
  }
  if (!b->direct) declare(e, h, NULL);
  nest(e, stage, stage_step(b, b->start), MOMENT_START);
}

static void end_sums(struct emitter *e, int stage) {
  const struct bound_stage *b = &e->tree->stages[stage];
  bool mean = e->program->tensors.data[b->tensor].reducer == REDUCE_MEAN;
  struct stage_plan *plan = &e->stages[stage];
  plan->sums_read = 0;
  if (mean || !b->direct) nest(e, stage, stage_step(b, b->start), MOMENT_END);
  if (b->sum.kind == STORAGE_NAMED) excuse(e, &plan->sum, plan->sums_read);
}

/* ---- prefetch ---- */

/* A buffer that is another one in each iteration of the loop: nothing of it can be ahead. */
static bool lives_inside(const struct emitter *e, int stage, int node) {
  int at = e->tree->stages[stage].compute_at;
  while (at > 0 && at != node) at = e->tree->schedule->nodes.data[at].parent;
  return at == node;
}

/* The addresses below an expression that move with `axes`, of arrays that are not on the stack; of
 * the lanes of a vector that of the first. */
static void prefetch_loads(struct emitter *e, int expr, int node, uint32_t axes, struct buf *seen) {
  if (expr < 0) return;
  struct px_node n = e->px->nodes.data[expr];
  if (n.op != PX_LOAD) {
    for (int i = 0; i < 3; i++) prefetch_loads(e, n.arg[i], node, axes, seen);
    return;
  }
  int place = e->px->indices.data[n.first], stage = e->space.stage_of[n.tensor];
  bool far = stage < 0 || e->stages[stage].value.at.kind == STORAGE_HEAP ||
             e->tree->stages[stage].is_output;
  if (!far || (stage >= 0 && lives_inside(e, stage, node)) || px_range(e->px, place).data ||
      !(px_range(e->px, place).axes & axes))
    return;
  if (e->lane >= 0) place = emit_at_zero(e, place, e->lane);
  if (px_mentions(e->px, place, e->lane)) return;
  struct buf text = {0};
  buf_printf(&text, "__builtin_prefetch(&%s[", e->tensor_name[n.tensor]);
  emit_index(e, place, 0, &text);
  buf_puts(&text, "]);");
  if (!seen->text || !strstr(seen->text, text.text)) emit_line(e, "%s", text.text);
  buf_puts(seen, text.text);
  buf_free(&text);
}

/* How many iterations of the loop, a group as one, came before; `axes`: those that count them. */
static int iteration(struct emitter *e, const struct schedule_loop *loop, uint32_t *axes) {
  int at = px_int(e->px, 0);
  *axes = 0;
  for (int i = 0; i < loop->count; i++) {
    int digit = e->digit[loop->level[i]];
    at = px_add(e->px, px_mul(e->px, at, px_int(e->px, e->tree->extents[loop->level[i]])), digit);
    *axes |= px_range(e->px, digit).axes;
  }
  return at;
}

/* What the loop will load some iterations later: the first element of each stretch. */
static void prefetch(struct emitter *e, int node) {
  const struct schedule_loop *loop = &node_at(e, node)->loop;
  int digits[GROUP_MOST];
  uint32_t axes;
  if (!loop->prefetch) return;
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  struct buf seen = {0};
  for (int i = 0; i < loop->count; i++) digits[i] = e->digit[loop->level[i]];
  int at = iteration(e, loop, &axes);
  set_group(e, loop, px_add(e->px, at, px_int(e->px, loop->prefetch)));
  for (int i = 0; i < e->tree->count && axes; i++) {
    const struct bound_stage *b = &e->tree->stages[i];
    if (stage_step(b, node) < b->steps && !e->tree->stages[i].dead)
      prefetch_loads(e, space_expr(&e->space, b, e->program->tensors.data[b->tensor].body), node,
                     axes, &seen);
  }
  for (int i = 0; i < loop->count; i++) e->digit[loop->level[i]] = digits[i];
  loop_space_rollback(&e->space, m);
  buf_free(&seen);
}

/* ---- the walk ---- */

/* The conditions of a stage's tails that are known before its last loops are: axes all of whose
 * digits stand open. */
static int known_guard(struct emitter *e, int stage, uint64_t *axes) {
  const struct bound_stage *b = &e->tree->stages[stage];
  const struct program_tensor *t = &e->program->tensors.data[b->tensor];
  int condition = px_bool(e->px, true);
  *axes = 0;
  for (int i = 0; i < t->rank + t->reductions; i++) {
    bool known = b->tail[i] && !(e->guarded[stage] >> i & 1);
    for (int j = 0; known && j < b->steps; j++)
      known = b->path[j].axis != i || e->digit[b->path[j].level] >= 0;
    int value = known ? space_axis(&e->space, b, i) : -1;
    if (value < 0 || (e->lane >= 0 && px_mentions(e->px, value, e->lane))) continue;
    *axes |= (uint64_t)1 << i;
    condition =
        px_and(e->px, condition, px_compare(e->px, PX_LT, value, px_int(e->px, t->axes[i].size)));
  }
  return condition;
}

static void child_of(struct emitter *e, int child) {
  for (int i = 0; i < e->tree->count; i++)
    if (e->tree->stages[i].start == child && !e->tree->stages[i].dead) begin_sums(e, i);
  walk(e, child);
  for (int i = 0; i < e->tree->count; i++)
    if (e->tree->stages[i].start == child && !e->tree->stages[i].dead) end_sums(e, i);
}

/* A loop with one stage below, under what is known of its tails already. */
static void guarded_child(struct emitter *e, int child) {
  int stage = e->nodes[child].stage;
  uint64_t axes = 0;
  struct space_checkpoint m = loop_space_checkpoint(&e->space);
  int condition = known_guard(e, stage, &axes);
  struct px_node n = {.op = PX_BOOL, .integer = true};
  if (!e->px->failed) n = e->px->nodes.data[condition];
  if (n.op == PX_BOOL && n.integer) {
    loop_space_rollback(&e->space, m);
    child_of(e, child);
  } else if (n.op != PX_BOOL) {
    struct buf text = {0};
    emit_condition(e, condition, &text);
    struct block block = emit_open(e, "if (%s)", text.text);
    loop_space_rollback(&e->space, m);
    e->copied = false;
    e->guarded[stage] |= axes;
    child_of(e, child);
    e->guarded[stage] &= ~axes;
    emit_close(e, block);
    buf_free(&text);
  }
  loop_space_rollback(&e->space, m);
}

static void children(struct emitter *e, int node) {
  e->parallel = 0;
  if (e->region && e->tree->loops[node].parallel) emit_line(e, "if (failed) continue;");
  bool region = e->region;
  e->region = false;
  declare_at(e, node);
  for (int child = node_at(e, node)->first; child >= 0; child = node_at(e, child)->next)
    if (node_at(e, child)->kind == NODE_LOOP && e->nodes[child].stage >= 0)
      guarded_child(e, child);
    else
      child_of(e, child);
  excuse_unread(e, node);
  e->region = region;
}

static void walk(struct emitter *e, int node) {
  const struct schedule_node *n = node_at(e, node);
  if (e->out.length > EMIT_BYTES || e->px->failed) return;
  if (n->kind == NODE_LOOP && e->tree->loops[node].parallel) {
    parallel_loop(e, node);
  } else if (n->kind == NODE_LOOP) {
    loop_of(e, node);
  } else {
    int stage = e->nodes[node].stage;
    if (!e->tree->stages[stage].dead) emit_statement(e, stage, MOMENT_POINT);
  }
}

void emit_walk(struct emitter *e) {
  struct buf missing = {0};
  bool heap = heaps(e, 0) > 0;
  e->depth = 1;
  e->lane = -1;
  e->lanes = 1;
  if (heap) {
    put_declaration(e, "int status = 1;");
    each_heap(e, 0, allocate, &missing);
    emit_line(e, "if (%s) goto done;", missing.text);
  }
  children(e, 0);
  if (heap) {
    emit_line(e, "status = 0;");
    e->depth--;
    emit_line(e, "done:");
    e->depth++;
    each_heap(e, 0, release, NULL);
  }
  emit_line(e, heap ? "return status;" : "return 0;");
  buf_free(&missing);
}
