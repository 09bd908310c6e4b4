/* W = D G_L ... G_1, layers of rotations of pairs: the equations are in parametrizations/givens.py.
 *
 * s->factors has, for every layer, four rows of N numbers: real and imaginary parts of what multiplies a coordinate, and of
 * what multiplies its partner; then both parts of D. s->plan has L, and the partners (L, N).
 */

#include "lanes.h"

#define LAYER                                                                                                          \
    int64_t N = s->N;                                                                                                  \
    const int64_t *partner = s->plan + 1 + l * N;                                                                      \
    const REAL *cr = s->factors + l * 4 * N, *ci = cr + N, *sr = ci + N, *si = sr + N;

static void turn(const Scan *s, int64_t l, Wave x, Wave y) {
    LAYER
    for (int64_t j = 0; j < N; j++) {
        int64_t k = partner[j];
        vector ar = x.re[j], ai = x.im[j], br = x.re[k], bi = x.im[k];
        if (k == j) y.re[j] = ar, y.im[j] = ai;
        if (k <= j) continue;
        y.re[j] = cr[j] * ar - ci[j] * ai + sr[j] * br - si[j] * bi;
        y.im[j] = cr[j] * ai + ci[j] * ar + sr[j] * bi + si[j] * br;
        y.re[k] = cr[k] * br - ci[k] * bi + sr[k] * ar - si[k] * ai;
        y.im[k] = cr[k] * bi + ci[k] * br + sr[k] * ai + si[k] * ar;
    }
}

/* dy becomes dx. */
static void turn_back(const Scan *s, int64_t l, Wave x, Wave dy, vector *dfactors) {
    LAYER
    vector *dcr = dfactors + l * 4 * N, *dci = dcr + N, *dsr = dci + N, *dsi = dsr + N;
    for (int64_t j = 0; j < N; j++) {
        int64_t k = partner[j];
        if (k <= j) continue;
        vector ar = x.re[j], ai = x.im[j], br = x.re[k], bi = x.im[k];
        vector ur = dy.re[j], ui = dy.im[j], wr = dy.re[k], wi = dy.im[k];
        dcr[j] += ar * ur + ai * ui;
        dci[j] += ar * ui - ai * ur;
        dsr[j] += br * ur + bi * ui;
        dsi[j] += br * ui - bi * ur;
        dcr[k] += br * wr + bi * wi;
        dci[k] += br * wi - bi * wr;
        dsr[k] += ar * wr + ai * wi;
        dsi[k] += ar * wi - ai * wr;
        dy.re[j] = cr[j] * ur + ci[j] * ui + sr[k] * wr + si[k] * wi;
        dy.im[j] = cr[j] * ui - ci[j] * ur + sr[k] * wi - si[k] * wr;
        dy.re[k] = cr[k] * wr + ci[k] * wi + sr[j] * ur + si[j] * ui;
        dy.im[k] = cr[k] * wi - ci[k] * wr + sr[j] * ui - si[j] * ur;
    }
}

static void rotate(const Scan *s, Wave h, vector *scratch) {
    (void)scratch;
    int64_t L = s->plan[0];
    for (int64_t l = 0; l < L; l++) turn(s, l, h, h);
    scale(h, s->factors + 4 * L * s->N, h, s->N);
}

static Wave layer(vector *scratch, int64_t l, int64_t N) {
    scratch += l * 2 * (N + APART);
    return wave(&scratch, N);
}

static void rotate_back(const Scan *s, Wave h, Wave G, vector *dfactors, vector *scratch) {
    int64_t L = s->plan[0], N = s->N;
    Wave x = h; /* the input of every layer, one after another */
    for (int64_t l = 0; l < L; l++) {
        Wave y = layer(scratch, l, N);
        turn(s, l, x, y);
        x = y;
    }
    scale_back(x, G, s->factors + 4 * L * N, G, dfactors + 4 * L * N, N);
    for (int64_t l = L - 1; l >= 0; l--)
        turn_back(s, l, l ? layer(scratch, l - 1, N) : h, G, dfactors);
}

void rotations_forward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    lanes_forward(s, first, last, scratch, rotate);
}

void rotations_backward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    lanes_backward(s, first, last, scratch, rotate_back);
}
