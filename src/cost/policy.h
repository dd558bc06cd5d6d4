/* Every number by which the compiler decides: weights, thresholds and limits of src/cost (predicted
 * times) and src/autoschedule (default schedules). tests/policy.py rejects them elsewhere there.
 *
 *     POLICY_INT(NAME, value, unit, reason, origin);    a constant expression
 *     POLICY_REAL(NAME, value, unit, reason, origin);   a double
 *
 * A name begins with COST_ or DEFAULT_: the room that uses it. The unit follows the number in a
 * sentence: "0.25 cycles per byte". The reason states what the number means. The origin is one of
 *
 *     "measured: WHERE"   a page of docs/, or `git COMMIT`, whose message has the measurement
 *     "derived: HOW"      arithmetic, or a fact of the hardware or the C language
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

/* ---- the loops of a stage (default_nest.c, default_odd.c) ---- */

POLICY_INT(DEFAULT_PARALLEL_CYCLES, 1 << 15, "cycles",
           "a loop that takes less is not worth threads: some ten microseconds", "chosen by hand");
POLICY_INT(DEFAULT_PANEL_TILES, 16, "tiles of rows per panel",
           "panels that more tiles read are not prefetched, as few of the reads come from memory",
           "chosen by hand");

/* ---- producers that are computed per tile of rows (default_buffers.c) ---- */

POLICY_INT(DEFAULT_BUFFERED_CACHES, 2, "times L1",
           "a smaller producer stays in the caches without a buffer", "chosen by hand");
POLICY_REAL(DEFAULT_MOVED_ROWS, 0.75, "of the loads",
            "rows of a tile move to another axis if so many loads or fewer remain",
            "chosen by hand");

/* ---- programs of odd rows (default_odd.c) ---- */

POLICY_INT(DEFAULT_ODD_SHORTEST, 1, "vectors per row",
           "shorter rows have no whole vector", "derived: one vector");
POLICY_INT(DEFAULT_ODD_CHAINED, 4, "vectors per row",
           "shorter rows leave the processor idle, where stages wait for each other:"
           " functions, or several reductions with narrow vectors", "chosen by hand");
POLICY_INT(DEFAULT_ODD_NARROW_BYTES, 32, "bytes",
           "several reductions count as waiting up to this length of vectors, as the other"
           " schedules gather few lanes there", "chosen by hand");
POLICY_INT(DEFAULT_ODD_WHOLE, 8, "vectors",
           "a longer row is split into steps of this length", "chosen by hand");
POLICY_INT(DEFAULT_ODD_FUNCTIONS, 4, "vectors",
           "the same where each element takes a function", "chosen by hand");
POLICY_INT(DEFAULT_ODD_SHARED, 16, "vectors per row",
           "longer reductions whose rows share loads are faster as partial sums of several rows",
           "chosen by hand");
POLICY_REAL(DEFAULT_ODD_TILED, 0.85, "of the cycles of horizontal reductions",
            "a product that takes less as a register tile is one: packing of few rows costs more"
            " than the formula has",
            "measured: gemm with transposed b of 1 to 768 rows, AVX-512");
POLICY_INT(DEFAULT_ODD_WASTE, 7, "elements per unused lane",
           "with fewer, the functions in masked lanes cost too much", "chosen by hand");

/* ---- Winograd's convolution: what holes offer (winograd_nest.c, default_winograd.c) ---- */

POLICY_INT(DEFAULT_WINOGRAD_COLUMNS, 14, "columns of tiles in a register tile",
           "the largest choice", "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_TILE_ROWS, 4, "rows of tiles in a register tile",
           "the largest choice", "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_VECTORS, 4, "vectors in a register tile",
           "the largest choice", "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_BLOCK_ROWS, 8, "register tiles along the rows of a block",
           "the largest choice", "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_IMAGES, 10, "images in a block", "the largest choice",
           "chosen by hand");

/* ---- prefetch of its weights (winograd_nest.c) ---- */

POLICY_INT(DEFAULT_WINOGRAD_PANEL_TILES, 32, "tiles of all images",
           "weights that more tiles read are not prefetched, as they are read from L2 mostly",
           "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_PREFETCH, 20, "iterations of the reduction",
           "distance of the prefetch of weights with wide vectors", "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_WIDE_BYTES, 64, "bytes",
           "length of the vectors for which that distance was measured; others prefetch panels",
           "derived: AVX-512");

