// Passes over networks: texts before and after, and random networks that compute the same afterwards.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "net/network_interpret.h"
#include "net/passes.h"

#include "check.h"
#include "machines.h"

static canvas_context ctx;

static struct network *network_from(const char *text) {
  struct network *n;
  CHECK_INT(network_parse(&ctx, text, strlen(text), &n), CANVAS_OK, text);
  return n;
}

// ---- texts ----

#define HEAD "canvas 1\nnetwork n\n"
#define RELU "program relu\nin X f32 [n:2]\nY[n:2] = max(X[n], 0)\nout Y\nend\n"
#define RECT "program rect\nin X f32 [n:2]\nY[n:2] = max(X[n], 0)\nout Y\nend\n"
#define ADD  "program add\nin A f32 [n:2]\nin B f32 [n:2]\nY[n:2] = A[n] + B[n]\nout Y\nend\n"
#define TWO                                                             \
  "program two\nin X f32 [n:2]\nY[n:2] = X[n] + 1\nZ[n:2] = X[n] - 1\n" \
  "out Y\nout Z\nend\n"
#define GIVEN "in x f32 [2]\nin unused f32 [3]\nweight w f32 [2]\n"

#define SLICES                                                         \
  "program first\nin X f32 [n:6]\nY[n:4, k:1] = X[n]\nout Y\nend\n"    \
  "program second\nin X f32 [n:6]\nY[n:4, k:1] = X[n+1]\nout Y\nend\n" \
  "program third\nin X f32 [n:6]\nY[n:4, k:1] = X[n+2]\nout Y\nend\n"
#define STACK                                                                                \
  "program stack\nin A f32 [n:4, k:1]\nin B f32 [n:4, k:1]\nin C f32 [n:4, k:1]\n"           \
  "Y[n:4, k:3] = if k < 1 then A[n, k] else if k < 2 then B[n, k-1] else C[n, k-2]\nout Y\n" \
  "end\n"
#define LOW_HIGH                                             \
  "program low\nin X f32 [n:6]\nY[n:2] = X[n]\nout Y\nend\n" \
  "program high\nin X f32 [n:6]\nY[n:2] = X[n+3]\nout Y\nend\n"
#define PAIRS                                     \
  LOW_HIGH                                        \
  "program cat\nin A f32 [n:2]\nin B f32 [n:2]\n" \
  "Y[n:4] = if n < 2 then A[n] else B[n-2]\nout Y\nend\n"

#define CAT2                                                           \
  "program cat2\nin A f32 [n:1, c:2, h:3]\nin B f32 [n:1, c:2, h:3]\n" \
  "Y[n:1, c:4, h:3] = if c < 2 then A[0, c, h] else B[0, c-2, h]\nout Y\nend\n"
#define CAT3                                                                                \
  "program cat3\nin A f32 [n:1, c:2, h:3]\nin B f32 [n:1, c:2, h:3]\nin C f32 [n:1, c:2, "  \
  "h:3]\nY[n:1, c:6, h:3] = if c < 2 then A[0, c, h] else if c < 4 then B[0, c-2, h] else " \
  "C[0, c-4, h]\nout Y\nend\n"
#define JOIN                                                           \
  "program join\nin A f32 [n:1, c:6, h:3]\nin B f32 [n:1, c:6, h:3]\n" \
  "Y[n:1, c:12, h:3] = if c < 6 then A[0, c, h] else B[0, c-6, h]\nout Y\nend\n"

#define SWAP                                                                             \
  "program swap\nin A f32 [n:1, c:2, h:3]\nin B f32 [n:1, c:2, h:3]\n"                   \
  "Y[n:1, c:4, h:3] = if c < 2 then B[0, c, h] else A[0, c-2, h]\nout Y\nend\n"          \
  "program half\nin X f32 [n:1, c:4, h:3]\nY[n:1, c:4, h:3] = X[0, c, h] * 0.5\nout Y\n" \
  "end\n"

// Two sums of products in one call.
#define KERNEL(size, inner)                                                                        \
  HEAD "program kernel\nin X f32 [n:1, h:" size ", w:" size ", c:4]\nin V f32 [o:" inner           \
       ", c:4] const\nin W f32 [o:4, c:" inner ", k:3] const\nS[n:1, o:" inner ", h:" size         \
       ", w:" size "] = X[n, h, w, c] * V[o, c] // sum c:4\nR[n:1, o:" inner ", h:" size           \
       ", w:" size "] = max(S[n, o, h, w], 0)\nY[n:1, h:" size ", w:" size                         \
       ", o:4] = (if 1 <= w+k && w+k < 1+" size                                                    \
       " then R[n, c, h, w+k-1] else 0) * W[o, c, k] // sum c:" inner                              \
       ", k:3\nout Y\nend\n"                                                                       \
       "in x f32 [1, " size ", " size ", 4]\nweight v f32 [" inner ", 4]\nweight w f32 [4, " inner \
       ", 3]\ny f32 [1, " size ", " size ", 4] = kernel(x, v, w)\nout y\n"

