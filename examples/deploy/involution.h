/* involution, written by canvas 0.1.0.
 *
 * Tensors are whole, row-major, the last axis contiguous, and do not overlap.
 * It returns 0, or 1 where there was no memory for its buffers.
 * It keeps the memory of these buffers for its next call, until
 * involution_free_workspace. involution_with_workspace is the same on
 * memory of involution_workspace_bytes bytes at a multiple of 64 that no
 * other call uses at the same time, and asks for none.
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
#define involution_workspace_bytes 32832
int involution_with_workspace(const float *X, const float *w0, const float *w1, float *Y,
    void *workspace);
void involution_free_workspace(void);

#ifdef __cplusplus
}
#endif

#endif
