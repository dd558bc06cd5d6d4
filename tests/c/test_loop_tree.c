// Binding schedules: what is accepted computes what the interpreter says, what is rejected says why.
#include "autoschedule/default.h"
#include "base/random.h"
#include "bind/bind.h"
#include "machines.h"
#include "walk_tree.h"

#include "check.h"

// C = A B, D = relu(C)
#define GEMM                                                             \
  "canvas 1\nprogram gemm\nin A f32 [i:12, k:8]\nin B f32 [k:8, j:32]\n" \
  "C[i:12, j:32] = A[i, k] * B[k, j] // sum k:8\nD[i:12, j:32] = max(C[i, j], 0)\nout D\n"
// A border, a convolution over it.
#define CONV                                                                              \
  "canvas 1\nprogram conv\nin X f32 [c:3, h:6, w:7]\nin W f32 [o:4, c:3, r:3, s:3]\n"     \
  "P[c:3, h:8, w:9] = if 1 <= h && h < 7 && 1 <= w && w < 8 then X[c, h-1, w-1] else 0\n" \
  "Y[o:4, h:6, w:7] = P[c, h+r, w+s] * W[o, c, r, s] // sum c:3, r:3, s:3\nout Y\n"
// A matrix of images, and their picture again.
#define FLAT                                                                     \
  "canvas 1\nprogram flat\nin X f32 [y:24, k:5]\nM[y:24] = X[y, k] // max k:5\n" \
  "E[y:24, k:5] = exp(X[y, k] - M[y])\nS[y:24] = E[y, k] // sum k:5\n"           \
  "O[h:4, w:6, k:5] = E[h*6+w, k] / S[h*6+w]\nout O\n"
// Rows of a sparse matrix.
#define SPARSE                                                                      \
  "canvas 1\nprogram sparse\nin ptr i32 [r:5] 0..9 rising\nin ind i32 [e:9] 0..6\n" \
  "in val f32 [e:9]\nin X f32 [c:6, n:8]\n"                                         \
  "Y[r:4, n:8] = val[e] * X[ind[e], n] // sum e:ptr[r]..ptr[r+1]\nout Y\n"
#define CHAIN                                                                             \
  "canvas 1\nprogram chain\nin X f64 [i:10]\nA[i:10] = X[i] + 1\nB[i:10] = A[i] * A[i]\n" \
  "Z[i:10] = B[i] - A[i]\nout Z\nout B\n"

#define SPARSE2                                                                \
  "canvas 1\nprogram sparse\nin ptr i32 [r:5] 0..9 rising\nin val f32 [e:9]\n" \
  "Y[r:4, n:8] = val[e] // sum e:ptr[r]..ptr[r+1]\n"                           \
  "Z[r:4, n:8] = val[e] // max e:ptr[r]..ptr[r+1]\nout Y\nout Z\n"
#define SHARED \
  "canvas 1\nprogram shared\nin X f32 [i:10]\nA[i:10] = X[i]\nZ[i:10] = A[i]\nout Z\nout A\n"
#define SHIFT \
  "canvas 1\nprogram shift\nin X f32 [i:10]\nA[i:10] = X[i]\nZ[i:10] = A[i*i%10]\nout Z\n"
#define SHIFT2 "canvas 1\nprogram shift\nin X f32 [i:10]\nA[i:10] = X[i]\nZ[i:10] = A[9-i]\nout Z\n"
#define NEXT                                                  \
  "canvas 1\nprogram next\nin X f32 [i:10]\nA[i:10] = X[i]\n" \
  "Z[i:10] = if i < 9 then A[i+1] else 0\nout Z\n"
#define LARGE \
  "canvas 1\nprogram large\nin X f32 [i:20000]\nA[i:20000] = X[i]\nZ[i:20000] = A[i]\nout Z\n"
#define HUGE                                                             \
  "canvas 1\nprogram huge\nin X f32 [i:1]\nA[i:65536, j:65536] = X[0]\n" \
  "Z[i:65536, j:65536] = A[i, j]\nout Z\n"
#define TEN "X[i] + X[i] + X[i] + X[i] + X[i] + X[i] + X[i] + X[i] + X[i] + X[i]"
#define FIVE                                                                        \
  "canvas 1\nprogram five\nin X f32 [i:1000]\nA[i:1000] = X[i]\nB[i:1000] = A[i]\n" \
  "C[i:1000] = B[i]\nE[i:1000] = C[i]\nZ[i:1000] = E[i]\nout Z\n"
#define LONG                                    \
  "canvas 1\nprogram long\nin X f32 [i:4000]\n" \
  "Z[i:4000] = " TEN " + " TEN " + " TEN " + " TEN " + " TEN " + " TEN "\nout Z\n"
// An output that is read, one of bf16, one that is summed up.
#define STREAMS                                                                   \
  "canvas 1\nprogram streams\nin X f32 [i:8, j:32]\nA[i:8, j:32] = X[i, j] + 1\n" \
  "B bf16 [i:8, j:32] = A[i, j]\nS[j:32] = X[i, j] // sum i:8\nout A\nout B\nout S\n"
#define PLAIN_A "i, j => @A = i, j\n"
#define PLAIN_B "i, j => @B = i, j\n"
#define PLAIN_S "i, j => @S = j // i\n"
#define D       "i, j => @D = i, j\n"

