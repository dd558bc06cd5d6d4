/* Lays out the image of a convolution in blocks of channels (NCHWc). A stage changes the layout and
 * includes the padding.
 *
 *     pad[n, c:64, h:30, w:30] = if 1 <= h && ... then X[n, c, h-1, w-1] else 0
 *     Y[n, o, h:28, w:28] = pad[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:64, kh:3, kw:3
 * ->
 *     pad_c[n, c_o:4, h:30, w:30, c_i:16] = if 1 <= h && ... then X[n, c_o*16+c_i, h-1, w-1] else 0
 *     Y[n, o, h:28, w:28] = pad_c[n, c/16, h+kh, w+kw, c%16] * W[o, c, kh, kw]
 *                           // sum c:64, kh:3, kw:3         (one line in a file)
 *
 * The pixels of a tile then lie in consecutive cache lines. Pixels of 512 channels would all map to
 * one set of L1, and pixels of separate planes to different pages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_editor.h"
#include "program/affine.h"
#include "tune/sketch.h"

enum { LINE = 16 /* channels of a block: a cache line of f32 */ };

/* The channel axis of the image: the only one indexed by a reduction alone, in whole blocks; -1. */
static int channels_of(const struct program *p, int stage, int load) {
  const struct program_tensor *t = &p->tensors.data[stage];
  const struct px_node *n = &p->nodes.data[load];
  int found = -1;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++) {
    const struct px_node *at = &p->nodes.data[p->indices.data[n->first + i]];
    if (at->op != PX_AXIS || at->integer < t->rank) continue;
    int64_t size = p->tensors.data[n->tensor].axes[i].size;
    if (found >= 0 || size % LINE || size == LINE) return -1;
    found = i;
  }
  return found;
}

/* Makes the edit `pack X as X_c [n, c/16, h, w, c%16]`. */
static bool pack(struct editor *e, int tensor, int channels, char name[PROGRAM_NAME]) {
  const struct program_tensor *t = &program_of(e)->tensors.data[tensor];
  struct buf text = {0};
  editor_name(program_of(e), t->name, "_c", name);
  buf_printf(&text, "pack %s as %s [", t->name, name);
  int before = channels;
  while (before > 0 && t->axes[before - 1].size > 1) before--;
  for (int i = 0; i < t->rank; i++) {
    const char *comma = i ? ", " : "";
    if (i == before) {
      buf_printf(&text, "%s%s/%d", comma, t->axes[channels].name, LINE);
      comma = ", ";
    }
    if (i != channels) buf_printf(&text, "%s%s", comma, t->axes[i].name);
  }
  buf_printf(&text, ", %s%%%d]", t->axes[channels].name, LINE);
  bool done = editor_edit(e, text.text);
  buf_free(&text);
  return done;
}

/* Inlines the stage that was the image before, e.g. a padded copy. */
static void drop_copy(struct editor *e, const char *image) {
  const struct program *p = program_of(e);
  char text[PROGRAM_NAME + 16];
  int stage = program_find(p, image);
  if (stage < 0 || p->tensors.data[stage].is_input || p->tensors.data[stage].reductions) return;
  snprintf(text, sizeof text, "inline %s", image);
  editor_edit(e, text);
}

static bool make(struct editor *e, char name[PROGRAM_NAME]) {
  int stage, load;
  char image[PROGRAM_NAME];
  if (!sketch_convolution(e->given, &stage, &load)) return false;
  int tensor = e->given->nodes.data[load].tensor;
  int channels = channels_of(e->given, stage, load);
  if (channels < 0 || e->given->tensors.data[tensor].dtype != PROGRAM_F32) return false;
  strcpy(image, e->given->tensors.data[tensor].name);
  if (!pack(e, tensor, channels, name)) return false;
  drop_copy(e, image);
  return true;
}

struct program *sketch_channels(const struct program *p, const struct machine *machine,
                                char name[PROGRAM_NAME]) {
  struct editor e = {.given = p, .machine = machine};
  if (make(&e, name)) return e.p;
  program_free(e.p);
  return NULL;
}
