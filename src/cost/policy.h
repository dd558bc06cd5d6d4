/* Every number by which the compiler decides: weights, thresholds and limits of src/cost (predicted
 * times) and src/autoschedule (default schedules). tests/policy.py rejects them elsewhere there.
 *
 *     POLICY_INT(NAME, value, unit, reason, origin);    a constant expression
 *     POLICY_REAL(NAME, value, unit, reason, origin);   a double
 *
 * A name begins with COST_ or DEFAULT_: the room that uses it. The unit follows the number in a
 * sentence: "0.25 cycles per byte". The reason says what the number means. The origin is one of
 *
 *     "measured: WHERE"   a page of docs/, or `git COMMIT`, whose message has the measurement
 *     "derived: HOW"      arithmetic, or what the hardware or the C language says
 *     "chosen by hand"    neither is known
 *
 * What a machine has (sizes of caches, registers) is a field of its text: bind/machine.h. What one
 * thread does in a cycle is a rate (RATES): measured where there is a compiler, likely otherwise.
 *
 * A changed value changes schedules or predicted times: review what `./dev test --update` changes.
 */
#ifndef CANVAS_COST_POLICY_H
#define CANVAS_COST_POLICY_H

#define POLICY_INT(name, value, unit, reason, origin)  enum { name = (value) }
#define POLICY_REAL(name, value, unit, reason, origin) static const double name = (value)

/* clang-format off */

/* ==== src/cost: rates of a machine ============================================================ */

/* What one thread does in a cycle: measured by src/tune/rates_probes.c, or likely for an x86
 * processor of about 2020 with FMA and AVX2.
 *
 *   field, least and most that is believed, likely, unit, meaning */
#define RATES(X) \
  X(hertz,       1e8,  1e11, 3e9, "cycles per second", "clock of the thread") \
  X(fma,         0.05, 16,   2,   "per cycle", "multiply-adds of whole vectors") \
  X(half,        0.05, 32,   2,   "per cycle", "multiply-adds of vectors of half the length") \
  X(half_stores, 0.05, 32,   1,   "per cycle", "stores of vectors of half the length") \
  X(tile,        0.02, 20,   0.5, "cycles", "a multiply-add in a tile of 4 rows, as compiled") \
  X(latency,     1,    64,   4,   "cycles", "until a sum may be added to again") \
  X(scalar,      0.05, 16,   2,   "per cycle", "operations on single numbers") \
  X(loads,       0.05, 16,   2,   "per cycle", "vectors loaded from L1") \
  X(broadcasts,  0.05, 16,   2,   "per cycle", "numbers loaded into all lanes") \
  X(stores,      0.05, 16,   1,   "per cycle", "vectors stored in L1") \
  X(l2,          0.1,  1024, 32,  "bytes per cycle", "read in order from L2") \
  X(l3,          0.1,  1024, 12,  "bytes per cycle", "read in order from L3") \
  X(memory,      0.05, 1024, 5,   "bytes per cycle", "read in order from memory") \
  X(gather,      0.05, 64,   1,   "cycles", "an element of a vector that is gathered") \
  X(partial,     0.05, 1000, 2,   "cycles", "a vector of which all lanes but one are loaded") \
  X(narrow,      0.05, 1000, 14,  "cycles", "a vector of four lanes of which three are loaded") \
  X(loop,        0.1,  64,   1.5, "cycles", "an iteration of a loop with little in it") \
  X(begin,       0.1,  256,  6,   "cycles", "for a loop to begin and end")

/* Cycles of functions, likely for such a processor.
 *
 *   operation, a vector of COST_CALL_BYTES, a single number */
#define RATE_CALLS(X) \
  X(DIV,   4,  4)  \
  X(SQRT,  5,  5)  \
  X(EXP,   9,  14) \
  X(LOG,   12, 14) \
  X(SIN,   16, 20) \
  X(COS,   16, 20) \
  X(TANH,  18, 40) \
  X(ERF,   13, 30) \
  X(POW,   50, 50) \
  X(FLOOR, 1,  1)

POLICY_REAL(COST_CALL_BYTES, 16, "bytes", "length of the vectors of RATE_CALLS", "derived: SSE");
POLICY_REAL(COST_CALL_WIDER, 4, "times less",
            "functions slow down with longer vectors, division and root in full proportion",
            "chosen by hand");
POLICY_REAL(COST_CALL_LEAST, 0.01, "cycles", "a measured function below it is not believed",
            "chosen by hand");
