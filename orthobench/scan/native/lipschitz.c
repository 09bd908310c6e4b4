/* An Euler step of a linear and a nonlinear flow: the equations are in lipschitz.py. */

#include "scan.h"

/* z -> f in place, and h + eps f; h is there already, or `before`. */
ROW flow(REAL *restrict f, const REAL *before, REAL *h, REAL eps, int64_t n) {
    EACH {
        f[j] = hyperbolic_tangent(f[j]);
        h[j] = before[j] + eps * f[j];
    }
}

void lipschitz_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *before = t ? AT(s->H, t - 1, first, N) : s->h0 + first * N;
        REAL *f = AT(s->P, t, first, N), *h = AT(s->H, t, first, N);
        product((Product){N, before, N, f, N, f, N, 0}, last - first, N, s->weights[0]);
        if (s->weights[1]) {
            product((Product){N, before, N, 0, 0, h, N, 0}, last - first, N, s->weights[1]);
            before = h;
        }
        flow(f, before, h, (REAL)s->slope, (last - first) * N);
    }
}

ROW flow_back(const REAL *restrict G, const REAL *restrict f, REAL *restrict dz, REAL eps, int64_t n) {
    EACH dz[j] = eps * G[j] * (1 - f[j] * f[j]);
}

/* X has G at every step; that of h_0 goes to s->G. */
void lipschitz_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, rows = last - first;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const REAL *G = AT(s->X, t, first, N), *outside = OUTSIDE(t - 1, first);
        REAL *dz = AT(s->dZ, t, first, N), *back = t ? AT(s->X, t - 1, first, N) : s->G + first * N;
        flow_back(G, AT(s->P, t, first, N), dz, (REAL)s->slope, rows * N);
        product((Product){N, dz, N, outside, s->dH_row, back, N, 0}, rows, N, s->weights[0]);
        if (s->weights[1]) product((Product){N, G, N, back, N, back, N, 0}, rows, N, s->weights[1]);
        else add_to(back, G, rows * N);
    }
}