static const char plain_gemm[] = "i, j, k => @C = i, j // k\ni, j => @D = i, j\n";

// Program, schedule: it binds, and the walk gives the interpreter's result.
static const struct {
  const char *program, *schedule;
} good[] = {
    {GEMM, plain_gemm},
    {GEMM, "i, j =>\n    k => @C = i, j // k\n    @D = i, j\n"},
    {GEMM, "k, i, j => @C = i, j // k\nj, i => @D = i, j\n"},
    {GEMM,
     "io:para, jo =>\n  ko, ki:4:unroll, ii:4:unroll, ji:16:vec =>\n"
     "    @C[ji][ii]:reg = {io, ii}/i, {jo, ji}/j // {ko, ki}/k\n"
     "  ii:unroll, ji:vec => @D = {io, ii}/i, {jo, ji}/j\n"},
    {GEMM,
     "{io, jo}:para =>\n  ii:5, k, ji:32:vec => @C = {io, ii}/i, {jo, ji}/j // k\n"
     "  ii:mask, ji:vec => @D = {io, ii}/i, {jo, ji}/j\n"},
    {GEMM,
     "io, jo =>\n  ko:mask, ki:3, ii:5:peel, ji:4 =>\n    @C = {io, ii}/i, {jo, ji}/j // {ko, "
     "ki}/k\n"
     "  ii, ji => @D = {io, ii}/i, {jo, ji}/j\n"},
    {GEMM, "io, ii:6, j, k => @C[ii][j][io] = {io, ii}/i, j // k\nx, y => @D = {x}/i, {y}/j\n"},
    {GEMM, "i, x, k => @C = i, {x}/j // k\nx, i => @D = i, {x}/j\n"},
    {CONV, "c, h, w => @P = c, h, w\no, y, x, c, r, s => @Y = o, {y}/h, {x}/w // c, r, s\n"},
    {CONV,
     "o:para =>\n  c, h, w => @P = c, h, w\n"
     "  c, r, s, y, x => @Y = o, {y}/h, {x}/w // c, r, s\n"},
    {CONV,
     "c =>\n  h, w => @P[w][h] = c, h, w\n"
     "  o, y, x, r, s => @Y = o, {y}/h, {x}/w // c, r, s\n"},
    {FLAT,
     "y =>\n  k => @M = y // k\n  k2 => @E = y, {k2}/k\n  k => @S = y // k\n"
     "h, w, k => @O = h, w, k\n"},
    {FLAT,
     "h, w =>\n  k => @M = {h, w}/y // k\n  k2 => @E = {h, w}/y, {k2}/k\n"
     "  k => @S = {h, w}/y // k\n  k3 => @O = h, w, {k3}/k\n"},
    {FLAT,
     "h =>\n  w, k => @M = {h, w}/y // k\n  k2, w => @E[w][k] = {h, w}/y, {k2}/k\n"
     "  k, w => @S = {h, w}/y // k\n  w, k3 => @O = h, w, {k3}/k\n"},
    {SPARSE, "r, n, e:dyn(r) => @Y = r, n // e\n"},
    {SPARSE, "ro:mask, ri:3, e:dyn(r), n:8:vec => @Y = {ro, ri}/r, n // e\n"},
    {CHAIN, "i =>\n  @A = i\n  @B = i\n  @Z = i\n"},
    {CONV, "o, c, r, s, y, x =>\n  h, w => @P = c, h, w\n  @Y = o, {y}/h, {x}/w // c, r, s\n"},
    {GEMM, "jo, i, ji:8 =>\n  k => @C = i, {jo, ji}/j // k\njo, i, ji => @D = i, {jo, ji}/j\n"},
    {CHAIN, "p:5, o =>\n  @A = {o, p}/i\n  @B = {o, p}/i\n  @Z = {o, p}/i\n"},
    {SHARED, "q:2, a:5 => @A = {a, q}/i\nq, a => @Z = {a, q}/i\n"},
    {GEMM, "k, {i, j}:fold:vec => @C = i, j // k\n{i, j}:vec:fold => @D = i, j\n"},
    {CHAIN, "i:16:mask:vec =>\n  @A = i\n  @B = i\n  @Z = i\n"},
    {CHAIN, "i:16:mask:vec => @A = i\ni => @B = i\n{i}:vec => @Z = i\n"},
    {CHAIN, "i => @A = i\no, p:5 =>\n  @B = {o, p}/i\n  @Z = {o, p}/i\n"},
};

// Program, schedule: it binds, and the warnings.
static const struct {
  const char *program, *schedule, *warnings;
} warned[] = {
    {GEMM, "i, k, j:unroll => @C = i, j // k\n" D,
     "warning: line 1, column 19: the tile of 'C' fills 34 registers, the machine has 32\n"},
    {GEMM, "k, {i, j}:fold:vec => @C = i, j // k\n" D,
     "warning: line 1, column 23: the tile of 'C' fills 49 registers, the machine has 32\n"},
    {GEMM, "i, k, j:vec => @C = i, j // k\n" D, ""},
};

