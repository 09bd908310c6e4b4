/* A causal convolution over time, channel by channel, behind it SiLU: the equations are in convolution.py. */

#pragma once

#include "vectors.h"

typedef struct {
    int64_t T, B, M, K;    /* M channels, K steps that are seen; 0: none, and SiLU alone */
    int64_t X_row, X_time, dX_row, dX_time; /* strides */
    REAL *X, *before;      /* (B, T, M); (B, K - 1, M), the steps before the first */
    REAL *kernel;          /* (K, M), the current step last */
    REAL *Y, *dY;          /* (B, T, M) */
    REAL *dX, *dbefore, *dkernel; /* as X; as before; (B, K, M): the last two begin as zeros */
    REAL *shift, *dshift;  /* (M), added before SiLU, or null; (B, M), zeros at first */
} Convolution;

/* The input that factor k meets at step t. */
static inline const REAL *seen(const Convolution *s, int64_t t, int64_t k, int64_t row) {
    int64_t at = t + k - s->K + 1;
    return at < 0 ? s->before + (row * (s->K - 1) + at + s->K - 1) * s->M : s->X + at * s->X_time + row * s->X_row;
}

static inline REAL *seen_gradient(const Convolution *s, int64_t t, int64_t k, int64_t row) {
    int64_t at = t + k - s->K + 1;
    return at < 0 ? s->dbefore + (row * (s->K - 1) + at + s->K - 1) * s->M : s->dX + at * s->dX_time + row * s->dX_row;
}

#define TAPS 4 /* at a time */
#define FIXED static inline __attribute__((always_inline))
#define WHOLE(M) ((M) / LANES * LANES)

typedef struct {
    const REAL *x[TAPS], *kernel; /* inputs of some taps, and the factors of the first of them */
    REAL *dx[TAPS], *dkernel;
    int64_t M;
} Taps;

/* y = or += the inputs times their factors; at last y and its derivatives become those behind SiLU. */
FIXED void add_taps(const int taps, Taps s, int add, int last, REAL *restrict y, REAL *restrict slope) {
    const REAL *x[TAPS]; /* in registers */
    UNROLL for (int k = 0; k < taps; k++) x[k] = s.x[k];
    for (int64_t j = 0; j < WHOLE(s.M); j += LANES) {
        vector z = {0};
        if (add) z = VECTOR(y + j);
        UNROLL for (int k = 0; k < taps; k++) z += VECTOR(x[k] + j) * VECTOR(s.kernel + k * s.M + j);
        if (last) {
            vector open = sigmoids(z);
            z *= open;
            if (slope) VECTOR(slope + j) = open + z * (1 - open);
        }
        VECTOR(y + j) = z;
    }
    for (int64_t j = WHOLE(s.M); j < s.M; j++) {
        REAL z = add ? y[j] : 0;
        for (int k = 0; k < taps; k++) z += s.x[k][j] * s.kernel[k * s.M + j];
        if (last) {
            REAL open = sigmoid(z);
            z *= open;
            if (slope) slope[j] = open + z * (1 - open);
        }
        y[j] = z;
    }
}

FIXED void add_taps_back(const int taps, Taps s, const REAL *restrict dy, const REAL *restrict slope) {
    const REAL *x[TAPS];
    REAL *dx[TAPS];
    UNROLL for (int k = 0; k < taps; k++) x[k] = s.x[k], dx[k] = s.dx[k];
    for (int64_t j = 0; j < WHOLE(s.M); j += LANES) {
        vector given = VECTOR(dy + j) * VECTOR(slope + j);
        UNROLL for (int k = 0; k < taps; k++) {
            VECTOR(dx[k] + j) += VECTOR(s.kernel + k * s.M + j) * given;
            VECTOR(s.dkernel + k * s.M + j) += VECTOR(x[k] + j) * given;
        }
    }
    for (int64_t j = WHOLE(s.M); j < s.M; j++)
        for (int k = 0; k < taps; k++) {
            s.dx[k][j] += s.kernel[k * s.M + j] * dy[j] * slope[j];
            s.dkernel[k * s.M + j] += s.x[k][j] * dy[j] * slope[j];
        }
}

#define EACH_COUNT(call)                                                                                               \
    if (count == 4) call(4);                                                                                           \
    else if (count == 3) call(3);                                                                                      \
    else if (count == 2) call(2);                                                                                      \
    else call(1)

