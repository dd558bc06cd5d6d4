/* Makes choices of the numbers of a schedule.
 *
 *     oc_oo, h, w_o, oc_b:2, kh, kw, ic, w_i:14:unroll, oc_v:32:vec
 *     oc_oo, h, w_o, oc_b:{1,2,4,8}, kh, kw, ic, w_i:{7,8,10,14}:peel:unroll, oc_v:32:vec
 *
 * Rows: the smallest number for each number of tiles that registers permit, so that remainders are
 * small. Blocks of panels: divisors of their number. Blocks of rows, whose tiles are open: powers
 * of two.
 */
#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "tune/sketch.h"

enum {
  MOST = 12,    /* limit of choices of a number */
  BEYOND = 2,   /* registers that a tile may use beyond the existing: compilers find room */
  LARGEST = 256 /* limit of row tiles in a block */
};

static int find_leaf(const struct schedule *s, const char *stage) {
  for (int i = 0; i < s->nodes.count; i++)
    if (s->nodes.data[i].kind == NODE_LEAF && !strcmp(s->nodes.data[i].leaf.stage, stage)) return i;
  return -1;
}

/* The levels of an axis of the stage. */
static const struct schedule_axis *levels_of(const struct schedule *s, int leaf, int axis) {
  return &s->nodes.data[leaf].leaf.axes.data[axis];
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void add_choice(struct level *level, int64_t number) {
  for (int i = 0; i < level->choices.count; i++)
    if (level->choices.data[i] == number) return;
  VEC_PUSH(&level->choices, number);
  qsort(level->choices.data, (size_t)level->choices.count, sizeof number, ascending);
}

static void close_choices(struct level *level, enum level_tail tail) {
  if (level->choices.count < 2) return;
  level->kind = EXTENT_CHOICE;
  level->extent = 0;
  level->tail = tail;
}

static int64_t vectors_of(const struct default_made *made, const struct machine *machine) {
  const struct program_tensor *t = &made->program->tensors.data[made->stage];
  int lanes = machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4);
  return made->tile.vector_axis < 0 ? 1 : (made->tile.steps + lanes - 1) / lanes;
}

/* Whether fewer rows would need more tiles. */
static bool is_least(int64_t size, int64_t rows) {
  return (size + rows - 1) / rows < (size + rows - 2) / (rows - 1);
}

static bool has_other_rows(const struct default_made *made, int axis) {
  for (int i = 0; i < made->program->tensors.data[made->stage].rank; i++)
    if (i != axis && i != made->tile.vector_axis && made->tile.rows[i] > 1) return true;
  return false;
}

/* Opens the rows of an axis. A tile uses at least a quarter of the registers, unless another axis
 * has rows, too. */
static void open_rows(const struct default_made *made, const struct machine *machine, int axis,
                      struct level *level) {
  int64_t size = made->program->tensors.data[made->stage].axes[axis].size;
  int64_t vectors = vectors_of(made, machine);
  int64_t most = (machine->registers + BEYOND - 1 - vectors) / vectors;
  int64_t least = has_other_rows(made, axis) ? 2 : most / 4;
  int64_t largest = int_min(most, size), few = 1 + (largest - least) / MOST;
  add_choice(level, made->tile.rows[axis]);
  for (int64_t rows = largest; rows > 1 && level->choices.count < MOST; rows--)
    if (size % rows == 0 || (rows >= least && is_least(size, rows) && (largest - rows) % few == 0))
      add_choice(level, rows);
  close_choices(level, TAIL_PEEL);
}

static void open_blocks(const struct default_made *made, struct level *level) {
  const struct default_tile *tile = &made->tile;
  int64_t size = made->program->tensors.data[made->stage].axes[tile->block_axis].size;
  bool panels = tile->block_axis == tile->vector_axis;
  int64_t steps = panels ? tile->steps : tile->rows[tile->block_axis];
  int64_t count = (size + steps - 1) / steps;
  add_choice(level, tile->cache_block);
  add_choice(level, 1);
  for (int64_t blocks = 2; blocks <= count && level->choices.count < MOST; blocks++) {
    bool power = !(blocks & (blocks - 1)) && blocks <= LARGEST;
    if (panels || steps == 1 ? count % blocks == 0 : power) add_choice(level, blocks);
  }
  if (panels || steps == 1) add_choice(level, count);
  close_choices(level, panels || steps == 1 ? level->tail : TAIL_NONE);
}

void sketch_open(const struct default_made *made, const struct default_constraint *constraint,
                 const struct machine *machine) {
  const struct program_tensor *t = &made->program->tensors.data[made->stage];
  int leaf = find_leaf(made->schedule, t->name);
  if (leaf < 0 || !constraint->tile) return;
  for (int i = 0; i < t->rank; i++) {
    const struct schedule_axis *a = levels_of(made->schedule, leaf, i);
    struct level *levels = made->schedule->levels.data;
    if (i != made->tile.vector_axis && made->tile.rows[i] > 1)
      open_rows(made, machine, i, &levels[a->level[a->count - 1]]);
    if (i == made->tile.block_axis) open_blocks(made, &levels[a->level[1]]);
  }
}
