/* The stages of Winograd's convolution with 3x3 windows (Winograd 1980; Lavin and Gray 2015).
 *
 * An output tile of m x m elements takes (m+2)^2 products of a transformed image and transformed
 * weights instead of 9 m^2: 16 instead of 36 for m = 2, 36 instead of 144 for m = 4.
 *
 *     Y[h, w, k] = X[h+kh, w+kw, c] * W[kh, kw, c, k] // sum kh:3, kw:3, c
 *
 * becomes, with B, G and A the input, filter and output transform:
 *
 *     Y_P[h, w, c]       = X, and 0 where tiles overshoot it           padded image
 *     Y_WR[a, kw, c, k]  = G[a, kh] W[kh, kw, c, k]                    filter transform: columns,
 *     Y_WT[a, b, c, k]   = Y_WR[a, kw, c, k] G[b, kw]                  then rows
 *     Y_R[y, w, a, c]    = B[a, i] Y_P[m*y+i, w, c]                    input transform
 *     Y_T[a, b, y, x, c] = Y_R[y, m*x+j, a, c] B[b, j]
 *     Y_M[a, b, y, x, k] = Y_T[a, b, y, x, c] * Y_WT[a, b, c, k] // sum c
 *     Y_S[y, x, i, b, k] = A[i, a] Y_M[a, b, y, x, k]                  output transform
 *     Y[h, w, k]         = Y_S[h/m, w/m, h%m, b, k] A[w%m, b]
 *
 * In the program the rows of a matrix are a chain of selects, such as
 *
 *     Y_WR[a:6, kw:3, c:16, k:32] = if a == 0 then 0.25 * W[k, c, 0, kw] else if a == 1 then ...
 *
 * When a schedule unrolls a, no condition, no zero and no product with 1 is left. A subexpression
 * that two rows share is the same text in both, so compilers compute it once.
 *
 * Other axes of the image (batch, groups) become axes of its transform. Other reductions become
 * reductions of the products.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/affine.h"
#include "rewrite/program_rebuild.h"
#include "rewrite/winograd_matrices.h"

/* ---- stages by the roles of their axes
 * ----------------------------------------------------------- */

/* The role of an axis: an axis of the convolution, or a, b or i of the head of this file. */
enum { ROLE_A = PROGRAM_AXES, ROLE_B, ROLE_I, ROLES, MADE_AXES = ROLES };

/* A new stage, and the role of each of its axes. */
struct made {
  int stage, rank;
  int role[MADE_AXES];
  int64_t size[MADE_AXES];
};

struct maker {
  struct change *c;
  const struct px_map *map; /* how loads of `from` are copied */
  struct program *to;
  const struct program_tensor *t; /* the convolution */
  const struct winograd *w;
  const struct matrices *m;
  int number;    /* of the convolution */
  int at[ROLES]; /* by role: its expression in the stage being built */
};

static bool of_image(const struct maker *m, int axis) {
  int condition = m->w->guard < 0 ? -1 : m->c->from->nodes.data[m->w->guard].arg[0];
  return px_mentions(m->c->from, m->w->image, axis) || px_mentions(m->c->from, condition, axis);
}

static bool of_weights(const struct maker *m, int axis) {
  return px_mentions(m->c->from, m->w->weights, axis);
}

static bool is_window(const struct maker *m, int axis) {
  return axis == m->w->window[0] || axis == m->w->window[1];
}

/* A reduction of the products: a channel, or any other reduction outside the window. */
static bool is_summed(const struct maker *m, int axis) {
  return axis >= m->t->rank && !is_window(m, axis);
}

static void add(struct made *s, int role, int64_t size) {
  s->role[s->rank] = role;
  s->size[s->rank++] = size;
}

/* Adds the own axes of the convolution that the image depends on, with these sizes for rows and
 * columns. `image`: axes that the image depends on by blocks count blocks. */
static void add_places(const struct maker *m, struct made *s, int64_t rows, int64_t columns,
                       bool image) {
  for (int i = 0; i < m->t->rank; i++) {
    int64_t block = m->w->block[i], size = m->t->axes[i].size;
    if (i == m->w->own[0])
      add(s, i, rows);
    else if (i == m->w->own[1])
      add(s, i, columns);
    else if (of_image(m, i) && (image || !block))
      add(s, i, block ? (size - 1) / block + 1 : size);
  }
}

/* Adds the own axes that the image does not depend on, or depends on by blocks only. */
static void add_others(const struct maker *m, struct made *s) {
  for (int i = 0; i < m->t->rank; i++)
    if (i != m->w->own[0] && i != m->w->own[1] && (!of_image(m, i) || m->w->block[i]))
      add(s, i, m->t->axes[i].size);
}

