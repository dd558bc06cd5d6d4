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
 * in w0 f32 [t:8, c:32] const
 * b[n:1, c:8, h:14, w:14] = X[n, k, h, w] * w0[c, k] // sum k:32
 * c[n:1, c:8, h:14, w:14] = max(b[n, c, h, w], 0)
 * in w1 f32 [t:18, c:8] const
 * d[n:1, c:18, h:14, w:14] = c[n, k, h, w] * w1[c, k] // sum k:8
 * X_m[n:1, c:32, h:16, w:16] = if 1 <= h && h < 15 && 1 <= w && w < 15 then X[n, c, h-1, w-1] else 0
 * Y[n:1, c:32, h:14, w:14] = d[n, c/16*9+(kh*3+kw), h, w] * X_m[n, c, h+kh, w+kw] // mean kh:3, kw:3
 * out Y
 *
 * canvas 1
 * schedule heuristic
 * n, c_o =>
 *     k, h:unroll, c_i:2:unroll, w_v:16:mask:vec =>
 *         @b = n, {c_o, c_i}/c, h, {w_v}/w // k
 *     h:unroll, c_i:unroll, w_v:vec =>
 *         @c = n, {c_o, c_i}/c, h, {w_v}/w
 * n, d_c_o, d_k, h:unroll, c_i:unroll, w_v:vec =>
 *     @d = n, {d_c_o, c_i}/c, h, {w_v}/w // {d_k}/k
 * n, c, X_m_h, w:vec =>
 *     @X_m = n, c, {X_m_h}/h, w
 * n, h, Y_c_o, kh, kw, Y_c_i:16:unroll, w_v:vec =>
 *     @Y = n, {Y_c_o, Y_c_i}/c, h, {w_v}/w // kh, kw
 */
#include <stdint.h>
#include <stdlib.h>

#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)
#pragma GCC optimize("no-predictive-commoning", "ira-region=all") /* no sums on the stack */
#if defined(__AVX2__) && !defined(__AVX512F__) && !defined(TUNED)
#define TUNED /* gcc takes it once */
#pragma GCC target("tune=skylake") /* vectors that are shared stay in registers */
#endif
#endif
#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)
#define SUMS_END() __asm__ volatile("" ::: "memory") /* nothing behind is loaded before */
#else
#define SUMS_END() ((void)0)
#endif
typedef float v16 __attribute__((vector_size(64)));
typedef int32_t m16 __attribute__((vector_size(64)));
typedef float v16_anywhere __attribute__((vector_size(64), aligned(4), may_alias));
#define V16(place) (*(v16_anywhere *)&(place))
#define ALL_V16(x) ((x) - (v16){0})
#ifdef __AVX512F__
#define LOAD_V16(place, n) \
  ({ \
    const float *from_ = &(place); \
    long n_ = (n); \
    unsigned short mask_ = (unsigned short)(n_ >= 16 ? 0xffff : n_ > 0 ? (1 << n_) - 1 : 0); \
    (v16)__builtin_ia32_loadups512_mask(from_, (v16){0}, mask_); \
  })
#else
#define LOAD_V16(place, n) \
  ({ \
    const float *from_ = &(place); \
    long n_ = (n); \
    n_ >= 16 ? (v16)V16(*from_) : ({ \
      v16 part_ = {0}; \
      if (n_ > 0) __builtin_memcpy(&part_, from_, (n_ & 15) * 4); \
      part_; \
    }); \
  })
#endif
#ifdef __AVX512F__
#define SOME_V16(place, first, end) \
  ({ \
    long first_ = (first), n_ = (end); \
    const float *from_ = (const float *)((__UINTPTR_TYPE__)&(place) - 4 * first_); \
    unsigned short mask_ = (unsigned short)((n_ >= 16 ? 0xffff : n_ > 0 ? (1 << n_) - 1 : 0) & (first_ >= 16 ? 0 : first_ > 0 ? 0xffff << first_ : 0xffff)); \
    (v16)__builtin_ia32_loadups512_mask(from_, (v16){0}, mask_); \
  })
