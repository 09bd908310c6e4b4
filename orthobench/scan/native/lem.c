/* Long expressive memory: the equations are in fused/lem.py. */

#include "scan.h"

/* Time steps a and b and the candidate c of a row in place, and the new z. */
ROW long_memory(REAL *restrict a, REAL dt, const REAL *restrict before, REAL *restrict z, int64_t n) {
    REAL *restrict b = a + n, *restrict c = a + 2 * n;
    EACH {
        a[j] = dt * sigmoid(a[j]);
        b[j] = dt * sigmoid(b[j]);
        c[j] = hyperbolic_tangent(c[j]);
        z[j] = before[j] + b[j] * (c[j] - before[j]);
    }
}

/* The candidate d of a row in place, and the new y. */
ROW expressed(REAL *restrict d, const REAL *restrict a, const REAL *restrict before, REAL *restrict y, int64_t n) {
    EACH {
        d[j] = hyperbolic_tangent(d[j]);
        y[j] = before[j] + a[j] * (d[j] - before[j]);
    }
}

void lem_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, width = 4 * N, rows = last - first;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *y = t ? AT(s->H, t - 1, first, N) : s->h0 + first * N;
        REAL *p = AT(s->P, t, first, width), *d = p + 3 * N;
        product((Product){N, y, N, p, width, p, width, 0}, rows, 3 * N, s->weights[0]);
        for (int64_t i = first; i < last; i++) {
            const REAL *before = t ? AT(s->K, t - 1, i, N) : s->X + i * N;
            long_memory(AT(s->P, t, i, width), (REAL)s->slope, before, AT(s->K, t, i, N), N);
        }
        product((Product){N, AT(s->K, t, first, N), N, d, width, d, width, 0}, rows, N, s->weights[1]);
        for (int64_t i = first; i < last; i++, d += width)
            expressed(d, d - 3 * N, y + (i - first) * N, AT(s->H, t, i, N), N);
    }
}

ROW expressed_back(const REAL *restrict G, const REAL *restrict a, const REAL *restrict d, REAL *restrict dp, int64_t n) {
    EACH dp[j] = G[j] * a[j] * (1 - d[j] * d[j]);
}

/* From G and S, dL/dz_t, the gradients of a, b and c; G and S become what reaches y and z of the step before directly. */
ROW long_memory_back(REAL *restrict G, REAL *restrict S, const REAL *restrict p, REAL dt, const REAL *restrict y,
                     const REAL *restrict z, REAL *restrict dp, int64_t n) {
    const REAL *restrict a = p, *restrict b = p + n, *restrict c = p + 2 * n, *restrict d = p + 3 * n;
    REAL per_dt = 1 / dt;
    EACH {
        REAL from_z = S[j] * b[j], from_y = G[j] * a[j];
        dp[j] = (d[j] - y[j]) * from_y * (1 - a[j] * per_dt);
        dp[n + j] = (c[j] - z[j]) * from_z * (1 - b[j] * per_dt);
        dp[2 * n + j] = from_z * (1 - c[j] * c[j]);
        S[j] -= from_z;
        G[j] -= from_y;
    }
}

void lem_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, width = 4 * N, rows = last - first;
    REAL *G = s->G + first * N, *S = s->S + first * N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        REAL *dp = AT(s->dZ, t, first, width);
        for (int64_t i = first; i < last; i++) {
            const REAL *p = AT(s->P, t, i, width);
            expressed_back(s->G + i * N, p, p + 3 * N, AT(s->dZ, t, i, width) + 3 * N, N);
        }
        product((Product){N, dp + 3 * N, width, S, N, S, N, 0}, rows, N, s->weights[1]);
        for (int64_t i = first; i < last; i++) {
            const REAL *y = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N, *z = t ? AT(s->K, t - 1, i, N) : s->X + i * N;
            const REAL *outside = OUTSIDE(t - 1, i);
            long_memory_back(s->G + i * N, s->S + i * N, AT(s->P, t, i, width), (REAL)s->slope, y, z,
                             AT(s->dZ, t, i, width), N);
            if (outside) add_to(s->G + i * N, outside, N);
        }
        product((Product){3 * N, dp, width, G, N, G, N, 0}, rows, N, s->weights[0]);
    }
}