static const struct {
  const char *passes, *before, *after;  // NULL: as before
} rows[] = {
    {"dead",
     HEAD RELU RECT TWO GIVEN "a f32 [2] = relu(x)\nb f32 [2] = relu(a)\n"
                              "c f32 [2], d f32 [2] = two(a)\ne f32 [2] = relu(b)\nout d\n",
     HEAD RELU RECT TWO GIVEN "a f32 [2] = relu(x)\nc f32 [2], d f32 [2] = two(a)\nout d\n"},
    {"dead", HEAD RELU GIVEN "a f32 [2] = relu(x)\nb f32 [2] = relu(a)\nout a, b\n",
     HEAD RELU GIVEN "a f32 [2] = relu(x)\nb f32 [2] = relu(a)\nout a\nout b\n"},
    // programs of two names, then calls of the same arguments, then what reads them
    {"duplicates",
     HEAD RELU RECT ADD TWO GIVEN "a f32 [2] = relu(x)\nb f32 [2] = rect(x)\nc f32 [2] = rect(b)\n"
                                  "d f32 [2] = relu(a)\ne f32 [2] = add(c, d)\nout e\n",
     HEAD RELU ADD GIVEN
     "a f32 [2] = relu(x)\nc f32 [2] = relu(a)\ne f32 [2] = add(c, c)\nout e\n"},
    // an output keeps its name; what reads it reads the first
    {"duplicates",
     HEAD RELU GIVEN "a f32 [2] = relu(x)\nb f32 [2] = relu(x)\nc f32 [2] = relu(b)\nout b, c\n",
     HEAD RELU GIVEN
     "a f32 [2] = relu(x)\nb f32 [2] = relu(x)\nc f32 [2] = relu(a)\nout b\nout c\n"},
    // another order of arguments is another call, other weights are
    {"duplicates",
     HEAD ADD GIVEN "a f32 [2] = add(x, w)\nb f32 [2] = add(w, x)\nc f32 [2] = add(a, b)\nout c\n",
     HEAD ADD GIVEN "a f32 [2] = add(x, w)\nb f32 [2] = add(w, x)\nc f32 [2] = add(a, b)\nout c\n"},
    // windows put together of slices: the pieces are left to others
    {"windows,dead",
     HEAD SLICES STACK "in x f32 [6]\na f32 [4, 1] = first(x)\nb f32 [4, 1] = second(x)\n"
                       "c f32 [4, 1] = third(x)\ny f32 [4, 3] = stack(a, b, c)\nout y\n",
     HEAD SLICES "program windows\nin X f32 [n:6]\nY[n:4, k:3] = X[n+k]\nout Y\nend\n"
                 "in x f32 [6]\ny f32 [4, 3] = windows(x)\nout y\n"},
    // parts of several places side by side; a part that is given twice does not move
    {"windows,dead",
     HEAD PAIRS "in x f32 [6]\na f32 [2] = low(x)\nb f32 [2] = high(x)\n"
                "y f32 [4] = cat(a, b)\nz f32 [4] = cat(a, a)\nout y, z\n",
     HEAD LOW_HIGH "program windows\nin X f32 [n:6]\nY[n:4] = X[n%2+n/2*3]\nout Y\nend\n"
                   "program windows_2\nin A f32 [n:2]\nY[n:4] = A[n%2]\nout Y\nend\n"
                   "in x f32 [6]\na f32 [2] = low(x)\ny f32 [4] = windows(x)\n"
                   "z f32 [4] = windows_2(a)\nout y\nout z\n"},
    // unequal steps, another order of them, and what comes from two values stay
    {"windows,dead",
     HEAD SLICES STACK "in x f32 [6]\na f32 [4, 1] = first(x)\nb f32 [4, 1] = second(x)\n"
                       "c f32 [4, 1] = third(x)\ny f32 [4, 3] = stack(a, c, b)\nout y\n",
     HEAD SLICES STACK "in x f32 [6]\na f32 [4, 1] = first(x)\nb f32 [4, 1] = second(x)\n"
                       "c f32 [4, 1] = third(x)\ny f32 [4, 3] = stack(a, c, b)\nout y\n"},
    {"windows,dead",
     HEAD PAIRS "in x f32 [6]\nin v f32 [6]\na f32 [2] = low(x)\nb f32 [2] = high(v)\n"
                "y f32 [4] = cat(a, b)\nout y\n",
     HEAD PAIRS "in x f32 [6]\nin v f32 [6]\na f32 [2] = low(x)\nb f32 [2] = high(v)\n"
                "y f32 [4] = cat(a, b)\nout y\n"},
    // all of them, in their order: windows of one value are found before what an earlier one put together
    {NULL,
     "canvas 1\n"
     "network n\n"
     "program s0\n"
     "in X f32 [n:1, c:4, h:10]\n"
     "Y[n:1, c:4, h:8] = X[n, c, h]\n"
     "out Y\n"
     "end\n"
     "program s1\n"
     "in X f32 [n:1, c:4, h:10]\n"
     "Y[n:1, c:4, h:8] = X[n, c, h+1]\n"
     "out Y\n"
     "end\n"
     "program s2\n"
     "in X f32 [n:1, c:4, h:10]\n"
     "Y[n:1, c:4, h:8] = X[n, c, h+2]\n"
     "out Y\n"
     "end\n"
     "program cat2\n"
     "in A f32 [n:1, c:4, h:8]\n"
     "in B f32 [n:1, c:4, h:8]\n"
     "Y[n:1, c:8, h:8] = if c < 4 then A[n, c, h] else B[n, c-4, h]\n"
     "out Y\n"
     "end\n"
     "program cat3\n"
     "in A f32 [n:1, c:4, h:8]\n"
     "in B f32 [n:1, c:4, h:8]\n"
     "in C f32 [n:1, c:4, h:8]\n"
     "Y[n:1, c:12, h:8] = if c < 4 then A[n, c, h] else if c < 8 then B[n, c-4, h] else C[n, c-8, "
     "h]\n"
     "out Y\n"
     "end\n"
     "in x f32 [1, 4, 10]\n"
     "a f32 [1, 4, 8] = s0(x)\n"
     "b f32 [1, 4, 8] = s1(x)\n"
     "c f32 [1, 4, 8] = s2(x)\n"
     "u f32 [1, 8, 8] = cat2(a, b)\n"
     "v f32 [1, 12, 8] = cat3(a, b, c)\n"
     "out u\n"
     "out v\n",
     "canvas 1\n"
     "network n\n"
     "program windows\n"
     "in X f32 [n:1, c:4, h:10]\n"
     "Y[n:1, c:8, h:8] = X[n, c%4, h+c/4]\n"
     "out Y\n"
     "end\n"
     "program windows_2\n"
     "in X f32 [n:1, c:4, h:10]\n"
     "Y[n:1, c:12, h:8] = X[n, c%4, h+c/4]\n"
     "out Y\n"
     "end\n"
     "in x f32 [1, 4, 10]\n"
     "u f32 [1, 8, 8] = windows(x)\n"
     "v f32 [1, 12, 8] = windows_2(x)\n"
     "out u\n"
     "out v\n"},
    // what an earlier concatenation put together is read from it: in front, behind, and all of it; not what
    // has its arguments in another order
    {"concat,dead",
     HEAD CAT2 CAT3 JOIN SWAP
     "in a f32 [1, 2, 3]\nin b f32 [1, 2, 3]\nin c f32 [1, 2, 3]\n"
     "u f32 [1, 4, 3] = cat2(a, b)\nv f32 [1, 6, 3] = cat3(a, b, c)\n"
     "w f32 [1, 6, 3] = cat3(c, a, b)\nx f32 [1, 6, 3] = cat3(a, b, c)\n"
     "y f32 [1, 12, 3] = join(x, w)\n"
     "s f32 [1, 4, 3] = swap(a, b)\nz f32 [1, 4, 3] = half(s)\nout u, v, w, y, z\n",
     HEAD CAT2 CAT3 JOIN SWAP
     "program cat\nin X0 f32 [n:1, c:4, h:3]\nin X1 f32 [n:1, c:2, h:3]\n"
     "Y[n:1, c:6, h:3] = if c < 4 then X0[n, c, h] else X1[n, c-4, h]\nout Y\nend\n"
     "program cat_2\nin X0 f32 [n:1, c:2, h:3]\nin X1 f32 [n:1, c:4, h:3]\n"
     "Y[n:1, c:6, h:3] = if c < 2 then X0[n, c, h] else X1[n, c-2, h]\nout Y\nend\n"
     "in a f32 [1, 2, 3]\nin b f32 [1, 2, 3]\nin c f32 [1, 2, 3]\n"
     "u f32 [1, 4, 3] = cat2(a, b)\nv f32 [1, 6, 3] = cat(u, c)\n"
     "w f32 [1, 6, 3] = cat_2(c, u)\ny f32 [1, 12, 3] = join(v, w)\n"
     "s f32 [1, 4, 3] = swap(a, b)\nz f32 [1, 4, 3] = half(s)\nout u\nout v\nout w\nout y\nout "
     "z\n"},
    // a weight of a weight, first; what is a constant in each call
    {"constants",
     "canvas 1\n"
     "network n\n"
     "program linear\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3]\n"
     "in B f32 [o:4]\n"
     "S[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "Y[n:2, o:4] = S[n, o] + B[o]\n"
     "out Y\n"
     "end\n"
     "program twice\n"
     "in W f32 [o:4, c:3]\n"
     "Y[o:4, c:3] = W[o, c] * 2\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "a f32 [2, 4] = linear(x, w, b)\n"
     "u f32 [4, 3] = twice(w)\n"
     "c f32 [2, 4] = linear(x, u, b)\n"
     "out a, c\n",
     "canvas 1\n"
     "network n\n"
     "program linear\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3] const\n"
     "in B f32 [o:4] const\n"
     "S[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "Y[n:2, o:4] = S[n, o] + B[o]\n"
     "out Y\n"
     "end\n"
     "program twice\n"
     "in W f32 [o:4, c:3] const\n"
     "Y[o:4, c:3] = W[o, c] * 2\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "u f32 [4, 3] = twice(w)\n"
     "a f32 [2, 4] = linear(x, w, b)\n"
     "c f32 [2, 4] = linear(x, u, b)\n"
     "out a\n"
     "out c\n"},
    // inputs of what is left of a normalisation have names of their own
    {"batchnorm",
     HEAD
     "program norm\nin A f32 [n:2, c:3]\nin G f32 [c:3] const\nin H f32 [c:3] const\n"
     "Y[n:2, c:3] = (A[n, c] + 0.5) * G[c] + H[c]\nout Y\nend\n"
     "in x f32 [2, 3]\nweight g f32 [3]\nweight h f32 [3]\ny f32 [2, 3] = norm(x, g, h)\nout y\n",
     HEAD
     "program scale\nin G f32 [c:3] const\nY[c:3] = G[c]\nout Y\nend\n"
     "program offset\nin G f32 [c:3] const\nin H f32 [c:3] const\n"
     "Y[c:3] = 0.5 * G[c] + H[c]\nout Y\nend\n"
     "program scale_offset\nin A f32 [n:2, c:3]\nin A_2 f32 [c:3] const\nin B f32 [c:3] const\n"
     "Y[n:2, c:3] = A[n, c] * A_2[c] + B[c]\nout Y\nend\n"
     "in x f32 [2, 3]\nweight g f32 [3]\nweight h f32 [3]\ny_scale f32 [3] = scale(g)\n"
     "y_offset f32 [3] = offset(g, h)\ny f32 [2, 3] = scale_offset(x, y_scale, y_offset)\nout y\n"},
    // into the weights, ...
    {"batchnorm",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3] const\n"
     "Y[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program norm\n"
     "in X f32 [n:2, c:4]\n"
     "in M f32 [c:4] const\n"
     "in V f32 [c:4] const\n"
     "in G f32 [c:4] const\n"
     "in B f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "Y[n:2, c:4] = (X[n, c] - M[c]) * R[c] * G[c] + B[c]\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "a f32 [2, 4] = conv(x, w)\n"
     "y f32 [2, 4] = norm(a, m, v, g, b)\n"
     "out y\n",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3] const\n"
     "Y[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program scale_weight\n"
     "in W f32 [o:4, c:3] const\n"
     "in V f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "in G f32 [c:4] const\n"
     "Y[o:4, c:3] = W[o, c] * (R[o] * G[o])\n"
     "out Y\n"
     "end\n"
     "program offset\n"
     "in M f32 [c:4] const\n"
     "in V f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "in G f32 [c:4] const\n"
     "in B f32 [c:4] const\n"
     "Y[c:4] = -M[c] * R[c] * G[c] + B[c]\n"
     "out Y\n"
     "end\n"
     "program add_offset\n"
     "in X f32 [n:2, c:4]\n"
     "in B f32 [c:4] const\n"
     "Y[n:2, c:4] = X[n, c] + B[c]\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "y_weight f32 [4, 3] = scale_weight(w, v, g)\n"
     "y_offset f32 [4] = offset(m, v, g, b)\n"
     "a f32 [2, 4] = conv(x, y_weight)\n"
     "y f32 [2, 4] = add_offset(a, y_offset)\n"
     "out y\n"},
    // ... and the bias
    {"batchnorm",
     "canvas 1\n"
     "network n\n"
     "program linear\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3]\n"
     "in B f32 [o:4]\n"
     "S[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "Y[n:2, o:4] = S[n, o] + B[o]\n"
     "out Y\n"
     "end\n"
     "program norm\n"
     "in X f32 [n:2, c:4]\n"
     "in M f32 [c:4] const\n"
     "in V f32 [c:4] const\n"
     "in G f32 [c:4] const\n"
     "in B f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "Y[n:2, c:4] = (X[n, c] - M[c]) * R[c] * G[c] + B[c]\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "a f32 [2, 4] = linear(x, w, b)\n"
     "y f32 [2, 4] = norm(a, m, v, g, b)\n"
     "out y\n",
     "canvas 1\n"
     "network n\n"
     "program linear\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3]\n"
     "in B f32 [o:4]\n"
     "S[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "Y[n:2, o:4] = S[n, o] + B[o]\n"
     "out Y\n"
     "end\n"
     "program scale_weight\n"
     "in W f32 [o:4, c:3]\n"
     "in V f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "in G f32 [c:4] const\n"
     "Y[o:4, c:3] = W[o, c] * (R[o] * G[o])\n"
     "out Y\n"
     "end\n"
     "program offset\n"
     "in B f32 [o:4] const\n"
     "in M f32 [c:4] const\n"
     "in V f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "in G f32 [c:4] const\n"
     "Y[c:4] = B[c] * (R[c] * G[c]) + (-M[c] * R[c] * G[c] + B[c])\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "y_weight f32 [4, 3] = scale_weight(w, v, g)\n"
     "y_offset f32 [4] = offset(b, m, v, g)\n"
     "y f32 [2, 4] = linear(x, y_weight, y_offset)\n"
     "out y\n"},
    // x is an output: two constants are left of the norm
    {"batchnorm",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3] const\n"
     "Y[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program norm\n"
     "in X f32 [n:2, c:4]\n"
     "in M f32 [c:4] const\n"
     "in V f32 [c:4] const\n"
     "in G f32 [c:4] const\n"
     "in B f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "Y[n:2, c:4] = (X[n, c] - M[c]) * R[c] * G[c] + B[c]\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "a f32 [2, 4] = conv(x, w)\n"
     "y f32 [2, 4] = norm(a, m, v, g, b)\n"
     "out a, y\n",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3]\n"
     "in W f32 [o:4, c:3] const\n"
     "Y[n:2, o:4] = X[n, c] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program scale\n"
     "in V f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "in G f32 [c:4] const\n"
     "Y[c:4] = R[c] * G[c]\n"
     "out Y\n"
     "end\n"
     "program offset\n"
     "in M f32 [c:4] const\n"
     "in V f32 [c:4] const\n"
     "R[c:4] = 1 / sqrt(V[c] + 0.01)\n"
     "in G f32 [c:4] const\n"
     "in B f32 [c:4] const\n"
     "Y[c:4] = -M[c] * R[c] * G[c] + B[c]\n"
     "out Y\n"
     "end\n"
     "program scale_offset\n"
     "in X f32 [n:2, c:4]\n"
     "in A f32 [c:4] const\n"
     "in B f32 [c:4] const\n"
     "Y[n:2, c:4] = X[n, c] * A[c] + B[c]\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3]\n"
     "weight w f32 [4, 3]\n"
     "weight m f32 [4]\n"
     "weight v f32 [4]\n"
     "weight g f32 [4]\n"
     "weight b f32 [4]\n"
     "y_scale f32 [4] = scale(v, g)\n"
     "y_offset f32 [4] = offset(m, v, g, b)\n"
     "a f32 [2, 4] = conv(x, w)\n"
     "y f32 [2, 4] = scale_offset(a, y_scale, y_offset)\n"
     "out a\n"
     "out y\n"},
    // a bias and an activation that reads it twice
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program bias\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in B f32 [c:3] const\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] + B[c]\n"
     "out Y\n"
     "end\n"
     "program silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] / (1 + exp(-X[n, c, h]))\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "a f32 [2, 3, 4] = conv(x, w)\n"
     "c f32 [2, 3, 4] = bias(a, b)\n"
     "y f32 [2, 3, 4] = silu(c)\n"
     "out y\n",
     "canvas 1\n"
     "network n\n"
     "program conv_bias_silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "in B f32 [c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "Y_3[n:2, c:3, h:4] = (Y[n, c, h] + B[c]) / (1 + exp(-(Y[n, c, h] + B[c])))\n"
     "out Y_3\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "y f32 [2, 3, 4] = conv_bias_silu(x, w, b)\n"
     "out y\n"},
    // of two sums one takes the addition; what is read twice stays
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program add\n"
     "in A f32 [n:2, c:3, h:4]\n"
     "in B f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = A[n, c, h] + B[n, c, h]\n"
     "out Y\n"
     "end\n"
     "program silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] / (1 + exp(-X[n, c, h]))\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "a f32 [2, 3, 4] = conv(x, w)\n"
     "c f32 [2, 3, 4] = silu(a)\n"
     "d f32 [2, 3, 4] = conv(c, w)\n"
     "y f32 [2, 3, 4] = add(d, c)\n"
     "out y\n",
     "canvas 1\n"
     "network n\n"
     "program conv_silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "Y_2[n:2, c:3, h:4] = Y[n, c, h] / (1 + exp(-Y[n, c, h]))\n"
     "out Y_2\n"
     "end\n"
     "program conv_add\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "Y_2[n:2, c:3, h:4] = Y[n, c, h] + X[n, c, h]\n"
     "out Y_2\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "c f32 [2, 3, 4] = conv_silu(x, w)\n"
     "y f32 [2, 3, 4] = conv_add(c, w)\n"
     "out y\n"},
    // a result that is an output, too, and one that nobody reads
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "out Y\n"
     "end\n"
     "program both\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] + 1\n"
     "Z[n:2, c:3, h:4] = X[n, c, h] - 1\n"
     "out Y\n"
     "out Z\n"
     "end\n"
     "program silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] / (1 + exp(-X[n, c, h]))\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "a f32 [2, 3, 4] = conv(x, w)\n"
     "c f32 [2, 3, 4], d f32 [2, 3, 4] = both(a)\n"
     "y f32 [2, 3, 4] = silu(d)\n"
     "out c, y\n",
     "canvas 1\n"
     "network n\n"
     "program conv_both_silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "in W f32 [o:3, c:3] const\n"
     "Y[n:2, o:3, h:4] = X[n, c, h] * W[o, c] // sum c:3\n"
     "Y_2[n:2, c:3, h:4] = Y[n, c, h] + 1\n"
     "Y_3[n:2, c:3, h:4] = (Y[n, c, h] - 1) / (1 + exp(-(Y[n, c, h] - 1)))\n"
     "out Y_3\n"
     "out Y_2\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "y f32 [2, 3, 4], c f32 [2, 3, 4] = conv_both_silu(x, w)\n"
     "out c\n"
     "out y\n"},
    // windows that overlap look at a sum of products more than once: it stays apart
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:1, c:4, h:10, w:10]\n"
     "in W f32 [o:16, c:4, kh:3, kw:3] const\n"
     "Y[n:1, o:16, h:8, w:8] = X[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:4, kh:3, kw:3\n"
     "out Y\n"
     "end\n"
     "program pool\n"
     "in X f32 [n:1, c:16, h:8, w:8]\n"
     "Y[n:1, c:16, h:3, w:3] = X[n, c, h*2+kh, w*2+kw] // max kh:3, kw:3\n"
     "out Y\n"
     "end\n"
     "in x f32 [1, 4, 10, 10]\n"
     "weight w f32 [16, 4, 3, 3]\n"
     "a f32 [1, 16, 8, 8] = conv(x, w)\n"
     "y f32 [1, 16, 3, 3] = pool(a)\n"
     "out y\n",
     NULL},
    // ... and so does what is more than the second cache, also where windows do not overlap
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:1, c:64, h:224, w:224]\n"
     "in W f32 [o:64, c:64, kh:3, kw:3] const\n"
     "in B f32 [o:64] const\n"
     "pad[n:1, c:64, h:226, w:226] = if 1 <= h && h < 225 && 1 <= w && w < 225 then X[n, c, h-1, "
     "w-1] else 0\n"
     "S[n:1, o:64, h:224, w:224] = pad[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:64, kh:3, "
     "kw:3\n"
     "Y[n:1, c:64, h:224, w:224] = max(S[n, c, h, w] + B[c], 0)\n"
     "out Y\n"
     "end\n"
     "program pool\n"
     "in X f32 [n:1, c:64, h:224, w:224]\n"
     "Y[n:1, c:64, h:112, w:112] = X[n, c, h*2+kh, w*2+kw] // max kh:2, kw:2\n"
     "out Y\n"
     "end\n"
     "in x f32 [1, 64, 224, 224]\n"
     "weight w f32 [64, 64, 3, 3]\n"
     "weight b f32 [64]\n"
     "a f32 [1, 64, 224, 224] = conv(x, w, b)\n"
     "y f32 [1, 64, 112, 112] = pool(a)\n"
     "out y\n",
     NULL},
    // what is put together in place stays so: it costs nothing
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program conv\n"
     "in X f32 [n:1, c:16, h:8, w:8]\n"
     "in W f32 [o:16, c:16] const\n"
     "S[n:1, o:16, h:8, w:8] = X[n, c, h, w] * W[o, c] // sum c:16\n"
     "Y[n:1, o:16, h:8, w:8] = max(S[n, o, h, w], 0)\n"
     "out Y\n"
     "end\n"
     "program cat\n"
     "in A f32 [n:1, c:16, h:8, w:8]\n"
     "in B f32 [n:1, c:16, h:8, w:8]\n"
     "Y[n:1, c:32, h:8, w:8] = if c < 16 then A[n, c, h, w] else B[n, c-16, h, w]\n"
     "out Y\n"
     "end\n"
     "program relu\n"
     "in X f32 [n:1, c:32, h:8, w:8]\n"
     "Y[n:1, c:32, h:8, w:8] = max(X[n, c, h, w] + 1, 0)\n"
     "out Y\n"
     "end\n"
     "in x f32 [1, 16, 8, 8]\n"
     "weight v f32 [16, 16]\n"
     "weight w f32 [16, 16]\n"
     "a f32 [1, 16, 8, 8] = conv(x, v)\n"
     "b f32 [1, 16, 8, 8] = conv(x, w)\n"
     "c f32 [1, 32, 8, 8] = cat(a, b)\n"
     "y f32 [1, 32, 8, 8] = relu(c)\n"
     "out y\n",
     NULL},
    // a view of what was computed is that value in its place: nothing is computed through its indices
    {"fuse",
     "canvas 1\n"
     "network n\n"
     "program double\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h/2*2] + X[n, c, h]\n"
     "out Y\n"
     "end\n"
     "program flat\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, f:12] = X[n, f/4, f%4]\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "a f32 [2, 3, 4] = double(x)\n"
     "y f32 [2, 12] = flat(a)\n"
     "out y\n",
     NULL},
    // what moves data is gone, there and back
    {"fuse,dead",
     "canvas 1\n"
     "network n\n"
     "program turn\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, h:4, c:3] = X[n, c, h]\n"
     "out Y\n"
     "end\n"
     "program back\n"
     "in X f32 [n:2, h:4, c:3]\n"
     "Y[n:2, c:3, h:4] = X[n, h, c]\n"
     "out Y\n"
     "end\n"
     "program silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] / (1 + exp(-X[n, c, h]))\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "a f32 [2, 4, 3] = turn(x)\n"
     "c f32 [2, 3, 4] = back(a)\n"
     "y f32 [2, 3, 4] = silu(c)\n"
     "out y\n",
     "canvas 1\n"
     "network n\n"
     "program silu\n"
     "in X f32 [n:2, c:3, h:4]\n"
     "Y[n:2, c:3, h:4] = X[n, c, h] / (1 + exp(-X[n, c, h]))\n"
     "out Y\n"
     "end\n"
     "in x f32 [2, 3, 4]\n"
     "weight w f32 [3, 3]\n"
     "weight b f32 [3]\n"
     "y f32 [2, 3, 4] = silu(x)\n"
     "out y\n"},
    // B varies in one of two calls
    {"constants", HEAD ADD GIVEN "a f32 [2] = add(x, x)\nb f32 [2] = add(a, w)\nout b\n",
     HEAD ADD GIVEN "a f32 [2] = add(x, x)\nb f32 [2] = add(a, w)\nout b\n"},
    // the second result of a producer is an output
    {"fuse", HEAD RELU TWO GIVEN "a f32 [2], b f32 [2] = two(x)\nc f32 [2] = relu(a)\nout b, c\n",
     HEAD "program two_relu\nin X f32 [n:2]\nZ[n:2] = X[n] - 1\nY_2[n:2] = max(X[n] + 1, 0)\n"
          "out Y_2\nout Z\nend\n" GIVEN "c f32 [2], b f32 [2] = two_relu(x)\nout b\nout c\n"},
    // what two read is computed once
    {"fuse",
     HEAD RELU ADD GIVEN
     "a f32 [2] = relu(x)\nb f32 [2] = relu(a)\nc f32 [2] = add(a, w)\nout b, c\n",
     HEAD RELU ADD GIVEN
     "a f32 [2] = relu(x)\nb f32 [2] = relu(a)\nc f32 [2] = add(a, w)\nout b\nout c\n"},
    {" duplicates,, dead ,",
     HEAD RELU RECT GIVEN "a f32 [2] = relu(x)\nb f32 [2] = rect(x)\nc f32 [2] = rect(b)\nout a\n",
     HEAD RELU GIVEN "a f32 [2] = relu(x)\nout a\n"},
    // two sums of products, with what is between laid out as both are fastest; and where one call is faster
    {"split", KERNEL("16", "32"),
     HEAD "program kernel_R\n"
          "in X f32 [n:1, h:16, w:16, c:4]\n"
          "in V f32 [o:32, c:4] const\n"
          "S[n:1, w:16, o:32, h:16] = X[n, h, w, c] * V[o, c] // sum c:4\n"
          "R[n:1, w:16, o:32, h:16] = max(S[n, w, o, h], 0)\n"
          "out R\n"
          "end\n"
          "program kernel_2\n"
          "in R f32 [n:1, w:16, o:32, h:16]\n"
          "in W f32 [o:4, c:32, k:3] const\n"
          "Y[n:1, h:16, w:16, o:4] = (if 1 <= w+k && w+k < 17 then R[n, w+k-1, c, h] else 0) * "
          "W[o, c, k] // sum c:32, k:3\n"
          "out Y\n"
          "end\n"
          "in x f32 [1, 16, 16, 4]\n"
          "weight v f32 [32, 4]\n"
          "weight w f32 [4, 32, 3]\n"
          "y_R f32 [1, 16, 32, 16] = kernel_R(x, v)\n"
          "y f32 [1, 16, 16, 4] = kernel_2(y_R, w)\n"
          "out y\n"},
    {"split", KERNEL("4", "4"), NULL},
    {"", HEAD RECT RELU GIVEN "a f32 [2] = relu(x)\nout a\n", NULL},
};