#else
#define SOME_V16(place, first, end) \
  ({ \
    const float *from_ = &(place); \
    long first_ = (first), n_ = (end) - first_; \
    v16 part_ = {0}; \
    for (long i_ = 0; i_ < n_; i_++) part_[first_ + i_] = from_[i_]; \
    part_; \
  })
#endif
#ifdef __AVX512F__
#define STORE_V16(place, n, x) \
  do { \
    float *to_ = &(place); \
    long n_ = (n); \
    v16 x_ = (x); \
    unsigned short mask_ = (unsigned short)(n_ >= 16 ? 0xffff : n_ > 0 ? (1 << n_) - 1 : 0); \
    __builtin_ia32_storeups512_mask(to_, x_, mask_); \
  } while (0)
#else
#define STORE_V16(place, n, x) \
  do { \
    float *to_ = &(place); \
    long n_ = (n); \
    v16 x_ = (x); \
    if (n_ >= 16) { \
      V16(*to_) = x_; \
    } else if (n_ > 0) { \
      v16 part_ = x_; \
      __builtin_memcpy(to_, &part_, (n_ & 15) * 4); \
    } \
  } while (0)
#endif
#define MAX_V16(x, y) \
  ({ \
    v16 x_ = (x), y_ = (y); \
    m16 nan_ = y_ != y_; \
    (v16)((nan_ & (m16)y_) | (~nan_ & (m16)GREATER_V16(x_, y_))); \
  })
#if defined __FAST_MATH__ || defined __ASSOCIATIVE_MATH__
#error "exp and its like are wrong with -ffast-math and -Ofast: compile this file without"
#endif
#if defined __AVX512F__ && defined __clang__
#define GREATER_V16(x, y) __builtin_ia32_maxps512(y, x, 4)
#elif defined __AVX512F__
#define GREATER_V16(x, y) __builtin_ia32_maxps512_mask(y, x, x, -1, 4)
#else
#define GREATER_V16(x, y) \
  ({ \
    m16 take_ = (y) > (x); \
    (v16)((take_ & (m16)(y)) | (~take_ & (m16)(x))); \
  })
#endif

