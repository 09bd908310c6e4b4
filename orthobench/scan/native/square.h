/* A square of as many vectors as one has numbers, transposed. */

#pragma once

#include "products.h"

typedef int32_t short_lanes __attribute__((vector_size(BYTES)));
typedef int64_t long_lanes __attribute__((vector_size(BYTES)));
typedef __typeof__(__builtin_choose_expr(sizeof(REAL) == 8, (long_lanes){0}, (short_lanes){0})) lane_index;

#if !defined(__clang__)
#define UNROLL_LANES _Pragma("GCC unroll 16")

/* 0, 1, 2, ...: a constant, as the compiler sees. */
static inline __attribute__((always_inline)) lane_index lane_numbers(void) {
    lane_index lane = {0};
    UNROLL_LANES for (int i = 0; i < LANES; i++) lane[i] = i;
    return lane;
}

/* LANES vectors as the rows of a square, transposed. */
static inline __attribute__((always_inline)) void transpose(vector *v) {
    const lane_index lane = lane_numbers();
    _Pragma("GCC unroll 8") for (int h = (int)LANES / 2; h; h /= 2) {
        lane_index low = lane + (((lane & h) != 0) & ((int)LANES - h)), high = low + h;
        UNROLL_LANES for (int i = 0; i < LANES; i++) {
            if (i & h) continue;
            vector a = v[i], b = v[i + h];
            v[i] = __builtin_shuffle(a, b, low);
            v[i + h] = __builtin_shuffle(a, b, high);
        }
    }
}

/* The sums over lanes of LANES vectors, which are lost: each step adds halves of two of them. */
static inline __attribute__((always_inline)) vector sum_each(vector *v) {
    const lane_index lane = lane_numbers();
    vector half[LANES];
    UNROLL_LANES for (int i = 0; i < LANES; i++) half[i] = v[i];
    _Pragma("GCC unroll 8") for (int h = (int)LANES / 2; h; h /= 2) {
        lane_index low = lane + (((lane & h) != 0) & ((int)LANES - h)), high = low + h;
        UNROLL_LANES for (int i = 0; i < h; i++)
            half[i] = __builtin_shuffle(half[i], half[i + h], low) + __builtin_shuffle(half[i], half[i + h], high);
    }
    return half[0];
}
#else
#define UNROLL_LANES UNROLL

static inline void transpose(vector *v) {
    for (int64_t i = 0; i < LANES; i++)
        for (int64_t j = 0; j < i; j++) {
            REAL x = v[i][j];
            v[i][j] = v[j][i];
            v[j][i] = x;
        }
}

static inline vector sum_each(vector *v) {
    vector sums = {0};
    transpose(v);
    for (int64_t i = 0; i < LANES; i++) sums += v[i];
    return sums;
}
#endif