// Program, schedule: the error message.
static const struct {
  const char *program, *schedule, *message;
} bad[] = {
    {GEMM, "i, j, k => @X = i, j // k\n",
     "line 1, column 12: unknown stage 'X', the program has none of that name"},
    {GEMM, "i, k => @A = i, k\n",
     "line 1, column 9: 'A' is an input, a schedule computes stages only"},
    {GEMM, "i, j, k => @C = i, {j}/h // k\n", "line 1, column 20: stage 'C' has no axis 'h'"},
    {GEMM, "i, j, k => @C = i, j, k\n",
     "line 1, column 23: axis 'k' is a reduction of 'C', it stands after the //"},
    {GEMM, "i, j, k => @C = i // j, k\n",
     "line 1, column 22: axis 'j' is no reduction of 'C', it stands before the //"},
    {GEMM, "i, j => @C = i, j\n", "line 1, column 9: axis 'k' of 'C' is covered by no loop"},
    {GEMM, "i, j => @D = i, j\n",
     "line 1, column 9: stage 'D' reads 'C', which the schedule does not compute"},
    {GEMM, "i, j, k => @C = i, j // k\n", "the schedule does not compute 'D', an output"},
    {GEMM, "{i, k}:fold, j => @C = i, j // k\n" D,
     "line 1, column 1: loops 'i' and 'k' are one group, only one of them reduces 'C'"},
    // dyn
    {GEMM, "i, j, k:dyn(i) => @C = i, j // k\n" D,
     "line 1, column 32: loop 'k' is dyn, axis 'k' of 'C' does not run over data"},
    {SPARSE, "r, n, e => @Y = r, n // e\n",
     "line 1, column 25: axis 'e' of 'Y' runs over data, loop 'e' has to be dyn"},
    {SPARSE, "r, n, eo, e:3 => @Y = r, n // {eo, e}/e\n",
     "line 1, column 31: axis 'e' of 'Y' runs over data and cannot be split"},
    {SPARSE, "r, n, e:dyn(n) => @Y = r, n // e\n",
     "line 1, column 32: loop 'e' is dyn(n), axis 'e' of 'Y' is no function of it"},
    {SPARSE, "n, e:dyn(r), r => @Y = r, n // e\n",
     "line 1, column 14: loop 'r' stands inside dyn loop 'e', whose bounds depend on axis 'r'"},
    {SPARSE, "ro, e:dyn(r), ri:2, n => @Y = {ro, ri}/r, n // e\n",
     "line 1, column 15: loop 'ri' stands inside dyn loop 'e', whose bounds depend on axis 'r'"},
    {SPARSE2, "r, e:dyn(r), n =>\n  @Y = r, n // e\n  @Z = r, n // e\n",
     "line 3, column 3: dyn loop 'e' is an axis of 'Y' and of 'Z', each needs a loop of its own"},
    // extents
    {GEMM, "io, ii:5, j, k => @C = {io, ii}/i, j // k\n" D,
     "line 1, column 24: axis 'i' of 'C' has 12, which 5 does not divide: loop 'io' has no extent "
     "(':mask' and ':peel' allow a remainder)"},
    {GEMM, "io:2, ii:5, j, k => @C = {io, ii}/i, j // k\n" D,
     "line 1, column 26: the parts of axis 'i' of 'C' multiply up to 10, not 12"},
    {GEMM, "io:3, ii:5, j, k => @C = {io, ii}/i, j // k\n" D,
     "line 1, column 26: the parts of axis 'i' of 'C' multiply up to 15, not 12 (':mask' and "
     "':peel' allow a remainder)"},
    {GEMM, "io:4, ii:5:mask, j, k => @C = {io, ii}/i, j // k\n" D,
     "line 1, column 31: 3 steps of loop 'io' cover axis 'i' of 'C', not 4"},
    {GEMM, "io:mask, ii:5:peel, j, k => @C = {io, ii}/i, j // k\n" D,
     "line 1, column 34: axis 'i' of 'C' has both a mask and a peel"},
    {GEMM, "x, y, k => @C = {x}/i, {y}/j // k\ny, x => @D = {y}/i, {x}/j\n",
     "line 2, column 14: loop 'y' has two extents: 12 by axis 'i' of 'D', 32 elsewhere"},
    {GEMM, "io:mask, ii:20, j, k => @C = {io, ii}/i, j // k\ni, j, ii => @D = i, {j, ii}/j\n",
     "line 2, column 21: the parts of axis 'j' of 'D' multiply up to 640, not 32 (':mask' and "
     "':peel' allow a remainder)"},
    {GEMM, "i, j:48, k => @C = i, {j}/j // k\n" D,
     "line 1, column 23: the parts of axis 'j' of 'C' multiply up to 48, not 32 (a vec loop with "
     "':mask' may be longer than its axis)"},
    // compute-at scopes
    {GEMM, D "i, j, k => @C = i, j // k\n",
     "line 1, column 9: stage 'D' reads 'C', which is computed after it"},
    {GEMM, "i, j, k =>\n  @C = i, j // k\n  l => @D = i, {l}/j\n",
     "line 3, column 8: stage 'D' stands inside loop 'k' and reads 'C', which is complete after "
     "it"},
    {GEMM, "i, j =>\n  k =>\n    @C = i, j // k\n    @D = i, j\n",
     "line 4, column 5: stage 'D' stands inside loop 'k' and reads 'C', which is complete after "
     "it"},
    {CHAIN, "l =>\n  i => @A = i\n  @B = {l}/i\ni => @Z = i\n",
     "line 1, column 1: loop 'l' is around 'A' and in none of its axes, and what is computed has "
     "to "
     "outlive it"},
    {CONV, "h, w, o => @P = {o}/c, h, w\no, y, x, c, r, s => @Y = o, {y}/h, {x}/w // c, r, s\n",
     "line 2, column 26: loop 'o' has two extents: 4 by axis 'o' of 'Y', 3 elsewhere"},
    {CHAIN, "q:2 =>\n  a:5 => @A = {a, q}/i\n  a =>\n    @B = {a, q}/i\n    @Z = {a, q}/i\n",
     "line 2, column 15: 'A' stores all steps of loop 'a' and one step of 'q', which is a smaller "
     "part of axis 'i' (the outer loop comes first in {})"},
    {SHARED, "q:2 =>\n  a:5 => @A = {a, q}/i\n  a => @Z = {a, q}/i\n",
     "line 3, column 8: stage 'Z' reads 'A' along axis 'i' in a way that cannot be bounded in one "
     "iteration of the loops around both"},
    // regions
    {CONV,
     "y:2 =>\n  c, h, w => @P = c, {y, h}/h, w\n  o, x, z, c, r, s => @Y = o, {y, z}/h, {x}/w // "
     "c, r, s\n",
     "line 3, column 23: stage 'Y' reads 'P' at 'h+r' along axis 'h': from -1 to 4 in one "
     "iteration of the loops around both, which computes 0 to 3"},
    {SHIFT, "i =>\n  @A = i\n  @Z = i\n",
     "line 3, column 3: stage 'Z' reads 'A' at 'i*i%10' along axis 'i': from -9 to 9 in one "
     "iteration of the loops around both, which computes 0 to 0"},
    {NEXT, "o:2 =>\n  p => @A = {o, p}/i\n  q => @Z = {o, q}/i\n",
     "line 3, column 8: stage 'Z' reads 'A' at 'i+1' along axis 'i': from 1 to 5 in one iteration "
     "of the loops around both, which computes 0 to 4"},
    {SHIFT2, "o:2 =>\n  i => @A = {o, i}/i\n  i => @Z = {o, i}/i\n",
     "line 3, column 8: stage 'Z' reads 'A' at '9-i' along axis 'i': from -5 to 9 in one iteration "
     "of the loops around both, which computes 0 to 4"},
    // layouts
    {GEMM, "io, ii:4 =>\n  j, k => @C[i][j] = {io, ii}/i, j // k\n  j => @D = {io, ii}/i, j\n",
     "line 2, column 11: the layout of 'C' has axis 'i', whose loops are all around the buffer"},
    {GEMM, "io, ii:4, j, k => @C[io][i][j] = {io, ii}/i, j // k\n" D,
     "line 1, column 19: the layout of 'C' has 'i' twice"},
    {GEMM, "i =>\n  j, k => @C[i][j] = i, j // k\n  j => @D = i, j\n",
     "line 2, column 11: the layout of 'C' has loop 'i', which is around the buffer"},
    {GEMM, "io, ii:4 =>\n  j, k => @C[ii][j] = {io, ii}/i, j // k\n  j => @D = {io, ii}/i, j\n",
     "line 2, column 11: the layout of 'C' has loop 'ii', which is around the buffer"},
    {GEMM, "i, j, k => @C[j] = i, j // k\n" D,
     "line 1, column 12: the layout of 'C' lacks loop 'i'"},
    {GEMM, "i, j, k => @C = i, j // k\ni, j => @D[j][i] = i, j\n",
     "line 2, column 9: 'D' is an output, the program says how it is laid out"},
    {GEMM, "i, j, k => @C = i, j // k\ni, j => @D:l1 = i, j\n",
     "line 2, column 9: 'D' is an output, the program says how it is laid out"},
    {GEMM, "i, j, k => @C:stream = i, j // k\ni, j => @D = i, j\n",
     "line 1, column 12: ':stream' is for outputs, 'C' is not an output"},
    // marks
    {GEMM, "i, j:vec, k => @C = i, j // k\n" D,
     "line 1, column 11: loop 'k' stands inside vec loop 'j' and is neither unrolled nor of a "
     "given extent"},
    {GEMM, "i, j:vec, k:8:para => @C = i, j // k\n" D,
     "line 1, column 11: loop 'k' stands inside vec loop 'j' and is neither unrolled nor of a "
     "given extent"},
    {GEMM, "i, {j, k}:fold:vec => @C = i, j // k\n" D,
     "line 1, column 4: loops 'j' and 'k' are one group, only one of them reduces 'C'"},
    {GEMM, "i, j, k:para => @C = i, j // k\n" D, "line 1, column 7: parallel loop 'k' reduces 'C'"},
    {GEMM, "j, k, i:vec => @C = i, j // k\n" D,
     "line 1, column 7: vec loop 'i' has 12 steps: 'C' needs a multiple of its 16 lanes, a power "
     "of two below, ':mask' or ':peel'"},
    {CONV, "c, {h, w}:fold:vec => @P = c, h, w\no, y, x, c, r, s => @Y = o, y/h, x/w // c, r, s\n",
     "line 1, column 4: vec loop 'h' has 72 steps: 'P' needs a multiple of its 16 lanes, a power "
     "of two below, ':mask' or ':peel'"},
    {CONV, "c, h, w => @P = c, h, w\no, y, x, c, {r, s}:fold:vec => @Y = o, y/h, x/w // c, r, s\n",
     "line 2, column 13: vec loop 'r' has 9 steps: 'Y' needs a multiple of its 16 lanes, a power "
     "of "
     "two below, ':mask' or ':peel'"},
    {GEMM, "i:para, j:para, k => @C = i, j // k\n" D,
     "line 1, column 9: parallel loop 'j' stands inside parallel loop 'i'"},
    {CHAIN, "i:vec =>\n  j:unroll => @A = {j}/i\n  @B = i\n  @Z = i\n",
     "line 1, column 1: vec loop 'i' is in no axis of 'A' inside it"},
    // peeled loops that cannot be
    {GEMM, "{io, ii:5:peel}:fold, j, k => @C = {io, ii}/i, j // k\n" D,
     "line 1, column 1: loop 'io' of a group cannot be peeled, mask it or take it out of the "
     "group"},
    {GEMM,
     "io:para, ii:5:peel =>\n  j, k => @C:heap = {io, ii}/i, j // k\n  j => @D = {io, ii}/i, j\n",
     "line 1, column 1: parallel loop 'io' cannot be peeled, its threads have buffers of their "
     "own; "
     "mask it"},
    {"canvas 1\nprogram six\nin X f32 [a:3, b:3, c:3, d:3, e:3, f:3]\n"
     "Y[a:3, b:3, c:3, d:3, e:3, f:3] = X[a, b, c, d, e, f]\nout Y\n",
     "ao, bo, co, do, eo, fo, a:2:peel, b:2:peel, c:2:peel, d:2:peel, e:2:peel, f:2:peel =>\n"
     "  @Y = {ao, a}/a, {bo, b}/b, {co, c}/c, {do, d}/d, {eo, e}/e, {fo, f}/f\n",
     "line 1, column 1: loop 'ao' is peeled around 5 peeled loops in one another, at most 5 "
     "together; "
     "mask one of them"},
    // limits
    {GEMM,
     "i =>\n  jo:unroll, k, ji:12:vec:mask => @C:reg = i, {jo, ji}/j // k\n"
     "  jo:unroll, ji:vec => @D = i, {jo, ji}/j\n",
     "line 2, column 35: ':reg' buffer 'C' cannot be in registers: its index in 'C' depends on "
     "loop 'ji', which is not a whole number of vectors"},
    {GEMM, "i =>\n  k, j:vec => @C:reg = i, j // k\n  j:unroll => @D = i, j\n",
     "line 2, column 15: ':reg' buffer 'C' cannot be in registers: its index in 'D' is not "
     "constant, or not of the same lanes everywhere"},
    {GEMM, "i, k, j => @C:reg = i, j // k\n" D,
     "line 1, column 12: ':reg' buffer 'C' cannot be in registers: its index in 'C' depends on "
     "loop 'i', which is not unrolled"},
    {GEMM, "i, k, j:unroll => @C:reg = i, j // k\n" D,
     "line 1, column 19: ':reg' buffer 'C' cannot be in registers: its index in 'C' depends on "
     "loop 'i', which is not unrolled"},
    {GEMM, "i =>\n  k, j:unroll => @C:reg = i, j // k\n  j => @D = i, j\n",
     "line 2, column 18: ':reg' buffer 'C' cannot be in registers: its index in 'D' depends on "
     "loop 'j', which is not unrolled"},
    {GEMM, "i:unroll, k, j:unroll => @C:reg = i, j // k\ni:unroll, j:unroll => @D = i, j\n",
     "line 1, column 26: ':reg' buffer 'C' cannot be in registers: it needs 384 variables, at most "
     "64"},
    {STREAMS, "i, j:vec => @A:stream = i, j\n" PLAIN_B PLAIN_S,
     "line 1, column 13: ':stream' output 'A' is read by 'B'"},
    {STREAMS, PLAIN_A "i, j:vec => @B:stream = i, j\n" PLAIN_S,
     "line 2, column 13: ':stream' output 'B' is neither f32 nor f64"},
    {STREAMS, PLAIN_A PLAIN_B "i, jo, ji:8:vec => @S:stream = {jo, ji}/j // i\n",
     "line 3, column 20: ':stream' output 'S' accumulates in memory: its accumulators are not in "
     "registers"},
    {STREAMS, PLAIN_A PLAIN_B "j, i => @S:stream = j // i\n",
     "line 3, column 9: ':stream' output 'S' is in no vec loop"},
    {LARGE, "i => @A:l1 = i\ni => @Z = i\n",
     "line 1, column 6: ':l1' buffer 'A' takes 80000 bytes, of 49152 in L1 49152 are left"},
    {LARGE, "i:unroll => @A = i\ni => @Z = i\n",
     "line 1, column 1: loop 'i' unrolls into 20000 statements, at most 1024; split it, or unroll "
     "less inside it"},
    {LARGE, "io, ii:2000:unroll => @A = {io, ii}/i\ni => @Z = i\n",
     "line 1, column 5: loop 'ii' unrolls into 2000 statements, at most 1024; split it, or unroll "
     "less inside it"},
    {FIVE,
     "i:unroll => @A = i\ni:unroll => @B = i\ni:unroll => @C = i\ni:unroll => @E = i\n"
     "i:unroll => @Z = i\n",
     "line 5, column 1: loop 'i' unrolls into 1000 statements, those before it into 4000, all "
     "together "
     "at most 4096; unroll fewer loops"},
    {HUGE, "i, j => @A = i, j\ni, j => @Z = i, j\n",
     "line 1, column 9: buffer 'A' takes 17179869184 bytes, of 4294967296 for buffers 4294967296 "
     "are left"},
    {LONG, "io:peel, ii:1023:unroll => @Z = {io, ii}/i\n",
     "line 1, column 28: 'Z' stands 2046 times in the code, which is too long: its expression is "
     "large"},
    {LONG, "i:unroll => @Z = i\n",
     "line 1, column 1: loop 'i' unrolls into 4000 statements, at most 1024; split it, or unroll "
     "less inside it"},
};

