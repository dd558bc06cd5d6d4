/* involution, written by canvas 0.1.0.
 *
 * Tensors are whole, row-major, the last axis contiguous, and do not overlap.
 * It returns 0, or 1 where there was no memory for its buffers.
 *
 *   X: f32 [n:1, c:32, h:14, w:14]
 *   w0: f32 [t:8, c:32]
 *   w1: f32 [t:18, c:8]
 * to
 *   Y: f32 [n:1, c:32, h:14, w:14]
 */
#ifndef CANVAS_involution_H
#define CANVAS_involution_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int involution(const float *X, const float *w0, const float *w1, float *Y);

#ifdef __cplusplus
}
#endif

#endif
