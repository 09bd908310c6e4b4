/* h = z f, f = max(|z| + b, 0) / (|z| + e), and its reverse from h alone: cells/complex_elman.py, where b is s + b. */

#pragma once

#include <math.h>

#include "scan.h"

static inline REAL root(REAL x) { return sizeof(REAL) == 8 ? (REAL)sqrt((double)x) : (REAL)sqrtf((float)x); }

/* |x + iy|, scaled by a power of two where the squares would leave the range of REAL. */
static inline REAL modulus(REAL x, REAL y) {
    const REAL large = (REAL)(sizeof(REAL) == 8 ? 0x1p500 : 0x1p60), small = 1 / large;
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

/* dz = f G + f'(r) r u <G, u> and db = r / (r + e) <G, u>, with u = h / |h|, and r = |z| from |h| (r + e) = r (r + b). */
static inline void demodulate(REAL *Gx, REAL *Gy, REAL x, REAL y, REAL b, REAL e, REAL *db) {
    REAL size = modulus(x, y), d = size - b, q = modulus(d, 2 * root(e * size));
    REAL r = d < 0 ? 2 * e * size / (q - d) : (d + q) / 2;
    REAL over = size == 0 ? 0 : 1 / size, ux = x * over, uy = y * over, share = 1 / (r + e);
    REAL f = b > 0 ? (r + b) * share : size == 0 ? 0 : size / r;
    REAL along = *Gx * ux + *Gy * uy, turn = (e - b) * r * share * share * along;
    *Gx = f * *Gx + turn * ux;
    *Gy = f * *Gy + turn * uy;
    *db += r * share * along;
}
