/* The tables of operator.h and operator_rows.h as data. */
#include "operator/operator_rows.h"

const struct argument_row argument_rows[OPERATOR_ARGUMENTS_COUNT] = {
#define X(id, name, kind, least, words, meaning) {name, kind, least, words, meaning},
    OPERATOR_ARGUMENTS(X)
#undef X
};

const struct operator_row operator_rows[] = {
#define X(name, spatial, arguments, meaning) {#name, build_##name, spatial, arguments, meaning},
    OPERATORS(X)
#undef X
};
const int operator_count = sizeof operator_rows / sizeof *operator_rows;