static struct program *parse_program(const char *text) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK) fail_msg("%s", ctx.message);
  return p;
}

static struct schedule *parse_schedule(const char *text) {
  canvas_context ctx = {.message = ""};
  struct schedule *s;
  if (schedule_parse(&ctx, text, strlen(text), &s) != CANVAS_OK)
    fail_msg("%s for \"%s\"", ctx.message, text);
  return s;
}

// It binds, without a number that is open, and walks as the interpreter does; the elements of the first stage.
static int64_t walks(const char *program, const char *schedule, const struct machine *machine) {
  canvas_context ctx = {.message = ""};
  struct program *p = parse_program(program);
  struct schedule *s = parse_schedule(schedule);
  struct loop_tree *tree;
  if (loop_tree_bind(&ctx, p, s, machine, &tree) != CANVAS_OK)
    fail_msg("%s for \"%s\"", ctx.message, schedule);
  CHECK_INT(tree->open_holes, 0, schedule);
  CHECK_TEXT(walk_tree(tree, 1), NULL, schedule);
  int64_t elements = tree->stages[0].elements;
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);
  return elements;
}

static void accepts(void **state) {
  CHECK_ROWS (good, row) walks(row->program, row->schedule, &machine_avx512);
}

static void warns(void **state) {
  CHECK_ROWS (warned, row) {
    canvas_context ctx = {.message = ""};
    struct program *p = parse_program(row->program);
    struct schedule *s = parse_schedule(row->schedule);
    struct loop_tree *tree;
    struct buf text = {0};
    if (loop_tree_bind(&ctx, p, s, &machine_avx512, &tree) != CANVAS_OK)
      fail_msg("%s", ctx.message);
    buf_puts(&text, "");
    loop_tree_print_warnings(tree, &text);
    CHECK_TEXT(text.text, row->warnings, row->schedule);
    buf_free(&text);
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
  }
}

