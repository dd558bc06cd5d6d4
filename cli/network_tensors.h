/* Inputs, weights and outputs of a network, as its code takes them. */
#ifndef CANVAS_NETWORK_TENSORS_H
#define CANVAS_NETWORK_TENSORS_H

#include "canvas.h"

/* Those of one role. */
struct tensors {
  int count;
  canvas_tensor *as;
  double **number; /* the same elements, to be compared; or NULL each */
  void **memory;   /* as the code takes them */
};

/* All zeros; false where there is no memory, to be freed all the same. */
bool tensors_new(const canvas_network *n, canvas_role role, bool numbers, struct tensors *t);
/* Seeded numbers; false where there is no memory for those of one tensor. */
bool tensors_fill(const canvas_network *n, canvas_role role, uint64_t seed, struct tensors *t);
void tensors_free(struct tensors *t);
double tensor_element(const canvas_tensor *t, const void *memory, int64_t i);

#endif