POLICY_REAL(COST_CALL_MOST, 1e5, "cycles", "a measured function above it is not believed",
            "chosen by hand");
POLICY_INT(COST_MASKED_BYTES, 32, "bytes",
           "vectors of this length or more have masked loads", "derived: AVX has vmaskmov");
POLICY_REAL(COST_PARTIAL_UNMASKED, 25, "cycles",
            "the rate `partial` without masked loads: the vector is put together in memory",
            "chosen by hand");

/* ==== src/cost: the predicted time ============================================================ */

/* ---- operations (cost_compute.c) ---- */

POLICY_REAL(COST_INDEX_CONDITION, 0.25, "operations",
            "a comparison of indices is mostly decided outside the innermost loop",
            "chosen by hand");
POLICY_INT(COST_FLAT_STEP, 3, "operations per halving",
           "a horizontal reduction permutes, moves and adds for each halving of the lanes",
           "derived: log2(lanes) halvings");
POLICY_REAL(COST_ISSUED, 5, "instructions per cycle", "a processor starts no more",
            "chosen by hand");
POLICY_REAL(COST_LOOP_INSTRUCTIONS, 2, "instructions per iteration",
            "of a loop beside its body: it counts and jumps", "derived: add and branch");

/* ---- chains of additions (cost_compute.c) ---- */

POLICY_REAL(COST_REORDER, 250, "instructions",
            "a processor looks this far ahead, so that short sums overlap", "chosen by hand");
POLICY_REAL(COST_FORWARD, 5, "cycles", "until a stored sum can be loaded again", "chosen by hand");

/* ---- loads and stores (cost_compute.c) ---- */

POLICY_REAL(COST_RELOADING_TILE, 1.12, "times the rate of multiply-adds",
            "a tile of 4 rows takes more where a compiler loads vectors anew for each row",
            "measured: docs/reports/cost.md");
POLICY_REAL(COST_RELOADING_ROWS, 4, "rows", "such compilers keep the vectors of tiles with more",
            "measured: docs/reports/cost.md");
POLICY_REAL(COST_PARTIAL_STORE, 40, "cycles", "a vector of which some lanes are stored",
            "chosen by hand");
POLICY_REAL(COST_PERMUTED, 1.5, "cycles", "a vector that is permuted from one or two others",
            "chosen by hand");
POLICY_REAL(COST_DIVIDED_INDEX, 4, "cycles",
            "an index that is divided, in the loop that it depends on", "chosen by hand");
POLICY_REAL(COST_SINGLE_STORES, 2, "times the stores of vectors",
            "single numbers are stored faster than counted, as compilers make vectors of some",
            "chosen by hand");
POLICY_REAL(COST_SPILLED_LOAD, 0.5, "of a spilled sum",
            "a spilled operand is loaded again, and not stored", "chosen by hand");

/* ---- accesses that are analysed (cost_places.c) ---- */

POLICY_INT(COST_ACCESSES, 48, "loads and stores of a stage",
           "further ones are not analysed", "chosen by hand");
POLICY_INT(COST_POINTS, 128, "points",
           "at which a condition of indices is tried", "chosen by hand");
POLICY_REAL(COST_POINT_STEP, 0.7548776662466927, "of an axis from point to point",
            "with its powers for further axes the points spread evenly",
            "derived: 1 / plastic number, a sequence of low discrepancy");
POLICY_REAL(COST_TRIPS_LEAST, 0.01, "iterations",
            "of a loop over data, which may be empty nearly always", "chosen by hand");

/* ---- caches (cost_caches.c) ---- */

POLICY_REAL(COST_FULL, 0.8, "of a cache",
            "what is below stays, as other data needs room, too", "chosen by hand");
POLICY_REAL(COST_OVERFULL, 1.6, "of a cache",
            "what is above is reloaded; between the two, half of it", "chosen by hand");
POLICY_REAL(COST_STREAMS, 32, "streams", "processors prefetch no more rows that are far apart",
            "chosen by hand");
POLICY_REAL(COST_STREAMS_OF_SET, 10, "streams",
            "processors prefetch no more rows that are in one L1 set",
            "measured: docs/reports/cost.md");
POLICY_REAL(COST_LATE, 4, "times the time", "of data that is not prefetched, at most",
            "measured: docs/reports/cost.md");