static void rejects(void **state) {
  CHECK_ROWS (bad, row) {
    canvas_context ctx = {.message = "accepted"};
    struct program *p = parse_program(row->program);
    struct schedule *s = parse_schedule(row->schedule);
    struct loop_tree *tree = NULL;
    loop_tree_bind(&ctx, p, s, &machine_avx512, &tree);
    CHECK_TEXT(ctx.message, row->message, row->schedule);
    schedule_free(s);
    program_free(p);
  }
}

// More loops around a stage than any text can open.
static void too_deep(void **state) {
  canvas_context ctx = {.message = ""};
  struct program *p = parse_program(CHAIN);
  struct schedule *s = schedule_new("deep");
  struct loop_tree *tree;
  char name[8];
  int node = 0;
  for (int i = 0; i <= SCHEDULE_DEPTH; i++) {
    snprintf(name, sizeof name, "l%d", i);
    node = schedule_add_loop(s, node, schedule_level(s, name), 0);
  }
  int leaf = schedule_add_leaf(s, node, "A");
  struct schedule_axis *axis = schedule_add_axis(s, leaf, "i"), *other;
  for (int i = 0; i < SCHEDULE_DEPTH; i++) axis->level[axis->count++] = i;
  other = schedule_add_axis(s, leaf, "x");
  other->level[other->count++] = SCHEDULE_DEPTH;
  assert_int_equal(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_BAD_INPUT);
  CHECK_TEXT(ctx.message, "stage 'A' has no axis 'x'", "deep");
  s->nodes.data[leaf].leaf.axes.data[1].axis = "k";
  program_free(p);
  p = parse_program("canvas 1\nprogram p\nin X f32 [i:1]\nA[i:1, k:1] = X[i]\nout A\n");
  assert_int_equal(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_BAD_INPUT);
  CHECK_TEXT(ctx.message, "stage 'A' stands inside more than 32 loops", "deep");
  schedule_free(s);
  program_free(p);
}