/* y_t, and its derivatives by SiLU's argument where there is room for them. */
ROW convolve(const Convolution *s, int64_t t, int64_t row, REAL *y, REAL *slope) {
    Taps taps = {.M = s->M};
    if (s->shift) memcpy(y, s->shift, s->M * sizeof(REAL));
    if (!s->K) {
        memcpy(y, s->X + t * s->X_time + row * s->X_row, s->M * sizeof(REAL));
        add_taps(0, taps, 1, 1, y, slope);
    }
    for (int64_t k = 0; k < s->K; k += TAPS) {
        int64_t count = s->K - k < TAPS ? s->K - k : TAPS;
        for (int64_t i = 0; i < count; i++) taps.x[i] = seen(s, t, k + i, row);
        taps.kernel = s->kernel + k * s->M;
#define CALL(taps_now) add_taps(taps_now, taps, k > 0 || s->shift, k + TAPS >= s->K, y, slope)
        EACH_COUNT(CALL);
#undef CALL
    }
}

/* From the gradient of y_t and `slope` to all others. Steps are done from the last on. */
ROW convolve_back(const Convolution *s, int64_t t, int64_t row, const REAL *dy, const REAL *slope) {
    int64_t K = s->K, M = s->M;
    Taps taps = {.M = M};
    for (int64_t j = 0; s->dshift && j < M; j++) s->dshift[row * M + j] += dy[j] * slope[j];
    if (!K)
        for (int64_t j = 0; j < M; j++) s->dX[t * s->dX_time + row * s->dX_row + j] = dy[j] * slope[j];
    for (int64_t k = 0; k < K; k += TAPS) {
        int64_t count = K - k < TAPS ? K - k : TAPS;
        for (int64_t i = 0; i < count; i++) {
            int64_t at = t + k + i - K + 1; /* met for the first time by its last factor, or at the last step */
            taps.x[i] = seen(s, t, k + i, row), taps.dx[i] = seen_gradient(s, t, k + i, row);
            if (at >= 0 && (k + i == 0 || t == s->T - 1)) memset(taps.dx[i], 0, M * sizeof(REAL));
        }
        taps.kernel = s->kernel + k * M, taps.dkernel = s->dkernel + (row * K + k) * M;
#define CALL(taps_now) add_taps_back(taps_now, taps, dy, slope)
        EACH_COUNT(CALL);
#undef CALL
    }
}

/* The same for the steps t ... t + count - 1, whose rows of dy and slope are `apart` from each other, channel by channel:
 * sums stay in registers. Those of the K - 1 steps before t are written as far as they are known. */
FIXED void columns_back(const int K, const Convolution *s, int64_t t, int64_t count, int64_t row, const REAL *dy,
                        const REAL *slope, int64_t apart) {
    int64_t M = s->M, last = t + count - 1;
    for (int64_t j = 0; j < M; j += LANES) {
        vector kernel[TAPS], dkernel[TAPS], x[TAPS], dx[TAPS]; /* x and dx of a step, the one before it, ... */
        UNROLL for (int i = 0; i < K; i++) {
            int64_t place = K - 1 - i;
            kernel[i] = VECTOR(s->kernel + place * M + j), dkernel[i] = VECTOR(s->dkernel + (row * K + place) * M + j);
            x[i] = VECTOR(seen(s, last - i, K - 1, row) + j), dx[i] = (vector){0};
            if (i < K - 1 && (last < s->T - 1 || last < i)) dx[i] = VECTOR(seen_gradient(s, last - i, K - 1, row) + j);
        }
        for (int64_t at = last; at >= t; at--) {
            vector dz = VECTOR(dy + (at - t) * apart + j) * VECTOR(slope + (at - t) * apart + j);
            UNROLL for (int i = 0; i < K; i++) dx[i] += kernel[i] * dz, dkernel[i] += x[i] * dz;
            VECTOR(s->dX + at * s->dX_time + row * s->dX_row + j) = dx[0];
            UNROLL for (int i = 0; i < K - 1; i++) dx[i] = dx[i + 1], x[i] = x[i + 1];
            dx[K - 1] = (vector){0};
            if (at > t) x[K - 1] = VECTOR(seen(s, at - K, K - 1, row) + j);
        }
        UNROLL for (int i = 0; i < K; i++) {
            VECTOR(s->dkernel + (row * K + K - 1 - i) * M + j) = dkernel[i];
            if (i < K - 1) VECTOR(seen_gradient(s, t - 1 - i, K - 1, row) + j) = dx[i];
        }
    }
}

static inline void convolve_block_back(const Convolution *s, int64_t t, int64_t count, int64_t row, const REAL *dy,
                                       const REAL *slope, int64_t apart) {
    if (s->K == TAPS && s->M % LANES == 0) columns_back(TAPS, s, t, count, row, dy, slope, apart);
    else
        for (int64_t i = count - 1; i >= 0; i--) convolve_back(s, t + i, row, dy + i * apart, slope + i * apart);
}
