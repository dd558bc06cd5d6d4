/* Methods without a model: random points, and all points. See method.h. */
#include "tune/method.h"

enum { TOGETHER = 20 };

canvas_status method_random(struct search *s) {
  struct tune_candidate c[TOGETHER] = {{0, 0}}; /* starts with the default */
  int count = 1, idle = 0;
  while (!search_over(s) && idle < 20) {
    int before = s->trials.count;
    while (count < TOGETHER && search_draw(s, &c[count])) count++;
    TRY(search_measure(s, c, count));
    idle = s->trials.count == before ? idle + 1 : 0; /* small spaces are exhausted */
    count = 0;
  }
  return CANVAS_OK;
}

canvas_status method_exhaustive(struct search *s) {
  struct tune_candidate c[TOGETHER];
  int count = 0;
  for (int k = 0; k < s->sketches.count; k++)
    for (int64_t point = 0; point < s->spaces[k]->size && !search_over(s); point++) {
      c[count++] = (struct tune_candidate){k, point};
      if (count < TOGETHER) continue;
      TRY(search_measure(s, c, count));
      count = 0;
    }
  return search_measure(s, c, count);
}