#define PREFIX "canvas 1\nprogram p\nin X f32 [k:16]\nY[i:16] = X[k] // sum k:0..i+1\nout Y\n"
// Reductions over data that share a name: of one length or two, as far as one axis says or another.
#define PREFIXES                                                       \
  "canvas 1\nprogram p\nin X f32 [k:16]\n"                             \
  "S[k:9] = X[kd] // sum kd:0..k+1\nT[m:9] = S[kd] // sum kd:0..m+1\n" \
  "U[m:4] = T[kd] // max kd:0..m+2\nV[k:9] = X[kd] // sum kd:0..k+1\n" \
  "out T\nout U\nout V\n"
static const char *const programs[] = {GEMM, CONV, FLAT, SPARSE, CHAIN, PREFIX, PREFIXES};

static void defaults(void **state) {
  CHECK_ROWS (programs, text) {
    for (int heuristic = 0; heuristic < 2; heuristic++) {
      canvas_context ctx = {.message = ""};
      struct program *p = parse_program(*text);
      struct schedule *s = schedule_default(p, heuristic, &machine_avx512);
      struct loop_tree *tree;
      if (loop_tree_bind(&ctx, p, s, &machine_avx512, &tree) != CANVAS_OK)
        fail_msg("%s for \"%s\"", ctx.message, *text);
      CHECK_TEXT(walk_tree(tree, 2), NULL, *text);
      loop_tree_free(tree);
      schedule_free(s);
      program_free(p);
    }
  }
}

