/* The plain cell, and the cell behind a scalar gate: the equations are in fused/elman.py. */

#include "plane_rotations.h"

ROW add_scaled(const REAL *restrict a, REAL beta, const REAL *restrict h, REAL *restrict out, int64_t n) {
    EACH out[j] = a[j] + beta * h[j];
}

/* With scratch, W is rotations, and there are at most LANES rows. */
static inline void forward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    int64_t B = s->B, N = s->N;
    const REAL *states = s->H ? s->H : s->P;
    Rotations w = scratch ? rotations_of(s) : (Rotations){0};
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *before = t ? AT(states, t - 1, first, N) : s->h0 + first * N;
        REAL *block = AT(s->P, t, first, N);
        for (int64_t i = first; scratch && t + 1 < s->T && i < last; i++) foresee(AT(s->P, t + 1, i, N), N);
        if (scratch) add_rotated(w, before, block, last - first, scratch);
        else product((Product){N, before, N, block, N, block, N, 0}, last - first, N, s->weights[0]);
        for (int64_t i = first; i < last; i++) activate(s, AT(s->P, t, i, N), AT(s->signs, t, i, N), N);
        if (s->beta) add_scaled(block, *s->beta, before, AT(s->H, t, first, N), (last - first) * N);
    }
}

/* dbeta += G h, and G becomes beta G + outside. */
ROW gate_back(REAL *restrict G, REAL beta, const REAL *restrict h, const REAL *restrict outside, REAL *restrict dbeta,
              int64_t n) {
    EACH dbeta[j] += G[j] * h[j];
    if (outside) EACH G[j] = beta * G[j] + outside[j];
    else EACH G[j] *= beta;
}

/* With scratch, W is rotations, whose gradients are added to `sums`, and there are at most LANES rows. */
static inline void backward(const Scan *s, int64_t first, int64_t last, vector *sums, vector *scratch) {
    int64_t B = s->B, N = s->N;
    const REAL *states = s->H ? s->H : s->P;
    Rotations w = scratch ? rotations_of(s) : (Rotations){0};
    for (int64_t t = s->T - 1; t >= 0; t--) {
        const REAL *before = t ? AT(states, t - 1, first, N) : s->h0 + first * N;
        for (int64_t i = first; i < last; i++) {
            REAL *G = s->G + i * N, *db = AT(s->db, 0, i, N);
            derive(s, G, AT(s->P, t, i, N), AT(s->dZ, t, i, N), db, AT(s->signs, t, i, N), N);
            if (s->beta)
                gate_back(G, *s->beta, before + (i - first) * N, OUTSIDE(t - 1, i), AT(s->dbeta, 0, i, N), N);
        }
        REAL *G = s->G + first * N;
        Product p = {N, AT(s->dZ, t, first, N), N, OUTSIDE(t - 1, first), s->dH_row, G, N, 0};
        if (s->beta) p.start = G, p.start_row = N;
        for (int64_t i = first; scratch && t > 1 && i < last; i++) {
            foresee(AT(states, t - 2, i, N), N);
            foresee(OUTSIDE(t - 2, i), N);
        }
        if (scratch) rotate_back(w, before, p.A, p.start, p.start_row, G, last - first, sums, scratch);
        else product(p, last - first, N, s->weights[0]);
    }
}

void elman_forward(const Scan *s, int64_t first, int64_t last) { forward(s, first, last, 0); }

void elman_backward(const Scan *s, int64_t first, int64_t last) { backward(s, first, last, 0, 0); }

void rotated_elman_forward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    for (int64_t row = first; row < last; row += LANES)
        forward(s, row, row + LANES < last ? row + LANES : last, scratch);
}

void rotated_elman_backward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    int64_t K = s->parameters;
    vector *sums = scratch;
    for (int64_t row = first; row < last; row += LANES) {
        int64_t end = row + LANES < last ? row + LANES : last;
        memset(sums, 0, K * sizeof *sums);
        backward(s, row, end, sums, scratch + K);
        for (int64_t k = 1; k < K; k++) sums[k] *= s->factors[0];
        write_sums(sums, s->dfactors + row * K, end - row, K);
    }
}