static int involution_body(const float *restrict X, const float *restrict w0,
    const float *restrict w1, float *restrict Y, float *restrict X_m) {
  for (long i_ = 8192; i_ < 8194; i_++) X_m[i_] = 0;
  _Alignas(64) float c_[1792];
  _Alignas(64) float d[4032];
  for (long c_o = 0; c_o < 4; c_o++) {
    v16 b_0 = {0}, b_1 = {0}, b_2 = {0}, b_3 = {0}, b_4 = {0}, b_5 = {0}, b_6 = {0}, b_7 = {0},
        b_8 = {0}, b_9 = {0}, b_10 = {0}, b_11 = {0}, b_12 = {0}, b_13 = {0}, b_14 = {0},
        b_15 = {0}, b_16 = {0}, b_17 = {0}, b_18 = {0}, b_19 = {0}, b_20 = {0}, b_21 = {0},
        b_22 = {0}, b_23 = {0}, b_24 = {0}, b_25 = {0}, b_26 = {0}, b_27 = {0};
    for (long k = 0; k < 32; k++) {
      long w0_at = c_o*64 + k;
      b_0 += V16(X[k*196]) * w0[w0_at];
      b_14 += V16(X[k*196]) * w0[w0_at + 32];
      b_1 += V16(X[k*196 + 14]) * w0[w0_at];
      b_15 += V16(X[k*196 + 14]) * w0[w0_at + 32];
      b_2 += V16(X[k*196 + 28]) * w0[w0_at];
      b_16 += V16(X[k*196 + 28]) * w0[w0_at + 32];
      b_3 += V16(X[k*196 + 42]) * w0[w0_at];
      b_17 += V16(X[k*196 + 42]) * w0[w0_at + 32];
      b_4 += V16(X[k*196 + 56]) * w0[w0_at];
      b_18 += V16(X[k*196 + 56]) * w0[w0_at + 32];
      b_5 += V16(X[k*196 + 70]) * w0[w0_at];
      b_19 += V16(X[k*196 + 70]) * w0[w0_at + 32];
      b_6 += V16(X[k*196 + 84]) * w0[w0_at];
      b_20 += V16(X[k*196 + 84]) * w0[w0_at + 32];
      b_7 += V16(X[k*196 + 98]) * w0[w0_at];
      b_21 += V16(X[k*196 + 98]) * w0[w0_at + 32];
      b_8 += V16(X[k*196 + 112]) * w0[w0_at];
      b_22 += V16(X[k*196 + 112]) * w0[w0_at + 32];
      b_9 += V16(X[k*196 + 126]) * w0[w0_at];
      b_23 += V16(X[k*196 + 126]) * w0[w0_at + 32];
      b_10 += V16(X[k*196 + 140]) * w0[w0_at];
      b_24 += V16(X[k*196 + 140]) * w0[w0_at + 32];
      b_11 += V16(X[k*196 + 154]) * w0[w0_at];
      b_25 += V16(X[k*196 + 154]) * w0[w0_at + 32];
      b_12 += V16(X[k*196 + 168]) * w0[w0_at];
      b_26 += V16(X[k*196 + 168]) * w0[w0_at + 32];
      v16 X_part = LOAD_V16(X[k*196 + 182], 14);
      b_13 += X_part * w0[w0_at];
      b_27 += X_part * w0[w0_at + 32];
    }
    V16(c_[c_o*448]) = MAX_V16(b_0, ALL_V16(0.0f));
    V16(c_[c_o*448 + 224]) = MAX_V16(b_14, ALL_V16(0.0f));
    V16(c_[c_o*448 + 16]) = MAX_V16(b_1, ALL_V16(0.0f));
    V16(c_[c_o*448 + 240]) = MAX_V16(b_15, ALL_V16(0.0f));
    V16(c_[c_o*448 + 32]) = MAX_V16(b_2, ALL_V16(0.0f));
    V16(c_[c_o*448 + 256]) = MAX_V16(b_16, ALL_V16(0.0f));
    V16(c_[c_o*448 + 48]) = MAX_V16(b_3, ALL_V16(0.0f));
    V16(c_[c_o*448 + 272]) = MAX_V16(b_17, ALL_V16(0.0f));
    V16(c_[c_o*448 + 64]) = MAX_V16(b_4, ALL_V16(0.0f));
    V16(c_[c_o*448 + 288]) = MAX_V16(b_18, ALL_V16(0.0f));
    V16(c_[c_o*448 + 80]) = MAX_V16(b_5, ALL_V16(0.0f));
    V16(c_[c_o*448 + 304]) = MAX_V16(b_19, ALL_V16(0.0f));
    V16(c_[c_o*448 + 96]) = MAX_V16(b_6, ALL_V16(0.0f));
    V16(c_[c_o*448 + 320]) = MAX_V16(b_20, ALL_V16(0.0f));
    V16(c_[c_o*448 + 112]) = MAX_V16(b_7, ALL_V16(0.0f));
    V16(c_[c_o*448 + 336]) = MAX_V16(b_21, ALL_V16(0.0f));
    V16(c_[c_o*448 + 128]) = MAX_V16(b_8, ALL_V16(0.0f));
    V16(c_[c_o*448 + 352]) = MAX_V16(b_22, ALL_V16(0.0f));
    V16(c_[c_o*448 + 144]) = MAX_V16(b_9, ALL_V16(0.0f));
    V16(c_[c_o*448 + 368]) = MAX_V16(b_23, ALL_V16(0.0f));
    V16(c_[c_o*448 + 160]) = MAX_V16(b_10, ALL_V16(0.0f));
    V16(c_[c_o*448 + 384]) = MAX_V16(b_24, ALL_V16(0.0f));
    V16(c_[c_o*448 + 176]) = MAX_V16(b_11, ALL_V16(0.0f));
    V16(c_[c_o*448 + 400]) = MAX_V16(b_25, ALL_V16(0.0f));
    V16(c_[c_o*448 + 192]) = MAX_V16(b_12, ALL_V16(0.0f));
    V16(c_[c_o*448 + 416]) = MAX_V16(b_26, ALL_V16(0.0f));
    V16(c_[c_o*448 + 208]) = MAX_V16(b_13, ALL_V16(0.0f));
    V16(c_[c_o*448 + 432]) = MAX_V16(b_27, ALL_V16(0.0f));
  }
  for (long d_c_o = 0; d_c_o < 9; d_c_o++) {
    v16 d_acc_0 = {0}, d_acc_1 = {0}, d_acc_2 = {0}, d_acc_3 = {0}, d_acc_4 = {0}, d_acc_5 = {0},
        d_acc_6 = {0}, d_acc_7 = {0}, d_acc_8 = {0}, d_acc_9 = {0}, d_acc_10 = {0}, d_acc_11 = {0},
        d_acc_12 = {0}, d_acc_13 = {0}, d_acc_14 = {0}, d_acc_15 = {0}, d_acc_16 = {0},
        d_acc_17 = {0}, d_acc_18 = {0}, d_acc_19 = {0}, d_acc_20 = {0}, d_acc_21 = {0},
        d_acc_22 = {0}, d_acc_23 = {0}, d_acc_24 = {0}, d_acc_25 = {0}, d_acc_26 = {0},
        d_acc_27 = {0};
    for (long d_k = 0; d_k < 8; d_k++) {
      long w1_at = d_c_o*16 + d_k;
      d_acc_0 += V16(c_[d_k*224]) * w1[w1_at];
      d_acc_1 += V16(c_[d_k*224]) * w1[w1_at + 8];
      d_acc_2 += V16(c_[d_k*224 + 16]) * w1[w1_at];
      d_acc_3 += V16(c_[d_k*224 + 16]) * w1[w1_at + 8];
      d_acc_4 += V16(c_[d_k*224 + 32]) * w1[w1_at];
      d_acc_5 += V16(c_[d_k*224 + 32]) * w1[w1_at + 8];
      d_acc_6 += V16(c_[d_k*224 + 48]) * w1[w1_at];
      d_acc_7 += V16(c_[d_k*224 + 48]) * w1[w1_at + 8];
      d_acc_8 += V16(c_[d_k*224 + 64]) * w1[w1_at];
      d_acc_9 += V16(c_[d_k*224 + 64]) * w1[w1_at + 8];
      d_acc_10 += V16(c_[d_k*224 + 80]) * w1[w1_at];
      d_acc_11 += V16(c_[d_k*224 + 80]) * w1[w1_at + 8];
      d_acc_12 += V16(c_[d_k*224 + 96]) * w1[w1_at];
      d_acc_13 += V16(c_[d_k*224 + 96]) * w1[w1_at + 8];
      d_acc_14 += V16(c_[d_k*224 + 112]) * w1[w1_at];
      d_acc_15 += V16(c_[d_k*224 + 112]) * w1[w1_at + 8];
      d_acc_16 += V16(c_[d_k*224 + 128]) * w1[w1_at];
      d_acc_17 += V16(c_[d_k*224 + 128]) * w1[w1_at + 8];
      d_acc_18 += V16(c_[d_k*224 + 144]) * w1[w1_at];
      d_acc_19 += V16(c_[d_k*224 + 144]) * w1[w1_at + 8];
      d_acc_20 += V16(c_[d_k*224 + 160]) * w1[w1_at];
      d_acc_21 += V16(c_[d_k*224 + 160]) * w1[w1_at + 8];
      d_acc_22 += V16(c_[d_k*224 + 176]) * w1[w1_at];
      d_acc_23 += V16(c_[d_k*224 + 176]) * w1[w1_at + 8];
      d_acc_24 += V16(c_[d_k*224 + 192]) * w1[w1_at];
      d_acc_25 += V16(c_[d_k*224 + 192]) * w1[w1_at + 8];
      d_acc_26 += V16(c_[d_k*224 + 208]) * w1[w1_at];
      d_acc_27 += V16(c_[d_k*224 + 208]) * w1[w1_at + 8];
    }
    V16(d[d_c_o*448]) = d_acc_0;
    V16(d[d_c_o*448 + 224]) = d_acc_1;
    V16(d[d_c_o*448 + 16]) = d_acc_2;
    V16(d[d_c_o*448 + 240]) = d_acc_3;
    V16(d[d_c_o*448 + 32]) = d_acc_4;
    V16(d[d_c_o*448 + 256]) = d_acc_5;
    V16(d[d_c_o*448 + 48]) = d_acc_6;
    V16(d[d_c_o*448 + 272]) = d_acc_7;
    V16(d[d_c_o*448 + 64]) = d_acc_8;
    V16(d[d_c_o*448 + 288]) = d_acc_9;
    V16(d[d_c_o*448 + 80]) = d_acc_10;
    V16(d[d_c_o*448 + 304]) = d_acc_11;
    V16(d[d_c_o*448 + 96]) = d_acc_12;
    V16(d[d_c_o*448 + 320]) = d_acc_13;
    V16(d[d_c_o*448 + 112]) = d_acc_14;
    V16(d[d_c_o*448 + 336]) = d_acc_15;
    V16(d[d_c_o*448 + 128]) = d_acc_16;
    V16(d[d_c_o*448 + 352]) = d_acc_17;
    V16(d[d_c_o*448 + 144]) = d_acc_18;
    V16(d[d_c_o*448 + 368]) = d_acc_19;
    V16(d[d_c_o*448 + 160]) = d_acc_20;
    V16(d[d_c_o*448 + 384]) = d_acc_21;
    V16(d[d_c_o*448 + 176]) = d_acc_22;
    V16(d[d_c_o*448 + 400]) = d_acc_23;
    V16(d[d_c_o*448 + 192]) = d_acc_24;
    V16(d[d_c_o*448 + 416]) = d_acc_25;
    V16(d[d_c_o*448 + 208]) = d_acc_26;
    V16(d[d_c_o*448 + 432]) = d_acc_27;
  }
  SUMS_END();
  for (long c = 0; c < 32; c++) {
    V16(X_m[c*256]) = ALL_V16(0.0f);
    for (long X_m_h = 1; X_m_h < 15; X_m_h++)
      V16(X_m[c*256 + X_m_h*16]) = SOME_V16(X[c*196 + X_m_h*14 - 14], 1, 15);
    V16(X_m[c*256 + 240]) = ALL_V16(0.0f);
  }
  for (long h = 0; h < 14; h++)
    for (long Y_c_o = 0; Y_c_o < 2; Y_c_o++) {
      long Y_at = Y_c_o*3136 + h*14;
      v16 Y_acc_0 = {0}, Y_acc_1 = {0}, Y_acc_2 = {0}, Y_acc_3 = {0}, Y_acc_4 = {0}, Y_acc_5 = {0},
          Y_acc_6 = {0}, Y_acc_7 = {0}, Y_acc_8 = {0}, Y_acc_9 = {0}, Y_acc_10 = {0},
          Y_acc_11 = {0}, Y_acc_12 = {0}, Y_acc_13 = {0}, Y_acc_14 = {0}, Y_acc_15 = {0};
      for (long kh = 0; kh < 3; kh++)
        for (long kw = 0; kw < 3; kw++) {
          long d_at = Y_c_o*2016 + kh*672 + kw*224 + h*16;
          long X_m_at = Y_c_o*4096 + h*16 + kh*16 + kw;
          Y_acc_0 += V16(d[d_at]) * V16(X_m[X_m_at]);
          Y_acc_1 += V16(d[d_at]) * V16(X_m[X_m_at + 256]);
          Y_acc_2 += V16(d[d_at]) * V16(X_m[X_m_at + 512]);
          Y_acc_3 += V16(d[d_at]) * V16(X_m[X_m_at + 768]);
          Y_acc_4 += V16(d[d_at]) * V16(X_m[X_m_at + 1024]);
          Y_acc_5 += V16(d[d_at]) * V16(X_m[X_m_at + 1280]);
          Y_acc_6 += V16(d[d_at]) * V16(X_m[X_m_at + 1536]);
          Y_acc_7 += V16(d[d_at]) * V16(X_m[X_m_at + 1792]);
          Y_acc_8 += V16(d[d_at]) * V16(X_m[X_m_at + 2048]);
          Y_acc_9 += V16(d[d_at]) * V16(X_m[X_m_at + 2304]);
          Y_acc_10 += V16(d[d_at]) * V16(X_m[X_m_at + 2560]);
          Y_acc_11 += V16(d[d_at]) * V16(X_m[X_m_at + 2816]);
          Y_acc_12 += V16(d[d_at]) * V16(X_m[X_m_at + 3072]);
          Y_acc_13 += V16(d[d_at]) * V16(X_m[X_m_at + 3328]);
          Y_acc_14 += V16(d[d_at]) * V16(X_m[X_m_at + 3584]);
          Y_acc_15 += V16(d[d_at]) * V16(X_m[X_m_at + 3840]);
        }
      STORE_V16(Y[Y_at], 14, Y_acc_0 / 9.0f);
      STORE_V16(Y[Y_at + 196], 14, Y_acc_1 / 9.0f);
      STORE_V16(Y[Y_at + 392], 14, Y_acc_2 / 9.0f);
      STORE_V16(Y[Y_at + 588], 14, Y_acc_3 / 9.0f);
      STORE_V16(Y[Y_at + 784], 14, Y_acc_4 / 9.0f);
      STORE_V16(Y[Y_at + 980], 14, Y_acc_5 / 9.0f);
      STORE_V16(Y[Y_at + 1176], 14, Y_acc_6 / 9.0f);
      STORE_V16(Y[Y_at + 1372], 14, Y_acc_7 / 9.0f);
      STORE_V16(Y[Y_at + 1568], 14, Y_acc_8 / 9.0f);
      STORE_V16(Y[Y_at + 1764], 14, Y_acc_9 / 9.0f);
      STORE_V16(Y[Y_at + 1960], 14, Y_acc_10 / 9.0f);
      STORE_V16(Y[Y_at + 2156], 14, Y_acc_11 / 9.0f);
      STORE_V16(Y[Y_at + 2352], 14, Y_acc_12 / 9.0f);
      STORE_V16(Y[Y_at + 2548], 14, Y_acc_13 / 9.0f);
      STORE_V16(Y[Y_at + 2744], 14, Y_acc_14 / 9.0f);
      STORE_V16(Y[Y_at + 2940], 14, Y_acc_15 / 9.0f);
    }
  return 0;
}

int involution_with_workspace(const float *X, const float *w0, const float *w1, float *Y,
    void *workspace) {
  return involution_body(X, w0, w1, Y, workspace);
}

static void *involution_kept; /* the workspace of the last call, for the next one */

__attribute__((destructor)) void involution_free_workspace(void) {
  free(__atomic_exchange_n(&involution_kept, NULL, __ATOMIC_ACQ_REL));
}

int involution(const float *X, const float *w0, const float *w1, float *Y) {
  void *workspace = __atomic_exchange_n(&involution_kept, NULL, __ATOMIC_ACQ_REL);
  if (!workspace) workspace = aligned_alloc(64, 32832);
  if (!workspace) return 1;
  int status = involution_with_workspace(X, w0, w1, Y, workspace);
  free(__atomic_exchange_n(&involution_kept, workspace, __ATOMIC_ACQ_REL));
  return status;
}