/* ---- its formula (default_winograd.c) ---- */

POLICY_INT(DEFAULT_WINOGRAD_LATENCY, 6, "cycles",
           "a step takes no less, as a tile of eight sums hides the latency of an addition not quite",
           "chosen by hand");
POLICY_INT(DEFAULT_WINOGRAD_L2, 24, "bytes per cycle",
           "weights of a register tile from L2", "chosen by hand");
POLICY_REAL(DEFAULT_WINOGRAD_FAST, 48, "bytes per cycle",
            "data of a block that stays in L2", "chosen by hand");
POLICY_REAL(DEFAULT_WINOGRAD_SLOW, 8, "bytes per cycle",
            "data of a block that does not", "chosen by hand");
POLICY_REAL(DEFAULT_WINOGRAD_RAGGED, 2, "times the cycles",
            "of a block that does not divide the rows, as the remainder has code of its own",
            "chosen by hand");

/* ---- plans of stages (default_plan.c) ---- */

POLICY_INT(DEFAULT_TRANSPOSED_ROWS, 4, "rows", "a tile with fewer is not transposed in registers",
           "chosen by hand");
POLICY_INT(DEFAULT_TRANSPOSED_LANES, 8, "lanes of a vector",
           "with fewer a tile is not transposed in registers", "chosen by hand");