static void gives_texts(void **state) {
  CHECK_ROWS (rows, row) {
    struct network *n = network_from(row->before);
    struct buf out = {0};
    CHECK_INT(network_optimize(&ctx, n, row->passes, &machine_avx512), CANVAS_OK, ctx.message);
    network_print(n, &out);
    CHECK_TEXT(out.text, row->after ? row->after : row->before,
               row->passes ? row->passes : "all passes");
    buf_free(&out);
    network_free(n);
  }
}

static void knows_its_passes(void **state) {
  struct network *n = network_from(HEAD RELU GIVEN "a f32 [2] = relu(x)\nout a\n");
  CHECK_INT(network_optimize(&ctx, n, "dead,deed", &machine_avx512), CANVAS_BAD_INPUT, "deed");
  CHECK_TEXT(ctx.message, "unknown pass 'deed', did you mean 'dead'?", "near");
  CHECK_INT(network_optimize(&ctx, n, "everything", &machine_avx512), CANVAS_BAD_INPUT,
            "everything");
  CHECK_TEXT(ctx.message, "unknown pass 'everything', 'canvas help network' lists them", "far");
  network_free(n);
}

#define WIDE(size, channels)                                                                      \
  HEAD "program conv\nin X f32 [n:1, h:" size ", w:" size ", c:" channels                         \
       "]\nin W f32 [o:" channels ", c:" channels ", i:3, j:3] const\nin B f32 [o:" channels      \
       "] const\nS[n:1, h:" size ", w:" size ", o:" channels "] = if 1 <= h+i && h+i <= " size    \
       " && 1 <= w+j && w+j <= " size                                                             \
       " then X[n, h+i-1, w+j-1, c] * W[o, c, i, j] else 0 // sum c:" channels                    \
       ", i:3, j:3\nY[n:1, h:" size ", w:" size ", o:" channels                                   \
       "] = max(S[n, h, w, o] + B[o], 0)\nout Y\nend\nin x f32 [1, " size ", " size ", " channels \
       "]\nweight w f32 [" channels ", " channels ", 3, 3]\nweight b f32 [" channels              \
       "]\ny f32 [1, " size ", " size ", " channels "] = conv(x, w, b)\nout y\n"

