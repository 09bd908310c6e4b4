/* h = z f, f = max(|z| + b, 0) / (|z| + e), and its reverse from h alone: cells/complex_elman.py, where b is s + b. */

#pragma once

#include <math.h>

#include "scan.h"

static inline REAL root(REAL x) { return sizeof(REAL) == 8 ? (REAL)sqrt((double)x) : (REAL)sqrtf((float)x); }

#define LARGE ((REAL)(sizeof(REAL) == 8 ? 0x1p500 : 0x1p60)) /* whose square is far from the largest number */

/* |x + iy|, scaled by a power of two where the squares would leave the range of REAL. */
static inline REAL modulus(REAL x, REAL y) {
    const REAL large = LARGE, small = 1 / large;
    REAL size = magnitude(x) > magnitude(y) ? magnitude(x) : magnitude(y);
    REAL down = small * (REAL)(sizeof(REAL) == 8 ? 0x1p-100 : 0x1p-10), up = 1 / down;
    REAL scale = size > large ? down : size < small ? up : 1, back = size > large ? up : size < small ? down : 1;
    x *= scale, y *= scale;
    return root(x * x + y * y) * back;
}

static inline void modulate(REAL *x, REAL *y, REAL b, REAL e) {
    REAL r = modulus(*x, *y), size = r + b;
    REAL f = (size < 0 ? 0 : size) / (r + e);
    *x *= f;
    *y *= f;
}

/* dz = f G + f'(r) r u <G, u> and db = r / (r + e) <G, u>, with u = h / |h|, and r = |z| from |h| (r + e) = r (r + b).
 * `positive` is b > 0; of two equal expressions the one is taken that loses no digits. */
static inline __attribute__((always_inline)) void demodulate(REAL *Gx, REAL *Gy, REAL x, REAL y, REAL b, int positive,
                                                             REAL e, REAL *db) {
    REAL size = modulus(x, y), d = size - b, q = magnitude(d) > LARGE ? magnitude(d) : root(d * d + 4 * e * size);
    REAL r = (d < 0 ? 2 * e * size : d + q) / (d < 0 ? q - d : 2);
    REAL over = size == 0 ? 0 : 1 / size, ux = x * over, uy = y * over, share = 1 / (r + e);
    REAL f = positive ? (r + b) * share : size == 0 ? 0 : size / r;
    REAL along = *Gx * ux + *Gy * uy, turn = (e - b) * r * share * share * along;
    *Gx = f * *Gx + turn * ux;
    *Gy = f * *Gy + turn * uy;
    *db += r * share * along;
}
