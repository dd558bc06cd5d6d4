/* See operator_build.h. */
#include "operator/operator_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/saturating.h"

static const struct spatial line[] = {{"l", "kl", "length", ARG_LENGTH, 'l', 'm', 's', 't'}};
static const struct spatial space[] = {{"d", "kd", "depth", ARG_DEPTH, 'd', 'e', 'a', 'z'},
                                       {"h", "kh", "height", ARG_HEIGHT, 'h', 'u', 'p', 'y'},
                                       {"w", "kw", "width", ARG_WIDTH, 'w', 'v', 'q', 'x'}};

int64_t build_number(const struct build *b, enum operator_argument argument, int i) {
  return b->argument[argument].number[i];
}

void build_axis(struct build *b, int letter, const char *name, int64_t size) {
  b->name[letter] = name;
  b->size[letter] = size;
}

/* Names and sizes of some letters; how many. */
static int axes_of(const struct build *b, const char *letters, const char *names[],
                   int64_t sizes[]) {
  int rank = 0;
  for (; letters[rank]; rank++) {
    names[rank] = b->name[(int)letters[rank]];
    sizes[rank] = b->size[(int)letters[rank]];
  }
  return rank;
}

int build_input(struct build *b, const char *name, const char *letters) {
  const char *names[LAYOUT_MAX] = {NULL};
  int64_t sizes[LAYOUT_MAX] = {0};
  int rank = axes_of(b, letters, names, sizes);
  return program_input(b->p, name, b->type, rank, names, sizes);
}

int build_index_input(struct build *b, const char *name, const char *letters, int64_t least,
                      int64_t most, bool rising) {
  const char *names[LAYOUT_MAX] = {NULL};
  int64_t sizes[LAYOUT_MAX] = {0};
  int rank = axes_of(b, letters, names, sizes);
  int input = program_input(b->p, name, PROGRAM_I32, rank, names, sizes);
  program_input_range(b->p, input, least, most, rising);
  return input;
}

int build_stage(struct build *b, const char *name, enum program_dtype type, const char *letters) {
  const char *names[LAYOUT_MAX] = {NULL};
  int64_t sizes[LAYOUT_MAX] = {0};
  int rank = axes_of(b, letters, names, sizes);
  int stage = program_stage(b->p, name, type, rank, names, sizes);
  for (int i = 0; i < rank; i++) b->at[(int)letters[i]] = program_axis(b->p, stage, i);
  return stage;
}

void build_reduce(struct build *b, int stage, enum program_reducer reducer, const char *letters) {
  for (; *letters; letters++) {
    int letter = *letters;
    b->at[letter] = program_reduce(b->p, stage, reducer, b->name[letter], b->size[letter]);
  }
}

int build_load(struct build *b, int tensor, const char *letters) {
  int index[LAYOUT_MAX], rank = 0;
  for (; letters[rank]; rank++) index[rank] = b->at[(int)letters[rank]];
  return px_load(b->p, tensor, rank, index);
}

void build_bias(struct build *b, int tensor, const char *letters, int bias,
                const char *bias_letters) {
  int y = build_stage(b, "Y", b->type, letters);
  int sum = build_load(b, tensor, letters);
  program_define(b->p, y, px_add(b->p, sum, build_load(b, bias, bias_letters)));
}

int build_sigmoid(struct build *b, int value) {
  struct program *p = b->p;
  int raised = px_call(p, PX_EXP, px_neg(p, value));
  return px_div(p, px_number(p, 1), px_add(p, px_number(p, 1), raised));
}

int build_affine(struct build *b, int a, int64_t i, int c, int64_t k) {
  int left = px_mul(b->p, b->at[a], px_int(b->p, i));
  return px_add(b->p, left, px_mul(b->p, b->at[c], px_int(b->p, k)));
}

int64_t build_product(const struct build *b, const char *letters) {
  int64_t product = 1;
  for (; *letters; letters++) product = saturating_mul(product, b->size[(int)*letters]);
  return int_min(product, PROGRAM_ELEMENTS + 1);
}

int build_flatten(struct build *b, const char *letters) {
  int flat = px_int(b->p, 0);
  for (; *letters; letters++) {
    int size = px_int(b->p, b->size[(int)*letters]);
    flat = px_add(b->p, px_mul(b->p, flat, size), b->at[(int)*letters]);
  }
  return flat;
}

