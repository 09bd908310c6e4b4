/* h_t = a_t h_(t-1) + b_t, unit by unit: the equations are in diagonal.py.
 *
 * A row is the M real numbers of N units, or of N complex ones with both parts side by side. A call does
 * the rows first..last-1 of the batch for the whole sequence.
 */

#include "scan.h"

typedef struct {
    int64_t T, B, M, complex;
    int64_t a_time, a_row;  /* strides of a: zero where it is the same for every step or row */
    int64_t b_time, b_row;
    int64_t dH_time, dH_row;
    REAL *a, *b, *h0, *H, *dH; /* dH is the gradient of every state from outside, or null */
    REAL *G;                   /* (B, M): dL/dh_T at the start, dL/dh_0 at the end */
    REAL *da, *db;             /* (T, B, M); da is (B, M), zero at the start, the sum over t, where `summed` */
    int64_t summed;
} Diagonal;

ROW step(const REAL *restrict a, const REAL *restrict h, const REAL *restrict b, REAL *restrict out, int64_t n) {
    EACH out[j] = a[j] * h[j] + b[j];
}

ROW complex_step(const REAL *restrict a, const REAL *restrict h, const REAL *restrict b, REAL *restrict out, int64_t n) {
    EACH {
        out[2 * j] = a[2 * j] * h[2 * j] - a[2 * j + 1] * h[2 * j + 1] + b[2 * j];
        out[2 * j + 1] = a[2 * j] * h[2 * j + 1] + a[2 * j + 1] * h[2 * j] + b[2 * j + 1];
    }
}

void diagonal_forward(const Diagonal *s, int64_t first, int64_t last) {
    int64_t B = s->B, M = s->M;
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t i = first; i < last; i++) {
            const REAL *h = t ? AT(s->H, t - 1, i, M) : s->h0 + i * M, *b = s->b + t * s->b_time + i * s->b_row;
            const REAL *a = s->a + t * s->a_time + i * s->a_row;
            if (s->complex) complex_step(a, h, b, AT(s->H, t, i, M), M / 2);
            else step(a, h, b, AT(s->H, t, i, M), M);
        }
}

/* G is db, and da = conj(h) G, or this is added to it. Then G becomes conj(a) G + outside. */
ROW step_back(const REAL *restrict a, const REAL *restrict h, REAL *restrict G, const REAL *restrict outside,
              REAL *restrict da, REAL *restrict db, int64_t summed, int64_t n) {
    if (summed) EACH da[j] += h[j] * G[j];
    else EACH da[j] = h[j] * G[j];
    EACH {
        db[j] = G[j];
        G[j] = a[j] * G[j] + (outside ? outside[j] : 0);
    }
}

ROW complex_step_back(const REAL *restrict a, const REAL *restrict h, REAL *restrict G, const REAL *restrict outside,
                      REAL *restrict da, REAL *restrict db, int64_t summed, int64_t n) {
    EACH {
        REAL x = G[2 * j], y = G[2 * j + 1], re = h[2 * j] * x + h[2 * j + 1] * y, im = h[2 * j] * y - h[2 * j + 1] * x;
        da[2 * j] = summed ? da[2 * j] + re : re;
        da[2 * j + 1] = summed ? da[2 * j + 1] + im : im;
    }
    EACH {
        REAL x = G[2 * j], y = G[2 * j + 1];
        db[2 * j] = x;
        db[2 * j + 1] = y;
        G[2 * j] = a[2 * j] * x + a[2 * j + 1] * y + (outside ? outside[2 * j] : 0);
        G[2 * j + 1] = a[2 * j] * y - a[2 * j + 1] * x + (outside ? outside[2 * j + 1] : 0);
    }
}

void diagonal_backward(const Diagonal *s, int64_t first, int64_t last) {
    int64_t B = s->B, M = s->M;
    for (int64_t t = s->T - 1; t >= 0; t--)
        for (int64_t i = first; i < last; i++) {
            const REAL *a = s->a + t * s->a_time + i * s->a_row, *h = t ? AT(s->H, t - 1, i, M) : s->h0 + i * M;
            REAL *da = AT(s->da, s->summed ? 0 : t, i, M), *db = AT(s->db, t, i, M), *G = s->G + i * M;
            if (s->complex) complex_step_back(a, h, G, OUTSIDE(t - 1, i), da, db, s->summed, M / 2);
            else step_back(a, h, G, OUTSIDE(t - 1, i), da, db, s->summed, M);
        }
}