#define FIRST(size, channels)                                                                   \
  HEAD "program conv\nin X f32 [n:1, c:" channels ", h:" size ", w:" size                       \
       "]\nin W f32 [o:" channels ", c:" channels ", i:3, j:3] const\nY[n:1, o:" channels       \
       ", h:" size ", w:" size "] = if 1 <= h+i && h+i <= " size " && 1 <= w+j && w+j <= " size \
       " then X[n, c, h+i-1, w+j-1] * W[o, c, i, j] else 0 // sum c:" channels                  \
       ", i:3, j:3\nout Y\nend\nin x f32 [1, " channels ", " size ", " size                     \
       "]\nweight w f32 [" channels ", " channels ", 3, 3]\ny f32 [1, " channels ", " size      \
       ", " size "] = conv(x, w)\nout y\n"

static const struct {
  const char *text, *passes;
  bool taken;
} convolutions[] = {
    {WIDE("28", "64"), "winograd", true},
    // a second time there is no window left
    {WIDE("28", "64"), "winograd winograd", true},
    // only where it is named
    {WIDE("28", "64"), NULL, false},
    // of few channels the transforms take more than the products save
    {WIDE("28", "4"), "winograd", false},
    // what is computed block by block stays in the caches, however large the image is
    {WIDE("64", "128"), "winograd", true},
    {WIDE("128", "128"), "winograd", true},
    // ... what is not does where it is small
    {FIRST("28", "64"), "winograd", true},
    {FIRST("128", "128"), "winograd", false},
    // tiles of 4 only where they are permitted, then also where their weights are predicted to take a little longer
    {WIDE("28", "64"), "winograd4", false},
    {WIDE("16", "128"), "winograd4", false},
    // few places: as long as the weights, 1.8 times as many, take less than the products save
    {WIDE("8", "256"), "winograd", true},
    {WIDE("4", "512"), "winograd", false},
};

