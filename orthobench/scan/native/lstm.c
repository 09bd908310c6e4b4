/* Long short-term memory: the equations are in lstm.py. */

#include "scan.h"

/* Gates i, f, g, o of a row in place, the new cell and the new hidden state. */
ROW remember(REAL *restrict z, const REAL *restrict before, REAL *restrict c, REAL *restrict h, int64_t n) {
    REAL *restrict f = z + n, *restrict g = z + 2 * n, *restrict o = z + 3 * n;
    EACH {
        z[j] = sigmoid(z[j]);
        f[j] = sigmoid(f[j]);
        g[j] = hyperbolic_tangent(g[j]);
        c[j] = f[j] * before[j] + z[j] * g[j];
    }
    EACH {
        o[j] = sigmoid(o[j]);
        h[j] = o[j] * hyperbolic_tangent(c[j]);
    }
}

void lstm_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, width = 4 * N;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *h = t ? AT(s->H, t - 1, first, N) : s->h0 + first * N;
        REAL *z = AT(s->P, t, first, width);
        product((Product){N, h, N, z, width, z, width, 0}, last - first, width, s->weights[0]);
        for (int64_t i = first; i < last; i++) {
            const REAL *before = t ? AT(s->K, t - 1, i, N) : s->X + i * N;
            remember(AT(s->P, t, i, width), before, AT(s->K, t, i, N), AT(s->H, t, i, N), N);
        }
    }
}

/* The gates' gradients of a row from dh and dc; dc becomes that of the cell before. */
ROW forget(const REAL *restrict dh, REAL *restrict dc, const REAL *restrict gates, const REAL *restrict before,
           const REAL *restrict c, REAL *restrict dz, int64_t n) {
    const REAL *restrict i = gates, *restrict f = gates + n, *restrict g = gates + 2 * n, *restrict o = gates + 3 * n;
    REAL *restrict di = dz, *restrict df = dz + n, *restrict dg = dz + 2 * n, *restrict d_o = dz + 3 * n;
    EACH {
        REAL seen = hyperbolic_tangent(c[j]), d = dc[j] + dh[j] * o[j] * (1 - seen * seen);
        d_o[j] = dh[j] * seen * (o[j] * (1 - o[j]));
        di[j] = d * g[j] * (i[j] * (1 - i[j]));
        df[j] = d * before[j] * (f[j] * (1 - f[j]));
        dg[j] = d * i[j] * (1 - g[j] * g[j]);
        dc[j] = d * f[j];
    }
}

void lstm_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, width = 4 * N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        for (int64_t i = first; i < last; i++) {
            const REAL *before = t ? AT(s->K, t - 1, i, N) : s->X + i * N;
            forget(s->G + i * N, s->S + i * N, AT(s->P, t, i, width), before, AT(s->K, t, i, N), AT(s->dZ, t, i, width),
                   N);
        }
        REAL *G = s->G + first * N;
        product((Product){width, AT(s->dZ, t, first, width), width, OUTSIDE(t - 1, first), s->dH_row, G, N, 0},
                last - first, N, s->weights[0]);
    }
}