POLICY_INT(DEFAULT_FUSED_CALL, 2, "cycles per operation",
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
POLICY_INT(DEFAULT_PLAIN_LINE, 64, "bytes", "of a cache line of the smallest machine",
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
POLICY_REAL(DEFAULT_GROUPED_GAIN, 0.98, "of the cycles without",
            "more is not worth a partial sum for each element of a group",
            "measured: group norms with channels last, AVX-512");
POLICY_REAL(DEFAULT_FEWER_SUMS_GAIN, 0.98, "of the cycles with more partial sums",
            "fewer sums are taken below that", "chosen by hand");
POLICY_REAL(DEFAULT_MERGED_GAIN, 0.95, "of the cycles without",
            "merged rows of a product are taken below that: predictions err by as much",
            "chosen by hand");

/* ==== src/autoschedule: the tile of a stage =================================================== */

/* ---- kinds of stages, and bounds (default_chooser.h) ---- */

POLICY_INT(DEFAULT_HEAVY_OPERATIONS, 8, "operations per point",
           "from so many on a stage calls functions such as exp, and its tile is small",
           "chosen by hand");
POLICY_INT(DEFAULT_UNROLLED_STATEMENTS, 128, "statements of a tile",
           "limits the code of a reduction that is unrolled", "chosen by hand");
POLICY_INT(DEFAULT_SHORT_REDUCTION, 64, "terms",
           "up to here loads bind a reduction, and not its arithmetic", "chosen by hand");
POLICY_INT(DEFAULT_ROWS_REMEMBERED, 32, "rows",
           "for which the number of tiles along an axis is remembered; more are counted again",
           "derived: no machine has more vector registers");
POLICY_REAL(DEFAULT_ROUNDING, 1 - 1e-9, "of a lower bound",
            "no rounding may raise the bound above the cycles that it bounds",
            "derived: sums of a few doubles");

/* ---- the formula (default_cycles.c) ---- */

POLICY_INT(DEFAULT_PORTS, 2, "per cycle",
           "multiply-adds of vectors, and loads from L1", "derived: x86-64 since Haswell");
POLICY_INT(DEFAULT_ADD_LATENCY, 4, "cycles",
           "until an accumulator may be added to again", "derived: x86-64 since Skylake");
POLICY_INT(DEFAULT_HIDDEN_LATENCY, 2, "cycles",
           "of the latency, which other stages of a shared loop hide", "chosen by hand");
POLICY_REAL(DEFAULT_REMAINDER, 0.5, "of a whole tile",
            "the least that a remainder tile of few rows takes", "chosen by hand");

POLICY_REAL(DEFAULT_VECTOR_LOAD, 1.3, "load-port slots per vector",
            "against 1 per broadcast element", "chosen by hand");
POLICY_REAL(DEFAULT_FEW_REGISTERS_LOAD, 1.04, "times the load-port slots",
            "of a long reduction with few registers: other loads compete with them",
            "measured: git 555cf1e");
POLICY_REAL(DEFAULT_WORK_BESIDE_LOADS, 1 / 32.0, "of the arithmetic",
            "added where loads bind: of equal ones, the tile with less arithmetic wins",
            "chosen by hand");
POLICY_REAL(DEFAULT_LOADS_BESIDE_WORK, 1 / 64.0, "of the load-port slots",
            "added where arithmetic binds: of equal ones, the tile with fewer loads wins",
            "chosen by hand");
POLICY_INT(DEFAULT_ADDRESS_REGISTERS, 8, "rows",
           "whose addresses stay in registers; of more rows they are loaded from the stack",
           "measured: git 7ccfeae");
POLICY_REAL(DEFAULT_ROWS_IN_ONE_SET, 3, "times the load-port slots",
            "rows whose lines evict each other from one set of L1", "measured: git df71672");
POLICY_REAL(DEFAULT_ROWS_WAYS_APART, 1.3, "times the load-port slots",
            "rows a way of L1 or more apart", "chosen by hand");
POLICY_REAL(DEFAULT_ROWS_LINES_APART, 1.1, "times the load-port slots",
            "rows in lines of their own", "chosen by hand");

POLICY_REAL(DEFAULT_GATHER, 0.8, "cycles per element",
            "loaded lane by lane", "chosen by hand");
POLICY_REAL(DEFAULT_GUARDED_GATHER, 2.5, "cycles per element",
            "loaded lane by lane, each under its condition", "chosen by hand");
POLICY_REAL(DEFAULT_GATHER_PACKING, 0.9, "cycles per element",
            "gathered once into a panel", "chosen by hand");
POLICY_REAL(DEFAULT_PERMUTE, 1.5, "cycles per vector",
            "permuted from vectors that are loaded", "chosen by hand");
POLICY_INT(DEFAULT_PERMUTED_BLOCKS, 4, "blocks of equal elements",
           "up to here an unrolled vector is permuted, and not gathered", "chosen by hand");
POLICY_REAL(DEFAULT_CONSUMER_GATHER, 3, "cycles per element",
            "a fused consumer loads it with a non-affine index", "measured: git 5fab703");

POLICY_REAL(DEFAULT_SCATTER, 1.5, "cycles per element",
            "stored lane by lane", "measured: git 555cf1e");
POLICY_REAL(DEFAULT_TRANSPOSED_LANE, 0.3, "cycles per element",
            "stored from a transposed tile", "chosen by hand");
POLICY_REAL(DEFAULT_TRANSPOSE, 2.6, "cycles per lane and tile",
            "to transpose the tile, shared by its rows", "chosen by hand");
POLICY_REAL(DEFAULT_HALF_STORE, 2.4, "cycles per lane and store",
            "a part of a vector is stored by halves without masks, each store more than one",
            "chosen by hand");

POLICY_INT(DEFAULT_SCALAR_CALL, 4, "cycles per operation",
           "of functions that are called element by element", "chosen by hand");
POLICY_REAL(DEFAULT_SCALAR_OPERATION, 0.5, "cycles per operation",
            "of points that the C compiler may vectorize", "chosen by hand");
POLICY_REAL(DEFAULT_SCALAR_NON_AFFINE, 0.5, "cycles per load",
            "guarded or with a non-affine index", "chosen by hand");
POLICY_REAL(DEFAULT_SCALAR_LOAD, 0.1, "cycles per load",
            "any other one of a point without vectors", "chosen by hand");

POLICY_REAL(DEFAULT_MASKED, 1.1, "times the cycles",
            "the last vectors overshoot the axis and are loaded lane by lane", "chosen by hand");
POLICY_REAL(DEFAULT_MASKED_STORE, 1.04, "times the cycles",
            "only stores are masked, as padded panels hold what the last vectors load",
            "chosen by hand");
POLICY_REAL(DEFAULT_MASKED_BOUNDARY, 1.4, "times the cycles",
            "masked vectors where the loops are partitioned at a padding boundary",
            "chosen by hand");
POLICY_REAL(DEFAULT_SLIDING_BOUNDARY, 1.1, "times the cycles",
            "guards of a short window that is unrolled: loops are partitioned around the tile",
            "chosen by hand");
POLICY_REAL(DEFAULT_LONG_BOUNDARY, 1.3, "times the cycles",
            "loops of a long reduction are partitioned inside of it", "chosen by hand");
POLICY_REAL(DEFAULT_GUARD, 2.5, "times the cycles",
            "guards that are evaluated in each step", "chosen by hand");
POLICY_REAL(DEFAULT_INSIDE, 1.03, "times the cycles",
            "a long reduction that skips the terms beyond a padding boundary", "chosen by hand");
POLICY_REAL(DEFAULT_SLIDING, 1.03, "times the cycles",
            "an unrolled window is several times as much code", "chosen by hand");
POLICY_REAL(DEFAULT_SLIDING_LONG, 1.06, "times the cycles",
            "an unrolled window of a long reduction leaves few registers", "measured: git 7eb2f76");

POLICY_INT(DEFAULT_L2_RATE, 24, "bytes per cycle",
           "of panels, from L2", "chosen by hand");
POLICY_INT(DEFAULT_L2_LINE_RATE, 48, "bytes per cycle",
           "of lines that a tile uses in part, from L2", "measured: git 1a0a311");
POLICY_INT(DEFAULT_L2_LINE_RATE_FEW, 18, "bytes per cycle",
           "the same with few registers, where tiles are short", "chosen by hand");
POLICY_INT(DEFAULT_L3_RATE, 8, "bytes per cycle",
           "of panels, from L3", "measured: git 33977fa");
POLICY_INT(DEFAULT_MEMORY_RATE, 6, "bytes per cycle",
           "of panels, from memory", "measured: git 8eb552d");
POLICY_REAL(DEFAULT_LINES_NOT_HIDDEN, 0.06, "of the time to load partial lines",
            "arithmetic does not overlap it", "measured: git 7eb2f76");
POLICY_INT(DEFAULT_PAGE_LINES, 4, "lines",
           "of each page that are read together; panels with fewer arrive late",
           "measured: git bba65a3");
POLICY_REAL(DEFAULT_ONE_PAGE_LINE, 0.55, "of the rate",
            "of a panel that reads one line of each page", "measured: git bba65a3");
POLICY_REAL(DEFAULT_FEW_PAGE_LINES, 0.8, "of the rate",
            "of a panel that reads two or three lines of each page", "measured: git bba65a3");
POLICY_REAL(DEFAULT_PAGE_LINE, 2, "cycles per line",
            "that each step of the reduction finds on another page", "chosen by hand");
POLICY_REAL(DEFAULT_PANEL_HIDDEN, 31 / 32.0, "of a tile without a vector axis",
            "hides its panel's arrival: where memory hides all tiles, one with vectors wins",
            "measured: git 3c3863d");
POLICY_INT(DEFAULT_ROWS_IN_ORDER, 2, "rows",
           "of windows that do not overlap; tiles of more leave the order of memory",
           "measured: git 8eb552d");
POLICY_INT(DEFAULT_TILE_START, 8, "cycles per tile",
           "to start and end its reduction", "chosen by hand");

/* ---- loads and windows (default_loads.c, default_windows.c) ---- */

POLICY_INT(DEFAULT_WINDOW_STEPS, 9, "steps of a reduction",
           "up to here it is a window: it may be unrolled, and its lines are adjacent to others",
           "chosen by hand");
POLICY_INT(DEFAULT_LINE_PARTS, 4, "parts of a cache line",
           "if rows begin at one of them, few vectors cross a line", "chosen by hand");
POLICY_REAL(DEFAULT_L2_BYTE, 0.04, "cycles per byte",
            "of an element-wise stage, through L2", "chosen by hand");
POLICY_INT(DEFAULT_PREFETCHED_LINES, 16, "lines",
           "of an image that hardware prefetches and writes at once without loss",
           "measured: git df71672");
POLICY_INT(DEFAULT_PREFETCHED_PARTS, 10, "lines",
           "the same from memory, where vectors are parts of lines", "measured: git 849fc47");
POLICY_REAL(DEFAULT_LINE_NOT_PREFETCHED, 6, "cycles per line and tile",
            "of each image line above these limits", "chosen by hand");
POLICY_INT(DEFAULT_WINDOW_TERMS, 9, "terms",
           "from so many on tiles may leave the order of rows, as 3x3 windows do",
           "measured: git c32dd13");
POLICY_INT(DEFAULT_WIDE_WINDOW_TERMS, 16, "terms",
           "the same for vectors that are parts of lines, and for images from memory",
           "measured: git e9309a3");
POLICY_REAL(DEFAULT_WINDOW_CACHE, 0.75, "of L1",
            "that windows may fill until the next tiles read them", "chosen by hand");
POLICY_REAL(DEFAULT_MEMORY_BYTE, 0.16, "cycles per byte",
            "of a window's new elements, from memory", "measured: git df71672");
POLICY_REAL(DEFAULT_RELOADED_BYTE, 0.024, "cycles per byte",
            "of a window's elements that are loaded from L2 again", "measured: git 849fc47");

/* ---- the order of loops (default_order.c) ---- */

POLICY_INT(DEFAULT_UNROLLED_TERMS, 9, "terms",
           "up to here a reduction with shared rows is unrolled whole", "chosen by hand");
POLICY_INT(DEFAULT_PACKING, 4, "cycles per element",
           "copied to a contiguous panel", "chosen by hand");
POLICY_INT(DEFAULT_PACKING_SHARE, 16, "times the cost of packing",
           "a stage that takes longer has its contiguous operand packed, too", "chosen by hand");
POLICY_INT(DEFAULT_SMALL_TENSOR, 4096, "elements",
           "a tensor of up to so many is not packed", "chosen by hand");
POLICY_INT(DEFAULT_PAGE_CROSSING, 8, "cycles per line",
           "that a tile reads from another page in each step", "chosen by hand");
POLICY_INT(DEFAULT_COPY_LANES, 32, "elements of the vector axis",
           "from so many on a copy whose lanes evict each other's lines has no vectors",
           "measured: git 2b8635b");
POLICY_INT(DEFAULT_COPY_LOADS, 16, "loads",
           "of a copy that become one store", "chosen by hand");
POLICY_INT(DEFAULT_LEAST_COPY_LOADS, 4, "loads",
           "fewer are not worth a store of their own", "chosen by hand");
POLICY_INT(DEFAULT_COPY_REPEATS, 3, "times these loads",
           "a longer row is unrolled even where they do not divide it", "chosen by hand");
POLICY_INT(DEFAULT_ADJACENT_BYTES, 256, "bytes",
           "apart: hardware prefetches one row of products with the other",
           "measured: git 4780022");
POLICY_INT(DEFAULT_WINDOW_TILE, 8, "vectors of a tile",
           "from so many on a window inside of a page-crossing loop pays for its loop",
           "measured: git 8eb552d");
POLICY_INT(DEFAULT_STREAMED_PANELS, 2, "panels",
           "that are read from memory side by side", "measured: git 8eb552d");

/* ---- candidate tiles (default_tile.c, default_tile_cache.c) ---- */

POLICY_INT(DEFAULT_MOST_VECTORS, 8, "vectors",
           "of a tile along its vector axis", "chosen by hand");
POLICY_INT(DEFAULT_LEAST_LANES, 4, "lanes",
           "of a vector that is shorter than the machine's and divides the axis", "chosen by hand");
POLICY_INT(DEFAULT_POINT_STATEMENTS, 2, "statements per point",
           "beside its terms: the start and the store",
           "derived: the code that default_nest.c makes");
POLICY_INT(DEFAULT_OTHER_STATEMENTS, 256, "statements",
           "of the limit on unrolled code, left to other stages", "chosen by hand");
POLICY_REAL(DEFAULT_CYCLES_LESS, 0.9995, "of the best candidate's cycles",
            "a candidate that saves less does not replace it: the first of equal ones wins",
            "chosen by hand");
POLICY_REAL(DEFAULT_BOUND_SLACK, 1.003, "times the upper bound",
            "candidates that save too little are passed over, so the winner may exceed the bound",
            "chosen by hand");
POLICY_INT(DEFAULT_CACHED_TILES, 1024, "tiles",
           "that the cache holds, one per hash", "chosen by hand");
POLICY_INT(DEFAULT_KEY_WORDS, 256, "words",
           "of a key; stages with longer ones are not cached", "chosen by hand");
POLICY_INT(DEFAULT_HASH_FACTOR, 461845907, "squared, as a factor",
           "its square is odd and has 58 bits, so that it spreads the words of a key",
           "chosen by hand");
POLICY_INT(DEFAULT_HASH_SHIFT, 29, "bits",
           "fold the high bits of a product into its low ones", "chosen by hand");

/* ---- K-blocking (default_k_blocks.c) ---- */

POLICY_REAL(DEFAULT_K_BLOCK_BYTE, 0.25, "cycles per byte",
            "of accumulators that a block stores and loads again", "chosen by hand");
POLICY_INT(DEFAULT_K_BLOCK, 512, "steps",
           "of a block where no block of all operands fits into half of L2",
           "measured: git ce7b7a9");
POLICY_INT(DEFAULT_SHORTEST_K_BLOCK, 256, "steps",
           "a shorter block is not worth moving its accumulators", "chosen by hand");
POLICY_INT(DEFAULT_LONGEST_K_BLOCK, 1024, "steps",
           "a longer block is not tried", "chosen by hand");
POLICY_INT(DEFAULT_FEWEST_K_BLOCKS, 2, "blocks",
           "fewer are no blocks", "derived: one block is the whole reduction");

/* ---- horizontal reductions (default_horizontal.c) ---- */

POLICY_INT(DEFAULT_HORIZONTAL_VECTORS, 8, "vectors per step",
           "that are added up before their lanes are", "chosen by hand");
POLICY_INT(DEFAULT_HORIZONTAL_CALLS, 4, "vectors per step",
           "the same where each computes a function", "chosen by hand");
POLICY_INT(DEFAULT_NARROW_VECTOR, 32, "bytes of a vector",
           "up to here a row needs DEFAULT_NARROW_ROW vectors: other loops gather few lanes",
           "measured: git eb4fd6e");
POLICY_INT(DEFAULT_NARROW_ROW, 4, "vectors",
           "of a row that is worth a horizontal reduction with narrow vectors",
           "measured: git eb4fd6e");
POLICY_INT(DEFAULT_HORIZONTAL_ADD, 12, "cycles",
           "to add up the lanes of a vector", "chosen by hand");
POLICY_INT(DEFAULT_PARTIAL_SUMS, 4, "partial sums",
           "if they divide the reduction, they may be better", "chosen by hand");

/* ---- prefetch of image rows (default_prefetch.c) ---- */

POLICY_INT(DEFAULT_MOST_PREFETCHED, 128 << 10, "bytes",
           "ahead: they stay in L2 until they are read", "measured: git 4780022");
POLICY_INT(DEFAULT_FEW_PRODUCTS, 192, "products per element",
           "more hide the latency of memory", "measured: git 4780022");

/* ---- periodic reductions (default_phases.c) ---- */

POLICY_INT(DEFAULT_LONGEST_PERIOD, 8, "steps",
           "a longer period is too much code", "chosen by hand");
POLICY_INT(DEFAULT_PERIODIC_STEPS, 16, "steps",
           "of a reduction that are unrolled where the period does not divide it",
           "chosen by hand");
POLICY_INT(DEFAULT_PERIODIC_COPIES, 64, "copies of a statement",
           "by three periods; in a window of 3x3x3 the outermost one stays a loop",
           "chosen by hand");

/* ---- padding boundaries of reductions (default_inside.c) ---- */

POLICY_INT(DEFAULT_LONG_AXIS, 8, "steps",
           "of an axis, from which on a term of its first step alone is ignored", "chosen by hand");
POLICY_INT(DEFAULT_COUNTED_STEPS, 4096, "steps",
           "of the shorter axis of a condition, counted one by one", "chosen by hand");
POLICY_INT(DEFAULT_LARGE_STEP, 1 << 20, "elements",
           "no image has such a step; products with smaller ones do not overflow",
           "derived: 2^20 * 2^20 < 2^63");

/* clang-format on */

#endif
