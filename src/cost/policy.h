/* Every number by which the compiler decides: weights, thresholds and limits of src/cost (predicted times)
 * and src/autoschedule (default schedules). tests/policy.py rejects numeric constants elsewhere in the two.
 *
 *     POLICY_INT(NAME, value, unit, reason, origin);    a constant expression
 *     POLICY_REAL(NAME, value, unit, reason, origin);   a double
 *
 * A name begins with COST_ or DEFAULT_, which says who reads it. The unit follows the number in a sentence:
 * "0.25 cycles per byte". The reason says what the number stands for, and why it is not 0 or 1. The origin
 * is one of
 *
 *     "measured: WHERE"   a page of docs/, or `git COMMIT`, whose message has the measurement
 *     "derived: HOW"      arithmetic, or what the hardware or the C language says
 *     "chosen by hand"    neither is known
 *
 * What a machine has (sizes of caches, registers) is a field of its text: bind/machine.h. What one thread
 * of it does in a cycle is a rate, measured where that can be done: cost/rates.h. Both come before a row here.
 *
 * A new row: value in its section, used by name in one room, `python3 tests/policy.py`. A changed value changes
 * schedules or predicted times: review what `./dev test --update` changes.
 */
#ifndef CANVAS_COST_POLICY_H
#define CANVAS_COST_POLICY_H

#define POLICY_INT(name, value, unit, reason, origin)  enum { name = (value) }
#define POLICY_REAL(name, value, unit, reason, origin) static const double name = (value)

/* clang-format off */

/* ==== src/cost: the predicted time ============================================================ */

/* ---- how times overlap, and which part of a cache is there ---- */

POLICY_REAL(COST_L3_SHARE, 0.25, "of L3",
            "other cores use the cache, too", "measured: git f89e9a8");
POLICY_REAL(COST_NOT_OVERLAPPED, 0.15, "of the shorter time",
            "arithmetic and data transfer do not overlap entirely", "chosen by hand");

/* ==== src/autoschedule: default schedules ===================================================== */

/* ---- facts of stages (default_facts.c) ---- */

POLICY_INT(DEFAULT_CALL_OPERATIONS, 16, "operations",
           "of a function such as exp; a multiply-add is one", "chosen by hand");
POLICY_INT(DEFAULT_DIVISION_OPERATIONS, 4, "operations",
           "of a division; a multiply-add is one", "chosen by hand");
POLICY_REAL(DEFAULT_COLD_BRANCH_SHARE, 0.75, "of the elements",
            "where so many take one branch of an index condition, loads of the other branch are cold",
            "chosen by hand");

/* ---- loops over rows that several stages share (default_rows.c) ---- */

POLICY_INT(DEFAULT_GROUPS_TRIED, 24, "groups of stages",
           "limits the time that choosing takes", "chosen by hand");
POLICY_INT(DEFAULT_FLAT_SUM_CYCLES, 20, "cycles per row and reduction over lanes",
           "a horizontal reduction waits for its own steps, which nothing else hides in one row",
           "chosen by hand");
POLICY_INT(DEFAULT_ROW_CACHES, 2, "times L1",
           "a row's data may be larger than L1, as part of it is dead by then", "chosen by hand");
POLICY_REAL(DEFAULT_SAVED_BYTE, 0.03, "cycles per byte",
            "saved by each byte that is not written to and read from beyond L1", "chosen by hand");
POLICY_REAL(DEFAULT_ROWS_LESS, 0.99, "of the cycles without",
            "a group that saves less is not worth its loops", "chosen by hand");

/* ---- materialised operands (default_materialize.c) ---- */

POLICY_INT(DEFAULT_BUFFER_USES, 3, "uses per element, or terms of the reduction",
           "an operand that is used less is not copied to a buffer", "chosen by hand");
POLICY_INT(DEFAULT_BUFFER_GROWTH, 4, "times the size of the operand's tensor",
           "a larger buffer is not worth its memory traffic", "chosen by hand");
POLICY_INT(DEFAULT_TRANSPOSED_AXIS, 4, "elements",
           "a shorter axis is not made the innermost one", "chosen by hand");

/* ---- hoisted values (default_reciprocals.c) ---- */

POLICY_INT(DEFAULT_HOIST_USES, 8, "uses per value",
           "a divisor or function that is used less stays where it is", "chosen by hand");

/* ---- padding boundaries (default_borders.c) ---- */

POLICY_REAL(DEFAULT_BOUNDARY_CYCLES, 1.04, "of the predicted cycles with a padded image",
            "writing and reading the padded image takes 3 to 5 % that the formula does not include",
            "measured: 3x3 convolutions at 56 to 224 pixels");
POLICY_REAL(DEFAULT_BOUNDARY_INSIDE, 0.84, "of the terms",
            "if more are inside the boundary, products with 0 cost less than tiles of uneven size:"
            " so for 3x3 beyond 8x8 pixels, for 3x1 beyond 4x4", "chosen by hand");

/* clang-format on */

#endif
