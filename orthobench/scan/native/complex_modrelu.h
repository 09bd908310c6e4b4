/* h = z f, f = max(|z| + b, 0) / (|z| + e), and its reverse from h alone: cells/complex_elman.py, where b is s + b. */

#pragma once

#include <math.h>

#include "scan.h"

/* a b + c d, with the rounding that a compiler would choose otherwise here and there. */
static inline REAL two_products(REAL a, REAL b, REAL c, REAL d) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return sizeof(REAL) == 8 ? (REAL)__builtin_fma((double)a, (double)b, (double)(c * d))
                             : (REAL)__builtin_fmaf((float)a, (float)b, (float)(c * d));
#else
    return a * b + c * d;
#endif
}

static inline REAL root(REAL x) { return sizeof(REAL) == 8 ? (REAL)sqrt((double)x) : (REAL)sqrtf((float)x); }

#define TINY ((REAL)(sizeof(REAL) == 8 ? 0x1p-900 : 0x1p-100))

typedef __typeof__(__builtin_choose_expr(sizeof(REAL) == 8, (int64_t)0, (int32_t)0)) Bits;

static inline Bits bits_of(REAL x) {
    Bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline REAL from_bits(Bits bits) {
    REAL x;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* x + iy divided by a power of two near its modulus, so that squares stay in the range of REAL; the power. */
static inline REAL scaled_down(REAL *x, REAL *y) {
    const Bits exponent = bits_of(INFINITY), least = bits_of(TINY), most = bits_of(1 / TINY);
    Bits power = bits_of(*x) & exponent, other = bits_of(*y) & exponent;
    power = power < other ? other : power, power = power < least ? least : power, power = power > most ? most : power;
    REAL inverse = from_bits(2 * bits_of(1) - power);
    *x *= inverse, *y *= inverse;
    return from_bits(power);
}

static inline void modulate(REAL *x, REAL *y, REAL b, REAL e) {
    REAL zx = *x, zy = *y, power = scaled_down(&zx, &zy), r = root(two_products(zx, zx, zy, zy)) * power;
    REAL f = (r + b < 0 ? 0 : r + b) / (r + e);
    *x *= f;
    *y *= f;
}

/* dz = f G + f'(r) r u <G, u> and db = r / (r + e) <G, u>, with u = h / |h|, and r = |z| from |h| (r + e) = r (r + b).
 * Of two equal expressions of r, and of f = |h| / r, the one is taken that loses no digits. */
static inline __attribute__((always_inline)) void demodulate(REAL *Gx, REAL *Gy, REAL x, REAL y, REAL b, REAL e,
                                                             REAL *db) {
    REAL power = scaled_down(&x, &y), length = root(two_products(x, x, y, y)), over = 1 / (length < TINY ? TINY : length);
    REAL ux = x * over, uy = y * over, size = length * power, d = size - b, distance = magnitude(d);
    REAL q = distance > 1 / TINY ? distance : root(two_products(d, d, 4 * e, size));
    REAL sum = distance + q < TINY ? TINY : distance + q, share = 2 * size / sum;
    REAL r = d < 0 ? e * share : sum / 2, f = d < 0 ? sum / (2 * e) : share;
    REAL part = 1 / (r + e), along = two_products(*Gx, ux, *Gy, uy), turn = (e - b) * r * part * part * along;
    *Gx = two_products(f, *Gx, turn, ux);
    *Gy = two_products(f, *Gy, turn, uy);
    *db += r * part * along;
}