static void takes_fewer_products(void **state) {
  CHECK_ROWS (convolutions, row) {
    struct network *n = network_from(row->text);
    struct buf out = {0};
    CHECK_INT(network_optimize(&ctx, n, row->passes, &machine_avx512), CANVAS_OK, ctx.message);
    network_print(n, &out);
    CHECK(row->taken == !!strstr(out.text, "program conv winograd 2\n"), out.text);
    bool larger = strstr(out.text, "program conv winograd 4\n");
    CHECK(larger == (row->passes && !strcmp(row->passes, "winograd4")), out.text);
    buf_free(&out);
    network_free(n);
  }
}

// ---- random networks ----

// A, the shape of most values, is [2, 4, 3, 3]; B is [2, 4], C is A flat, D is A with its channels last.
#define A            "[n:2, c:4, h:3, w:3]"
#define WINDOW(load) "if 1 <= h+i && h+i < 4 && 1 <= w+j && w+j < 4 then " load " else 0"

static const struct made {
  const char *name, *text;
  char result;
  const char *arguments;  // shapes of values; of weights small letters: see `weights`
} programs[] = {
    {"conv",
     "in X f32 " A "\nin W f32 [o:4, c:4, i:3, j:3] const\nY[n:2, o:4, h:3, w:3] = " WINDOW(
         "X[n, c, h+i-1, w+j-1] * W[o, c, i, j]") " // sum c:4, i:3, j:3\nout Y\n",
     'A', "Ak"},
    {"padded",
     "in X f32 " A "\nin W f32 [o:4, c:4, i:3, j:3] const\nin B f32 [o:4] const\n"
     "P[n:2, c:4, h:5, w:5] = if 1 <= h && h < 4 && 1 <= w && w < 4 then X[n, c, h-1, w-1] else 0\n"
     "S[n:2, o:4, h:3, w:3] = P[n, c, h+i, w+j] * W[o, c, i, j] // sum c:4, i:3, j:3\n"
     "Y[n:2, o:4, h:3, w:3] = S[n, o, h, w] + B[o]\nout Y\n",
     'A', "Akc"},
    {"point",
     "in X f32 " A "\nin W f32 [o:4, c:4] const\n"
     "Y[n:2, o:4, h:3, w:3] = X[n, c, h, w] * W[o, c] // sum c:4\nout Y\n",
     'A', "Ap"},
    {"depthwise",
     "in X f32 " A "\nin W f32 [c:4, i:3, j:3] const\nY" A
     " = " WINDOW("X[n, c, h+i-1, w+j-1] * W[c, i, j]") " // sum i:3, j:3\nout Y\n",
     'A', "Ad"},
    {"transposed",
     "in X f32 " A "\nin W f32 [c:4, o:4] const\n"
     "Y[n:2, o:4, h:3, w:3] = X[n, c, h, w] * W[c, o] // sum c:4\nout Y\n",
     'A', "Ap"},
    {"norm",
     "in X f32 " A "\nin M f32 [c:4] const\nin V f32 [c:4] const\nin G f32 [c:4] const\n"
     "in B f32 [c:4] const\nY" A
     " = (X[n, c, h, w] - M[c]) / sqrt(V[c] + 0.001) * G[c] + B[c]\nout Y\n",
     'A', "Acvcc"},
    {"squared",
     "in X f32 " A "\nin W f32 [o:4, c:4] const\n"
     "Y[n:2, o:4, h:3, w:3] = X[n, c, h, w] * W[o, c] * W[o, c] // sum c:4\nout Y\n",
     'A', "Ap"},
    {"grouped_dense",
     "in X f32 " A "\nin W f32 [t:8, k:2] const\nin B f32 [t:8] const\nin V f32 [o:4, t:8] const\n"
     "S[n:2, t:8, h:3, w:3] = X[n, t/4*2+k, h, 2-w] * W[t, k] // sum k:2\n"
     "T[n:2, t:8, h:3, w:3] = B[t] + S[n, t, h, w]\n"
     "Y[n:2, o:4, h:3, w:3] = V[o, t] * T[n, t, h, w] // sum t:8\nout Y\n",
     'A', "Agbu"},
    {"dense_grouped",
     "in X f32 " A "\nin W f32 [c:4, t:8] const\nin V f32 [o:4, k:4] const\n"
     "S[n:2, h:3, w:3, t:8] = X[n, c, h, w] * W[c, t] // sum c:4\n"
     "Y[n:2, o:4, h:3, w:3] = S[n, h, w, o/2*4+k] * V[o, k] // sum k:4\nout Y\n",
     'A', "Aup"},
    {"shuffled",
     "in X f32 " A "\nin W f32 [t:8, k:2] const\nin V f32 [o:4, t:8] const\n"
     "S[n:2, t:8, h:3, w:3] = X[n, t%2+k*2, h, w] * W[t, k] // sum k:2\n"
     "Y[n:2, o:4, h:3, w:3] = S[n, t%4*2+t/4, h, w] * V[o, t] // sum t:8\nout Y\n",
     'A', "Agu"},
    {"window_dense",
     "in X f32 " A "\nin W f32 [i:8, j:2] const\nin V f32 [o:4, t:8] const\n"
     "S[n:2, t:8, h:3, w:3] = (if h+i < 3 then X[n, t/2, h+i, w] else 0) * W[t, i] // sum i:2\n"
     "Y[n:2, o:4, h:3, w:3] = S[n, t, h, w] * V[o, t] // sum t:8\nout Y\n",
     'A', "Agu"},
    {"reversed",
     "in X f32 " A "\nin G f32 [c:4] const\nin B f32 [c:4] const\nY" A
     " = B[c] - (X[n, c, h, w] - G[c]) * G[c]\nout Y\n",
     'A', "Acc"},
    {"bias", "in X f32 " A "\nin B f32 [c:4] const\nY" A " = X[n, c, h, w] + B[c]\nout Y\n", 'A',
     "Ac"},
    {"relu", "in X f32 " A "\nY" A " = max(X[n, c, h, w], 0)\nout Y\n", 'A', "A"},
    {"silu", "in X f32 " A "\nY" A " = X[n, c, h, w] / (1 + exp(-X[n, c, h, w]))\nout Y\n", 'A',
     "A"},
    {"add", "in P f32 " A "\nin Q f32 " A "\nY" A " = P[n, c, h, w] + Q[n, c, h, w]\nout Y\n", 'A',
     "AA"},
    {"gate", "in X f32 " A "\nin G f32 [n:2, c:4]\nY" A " = X[n, c, h, w] * G[n, c]\nout Y\n", 'A',
     "AB"},
    {"both",
     "in X f32 " A "\nY" A " = X[n, c, h, w] + 1\nZ" A " = X[n, c, h, w] * 0.5\nout Y\nout Z\n",
     '2', "A"},
    {"mean", "in X f32 " A "\nY[n:2, c:4] = X[n, c, h, w] // mean h:3, w:3\nout Y\n", 'B', "A"},
    {"pool",
     "in X f32 " A "\nY" A " = " WINDOW("X[n, c, h+i-1, w+j-1]") " // max i:3, j:3\nout Y\n", 'A',
     "A"},
    {"sigmoid", "in X f32 [n:2, c:4]\nY[n:2, c:4] = 1 / (1 + exp(-X[n, c]))\nout Y\n", 'B', "B"},
    {"linear",
     "in X f32 [n:2, c:4]\nin W f32 [o:4, c:4] const\nin B f32 [o:4] const\n"
     "S[n:2, o:4] = X[n, c] * W[o, c] // sum c:4\nY[n:2, o:4] = S[n, o] + B[o]\nout Y\n",
     'B', "Bpc"},
    {"softmax",
     "in X f32 [n:2, c:4]\nM[n:2] = X[n, c] // max c:4\nE[n:2, c:4] = exp(X[n, c] - M[n])\n"
     "S[n:2] = E[n, c] // sum c:4\nY[n:2, c:4] = E[n, c] / S[n]\nout Y\n",
     'B', "B"},
    {"flat", "in X f32 " A "\nY[n:2, f:36] = X[n, f/9, f/3%3, f%3]\nout Y\n", 'C', "A"},
    {"unflat", "in X f32 [n:2, f:36]\nY" A " = X[n, c*9+h*3+w]\nout Y\n", 'A', "C"},
    {"tanh", "in X f32 [n:2, f:36]\nY[n:2, f:36] = tanh(X[n, f])\nout Y\n", 'C', "C"},
    {"last", "in X f32 " A "\nY[n:2, h:3, w:3, c:4] = X[n, c, h, w]\nout Y\n", 'D', "A"},
    {"first", "in X f32 [n:2, h:3, w:3, c:4]\nY" A " = X[n, h, w, c]\nout Y\n", 'A', "D"},
    {"square",
     "in X f32 [n:2, h:3, w:3, c:4]\n"
     "Y[n:2, h:3, w:3, c:4] = X[n, h, w, c] * X[n, h, w, c] * 0.25\nout Y\n",
     'D', "D"},
    {"pair",
     "in P f32 " A "\nin Q f32 " A "\nY[n:4, c:4, h:3, w:3] = if n < 2 then P[n, c, h, w] else "
     "Q[n-2, c, h, w]\nout Y\n",
     'E', "AA"},
    {"three",
     "in P f32 " A "\nin Q f32 " A "\nin R f32 " A "\nY[n:6, c:4, h:3, w:3] = if n < 2 then "
     "P[n, c, h, w] else if n < 4 then Q[n-2, c, h, w] else R[n-4, c, h, w]\nout Y\n",
     'F', "AAA"},
    {"behind",
     "in P f32 " A "\nin Q f32 [n:4, c:4, h:3, w:3]\nY[n:6, c:4, h:3, w:3] = if n < 2 then "
     "P[n, c, h, w] else Q[n-2, c, h, w]\nout Y\n",
     'F', "AE"},
    {"folded",
     "in X f32 [n:4, c:4, h:3, w:3]\nY" A " = X[n, c, h, w] - X[n+2, c, h, w] * 0.5\nout Y\n", 'A',
     "E"},
    {"thirds",
     "in X f32 [n:6, c:4, h:3, w:3]\nY" A
     " = X[n, c, h, w] - X[n+2, c, h, w] * 0.5 + X[n+4, c, h, w] * 0.25\nout Y\n",
     'A', "F"},
    {"double", "in W f32 [o:4, c:4]\nY[o:4, c:4] = W[o, c] * 2\nout Y\n", 'p', "p"},
    {"turned", "in W f32 [o:4, c:4]\nY[o:4, c:4] = W[c, o]\nout Y\n", 'p', "p"},
};
enum { PROGRAMS = sizeof programs / sizeof *programs, CALLS = 14, WORLDS = 120, LARGEST = 216 };