static void add_summed(const struct maker *m, struct made *s,
                       bool (*of)(const struct maker *, int)) {
  for (int i = m->t->rank; i < m->t->rank + m->t->reductions; i++)
    if (is_summed(m, i) && of(m, i)) add(s, i, m->t->axes[i].size);
}

/* Adds the axes of the weights: those shared with the image, reductions, then the others. */
static void add_weights(const struct maker *m, struct made *s) {
  for (int i = 0; i < m->t->rank; i++)
    if (of_weights(m, i) && of_image(m, i) && !m->w->block[i]) add(s, i, m->t->axes[i].size);
  add_summed(m, s, of_weights);
  for (int i = 0; i < m->t->rank; i++)
    if (of_weights(m, i) && (!of_image(m, i) || m->w->block[i])) add(s, i, m->t->axes[i].size);
}

/* ---- names ---- */

static bool is_axis_of(const struct program_tensor *t, const char *name) {
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (strcmp(t->axes[i].name, name) == 0) return true;
  return false;
}

/* The name a, b or i, with the letter repeated until no axis of the convolution has it. */
static const char *role_name(const struct maker *m, int role) {
  if (role < PROGRAM_AXES) return m->t->axes[role].name;
  char name[PROGRAM_NAME] = {"abi"[role - ROLE_A]};
  while (is_axis_of(m->t, name)) {
    size_t length = strlen(name);
    name[length] = name[0];
    name[length + 1] = '\0';
  }
  return arena_strndup(&m->to->arena, name, strlen(name));
}

/* The name Y_P, or Y_P2 and so on: no tensor of either program has it. */
static const char *stage_name(const struct maker *m, const char *suffix) {
  char name[PROGRAM_NAME + 16];
  int length = (int)(PROGRAM_NAME - 8 - strlen(suffix)), number = 2;
  snprintf(name, sizeof name, "%.*s_%s", length, m->t->name, suffix);
  while (program_find(m->c->from, name) >= 0 || program_find(m->to, name) >= 0)
    snprintf(name, sizeof name, "%.*s_%s%d", length, m->t->name, suffix, number++);
  return arena_strndup(&m->to->arena, name, strlen(name));
}

/* ---- building ---- */

/* Creates the stage. From now on its axes are the expressions of their roles; other roles are 0. */
static void open_made(struct maker *m, struct made *s, const char *suffix) {
  const char *names[MADE_AXES];
  for (int i = 0; i < s->rank; i++) names[i] = role_name(m, s->role[i]);
  enum program_dtype dtype = m->t->dtype == PROGRAM_BF16 ? PROGRAM_F32 : m->t->dtype;
  s->stage = program_stage(m->to, stage_name(m, suffix), dtype, s->rank, names, s->size);
  for (int i = 0; i < ROLES; i++) m->at[i] = px_int(m->to, 0);
  for (int i = 0; i < s->rank && !m->to->failed; i++)
    m->at[s->role[i]] = program_axis(m->to, s->stage, i);
}

static int load_made(struct maker *m, const struct made *s) {
  int indices[MADE_AXES];
  if (m->to->failed) return -1;
  for (int i = 0; i < s->rank; i++) indices[i] = m->at[s->role[i]];
  return px_load(m->to, s->stage, s->rank, indices);
}

/* Copies an expression of the convolution, with its axes replaced by their current expressions. */
static int copy_given(struct maker *m, int expr) {
  struct px_map map = *m->map;
  map.axis = m->at;
  return px_copy(m->to, m->c->from, expr, &map);
}

/* The vector that a matrix is applied to: element(i) along an axis. */
struct source {
  int (*element)(struct maker *m, const struct source *s, int i);
  const struct made *made; /* the stage that holds the vector; NULL: the weights themselves */
  int role;                /* the axis that the vector runs along */
  int base;                /* expression of the index of element 0; -1: 0 */
};

static int scaled(struct maker *m, double by, int value) {
  if (m->to->failed) return -1;
  return by == 1 ? value : px_mul(m->to, px_number(m->to, by), value);
}

/* sum + by * value; with sum -1, by * value */
static int plus(struct maker *m, int sum, double by, int value) {
  if (m->to->failed) return -1;
  if (sum < 0) return scaled(m, by, value);
  return by < 0 ? px_sub(m->to, sum, scaled(m, -by, value))
                : px_add(m->to, sum, scaled(m, by, value));
}

