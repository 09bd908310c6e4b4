/* Rows of numbers in scratch memory: as long as whole vectors, with zeros behind the numbers that count. */

#pragma once

#include "scan.h"

#define VECTOR(x) (*(vector *)(x))

static inline int64_t whole(int64_t e) { return (e + LANES - 1) / LANES * LANES; }

static inline REAL summed(vector numbers) {
    REAL sum[LANES];
    VECTOR(sum) = numbers;
    UNROLL for (int half = LANES / 2; half; half /= 2)
        UNROLL for (int m = 0; m < half; m++) sum[m] += sum[m + half];
    return sum[0];
}

static inline REAL square_root(REAL x) {
    return sizeof(REAL) == 8 ? (REAL)__builtin_sqrt((double)x) : (REAL)__builtin_sqrtf((float)x);
}

ROW widened(const REAL *x, int64_t rows, int64_t e, int64_t W, REAL *out) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < e; j++) out[i * W + j] = x[i * e + j];
        for (int64_t j = e; j < W; j++) out[i * W + j] = 0;
    }
}

ROW narrowed(const REAL *x, int64_t rows, int64_t e, int64_t W, REAL *out) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < e; j++) out[i * e + j] = x[i * W + j];
}