// Shapes by their letter; two weights of each small one are given.
static const struct {
  char letter;
  const char *sizes;
} shapes[] = {{'A', "[2, 4, 3, 3]"}, {'B', "[2, 4]"},       {'C', "[2, 36]"},
              {'D', "[2, 3, 3, 4]"}, {'E', "[4, 4, 3, 3]"}, {'F', "[6, 4, 3, 3]"},
              {'k', "[4, 4, 3, 3]"}, {'p', "[4, 4]"},       {'d', "[4, 3, 3]"},
              {'c', "[4]"},          {'v', "[4]"},          {'g', "[8, 2]"},
              {'u', "[4, 8]"},       {'b', "[8]"}};
#define WEIGHTS "kpdcvgub"

static const char *sizes_of(char letter) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (shapes[i].letter == letter) return shapes[i].sizes;
  return "?";
}

struct world {
  struct random r;
  struct buf *text;
  char letter[100];
  char name[100][8];
  int count, outputs[100], output_count;
};

static int below(struct random *r, int count) {
  return (int)random_below(r, (uint32_t)count);
}

static void add_value(struct world *w, char letter, int number) {
  w->letter[w->count] = letter;
  snprintf(w->name[w->count], sizeof w->name[0], "%c%d", letter, number);
  w->count++;
}

// One of the shape: often the newest, sometimes any.
static int choose(struct world *w, char letter) {
  int best = -1, seen = 0;
  bool any = below(&w->r, 4) == 0;
  for (int i = 0; i < w->count; i++)
    if (w->letter[i] == letter && (!any || below(&w->r, ++seen) == 0)) best = i;
  return best;
}

static void add_call(struct world *w, int number) {
  const struct made *m = &programs[below(&w->r, PROGRAMS)];
  int argument[8], count = (int)strlen(m->arguments);
  for (int i = 0; i < count; i++)
    if ((argument[i] = choose(w, m->arguments[i])) < 0) return;
  char letter = m->result == '2' ? 'A' : m->result;
  w->outputs[w->output_count++] = w->count;
  add_value(w, letter, number);
  buf_printf(w->text, "%s f32 %s", w->name[w->count - 1], sizes_of(letter));
  if (m->result == '2') {
    add_value(w, letter, number + 50);
    buf_printf(w->text, ", %s f32 %s", w->name[w->count - 1], sizes_of(letter));
  }
  buf_printf(w->text, " = %s(", m->name);
  for (int i = 0; i < count; i++) buf_printf(w->text, "%s%s", i ? ", " : "", w->name[argument[i]]);
  buf_puts(w->text, ")\n");
}

static void make_world(uint64_t seed, struct buf *text) {
  struct world w = {.text = text};
  random_open(&w.r, 11, RANDOM_TEST, seed);
  buf_puts(text, "canvas 1\nnetwork random\n");
  for (int i = 0; i < PROGRAMS; i++)
    buf_printf(text, "program %s\n%send\n", programs[i].name, programs[i].text);
  for (const char *c = WEIGHTS; *c; c++)
    for (int i = 0; i < 2; i++) {
      add_value(&w, *c, i);
      buf_printf(text, "weight %s f32 %s\n", w.name[w.count - 1], sizes_of(*c));
    }
  add_value(&w, 'A', 0);
  buf_puts(text, "in A0 f32 [2, 4, 3, 3]\n");
  for (int i = 0; i < CALLS || !w.output_count; i++) add_call(&w, 2 + i % 48);
  int last = w.output_count - 1, some = below(&w.r, 2 * w.output_count);
  buf_printf(text, "out %s\n", w.name[w.outputs[last]]);
  if (some < last) buf_printf(text, "out %s\n", w.name[w.outputs[some]]);
}

struct values {
  double *data[8];
  int count;
};

