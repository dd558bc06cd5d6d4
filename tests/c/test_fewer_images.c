// Programs for fewer images: which axes count images, and that what is left computes the same.
#include "tune/fewer_images.h"

#include "check.h"

static canvas_context ctx;

static struct program *program_from(const char *text) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, text);
  return p;
}

static const struct {
  const char *text;
  int64_t images;
} rows[] = {
    {"canvas 1\nprogram p\nin X f32 [n:4, c:3]\nY[n:4, c:3] = X[n, c] + 1\nout Y\n", 4},
    {"canvas 1\nprogram p\nin X f32 [c:3, n:4]\nY[n:4, c:3] = X[c, n] + 1\nout Y\n", 4},
    {"canvas 1\nprogram p\nin X f32 [n:4, h:5]\nin W f32 [h:5, k:2]\n"
     "P[n:4, h:7] = if 1 <= h && h < 6 then X[n, h-1] else 0\n"
     "Y[n:4, k:2] = P[n, h+1] * W[h, k] // sum h:5\nout Y\n",
     4},
    // another index, a condition, a value, a sum over them, two of one tensor, numbers of bounds
    {"canvas 1\nprogram p\nin X f32 [n:5, c:3]\nY[n:4, c:3] = X[n+1, c]\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:5, c:3]\nY[n:4, c:3] = X[n, c]\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4]\nY[n:4] = if n < 2 then X[n] else 0\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4]\nY[n:4] = X[n] * real(n)\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4]\nS[] = X[n] // sum n:4\nY[n:4] = X[n] - S[]\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4, m:4]\nY[n:4, m:4] = X[n, m] + X[m, n]\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4]\nY[] = X[n] // sum n:4\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4]\nin i i32 [n:4] 0..4\nY[n:4] = X[i[n]]\nout Y\n", 1},
    {"canvas 1\nprogram p\nin X f32 [n:4]\nY[n:4] = X[n]\nZ[] = X[m] // max m:4\nout Y, Z\n", 1},
};

static void images(void **state) {
  CHECK_ROWS (rows, row) {
    struct program *p = program_from(row->text);
    CHECK_INT(images_of(p), row->images, row->text);
    struct program *q = fewer_images(p, 1);
    CHECK_INT(q != NULL, row->images > 1, row->text);
    for (int i = 0; q && i < p->tensors.count; i++) {
      const struct program_tensor *t = &q->tensors.data[i];
      for (int j = 0; j < t->rank; j++)
        CHECK_INT(t->axes[j].size,
                  strcmp(t->axes[j].name, "n") ? p->tensors.data[i].axes[j].size : 1, row->text);
    }
    program_free(q);
    program_free(p);
  }
}

CHECK_MAIN(cmocka_unit_test(images))