static char *loops_of(const struct loop_tree *tree) {
  struct buf text = {0};
  schedule_print(tree->schedule, &text);
  return buf_take(&text);
}

// The default schedule comes with the tree that it was checked by: what binding it again gives.
static void default_trees(void **state) {
  CHECK_ROWS (programs, text) {
    canvas_context ctx = {.message = ""};
    struct program *p = parse_program(*text);
    struct schedule *s = schedule_default(p, true, &machine_avx512), *bound;
    struct loop_tree *tree;
    if (default_bind_layout(&ctx, p, &machine_avx512, LAYOUT_EITHER, &bound, &tree) != CANVAS_OK)
      fail_msg("%s for \"%s\"", ctx.message, *text);
    struct buf own = {0};
    schedule_print(s, &own);
    char *loops = loops_of(tree);
    CHECK_TEXT(loops, own.text, *text);
    CHECK(tree->schedule == bound, *text);
    CHECK_TEXT(walk_tree(tree, 2), NULL, *text);
    free(loops);
    buf_free(&own);
    loop_tree_free(tree);
    schedule_free(bound);
    schedule_free(s);
    program_free(p);
  }
}

#define MAP                                                                                   \
  "canvas 1\nprogram map\nin X f32 [r:6, c:32]\nS[r:6, c:32] = X[r, c]\nY[c:32, r:6] = S[r, " \
  "c]\nout Y\n"

// What the stage S takes, with vectors of 8 lanes: rows of a tile that are lanes of what reads them take whole vectors.
static const struct {
  const char *program, *schedule;
  int64_t elements;
} rooms[] = {
    {MAP,
     "co =>\n  r:mask:unroll, ci:8:vec => @S[ci][r] = r, {co, ci}/c\n"
     "  ci, r:6:vec => @Y = {co, ci}/c, r\n",
     64},
    {MAP,
     "co =>\n  r:unroll, ci:8:vec => @S[ci][r] = r, {co, ci}/c\n"
     "  ci, r:6 => @Y = {co, ci}/c, r\n",
     48},  // not lanes
    {MAP,
     "co =>\n  ro, ri:5:peel:unroll, ci:8:vec => @S[ro][ci][ri] = {ro, ri}/r, {co, ci}/c\n"
     "  ci, ro, ri:vec => @Y = {co, ci}/c, {ro, ri}/r\n",
     128},
    {MAP,
     "co =>\n  ro, ri:4:peel:unroll, ci:8:vec => @S[ro][ci][ri] = {ro, ri}/r, {co, ci}/c\n"
     "  ci, ro, ri:vec => @Y = {co, ci}/c, {ro, ri}/r\n",
     64},  // half of a vector, no more
    {MAP, "r:mask, c => @S[c][r] = r, c\nc, r:6:vec => @Y = c, r\n", 192},  // no tile
};

static void gives_room(void **state) {
  CHECK_ROWS (rooms, row)
    CHECK_INT(walks(row->program, row->schedule, &machine_avx2), row->elements, row->schedule);
}