static void values_free(struct values *v) {
  for (int i = 0; i < v->count; i++) free(v->data[i]);
}

// Inputs by name: passes may give tensors other numbers. Variances are positive.
static struct values evaluate(const struct network *n, bool planned) {
  struct values v = {0};
  const double **given = mem_alloc((size_t)n->tensors.count * sizeof *given);
  double *filled = mem_alloc((size_t)n->tensors.count * LARGEST * sizeof *filled);
  struct memory_plan plan = memory_plan_of(n);
  for (int i = 0; i < n->tensors.count; i++) {
    const struct net_tensor *t = &n->tensors.data[i];
    double *values = filled + (size_t)i * LARGEST;
    struct random r;
    if (t->kind == NET_VALUE) continue;
    random_open(&r, 3, RANDOM_TEST, (uint64_t)t->name[0] * 256 + (uint64_t)t->name[1]);
    for (int64_t k = 0; k < network_elements(t); k++) values[k] = random_normal(&r) / 2;
    for (int64_t k = 0; t->name[0] == 'v' && k < 4; k++) values[k] = fabs(values[k]) + 0.5;
    given[i] = values;
  }
  for (int i = 0; i < n->outputs.count; i++)
    v.data[v.count++] = mem_alloc(LARGEST * sizeof(double));
  CHECK_INT(network_interpret(&ctx, n, given, planned ? &plan : NULL, v.data), CANVAS_OK,
            ctx.message);
  memory_plan_free(&plan);
  free(given);
  free(filled);
  return v;
}

// The interpreter computes in double precision; a chain of calls makes an error a few hundred times larger.
static void check_close(const struct values *a, const struct values *b, const char *what) {
  CHECK_INT(a->count, b->count, what);
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < LARGEST; k++) {
      double x = a->data[i][k], y = b->data[i][k];
      CHECK(x == y || fabs(x - y) <= 1e-9 * (1 + fabs(x)), what);
    }
}

static void check_pass(const char *text, const char *passes, const struct values *wanted) {
  struct network *n = network_from(text), *again;
  struct buf after = {0};
  CHECK_INT(network_optimize(&ctx, n, passes, &machine_avx512), CANVAS_OK, ctx.message);
  struct values v = evaluate(n, true);
  network_print(n, &after);
  check_close(wanted, &v, passes ? passes : "all");
  again = network_from(after.text);
  struct values w = evaluate(again, false);
  check_close(wanted, &w, after.text);
  values_free(&v);
  values_free(&w);
  buf_free(&after);
  network_free(n);
  network_free(again);
}

// What all passes made they leave as it is, so that schedules tuned for its programs are those of what is compiled.
static int calls_left(const char *text, struct buf *after) {
  struct network *n = network_from(text);
  CHECK_INT(network_optimize(&ctx, n, NULL, &machine_avx512), CANVAS_OK, ctx.message);
  int calls = n->calls.count;
  network_print(n, after);
  network_free(n);
  return calls;
}

static bool is_settled(const char *text) {
  struct buf once = {0}, twice = {0};
  int calls = calls_left(text, &once);
  bool settled = calls_left(once.text, &twice) == calls;
  buf_free(&once);
  buf_free(&twice);
  return settled;
}

// Each alone, all of them, and five in any order.
static void keeps_what_random_networks_compute(void **state) {
  int settled = 0;
  for (uint64_t world = 0; world < WORLDS; world++) {
    struct buf text = {0}, order = {0};
    struct random r;
    make_world(world, &text);
    struct network *n = network_from(text.text);
    struct values wanted = evaluate(n, false);
    random_open(&r, 12, RANDOM_TEST, world);
    for (int i = 0; i < network_pass_count; i++)
      check_pass(text.text, network_passes[i].name, &wanted);
    check_pass(text.text, NULL, &wanted);
    settled += is_settled(text.text);
    for (int i = 0; i < 5; i++)
      buf_printf(&order, "%s ", network_passes[below(&r, network_pass_count)].name);
    check_pass(text.text, order.text, &wanted);
    values_free(&wanted);
    network_free(n);
    buf_free(&text);
    buf_free(&order);
  }
  CHECK(settled >= WORLDS - 2, "layouts of some may go to and fro");
}

static void keeps_what_kernels_compute(void **state) {
  struct network *n = network_from(KERNEL("6", "16"));
  struct values wanted = evaluate(n, false);
  check_pass(KERNEL("6", "16"), "split", &wanted);
  check_pass(KERNEL("6", "16"), NULL, &wanted);
  values_free(&wanted);
  network_free(n);
}

// Two sums of products, one of the other.
#define PAIR(weights, stages, given)                                  \
  HEAD "program pair\nin X f32 [n:1, h:4, w:2, c:8]\n" weights stages \
       "out Y\nend\n"                                                 \
       "in x f32 [1, 4, 2, 8]\n" given "out y\n"
#define PAIR_GIVEN                                                  \
  "weight w f32 [12, 2]\nweight b f32 [12]\nweight u f32 [6, 12]\n" \
  "y f32 [1, 2, 2, 6] = pair(x, w, b, u)\n"
#define PAIR_WEIGHTS \
  "in W f32 [t:12, k:2] const\nin B f32 [t:12] const\nin V f32 [o:6, t:12] const\n"
#define PAIR_FIRST  "S[n:1, h:2, w:2, t:12] = X[n, h*2, w, t/3*2+k] * W[t, k] // sum k:2\n"
#define PAIR_BIAS   "T[n:1, h:2, w:2, t:12] = S[n, h, w, t] + B[t]\n"
#define PAIR_SECOND "Y[n:1, h:2, w:2, o:6] = T[n, h, w, t] * V[o, t] // sum t:12\n"