static int row_value(struct maker *m, const matrix_row row, const struct source *s) {
  int sum = -1;
  for (int i = 0; i < PARTS && row[i].by != 0; i++) {
    int part = -1;
    for (int j = 0; j < PART_TERMS && row[i].term[j].by != 0; j++)
      part = plus(m, part, row[i].term[j].by, s->element(m, s, row[i].term[j].of));
    sum = plus(m, sum, row[i].by, part);
  }
  return sum;
}

/* Row `row` of the matrix times the source: if row == 0 then .. else if row == 1 then .. */
static int apply(struct maker *m, const matrix_row *matrix, int rows, int row,
                 const struct source *s) {
  int value = row_value(m, matrix[rows - 1], s);
  for (int i = rows - 2; i >= 0 && !m->to->failed; i--) {
    int is_it = px_compare(m->to, PX_EQ, row, px_int(m->to, i));
    value = px_select(m->to, is_it, row_value(m, matrix[i], s), value);
  }
  return value;
}

static int made_element(struct maker *m, const struct source *s, int i) {
  int old = m->at[s->role], at = px_int(m->to, i);
  m->at[s->role] = s->base < 0 ? at : px_add(m->to, s->base, at);
  int value = load_made(m, s->made);
  m->at[s->role] = old;
  return value;
}

static int weights_element(struct maker *m, const struct source *s, int i) {
  m->at[s->role] = px_int(m->to, i);
  return copy_given(m, m->w->weights);
}

/* ---- the padded image ---- */

/* Size of the image along the rows (0) or columns (1), with the halo of the window. */
static int64_t image_size(const struct maker *m, int which) {
  return m->t->axes[m->w->own[which]].size + TAPS - 1;
}

static int64_t tiles(const struct maker *m, int which) {
  return (m->t->axes[m->w->own[which]].size - 1) / m->m->tile + 1;
}

static int64_t tiled_size(const struct maker *m, int which) {
  return tiles(m, which) * m->m->tile + TAPS - 1;
}

/* Whether every load of the stage is proved to stay in its tensor. */
static bool stays_inside(const struct program *p, int stage) {
  bool *guarded = mem_alloc((size_t)p->nodes.count * sizeof *guarded), inside = true;
  inside = program_find_unsafe_load(p, stage, guarded).load < 0;
  for (int i = 0; i < p->nodes.count; i++) inside = inside && !guarded[i];
  mem_free(guarded);
  return inside;
}

/* The value of the image; its rows and columns are those of the window's first tap. */
static int image_value(struct maker *m) {
  for (int i = 0; i < m->t->rank; i++)
    if (m->w->block[i] && !m->to->failed)
      m->at[i] = px_mul(m->to, m->at[i], px_int(m->to, m->w->block[i]));
  int value = copy_given(m, m->w->image);
  if (m->w->guard < 0) return value;
  int condition = m->c->from->nodes.data[m->w->guard].arg[0];
  return px_select(m->to, copy_given(m, condition), value, px_number(m->to, 0));
}

static void image_stage(struct maker *m, struct made *s) {
  add_places(m, s, tiled_size(m, 0), tiled_size(m, 1), true);
  add_summed(m, s, of_image);
  open_made(m, s, "P");
  int inside = px_bool(m->to, true), value = image_value(m);
  program_define(m->to, s->stage, value);
  if (m->to->failed || stays_inside(m->to, s->stage)) return;
  for (int i = 0; i < 2; i++) {
    int limit = px_int(m->to, image_size(m, i));
    inside = px_and(m->to, inside, px_compare(m->to, PX_LT, m->at[m->w->own[i]], limit));
  }
  m->to->tensors.data[s->stage].body = px_select(m->to, inside, value, px_number(m->to, 0));
}

/* ---- the transforms ---- */

static void weights_stages(struct maker *m, struct made *s) {
  struct made rows = {0};
  int side = m->m->tile + TAPS - 1;
  add(&rows, ROLE_A, side);
  add(&rows, m->w->window[1], TAPS);
  add_weights(m, &rows);
  open_made(m, &rows, "WR");
  const struct source given = {weights_element, NULL, m->w->window[0], -1};
  program_define(m->to, rows.stage, apply(m, m->m->weights, side, m->at[ROLE_A], &given));
  add(s, ROLE_A, side);
  add(s, ROLE_B, side);
  add_weights(m, s);
  open_made(m, s, "WT");
  const struct source half = {made_element, &rows, m->w->window[1], -1};
  program_define(m->to, s->stage, apply(m, m->m->weights, side, m->at[ROLE_B], &half));
}

