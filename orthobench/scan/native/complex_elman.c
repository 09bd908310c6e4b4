/* Complex states and one dense matrix: the equations are in cells/complex_elman.py.
 *
 * Real and imaginary parts lie side by side. So rows of N complex numbers are rows of 2 N real ones, and the packed matrix
 * is the real (2 N, 2 N) one that multiplies them.
 */

#include "complex_modrelu.h"

ROW modulate_row(REAL *restrict z, const REAL *restrict b, REAL e, int64_t n) {
    EACH modulate(z + 2 * j, z + 2 * j + 1, b[j], e);
}

void complex_elman_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, width = 2 * s->N;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *before = t ? AT(s->P, t - 1, first, width) : s->h0 + first * width;
        REAL *z = AT(s->P, t, first, width);
        product((Product){width, before, width, z, width, z, width, 0}, last - first, width, s->weights[0]);
        for (int64_t i = first; i < last; i++) modulate_row(AT(s->P, t, i, width), s->b, (REAL)s->slope, s->N);
    }
}

ROW demodulate_row(const REAL *restrict G, const REAL *restrict h, const REAL *restrict b, REAL e, REAL *restrict dz,
                   REAL *restrict db, int64_t n) {
    EACH {
        REAL x = G[2 * j], y = G[2 * j + 1];
        demodulate(&x, &y, h[2 * j], h[2 * j + 1], b[j], e, db + j);
        dz[2 * j] = x;
        dz[2 * j + 1] = y;
    }
}

void complex_elman_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, width = 2 * s->N;
    REAL *G = s->G + first * width;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        for (int64_t i = first; i < last; i++)
            demodulate_row(s->G + i * width, AT(s->P, t, i, width), s->b, (REAL)s->slope, AT(s->dZ, t, i, width),
                           s->db + i * s->N, s->N);
        Product p = {width, AT(s->dZ, t, first, width), width, OUTSIDE(t - 1, first), s->dH_row, G, width, 0};
        product(p, last - first, width, s->weights[0]);
    }
}
