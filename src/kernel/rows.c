/* The table of primitive.h as data. */
#include "kernel/primitive.h"

const struct row primitive_rows[PRIMITIVE_COUNT] = {
#define X(id, word, mode, fam, arity, attributes, facts, not_after, space, meaning) \
  {word, mode, &family_##fam, arity, attributes, facts, not_after, SPACE_##space, meaning},
    PRIMITIVES(X)
#undef X
};
