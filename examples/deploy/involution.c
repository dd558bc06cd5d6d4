/* involution, written by canvas 0.1.0 from
 *
 * canvas 1
 * kernel involution
 * a = input                      : C H W
 * b = fc a to=x0                 : x0 H W
 * c = relu b                     : x0 H W
 * d = fc c to=G*KH*KW            : G*KH*KW H W
 * e = group d by=G               : G KH*KW H W
 * f = unfold a over=H,W k=K      : C KH KW H W
 * g = group f by=G               : G C/G KH KW H W
 * h = mul e g                    : G C/G KH KW H W
 * i = fold h mean over=KH,KW     : G C/G H W
 * out i
 * bind t0 Cin=32 Cout=32 KH=3 KW=3 H=14 W=14 stride=1 G=2 x0=8   # w0 [1, 8, 32], w1 [1, 18, 8]
 *
 * canvas 1
 * program involution
 * in X f32 [n:1, c:32, h:14, w:14]
 * in w0 f32 [t:8, c:32]
 * b[n:1, c:8, h:14, w:14] = X[n, k, h, w] * w0[c, k] // sum k:32
 * c[n:1, c:8, h:14, w:14] = max(b[n, c, h, w], 0)
 * in w1 f32 [t:18, c:8]
 * d[n:1, c:18, h:14, w:14] = c[n, k, h, w] * w1[c, k] // sum k:8
 * h[n:1, g:2, c:16, kh:3, kw:3, h:14, w:14] = d[n, g*9+(kh*3+kw), h, w] * (if 1 <= h+kh && h+kh < 15 && 1 <= w+kw && w+kw < 15 then X[n, g*16+c, h+kh-1, w+kw-1] else 0)
 * Y[n:1, c:32, h:14, w:14] = h[n, c/16, c%16, kh, kw, h, w] // mean kh:3, kw:3
 * out Y
 *
 * canvas 1
 * schedule heuristic
 * n, c:para, h, w, k =>
 *     @b = n, c, h, w // k
 * n, c, h, w =>
 *     @c = n, c, h, w
 * n, d_c:para, h, w, d_k =>
 *     @d = n, {d_c}/c, h, w // {d_k}/k
 * n, g:para, h_c, kh, kw, h, w =>
 *     @h = n, g, {h_c}/c, kh, kw, h, w
 * n, Y_c:para, h, w, kh, kw =>
 *     @Y = n, {Y_c}/c, h, w // kh, kw
 */
#include <stdlib.h>

#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#else
#define PRAGMA(text)
#endif
/* nan if either is */
#define MAX_F32(x, y) ({ float x_ = (x), y_ = (y); y_ > x_ || y_ != y_ ? y_ : x_; })

int involution(const float *restrict X, const float *restrict w0, const float *restrict w1,
    float *restrict Y) {
  int status = 1;
  float *h_ = aligned_alloc(64, 225792);
  if (!h_) goto done;
  _Alignas(64) float b[1568];
  _Alignas(64) float c_[1568];
  _Alignas(64) float d[3528];
  PRAGMA(omp parallel for)
  for (long c = 0; c < 8; c++)
    for (long h = 0; h < 14; h++)
      for (long w = 0; w < 14; w++) {
        float b_acc = 0.0f;
        for (long k = 0; k < 32; k++)
          b_acc += X[k*196 + h*14 + w] * w0[c*32 + k];
        b[c*196 + h*14 + w] = b_acc;
      }
  for (long c = 0; c < 8; c++)
    for (long h = 0; h < 14; h++)
      for (long w = 0; w < 14; w++) {
        long c_h_w = c*196 + h*14 + w;
        c_[c_h_w] = MAX_F32(b[c_h_w], 0.0f);
      }
  PRAGMA(omp parallel for)
  for (long d_c = 0; d_c < 18; d_c++)
    for (long h = 0; h < 14; h++)
      for (long w = 0; w < 14; w++) {
        float d_acc = 0.0f;
        for (long d_k = 0; d_k < 8; d_k++)
          d_acc += c_[d_k*196 + h*14 + w] * w1[d_c*8 + d_k];
        d[d_c*196 + h*14 + w] = d_acc;
      }
  PRAGMA(omp parallel for)
  for (long g = 0; g < 2; g++)
    for (long h_c = 0; h_c < 16; h_c++)
      for (long kh = 0; kh < 3; kh++)
        for (long kw = 0; kw < 3; kw++)
          for (long h = 0; h < 14; h++) {
            long h_kh = h + kh;
            for (long w = 0; w < 14; w++) {
              long at = kh*588 + kw*196 + h*14 + w;
              long w_kw = w + kw;
              h_[g*28224 + h_c*1764 + at] = d[g*1764 + at] *
                  (1 <= h_kh && h_kh < 15 && 1 <= w_kw && w_kw < 15 ?
                  X[g*3136 + h_c*196 + h_kh*14 + w_kw - 15] : 0.0f);
            }
          }
  PRAGMA(omp parallel for)
  for (long Y_c = 0; Y_c < 32; Y_c++)
    for (long h = 0; h < 14; h++)
      for (long w = 0; w < 14; w++) {
        float Y_acc = 0.0f;
        for (long kh = 0; kh < 3; kh++)
          for (long kw = 0; kw < 3; kw++)
            Y_acc += h_[Y_c*1764 + kh*588 + kw*196 + h*14 + w];
        Y[Y_c*196 + h*14 + w] = Y_acc / 9.0f;
      }
  status = 0;
done:
  free(h_);
  return status;
}
