// Edits of schedules, and the property that everything rests on: a schedule that the check accepts
// computes what the interpreter says, however it came about.
#include "base/random.h"
#include "random_edit.h"
#include "machines.h"
#include "random_program.h"
#include "edit/schedule_edit.h"
#include "walk_tree.h"

#include "check.h"

// ---- single edits -------------------------------------------------------------------------------

#define GEMM                                                             \
  "canvas 1\nprogram gemm\nin A f32 [i:12, k:8]\nin B f32 [k:8, j:32]\n" \
  "C[i:12, j:32] = A[i, k] * B[k, j] // sum k:8\nD[i:12, j:32] = max(C[i, j], 0)\nout D\n"
#define PLAIN    "i, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"
#define PARALLEL "i:para, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"

enum operation { SPLIT, MERGE, REORDER, MOVE, MARK, TAIL, EXTENT, BUFFER, GROUP, UNGROUP };

// Loops are named: `x` is a level, or the first loop that carries it; `y` another, or a stage.
static const struct {
  enum operation operation;
  const char *x, *y;
  int number;                  // where to move: the node to stand before, plus one
  const char *before, *after;  // the schedule, or the error message
} single[] = {
    {SPLIT, "j", "", 16, PLAIN,
     "i, j, j_i:16, k =>\n    @C = i, {j, j_i}/j // k\ni, j, j_i =>\n    @D = i, {j, j_i}/j\n"},
    {SPLIT, "i", "", 5, PLAIN, "loop 'i' has 12 steps and cannot be split by 5"},
    {SPLIT, "i", "", 4, "{i, j}:para, k =>\n    @C[j][i] = i, j // k\nj, i =>\n    @D = i, j\n",
     "{i, i_i:4, j}:para, k =>\n    @C[j][i][i_i] = {i, i_i}/i, j // k\n"
     "j, i, i_i =>\n    @D = {i, i_i}/i, j\n"},
    {SPLIT, "i", "", 4, "i:12, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n",
     "i:3, i_i:4, j, k =>\n    @C = {i, i_i}/i, j // k\ni, i_i, j =>\n    @D = {i, i_i}/i, j\n"},
    {MERGE, "i", "l", 0,
     "i, l:4, j, k =>\n    @C = {i, l}/i, j // k\ni, l, j =>\n    @D = {i, l}/i, j\n",
     "i, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {MERGE, "i", "j", 0, PLAIN, "loops 'i' and 'j' are not adjacent everywhere"},
    {REORDER, "j", "", 0, PLAIN, "i, k, j =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {REORDER, "k", "", 0, PLAIN, "reorder needs a loop whose only child is a loop"},
    {MOVE, "j", "D", 0, PLAIN, "i, j =>\n    k =>\n        @C = i, j // k\n    @D = i, j\n"},
    {MOVE, "k", "D", 0, PLAIN,
     "stage 'D' stands inside loop 'k' and reads 'C', which is complete "
     "after it"},
    {MOVE, "", "D", 0,
     "i:para =>\n    j, k =>\n        @C = i, j // k\n    j =>\n        @D = i, j\n", PARALLEL},
    {MOVE, "k", "C", 0, PLAIN, "stage 'C' cannot be moved to where it is"},
    {MARK, "i", "", LOOP_PARA, PLAIN,
     "i:para, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {MARK, "k", "", LOOP_PARA, PLAIN, "parallel loop 'k' reduces 'C'"},
    {MARK, "", "", LOOP_PARA, PLAIN, "only a loop has marks"},
    {MOVE, "j", "D", 1, PLAIN, "there is no such place for stage 'D'"},
    {SPLIT, "i", "", 4,
     "{i:12, a:1, b:1, c:1, d:1, e:1, f:1, j}:para, k =>\n"
     "    @C = {i, a, b, c, d, e, f}/i, j // k\nx, j =>\n    @D = {x}/i, j\n",
     "loop 'i' has no room for one more part"},
    {TAIL, "i", "", TAIL_MASK, PLAIN,
     "i:mask, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {EXTENT, "i", "", 12, PLAIN, "i:12, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {EXTENT, "i", "", 0, PLAIN, "i:?, j, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {EXTENT, "i", "", 11, PLAIN, "the parts of axis 'i' of 'C' multiply up to 11, not 12"},
    {EXTENT, "i", "", -1, PLAIN, "loop 'i' cannot be given this extent"},
    {GROUP, "i", "", LOOP_PARA, PLAIN,
     "{i, j}:para, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n"},
    {GROUP, "k", "", 0, PLAIN, "group needs a loop whose only child is a loop"},
    {UNGROUP, "i", "", 0, "{i, j}:fold, k =>\n    @C = i, j // k\ni, j =>\n    @D = i, j\n", PLAIN},
    {UNGROUP, "i", "", 0, PLAIN, "ungroup needs a group of loops"},
    {BUFFER, "", "C", SCOPE_HEAP, PLAIN,
     "i, j, k =>\n    @C[j][i]:heap = i, j // k\ni, j =>\n    @D = i, j\n"},
    {BUFFER, "", "D", SCOPE_HEAP, PLAIN, "'D' is an output, the program says how it is laid out"},
};

static int node_of(const struct schedule *s, int level) {
  for (int i = 1; i < s->nodes.count; i++)
    for (int j = 0; j < s->nodes.data[i].loop.count; j++)
      if (s->nodes.data[i].loop.level[j] == level) return i;
  return 0;
}

static canvas_status apply(canvas_context *ctx, const struct loop_tree *tree,
                           enum operation operation, const char *x, const char *y, int number,
                           struct loop_tree **out) {
  static const char *const layout[] = {"j", "i"};
  int level = schedule_find_level(tree->schedule, x), node = node_of(tree->schedule, level);
  int stage = loop_tree_stage(tree, program_find(tree->program, y));
  switch (operation) {
    case SPLIT: return edit_split(ctx, tree, level, number, out);
    case MERGE: return edit_merge(ctx, tree, level, schedule_find_level(tree->schedule, y), out);
    case REORDER: return edit_reorder(ctx, tree, node, out);
    case MOVE: return edit_move(ctx, tree, stage, node, number - 1, out);
    case MARK: return edit_mark(ctx, tree, node, (unsigned)number, 0, out);
    case TAIL: return edit_tail(ctx, tree, level, (enum level_tail)number, out);
    case EXTENT:
      return edit_extent(ctx, tree, level, number ? EXTENT_INT : EXTENT_HOLE, number, out);
    case GROUP: return edit_group(ctx, tree, node, (unsigned)number, out);
    case UNGROUP: return edit_ungroup(ctx, tree, node, out);
    default: return edit_buffer(ctx, tree, stage, 2, layout, (enum buffer_scope)number, out);
  }
}

static void single_edits(void **state) {
  CHECK_ROWS (single, row) {
    canvas_context ctx = {.message = ""};
    struct program *p;
    struct schedule *s;
    struct loop_tree *tree, *edited = NULL;
    struct buf text = {0};
    assert_int_equal(program_parse(&ctx, GEMM, strlen(GEMM), &p), CANVAS_OK);
    assert_int_equal(schedule_parse(&ctx, row->before, strlen(row->before), &s), CANVAS_OK);
    assert_int_equal(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK);
    if (apply(&ctx, tree, row->operation, row->x, row->y, row->number, &edited) == CANVAS_OK)
      schedule_print(edited->schedule, &text);
    const char *head = "canvas 1\n", *got = edited ? text.text : ctx.message;
    if (edited && strncmp(got, head, strlen(head)) == 0) got += strlen(head);
    CHECK_TEXT(got, row->after, row->before);
    buf_free(&text);
    loop_tree_free(edited);
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
  }
}

// ---- random edits -------------------------------------------------------------------------------

struct editor {
  canvas_context ctx;
  struct random r;
  struct program *p;
  struct schedule *s;
  struct loop_tree *tree;
  int edits, rejected, fused;
};

static int below(struct editor *e, int count) {
  return (int)random_below(&e->r, (uint32_t)count);
}

static const char *text_of(const struct editor *e) {
  static struct buf buf;
  buf.length = 0;
  program_print(e->p, &buf);
  schedule_print(e->s, &buf);
  return buf.text;
}

static void bind_editor(struct editor *e) {
  loop_tree_free(e->tree);
  e->tree = NULL;
  if (loop_tree_bind(&e->ctx, e->p, e->s, &machine_avx512, &e->tree) != CANVAS_OK)
    fail_msg("%s for \"%s\"", e->ctx.message, text_of(e));
}

static void open_editor(struct editor *e, uint64_t seed) {
  *e = (struct editor){.p = random_program(seed)};
  random_open(&e->r, seed, RANDOM_TEST, 9);
  if (program_verify(&e->ctx, e->p) != CANVAS_OK)
    fail_msg("%s for program %d", e->ctx.message, (int)seed);
  e->s = schedule_default(e->p, seed % 2, &machine_avx512);
  bind_editor(e);
}

static void close_editor(struct editor *e) {
  loop_tree_free(e->tree);
  schedule_free(e->s);
  program_free(e->p);
}

static void check_walk(struct editor *e, uint64_t seed) {
  const char *wrong = walk_tree(e->tree, seed);
  if (wrong) fail_msg("%s for program %d:\n%s", wrong, (int)seed, text_of(e));
}

// A stage inside another's loop.
static bool has_fused(const struct loop_tree *tree) {
  for (int i = 0; i < tree->count; i++)
    if (tree->stages[i].compute_at > 0) return true;
  return false;
}

static void try_edit(struct editor *e, uint64_t seed) {
  struct loop_tree *edited;
  if (random_step(&e->ctx, &e->r, e->tree, &edited) != CANVAS_OK) {
    e->rejected++;
    return;
  }
  schedule_free(e->s);
  e->s = loop_tree_take(edited);
  bind_editor(e);
  if (e->tree->open_holes == 0) check_walk(e, seed);
  e->edits++;
}

static int programs(void) {
  return getenv("CANVAS_TEST_ALL") ? 6000 : 300;
}

static void legal_edits_keep_the_result(void **state) {
  int edits = 0, rejected = 0, fused = 0;
  for (int seed = 0; seed < programs(); seed++) {
    struct editor e;
    open_editor(&e, (uint64_t)seed);
    check_walk(&e, (uint64_t)seed);
    for (int i = 0; i < 60; i++) try_edit(&e, (uint64_t)seed);
    fused += has_fused(e.tree);
    edits += e.edits;
    rejected += e.rejected;
    close_editor(&e);
  }
  print_message("%d programs: %d edits kept the result, %d were rejected; %d ended fused\n",
                programs(), edits, rejected, fused);
  CHECK(edits > 4 * programs() && fused > programs() / 8, "random edits reach something");
}

// ---- random damage ------------------------------------------------------------------------------

static struct schedule_axis *some_axis(struct editor *e, struct schedule *s) {
  int node = below(e, s->nodes.count);
  while (s->nodes.data[node].kind != NODE_LEAF) node = (node + 1) % s->nodes.count;
  struct schedule_leaf *leaf = &s->nodes.data[node].leaf;
  return leaf->axes.count ? &leaf->axes.data[below(e, leaf->axes.count)] : NULL;
}

static void damage_axis(struct editor *e, struct schedule *s) {
  struct schedule_axis *axis = some_axis(e, s);
  if (!axis) return;
  if (!axis->axis) axis->axis = s->levels.data[axis->level[0]].name;
  int i = below(e, axis->count), j = below(e, axis->count), old = axis->level[i];
  switch (below(e, 3)) {
    case 0: axis->level[i] = below(e, s->levels.count); break;
    case 1:
      axis->level[i] = axis->level[j];
      axis->level[j] = old;
      break;
    default:
      if (axis->count < SCHEDULE_DEPTH) axis->level[axis->count++] = below(e, s->levels.count);
  }
}

static bool stands_in(const struct schedule *s, int node, int outer) {
  while (node >= 0 && node != outer) node = s->nodes.data[node].parent;
  return node >= 0;
}

static void unhook(struct schedule *s, int node) {
  struct schedule_node *n = &s->nodes.data[node], *above = &s->nodes.data[n->parent];
  int *link = &above->first;
  while (*link != node) link = &s->nodes.data[*link].next;
  *link = n->next;
  above->last = -1;
  for (int i = above->first; i >= 0; i = s->nodes.data[i].next) above->last = i;
}

// Any node under any other, before any child of it.
static void damage_place(struct editor *e, struct schedule *s) {
  int node = below(e, s->nodes.count), parent = below(e, s->nodes.count);
  if (node == 0 || s->nodes.data[parent].kind == NODE_LEAF || stands_in(s, parent, node)) return;
  unhook(s, node);
  int *link = &s->nodes.data[parent].first;
  while (*link >= 0 && below(e, 2)) link = &s->nodes.data[*link].next;
  s->nodes.data[node].next = *link;
  s->nodes.data[node].parent = parent;
  *link = node;
  if (s->nodes.data[node].next < 0) s->nodes.data[parent].last = node;
}

static void damage_loop(struct editor *e, struct schedule *s) {
  struct schedule_loop *x = &s->nodes.data[below(e, s->nodes.count)].loop;
  struct schedule_loop *y = &s->nodes.data[below(e, s->nodes.count)].loop, old = *x;
  if (!x->count || !y->count) return;
  switch (below(e, 4)) {
    case 0: x->marks ^= 1u << below(e, 4); break;
    case 1: x->level[0] = below(e, s->levels.count); break;
    case 2:
      if (x->count < GROUP_MOST) x->level[x->count++] = below(e, s->levels.count);
      x->marks |= LOOP_FOLD;
      break;
    default: *x = *y; *y = old;
  }
}

static void damage_level(struct editor *e, struct schedule *s) {
  struct level *l = &s->levels.data[below(e, s->levels.count)];
  if (l->kind == EXTENT_DYN) return;
  l->kind = below(e, 2) ? EXTENT_INT : EXTENT_OPEN;
  l->extent = 1 + below(e, 8);
  l->tail = (enum level_tail)below(e, 3);
}

// One level takes the place of another everywhere.
static void damage_names(struct editor *e, struct schedule *s) {
  int from = below(e, s->levels.count), to = below(e, s->levels.count);
  for (int i = 0; i < s->nodes.count; i++) {
    struct schedule_node *n = &s->nodes.data[i];
    for (int j = 0; j < n->loop.count; j++)
      if (n->loop.level[j] == from) n->loop.level[j] = to;
    for (int j = 0; j < n->leaf.axes.count; j++)
      for (int k = 0; k < n->leaf.axes.data[j].count; k++) {
        struct schedule_axis *axis = &n->leaf.axes.data[j];
        if (!axis->axis) axis->axis = s->levels.data[axis->level[0]].name;
        if (axis->level[k] == from) axis->level[k] = to;
      }
  }
}

static void damage_layout(struct editor *e, struct schedule *s) {
  struct schedule_node *n = &s->nodes.data[below(e, s->nodes.count)];
  if (n->kind != NODE_LEAF) return;
  n->leaf.layout.count = 0;
  for (int i = below(e, 4); i > 0; i--) {
    const char *name = s->levels.data[below(e, s->levels.count)].name;
    VEC_PUSH(&n->leaf.layout, name);
  }
}

static void damage(struct editor *e, struct schedule *s) {
  switch (below(e, 8)) {
    case 0: damage_axis(e, s); break;
    case 1: damage_loop(e, s); break;
    case 2: damage_level(e, s); break;
    case 3: damage_names(e, s); break;
    case 4: damage_layout(e, s); break;
    default: damage_place(e, s);
  }
}

// Several mistakes at once; whatever passes the check is carried out.
static bool try_damage(struct editor *e, uint64_t seed) {
  struct schedule *old = e->s, *s = schedule_copy(e->s);
  struct loop_tree *tree, *old_tree = e->tree;
  for (int i = 1 + below(e, 3); i > 0; i--) damage(e, s);
  bool accepted = loop_tree_bind(&e->ctx, e->p, s, &machine_avx512, &tree) == CANVAS_OK;
  if (accepted) {
    e->s = s;
    e->tree = tree;
    if (tree->open_holes == 0) check_walk(e, seed);
    loop_tree_free(tree);
    e->tree = old_tree;
    e->s = old;
  }
  schedule_free(s);
  return accepted;
}

static void whatever_is_accepted_is_right(void **state) {
  int accepted = 0, tried = 0;
  for (int seed = 0; seed < programs(); seed++) {
    struct editor e;
    open_editor(&e, (uint64_t)seed);
    for (int i = 0; i < 20; i++) try_edit(&e, (uint64_t)seed);
    for (int i = 0; i < 60; i++, tried++) accepted += try_damage(&e, (uint64_t)seed);
    close_editor(&e);
  }
  print_message("%d of %d damaged schedules passed the check, and were right\n", accepted, tried);
  CHECK(accepted > programs() && accepted < tried / 2, "damage is of both kinds");
}

CHECK_MAIN(cmocka_unit_test(single_edits), cmocka_unit_test(legal_edits_keep_the_result),
           cmocka_unit_test(whatever_is_accepted_is_right))
