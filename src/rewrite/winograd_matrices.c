/* The transform matrices of Winograd's convolution. See winograd_matrices.h. A subexpression that
 * two rows share is written as the same part in both, so that compilers compute it once. */
#include "rewrite/winograd_matrices.h"

#include <stddef.h>

#include "program/program_facts.h"

/* The points of the transform are 0, 1, -1 and infinity; with tiles of 4 also 2 and -2. */
static const matrix_row image_2[] = {{{1, {{1, 0}, {-1, 2}}}},
                                     {{1, {{1, 1}, {1, 2}}}},
                                     {{1, {{1, 2}, {-1, 1}}}},
                                     {{1, {{1, 3}, {-1, 1}}}}};
static const matrix_row weights_2[] = {{{1, {{1, 0}}}},
                                       {{0.5, {{1, 0}, {1, 2}}}, {0.5, {{1, 1}}}},
                                       {{0.5, {{1, 0}, {1, 2}}}, {-0.5, {{1, 1}}}},
                                       {{1, {{1, 2}}}}};
static const matrix_row output_2[] = {{{1, {{1, 0}}}, {1, {{1, 1}, {1, 2}}}},
                                      {{1, {{1, 1}, {-1, 2}}}, {1, {{1, 3}}}}};
static const matrix_row image_4[] = {{{1, {{4, 0}, {-5, 2}, {1, 4}}}},
                                     {{1, {{1, 4}, {-4, 2}}}, {1, {{1, 3}, {-4, 1}}}},
                                     {{1, {{1, 4}, {-4, 2}}}, {-1, {{1, 3}, {-4, 1}}}},
                                     {{1, {{1, 4}, {-1, 2}}}, {2, {{1, 3}, {-1, 1}}}},
                                     {{1, {{1, 4}, {-1, 2}}}, {-2, {{1, 3}, {-1, 1}}}},
                                     {{1, {{4, 1}, {-5, 3}, {1, 5}}}}};
static const matrix_row weights_4[] = {{{0.25, {{1, 0}}}},
                                       {{-1.0 / 6, {{1, 0}, {1, 2}}}, {-1.0 / 6, {{1, 1}}}},
                                       {{-1.0 / 6, {{1, 0}, {1, 2}}}, {1.0 / 6, {{1, 1}}}},
                                       {{1.0 / 24, {{1, 0}, {4, 2}}}, {1.0 / 12, {{1, 1}}}},
                                       {{1.0 / 24, {{1, 0}, {4, 2}}}, {-1.0 / 12, {{1, 1}}}},
                                       {{1, {{1, 2}}}}};
static const matrix_row output_4[] = {
    {{1, {{1, 0}}}, {1, {{1, 1}, {1, 2}}}, {1, {{1, 3}, {1, 4}}}},
    {{1, {{1, 1}, {-1, 2}}}, {2, {{1, 3}, {-1, 4}}}},
    {{1, {{1, 1}, {1, 2}}}, {4, {{1, 3}, {1, 4}}}},
    {{1, {{1, 1}, {-1, 2}}}, {8, {{1, 3}, {-1, 4}}}, {1, {{1, 5}}}}};

static const struct matrices all_matrices[] = {
#define X(tile) {tile, image_##tile, weights_##tile, output_##tile},
    WINOGRAD_TILES(X)
#undef X
};

const struct matrices *winograd_matrices(int64_t tile) {
  for (size_t i = 0; i < sizeof all_matrices / sizeof *all_matrices; i++)
    if (all_matrices[i].tile == tile) return &all_matrices[i];
  return NULL;
}