static const struct {
  const char *before, *after;  // NULL: it stays
} pairs[] = {
    // the first one of groups, every second row, with a bias
    {PAIR(PAIR_WEIGHTS, PAIR_FIRST PAIR_BIAS PAIR_SECOND, PAIR_GIVEN),
     HEAD "program composed_weight\n"
          "in W f32 [t:12, k:2] const\n"
          "in V f32 [o:6, t:12] const\n"
          "Y[o:6, t:4, k:2] = W[t*3+t_2, k] * V[o, t*3+t_2] // sum t_2:3\n"
          "out Y\n"
          "end\n"
          "program composed_bias\n"
          "in B f32 [t:12] const\n"
          "in V f32 [o:6, t:12] const\n"
          "Y[o:6] = B[t] * V[o, t] // sum t:12\n"
          "out Y\n"
          "end\n"
          "program pair_2\n"
          "in X f32 [n:1, h:4, w:2, c:8]\n"
          "in W f32 [o:6, t:4, k:2] const\n"
          "in B f32 [o:6] const\n"
          "Y_sum[n:1, h:2, w:2, o:6] = X[n, h*2, w, t*2+k] * W[o, t, k] // sum t:4, k:2\n"
          "Y[n:1, h:2, w:2, o:6] = Y_sum[n, h, w, o] + B[o]\n"
          "out Y\n"
          "end\n"
          "in x f32 [1, 4, 2, 8]\n"
          "weight w f32 [12, 2]\n"
          "weight b f32 [12]\n"
          "weight u f32 [6, 12]\n"
          "y_weight f32 [6, 4, 2] = composed_weight(w, u)\n"
          "y_bias f32 [6] = composed_bias(b, u)\n"
          "y f32 [1, 2, 2, 6] = pair_2(x, y_weight, y_bias)\n"
          "out y\n"},
    // ... the second one
    {PAIR("in W f32 [t:12, k:8] const\nin V f32 [o:6, k:6] const\n",
          "S[n:1, t:12, h:2, w:2] = X[n, h*2, w, k] * W[t, k] // sum k:8\n"
          "Y[n:1, h:2, w:2, o:6] = S[n, o/3*6+k, h, w] * V[o, k] // sum k:6\n",
          "weight w f32 [12, 8]\nweight u f32 [6, 6]\ny f32 [1, 2, 2, 6] = pair(x, w, u)\n"),
     HEAD "program composed_weight\n"
          "in W f32 [t:12, k:8] const\n"
          "in V f32 [o:6, k:6] const\n"
          "Y[o:6, k:8] = W[o/3*6+k_2, k] * V[o, k_2] // sum k_2:6\n"
          "out Y\n"
          "end\n"
          "program pair_2\n"
          "in X f32 [n:1, h:4, w:2, c:8]\n"
          "in W f32 [o:6, k:8] const\n"
          "Y[n:1, h:2, w:2, o:6] = X[n, h*2, w, k] * W[o, k] // sum k:8\n"
          "out Y\n"
          "end\n"
          "in x f32 [1, 4, 2, 8]\n"
          "weight w f32 [12, 8]\n"
          "weight u f32 [6, 6]\n"
          "y_weight f32 [6, 8] = composed_weight(w, u)\n"
          "y f32 [1, 2, 2, 6] = pair_2(x, y_weight)\n"
          "out y\n"},
    // three
    {PAIR("in W f32 [t:12, k:8] const\nin V f32 [o:12, t:12] const\n",
          "S[n:1, h:2, w:2, t:12] = X[n, h, w, k] * W[t, k] // sum k:8\n"
          "T[n:1, h:2, w:2, t:12] = S[n, h, w, u] * V[t, u] // sum u:12\n"
          "Y[n:1, h:2, w:2, o:8] = T[n, h, w, t] * W[t, o] // sum t:12\n",
          "weight w f32 [12, 8]\nweight u f32 [12, 12]\ny f32 [1, 2, 2, 8] = pair(x, w, u)\n"),
     HEAD "program composed_weight\n"
          "in W f32 [t:12, k:8] const\n"
          "in V f32 [o:12, t:12] const\n"
          "Y[t:12, k:8] = W[u, k] * V[t, u] // sum u:12\n"
          "out Y\n"
          "end\n"
          "program composed_weight_2\n"
          "in W f32 [t:12, k:8] const\n"
          "in W_2 f32 [t:12, k:8] const\n"
          "Y[o:8, k:8] = W[t, k] * W_2[t, o] // sum t:12\n"
          "out Y\n"
          "end\n"
          "program pair_2_2\n"
          "in X f32 [n:1, h:4, w:2, c:8]\n"
          "in W f32 [o:8, k:8] const\n"
          "Y[n:1, h:2, w:2, o:8] = X[n, h, w, k] * W[o, k] // sum k:8\n"
          "out Y\n"
          "end\n"
          "in x f32 [1, 4, 2, 8]\n"
          "weight w f32 [12, 8]\n"
          "weight u f32 [12, 12]\n"
          "y_weight f32 [12, 8] = composed_weight(w, u)\n"
          "y_weight_2 f32 [8, 8] = composed_weight_2(y_weight, w)\n"
          "y f32 [1, 2, 2, 8] = pair_2_2(x, y_weight_2)\n"
          "out y\n"},
    // something between; read twice
    {PAIR(PAIR_WEIGHTS,
          PAIR_FIRST "T[n:1, h:2, w:2, t:12] = max(S[n, h, w, t] + B[t], 0)\n" PAIR_SECOND,
          PAIR_GIVEN),
     NULL},
    {PAIR(PAIR_WEIGHTS,
          PAIR_FIRST PAIR_BIAS "R[n:1, h:2, w:2, o:6] = T[n, h, w, t] * V[o, t] // sum t:12\n"
                               "Y[n:1, h:2, w:2, o:6] = R[n, h, w, o] + T[n, h, w, o]\n",
          PAIR_GIVEN),
     NULL},
    // the bias ends where the border begins
    {PAIR(PAIR_WEIGHTS,
          PAIR_FIRST PAIR_BIAS "Y[n:1, h:2, w:2, o:6] = (if h+i < 2 then T[n, h+i, w, t] else 0) * "
                               "V[o, t] // sum t:12, i:2\n",
          PAIR_GIVEN),
     NULL},
    // few channels between; many pixels of one
    {PAIR("in W f32 [t:2, k:8] const\nin V f32 [o:6, t:2] const\n",
          "S[n:1, h:2, w:2, t:2] = X[n, h, w, k] * W[t, k] // sum k:8\n"
          "Y[n:1, h:2, w:2, o:6] = S[n, h, w, t] * V[o, t] // sum t:2\n",
          "weight w f32 [2, 8]\nweight u f32 [6, 2]\ny f32 [1, 2, 2, 6] = pair(x, w, u)\n"),
     NULL},
    {PAIR("in W f32 [t:12, k:8] const\nin V f32 [o:6, k:6] const\n",
          "S[n:1, t:12] = X[n, 0, 0, k] * W[t, k] // sum k:8\n"
          "Y[n:1, h:4, w:4, o:6] = S[n, o/3*6+k] * V[o, k] // sum k:6\n",
          "weight w f32 [12, 8]\nweight u f32 [6, 6]\ny f32 [1, 4, 4, 6] = pair(x, w, u)\n"),
     NULL},
    // weights that vary
    {PAIR("in W f32 [t:12, k:2]\nin B f32 [t:12] const\nin V f32 [o:6, t:12] const\n",
          PAIR_FIRST PAIR_BIAS PAIR_SECOND,
          "in w f32 [12, 2]\nweight b f32 [12]\nweight u f32 [6, 12]\n"
          "y f32 [1, 2, 2, 6] = pair(x, w, b, u)\n"),
     NULL},
};

static void composes_two_sums(void **state) {
  CHECK_ROWS (pairs, row) {
    struct network *n = network_from(row->before);
    struct values wanted = evaluate(n, false);
    struct buf out = {0};
    CHECK_INT(network_optimize(&ctx, n, "compose,dead", &machine_avx512), CANVAS_OK, ctx.message);
    network_print(n, &out);
    CHECK_TEXT(out.text, row->after ? row->after : row->before, "compose");
    check_pass(row->before, "compose", &wanted);
    check_pass(row->before, NULL, &wanted);
    values_free(&wanted);
    buf_free(&out);
    network_free(n);
  }
}

// ---- time ----

#define LARGE "canvas 1\nnetwork large\nin x f32 [2]\n"

// A convolution of one pixel, the sum with what it was made of, one program each; calls of the same programs.
static void write_blocks(struct buf *text, int calls) {
  buf_puts(text, LARGE RELU ADD
           "program conv\nin X f32 [n:2]\nin W f32 [m:2, n:2] const\n"
           "Y[m:2] = X[n] * W[m, n] // sum n:2\nout Y\nend\nweight w f32 [2, 2]\n"
           "c0 f32 [2] = relu(x)\n");
  for (int i = 1; i <= calls / 3; i++)
    buf_printf(text,
               "a%d f32 [2] = conv(c%d, w)\nb%d f32 [2] = relu(a%d)\nc%d f32 [2] = add(b%d, c%d)\n",
               i, i - 1, i, i, i, i, i - 1);
  buf_printf(text, "out c%d\n", calls / 3);
}

// Element-wise calls, all of which may be one.
static void write_chain(struct buf *text, int calls) {
  buf_puts(text, LARGE RELU "c0 f32 [2] = relu(x)\n");
  for (int i = 1; i < calls; i++) buf_printf(text, "c%d f32 [2] = relu(c%d)\n", i, i - 1);
  buf_printf(text, "out c%d\n", calls - 1);
}

// Each call has a program of its own.
static void write_programs(struct buf *text, int calls) {
  buf_puts(text, LARGE RELU "c0 f32 [2] = relu(x)\n");
  for (int i = 1; i < calls; i++)
    buf_printf(text, "program p%d\nin X f32 [n:2]\nY[n:2] = X[n] * %d\nout Y\nend\n", i, i + 1);
  for (int i = 1; i < calls; i++) buf_printf(text, "c%d f32 [2] = p%d(c%d)\n", i, i, i - 1);
  buf_printf(text, "out c%d\n", calls - 1);
}

static double optimize_seconds(void (*write)(struct buf *, int), int calls) {
  struct buf text = {0};
  write(&text, calls);
  clock_t start = clock();
  struct network *n = network_from(text.text);
  CHECK_INT(network_optimize(&ctx, n, NULL, &machine_avx512), CANVAS_OK, ctx.message);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  network_free(n);
  buf_free(&text);
  return seconds;
}

// Eight times as many calls took up to 300 times as long when each new name was compared with all others.
static void large_networks_are_near_linear(void **state) {
  static const struct {
    const char *label;
    void (*write)(struct buf *, int);
  } large[] = {{"blocks", write_blocks}, {"chain", write_chain}, {"programs", write_programs}};
  (void)state;
  CHECK_ROWS (large, shape) {
    optimize_seconds(shape->write, 250);  // first tiles are chosen
    double few = optimize_seconds(shape->write, 250), many = optimize_seconds(shape->write, 2000);
    if (many > 30 * few + 0.1) fail_msg("%s: 2,000 calls %g s, 250 %g s", shape->label, many, few);
  }
}

CHECK_MAIN(cmocka_unit_test(composes_two_sums), cmocka_unit_test(gives_texts),
           cmocka_unit_test(knows_its_passes), cmocka_unit_test(takes_fewer_products),
           cmocka_unit_test(keeps_what_kernels_compute),
           cmocka_unit_test(keeps_what_random_networks_compute),
           cmocka_unit_test(large_networks_are_near_linear))