// What Y[i:700, j:9] loads of X f32 [x:10], a i32 [n:50] -9..99, F f32 [i:700]: so many loads are
// guarded, or it is rejected with these words.
static const struct {
  const char *value;
  int guarded;
  const char *message;
} loads[] = {
    {"X[j]", 0, ""},
    {"X[i*i]", 0,
     "stage 'Y' may load 'X' out of range (line 6, column 17 of the program): index 'i*i' runs "
     "from "
     "0 to 488601 as far as is known, axis 'x' has size 10; put the load under a condition on that "
     "index"},
    {"F[i] + X[i*j]", 0, "index 'i*j' runs from 0 to 5592"},
    {"if X[j*j] < 3 then 1 else 2", 0, "index 'j*j' runs from 0 to 64"},
    {"if F[j*j] < 3 && X[j*j] < 3 then 1 else 2", 1, ""},
    {"if F[j*j] < 3 || X[j*j] < 3 then 1 else 2", 1, ""},
    {"if F[i] < 100 then X[i*20] else 0", 1, ""},
    {"if F[i] < 100 then X[i] else X[i+1]", 2, ""},
    // a condition that bounds the index, however it is said
    {"if i < 10 then X[i] else 0", 0, ""},
    {"if i <= 10 then X[i] else 0", 1, ""},
    {"if 10 > i then X[i] else 0", 0, ""},
    {"if i >= 10 then 0 else X[i]", 0, ""},
    {"if !(i >= 10) then X[i] else 0", 0, ""},
    {"if i >= 10 || F[i] < 0 then 0 else X[i]", 0, ""},
    {"if i >= 10 && F[i] < 0 then 0 else X[i]", 1, ""},
    {"if i >= 10 || X[i] < 0 then 0 else 1", 0, ""},
    {"if i < 10 && X[i] < 0 then 0 else 1", 0, ""},
    {"if i == 7 then X[i] else 0", 0, ""},
    {"if i != 7 then 0 else X[i]", 0, ""},
    {"if i == 7 then 0 else X[i]", 1, ""},
    {"if F[i] < 0 then (if i < 12 then X[i-2] else 0) else 1", 1, ""},
    {"if 2 <= i && i < 12 then X[i-2] else 0", 0, ""},
    {"if 2 <= i then (if i < 12 then X[i-2] else 0) else 1", 0, ""},
    {"if 3 <= i+j && i+j < 13 then X[j+i-3] else 0", 0, ""},
    {"if 3 <= i+j && i+j < 14 then X[j+i-3] else 0", 1, ""},
    {"if i-j < 5 && j < i then X[i-j-1] else 0", 0, ""},
    {"if i-j < 5 && j < i then X[(i-j)*2] + X[2*i-2*j+1] else 0", 0, ""},
    {"if i+j < 6 && j < 4 then X[i+2*j] else 0", 0, ""},
    {"if i*j < 10 then X[i*j] else 0", 0, ""},
    {"if i/7 < 2 then X[i-i%7] else 0", 1, ""},
    {"if i/7 < 1 then X[i] else 0", 0, ""},
    {"if (i-9)/3 == 2 then X[i-14] else 0", 0, ""},
    {"if (i+j)/2 < 5 then X[(i+j)/2] else 0", 0, ""},
    {"if max(i, j) < 10 then X[i] else 0", 0, ""},
    {"if min(i, j) < 10 then X[i] else 0", 1, ""},
    {"X[min(i, 9)] + X[max(0, 9-i)] + X[max(min(i-j, 9), 0)]", 0, ""},
    {"X[if i < 10 then i else 9]", 0, ""},
    {"X[if i < 10 then i else 10]", 0, "runs from 0 to 10"},
    {"X[i%10] + X[(i*i-3)%10] + X[i%12%10]", 0, ""},
    // data
    {"X[a[j]]", 0, "index 'a[j]' runs from -9 to 98"},
    {"if 0 <= a[j] && a[j] < 10 then X[a[j]] else 0", 0, ""},
    {"if a[j] < 10 then X[a[j]] else 0", 1, ""},
    {"if a[j] < 10 then X[max(a[j], 0)] else 0", 0, ""},
    {"if i < 10 then X[a[j] - a[j] + i] else 0", 0, ""},
    {"if F[i] < 0 then X[min(max(a[i], 0), 9)] else 0", 1, ""},
    {"if F[i] < 0 then X[max(min(a[i], 9), 3)-3] else 0", 1, ""},
    {"if F[i] < 0 && a[i] > 2 then X[min(a[i], 9)] else 0", 2, ""},
    {"if F[i] < 0 then real(a[i]) else 0", 1, ""},
};

static void loads_in_range(void **state) {
  CHECK_ROWS (loads, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0};
    buf_printf(&text,
               "canvas 1\nprogram loads\nin X f32 [x:10]\nin a i32 [n:50] -9..99\n"
               "in F f32 [i:700]\nY[i:700, j:9] = %s\nout Y\n",
               row->value);
    struct program *p;
    if (program_parse(&ctx, text.text, text.length, &p) != CANVAS_OK) {
      CHECK(*row->message && strstr(ctx.message, row->message), ctx.message);
      buf_free(&text);
      continue;
    }
    struct schedule *s = schedule_default(p, false, &machine_avx512);
    struct loop_tree *tree = NULL;
    int guarded = 0;
    canvas_status status = loop_tree_bind(&ctx, p, s, &machine_avx512, &tree);
    if (!strstr(ctx.message, row->message) || (status == CANVAS_OK) != !*row->message)
      fail_msg("\"%s\" for \"%s\"", ctx.message, row->value);
    for (int i = 0; tree && i < p->nodes.count; i++) guarded += tree->guarded[i];
    CHECK_INT(guarded, row->guarded, row->value);
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
    buf_free(&text);
  }
}

CHECK_MAIN(cmocka_unit_test(accepts), cmocka_unit_test(warns), cmocka_unit_test(rejects),
           cmocka_unit_test(too_deep), cmocka_unit_test(defaults), cmocka_unit_test(default_trees),
           cmocka_unit_test(gives_room), cmocka_unit_test(loads_in_range))
