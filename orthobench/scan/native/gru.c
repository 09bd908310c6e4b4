/* The gated recurrent unit: the equations are in fused/gru.py. */

#include "scan.h"

ROW sigmoids(REAL *z, int64_t n) { EACH z[j] = sigmoid(z[j]); }
ROW multiply(const REAL *restrict x, const REAL *restrict y, REAL *restrict out, int64_t n) { EACH out[j] = x[j] * y[j]; }
ROW add_product(const REAL *restrict x, const REAL *restrict y, REAL *restrict out, int64_t n) { EACH out[j] += x[j] * y[j]; }
ROW blend(const REAL *restrict u, const REAL *restrict h, const REAL *restrict c, REAL *restrict out, int64_t n) {
    EACH out[j] = u[j] * h[j] + (1 - u[j]) * c[j];
}

/* Gates r, u, c of a row, or u, c without a reset: weights[0] makes the first two from h, weights[1] the candidate. */
void gru_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, gates = s->reset == NONE ? 2 : 3, width = gates * N, rows = last - first;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *before = t ? AT(s->H, t - 1, first, N) : s->h0 + first * N;
        REAL *z = AT(s->P, t, first, width);
        product((Product){N, before, N, z, width, z, width, 0}, rows, 2 * N, s->weights[0]);
        if (s->reset == AFTER)
            product((Product){N, before, N, s->late, 0, AT(s->K, t, first, N), N, 0}, rows, N, s->weights[1]);
        for (int64_t i = first; i < last; i++) {
            REAL *r = AT(s->P, t, i, width), *c = r + width - N;
            sigmoids(r, width - N);
            if (s->reset == AFTER) add_product(r, AT(s->K, t, i, N), c, N);
            if (s->reset == BEFORE) multiply(r, before + (i - first) * N, s->X + i * N, N);
        }
        REAL *c = z + width - N;
        if (s->reset == BEFORE)
            product((Product){N, s->X + first * N, N, c, width, c, width, 0}, rows, N, s->weights[1]);
        for (int64_t i = first; i < last; i++, c += width) {
            activate(s, c, AT(s->signs, t, i, N), N);
            blend(c - N, before + (i - first) * N, c, AT(s->H, t, i, N), N);
        }
    }
}

/* da = G (1 - u), dz_u = G (h - c) u (1 - u), and G becomes u G. */
ROW update_back(REAL *restrict G, const REAL *restrict u, const REAL *restrict c, const REAL *restrict h,
                REAL *restrict da, REAL *restrict dz_u, int64_t n) {
    EACH {
        da[j] = G[j] * (1 - u[j]);
        dz_u[j] = G[j] * (h[j] - c[j]) * (u[j] * (1 - u[j]));
        G[j] *= u[j];
    }
}

/* Reset after: dk = r dz_c, dz_r = k dz_c r (1 - r). */
ROW reset_after_back(const REAL *restrict r, const REAL *restrict k, const REAL *restrict dz_c, REAL *restrict dk,
                     REAL *restrict dz_r, int64_t n) {
    EACH {
        dk[j] = r[j] * dz_c[j];
        dz_r[j] = k[j] * dz_c[j] * (r[j] * (1 - r[j]));
    }
}

/* Reset before, with S = W_c^T dz_c: dz_r = S h r (1 - r), G += r S, and x = r h for the weights' gradient. */
ROW reset_before_back(const REAL *restrict r, const REAL *restrict h, const REAL *restrict S, REAL *restrict x,
                      REAL *restrict dz_r, REAL *restrict G, int64_t n) {
    EACH {
        x[j] = r[j] * h[j];
        dz_r[j] = S[j] * h[j] * (r[j] * (1 - r[j]));
        G[j] += r[j] * S[j];
    }
}

void gru_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, gates = s->reset == NONE ? 2 : 3, width = gates * N, rows = last - first;
    REAL *G = s->G + first * N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        REAL *dz = AT(s->dZ, t, first, width);
        for (int64_t i = first; i < last; i++) {
            REAL *c = AT(s->P, t, i, width) + width - N, *dz_c = AT(s->dZ, t, i, width) + width - N;
            const REAL *h = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N;
            update_back(s->G + i * N, c - N, c, h, s->S + i * N, dz_c - N, N);
            derive(s, s->S + i * N, c, dz_c, AT(s->db, 0, i, N), AT(s->signs, t, i, N), N);
            if (s->reset == AFTER)
                reset_after_back(c - 2 * N, AT(s->K, t, i, N), dz_c, AT(s->X, t, i, N), dz_c - 2 * N, N);
        }
        if (s->reset == BEFORE) {
            REAL *S = s->S + first * N;
            product((Product){N, dz + 2 * N, width, 0, 0, S, N, 0}, rows, N, s->weights[1]);
            for (int64_t i = first; i < last; i++) {
                const REAL *h = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N;
                reset_before_back(AT(s->P, t, i, width), h, s->S + i * N, AT(s->X, t, i, N), AT(s->dZ, t, i, width),
                                  s->G + i * N, N);
            }
        }
        if (t && s->dH)
            for (int64_t i = first; i < last; i++) add_to(s->G + i * N, OUTSIDE(t - 1, i), N);
        product((Product){2 * N, dz, width, G, N, G, N, 0}, rows, N, s->weights[0]);
        if (s->reset == AFTER)
            product((Product){N, AT(s->X, t, first, N), N, G, N, G, N, 0}, rows, N, s->weights[1]);
    }
}