void build_unflatten(struct build *b, int flat, const char *letters) {
  for (int i = (int)strlen(letters) - 1; i >= 0; i--) {
    int size = px_int(b->p, b->size[(int)letters[i]]);
    b->at[(int)letters[i]] = i ? px_mod(b->p, flat, size) : flat;
    flat = px_div(b->p, flat, size);
  }
}

/* Windows */

const struct spatial *build_spatial(const struct build *b, int i) {
  return b->row->spatial == 1 ? &line[i] : &space[3 - b->row->spatial + i];
}

int64_t build_before(const struct build *b, int i) {
  return build_number(b, ARG_PADDING, 2 * i);
}

int64_t build_after(const struct build *b, int i) {
  return build_number(b, ARG_PADDING, 2 * i + 1);
}

int64_t build_dilation(const struct build *b, int i) {
  return b->argument[ARG_DILATION].count ? build_number(b, ARG_DILATION, i) : 1;
}

int64_t build_span(const struct build *b, int i) {
  return (build_number(b, ARG_KERNEL, i) - 1) * build_dilation(b, i) + 1;
}

canvas_status build_windows(struct build *b, bool ceil) {
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t data = build_number(b, s->argument, 0), stride = build_number(b, ARG_STRIDE, i);
    int64_t padded = build_before(b, i) + data + build_after(b, i), span = build_span(b, i);
    if (span > padded)
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: a window spans %lld, the padded %s is %lld",
                  b->row->name, (long long)span, s->what, (long long)padded);
    int64_t steps = (padded - span + (ceil ? stride - 1 : 0)) / stride;
    if (steps * stride >= build_before(b, i) + data && ceil) steps--;
    if (steps * stride + span > padded) padded = steps * stride + span;
    build_axis(b, s->data, s->name, data);
    build_axis(b, s->padded, s->name, padded);
    build_axis(b, s->result, s->name, steps + 1);
    build_axis(b, s->window, s->window_name, build_number(b, ARG_KERNEL, i));
  }
  return CANVAS_OK;
}

const char *build_padded(const struct build *b, const char *letters, char out[LAYOUT_MAX]) {
  strcpy(out, letters);
  for (char *c = out; *c; c++)
    for (int i = 0; i < b->row->spatial; i++)
      if (*c == build_spatial(b, i)->data) *c = (char)build_spatial(b, i)->padded;
  return out;
}

int build_inside(struct build *b, int also, int at, int64_t low, int64_t high) {
  struct program *p = b->p;
  also = px_and(p, also, px_compare(p, PX_LE, px_int(p, low), at));
  return px_and(p, also, px_compare(p, PX_LT, at, px_int(p, high)));
}

int build_padded_load(struct build *b, int data, const char *letters, double fill) {
  struct program *p = b->p;
  int inside = px_bool(p, true);
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int at = b->at[s->padded];
    int64_t before = build_before(b, i);
    inside = build_inside(b, inside, at, before, before + b->size[s->data]);
    b->at[s->data] = px_sub(p, at, px_int(p, before));
  }
  return px_select(p, inside, build_load(b, data, letters), px_number(p, fill));
}

int build_pad(struct build *b, int data, const char *letters, double fill) {
  char padded[LAYOUT_MAX];
  bool same = true;
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    same = same && b->size[s->data] == b->size[s->padded];
  }
  if (same) return data;
  int pad = build_stage(b, "pad", b->type, build_padded(b, letters, padded));
  program_define(b->p, pad, build_padded_load(b, data, letters, fill));
  return pad;
}

void build_slide(struct build *b) {
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t stride = build_number(b, ARG_STRIDE, i);
    b->at[s->padded] = build_affine(b, s->result, stride, s->window, build_dilation(b, i));
  }
}

canvas_status build_divides(const struct build *b, const char *what_a, int64_t a,
                            const char *what_b, int64_t value) {
  if (value % a == 0) return CANVAS_OK;
  return fail(b->ctx, CANVAS_BAD_INPUT, "%s: %s %lld does not divide %s %lld", b->row->name, what_a,
              (long long)a, what_b, (long long)value);
}