POLICY_REAL(COST_HOPPING, 1.5, "times the time",
            "of data of which each iteration reads a few lines of another page", "chosen by hand");
POLICY_REAL(COST_EVICTED, 0.85, "of the ways",
            "as many lines of a set beyond its ways, and all of its lines are reloaded",
            "measured: docs/reports/cost.md");
POLICY_REAL(COST_ADDRESS_MOST, 1e15, "elements",
            "keeps a sum of strides within int64_t", "derived: more than any memory");

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
            "where so many take one branch of an index condition, loads of the other are cold",
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

/* ---- plans of stages (default_plan.c) ---- */

POLICY_INT(DEFAULT_SCALAR_CALL, 2, "cycles per operation",
           "of a function that is called for one element at a time", "chosen by hand");
POLICY_REAL(DEFAULT_GATHERED_ELEMENT, 0.7, "cycles per element",
            "that a fused consumer gathers from another tensor", "chosen by hand");
POLICY_INT(DEFAULT_SHORT_VECTOR, 4, "lanes",
           "a shorter vector is not worth its loads", "chosen by hand");
POLICY_INT(DEFAULT_TILE_LOOPS, 4, "loops",
           "that a tile adds to those of its axes", "derived: two rows, vectors, a cache block");
POLICY_INT(DEFAULT_TILE_VECTORS, 8, "vectors",
           "of a tile: the emitter gives no more of them names", "derived: accumulators are variables");

/* ---- plain schedules (schedule_default.c) ---- */

POLICY_INT(DEFAULT_PLAIN_VECTOR_BYTES, 16, "bytes", "of a vector of the smallest machine: SSE",
           "derived: x86-64 has them");
POLICY_INT(DEFAULT_PLAIN_REGISTERS, 16, "registers", "of the smallest machine: SSE",
           "derived: x86-64 has them");
POLICY_INT(DEFAULT_PLAIN_L2, 1 << 20, "bytes", "of L2 of the smallest machine", "chosen by hand");

/* ---- edits (default_program.c) ---- */

POLICY_INT(DEFAULT_EDIT_ROUNDS, 24, "edits of a kind", "limits the time that choosing takes",
           "chosen by hand");
POLICY_INT(DEFAULT_CHEAP_OPERATIONS, 2, "operations", "an element-wise stage with more is not recomputed",
           "chosen by hand");
POLICY_INT(DEFAULT_INLINED_LOADS, 3, "loads", "a stage with more of them is not inlined",
           "chosen by hand");
POLICY_REAL(DEFAULT_INLINED_REPEATS, 1.01, "evaluations per element and load",
            "an inlined stage is recomputed at padding boundaries only", "chosen by hand");
POLICY_INT(DEFAULT_SPREAD_GROWTH, 4, "times its operands",
           "a cheap stage of this size is inlined rather than stored, as the columns of an image",
           "chosen by hand");
POLICY_INT(DEFAULT_SPREAD_REPEATS, 8, "evaluations per element and load", "of such a stage, at most",
           "chosen by hand");
POLICY_INT(DEFAULT_PARTIAL_VECTORS, 4, "vectors", "of partial sums hide the latency of an addition",
           "chosen by hand");
POLICY_INT(DEFAULT_LANE_SUM_CYCLES, 20, "cycles", "of adding up the lanes of a vector",
           "chosen by hand");
POLICY_INT(DEFAULT_SHORT_SUM_TERMS, 8, "terms per step of the axis",
           "fewer are not worth partial sums along an axis shorter than a vector", "chosen by hand");
POLICY_INT(DEFAULT_UNEVEN_VECTORS, 4, "vectors",
           "a shorter axis that is no multiple of a vector gets no partial sums", "chosen by hand");
POLICY_REAL(DEFAULT_PARTIAL_GAIN, 0.7, "of the cycles without", "more is not worth partial sums",
            "chosen by hand");
POLICY_REAL(DEFAULT_UNEVEN_CYCLES, 1.2, "times the cycles",
            "of partial sums that do not divide their axis", "chosen by hand");
POLICY_REAL(DEFAULT_FEWER_SUMS_GAIN, 0.98, "of the cycles with more partial sums",
            "fewer sums are taken below that", "chosen by hand");
POLICY_REAL(DEFAULT_MERGED_GAIN, 0.95, "of the cycles without",
            "merged rows of a product are taken below that: predictions err by as much",
            "chosen by hand");

/* clang-format on */

#endif
