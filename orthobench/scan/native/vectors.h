/* Functions of scan.h for whole vectors, which a compiler does not make of them by itself. */

#pragma once

#include "rows.h"
#include "square.h"

typedef uint32_t short_bits __attribute__((vector_size(BYTES)));
typedef uint64_t long_bits __attribute__((vector_size(BYTES)));
typedef __typeof__(__builtin_choose_expr(sizeof(REAL) == 8, (long_bits){0}, (short_bits){0})) lane_bits;

#define CHOSEN(which, x, y) ((vector)(((lane_index)(x) & (which)) | ((lane_index)(y) & ~(which))))

/* -|x| */
static inline vector negatives(vector x) { return (vector)((lane_index)x | (lane_index) - (vector){0}); }

/* exp(x) for x <= 0, at least exp(-87) or exp(-700): `split_exponential` has the steps. */
static inline vector exponentials(vector x) {
    int is_double = sizeof(REAL) == 8;
    const vector low = (vector){0} - (REAL)(is_double ? 700 : 87);
    const REAL round = is_double ? (REAL)0x1.8p52 : (REAL)0x1.8p23f;
    vector y = CHOSEN((lane_index)(x < low), low, x), shifted = y * (REAL)1.4426950408889634 + round, k = shifted - round;
    vector r = is_double ? y - k * (REAL)0x1.62e42fefa3800p-1 - k * (REAL)0x1.ef35793c76730p-45
                         : y - k * (REAL)0x1.62e4p-1f - k * (REAL)0x1.7f7d1cp-20f;
    vector s = {0}, square = r * r;
    double inverse = is_double ? 1.0 / 87178291200 : 1.0 / 40320; /* 1 / 14! or 1 / 8! */
    UNROLL for (int n = is_double ? 14 : 8; n > 0; n -= 2) { /* two terms at a time, which do not wait for each other */
        s = s * square + ((REAL)inverse * r + (REAL)(inverse * n));
        inverse *= n * (n - 1);
    }
    vector power = (vector)(((lane_bits)shifted << (is_double ? 52 : 23)) + (lane_bits)((vector){0} + 1));
    return power * (s * r) + power;
}

/* log(sigmoid(x)) = min(x, 0) - log(1 + e), whose second part is 2 artanh(e / (2 + e)), a series. */
static inline vector log_sigmoids(vector x) {
    vector e = exponentials(negatives(x)), zero = {0}, s = e / (2 + e), square = s * s, sum = {0};
    UNROLL for (int n = sizeof(REAL) == 8 ? 33 : 15; n > 0; n -= 2) sum = sum * square + (REAL)(2.0 / n);
    return CHOSEN((lane_index)(x < zero), x, zero) - s * sum;
}

static inline vector sigmoids(vector x) {
    vector e = exponentials(negatives(x)), one = (vector){0} + 1;
    return CHOSEN((lane_index)(x < (vector){0}), e, one) / (1 + e);
}