/* tile * axis: the first row or column of a tile */
static int begin_of(struct maker *m, int axis) {
  return m->to->failed ? -1 : px_mul(m->to, m->at[axis], px_int(m->to, m->m->tile));
}

static void image_stages(struct maker *m, struct made *s) {
  struct made image = {0}, rows = {0};
  int side = m->m->tile + TAPS - 1, h = m->w->own[0], w = m->w->own[1];
  image_stage(m, &image);
  add_places(m, &rows, tiles(m, 0), tiled_size(m, 1), true);
  add(&rows, ROLE_A, side);
  add_summed(m, &rows, of_image);
  open_made(m, &rows, "R");
  const struct source given = {made_element, &image, h, begin_of(m, h)};
  program_define(m->to, rows.stage, apply(m, m->m->image, side, m->at[ROLE_A], &given));
  add(s, ROLE_A, side);
  add(s, ROLE_B, side);
  add_places(m, s, tiles(m, 0), tiles(m, 1), true);
  add_summed(m, s, of_image);
  open_made(m, s, "T");
  const struct source half = {made_element, &rows, w, begin_of(m, w)};
  program_define(m->to, s->stage, apply(m, m->m->image, side, m->at[ROLE_B], &half));
}

static void product_stage(struct maker *m, const struct made *image, const struct made *weights,
                          struct made *s) {
  int side = m->m->tile + TAPS - 1, own[PROGRAM_AXES];
  add(s, ROLE_A, side);
  add(s, ROLE_B, side);
  add_places(m, s, tiles(m, 0), tiles(m, 1), false);
  add_others(m, s);
  open_made(m, s, "M");
  for (int i = m->t->rank; i < m->t->rank + m->t->reductions && !m->to->failed; i++)
    if (is_summed(m, i))
      m->at[i] =
          program_reduce(m->to, s->stage, REDUCE_SUM, m->t->axes[i].name, m->t->axes[i].size);
  int other = load_made(m, weights);
  memcpy(own, m->at, sizeof own);
  for (int i = 0; i < m->t->rank && !m->to->failed; i++)
    if (m->w->block[i]) m->at[i] = px_div(m->to, own[i], px_int(m->to, m->w->block[i]));
  program_define(m->to, s->stage, px_mul(m->to, load_made(m, image), other));
}

static void output_stage(struct maker *m, const struct made *products, struct made *s) {
  for (int i = 2, own = 0; i < products->rank; i++) {
    add(s, products->role[i], products->size[i]);
    own += products->role[i] == m->w->own[0] || products->role[i] == m->w->own[1];
    if (own < 2) continue;
    own = 0;
    add(s, ROLE_I, m->m->tile);
    add(s, ROLE_B, m->m->tile + TAPS - 1);
  }
  open_made(m, s, "S");
  const struct source columns = {made_element, products, ROLE_A, -1};
  program_define(m->to, s->stage, apply(m, m->m->output, m->m->tile, m->at[ROLE_I], &columns));
}

/* The stage that keeps the name of the convolution: the second half of the output transform. */
static int last_stage(struct maker *m, const struct made *half) {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  struct program *to = m->to;
  for (int i = 0; i < m->t->rank; i++) {
    names[i] = m->t->axes[i].name;
    sizes[i] = m->t->axes[i].size;
  }
  int made = program_stage(to, m->t->name, m->t->dtype, m->t->rank, names, sizes);
  for (int i = 0; i < m->t->rank; i++) m->at[i] = program_axis(to, made, i);
  int h = m->at[m->w->own[0]], w = m->at[m->w->own[1]], tile = px_int(to, m->m->tile);
  if (to->failed) return -1;
  m->at[m->w->own[0]] = px_div(to, h, tile);
  m->at[m->w->own[1]] = px_div(to, w, tile);
  m->at[ROLE_I] = px_mod(to, h, tile);
  const struct source rows = {made_element, half, ROLE_B, -1};
  program_define(to, made, apply(m, m->m->output, m->m->tile, px_mod(to, w, tile), &rows));
  return made;
}

int winograd_stages(struct change *c, int stage, const struct px_map *map) {
  struct maker m = {.c = c,
                    .map = map,
                    .to = c->to,
                    .t = &c->from->tensors.data[stage],
                    .w = &c->winograd[stage],
                    .m = winograd_matrices(c->winograd[stage].tile),
                    .number = stage};
  struct made weights = {0}, image = {0}, products = {0}, half = {0};
  weights_stages(&m, &weights);
  image_stages(&m, &image);
  product_stage(&m, &image, &weights, &products);
  output_stage(&m, &products, &half);
  return last_stage(&m, &half);
}
