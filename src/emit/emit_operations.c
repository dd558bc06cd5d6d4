/* The C of each operation of expressions (scalar_ops.h), for fp32 and for fp64: an operator or a
 * function. print_c_value.c prints casts, indices and ?:. An operation without a row here does not
 * compile. See print_c.h.
 */
#include "emit/print_c.h"

/*      op      fp32       fp64 */
#define C_ADD    {"+", "+"}
#define C_SUB    {"-", "-"}
#define C_MUL    {"*", "*"}
#define C_DIV    {"/", "/"}
#define C_MOD    {"", ""}
#define C_MIN    {"MIN_F32", "MIN_F64"}
#define C_MAX    {"MAX_F32", "MAX_F64"}
#define C_NEG    {"-", "-"}
#define C_SELECT {"", ""}
#define C_LT     {"<", "<"}
#define C_LE     {"<=", "<="}
#define C_GT     {">", ">"}
#define C_GE     {">=", ">="}
#define C_EQ     {"==", "=="}
#define C_NE     {"!=", "!="}
#define C_AND    {"&&", "&&"}
#define C_OR     {"||", "||"}
#define C_NOT    {"!", "!"}
#define C_EXP    {"expf", "exp"}
#define C_LOG    {"logf", "log"}
#define C_EXPM1  {"expm1f", "expm1"}
#define C_LOG1P  {"log1pf", "log1p"}
#define C_SIN    {"sinf", "sin"}
#define C_COS    {"cosf", "cos"}
#define C_TANH   {"tanhf", "tanh"}
#define C_SQRT   {"sqrtf", "sqrt"}
#define C_ERF    {"erff", "erf"}
#define C_ABS    {"fabsf", "fabs"}
#define C_FLOOR  {"floorf", "floor"}
#define C_POW    {"powf", "pow"}
#define C_REAL   {"", ""}

const char *const c_operations[PX_OPS][2] = {
#define X(op, ...) [PX_##op] = C_##op,
    SCALAR_OPS(X)
#undef X
};
