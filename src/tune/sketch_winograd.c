/* The schedule of a convolution after the edit `winograd`, channels last: a block of images and rows of tiles is
 * transformed, multiplied and transformed back while it lies in the second cache, `hi` rows of `wi` tiles times a
 * block of channels in registers. Transforms of weights stand before it, at the root.
 */
#include <stdio.h>
#include <string.h>

#include "tune/sketch.h"

/* @ is the convolution, $ and a letter a name or a number of its own (word_of). */
static const char TEMPLATE[] =
    "wk, wc, o, a:$6:unroll, v:$V:vec =>\n"
    "    @_WR = a/$a, wk/$k, wc/$c, {o, v}/$o\n"
    "a, wc, o, b:$6:unroll, v:vec =>\n"
    "    @_WT[a][b][o][wc][v] = a/$a, b/$b, wc/$c, {o, v}/$o\n"
    "pn, ph, pw, pc, pv:$L:vec:mask =>\n"
    "    @_P = pn/$n, ph/$h, pw/$w, {pc, pv}/$c\n"
    "nb, hb =>\n"
    "    ni:?, hm:{1,2,4}, hi:{1,2,3,4,7}:peel, pw, cb, a:unroll, cv:$L:vec:mask =>\n"
    "        @_R = {nb, ni}/$n, {hb, hm, hi}/$h, pw/$w, a/$a, {cb, cv}/$c\n"
    "    ni, hm, hi, a, w, cb, b:unroll, cv:vec =>\n"
    "        @_T = a/$a, b/$b, {nb, ni}/$n, {hb, hm, hi}/$h, w/$w, {cb, cv}/$c\n"
    "    a, b, o, ni, hm, wb, wc, hi:unroll, wi:{1,2,3,4,5,6,7,8,14}:unroll:peel, v:vec =>\n"
    "        @_M = a/$a, b/$b, {nb, ni}/$n, {hb, hm, hi}/$h, {wb, wi}/$w, {o, v}/$o // wc/$c\n"
    "    ni, hm, hi, w, b, so, i:$4:unroll, sv:$L:vec =>\n"
    "        @_S = {nb, ni}/$n, {hb, hm, hi}/$h, w/$w, i/$i, b/$b, {so, sv}/$o\n"
    "    ni, hm, hi, ii:$4:peel, w, so, ij:$4:unroll:peel, sv:vec =>\n"
    "        @ = {nb, ni}/$n, {hb, hm, hi, ii}/$h, {w, ij}/$w, {so, sv}/$o\n";

struct words {
  const struct program *p;
  char name[PROGRAM_NAME];
  const struct program_tensor *weights, *products, *back; /* _WR, _M, _S */
  int tile, lanes;
};

static const struct program_tensor *stage_of(const struct words *w, const char *ending) {
  char name[PROGRAM_NAME + 8];
  snprintf(name, sizeof name, "%s%s", w->name, ending);
  int at = program_find(w->p, name);
  return at < 0 ? NULL : &w->p->tensors.data[at];
}

/* The convolution, its axes n, h, w, o in that order, and no other stage. */
static bool find(struct words *w) {
  int stages = 0, last = w->p->tensors.count - 1;
  const struct program_tensor *y = &w->p->tensors.data[last];
  snprintf(w->name, sizeof w->name, "%s", y->name);
  for (int i = 0; i <= last; i++) stages += !w->p->tensors.data[i].is_input;
  w->weights = stage_of(w, "_WR");
  w->products = stage_of(w, "_M");
  w->back = stage_of(w, "_S");
  if (stages != 8 || !w->weights || !w->products || !w->back || !stage_of(w, "_P")) return false;
  const struct program_axis *m = w->products->axes;
  if (w->products->rank != 6 || w->products->reductions != 1 || y->rank != 4) return false;
  for (int i = 0; i < 4; i++)
    if (strcmp(y->axes[i].name, m[i + 2].name)) return false;
  return m[5].size % w->lanes == 0;
}

static void put_word(const struct words *w, char letter, struct buf *text) {
  const struct program_axis *m = w->products->axes;
  int64_t channels = m[5].size;
  switch (letter) {
    case 'a': buf_puts(text, m[0].name); break;
    case 'b': buf_puts(text, m[1].name); break;
    case 'n': buf_puts(text, m[2].name); break;
    case 'h': buf_puts(text, m[3].name); break;
    case 'w': buf_puts(text, m[4].name); break;
    case 'o': buf_puts(text, m[5].name); break;
    case 'c': buf_puts(text, m[6].name); break;
    case 'k': buf_puts(text, w->weights->axes[1].name); break;
    case 'i': buf_puts(text, w->back->axes[3].name); break;
    case 'L': buf_printf(text, "%d", w->lanes); break;
    case 'V': buf_printf(text, "%d", w->lanes << (channels % (2 * w->lanes) == 0)); break;
    case '4': buf_printf(text, "%d", w->tile); break;
    default: buf_printf(text, "%d", w->tile + 2); break;
  }
}

struct schedule *sketch_winograd(const struct program *p, int tile, const struct machine *machine) {
  struct words w = {.p = p, .tile = tile, .lanes = machine->vector_bytes / 4};
  struct buf text = {0};
  canvas_context ctx;
  struct schedule *s = NULL;
  if (!find(&w)) return NULL;
  for (const char *at = TEMPLATE; *at; at++)
    if (*at == '@')
      buf_printf(&text, "@%s", w.name);
    else if (*at == '$')
      put_word(&w, *++at, &text);
    else
      buf_bytes(&text, at, 1);
  if (schedule_parse(&ctx, text.text, text.length, &s) != CANVAS_OK) s = NULL;
  buf_free(&text);
  return s;
}
