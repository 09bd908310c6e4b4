/* PD-SSM: units that are turned and moved; the equations are in pdssm.py. Numbers are complex, as pairs.
 *
 * A call does the sequences first..last-1 for all steps.
 */

#include "scan.h"

typedef struct {
    int64_t T, B, N, rows;   /* rows: unit i takes what plan[i] held, and turns it; else it turns, and goes to plan[i] */
    int64_t *plan;           /* (B, T, N) */
    REAL *D, *X, *H;         /* (B, T, N, 2) factors, inputs, states */
    REAL *h0, *G;            /* (B, N, 2); G is dL/dh_T at the start, dL/dh_0 at the end */
    REAL *dH, *dX, *dD;      /* (B, T, N, 2) */
} Moves;

void pdssm_forward(const Moves *s, int64_t first, int64_t last) {
    int64_t N = s->N, width = 2 * N;
    for (int64_t b = first; b < last; b++) {
        const REAL *h = s->h0 + b * width;
        for (int64_t t = 0; t < s->T; t++) {
            int64_t at = (b * s->T + t) * N;
            const int64_t *plan = s->plan + at;
            const REAL *D = s->D + 2 * at;
            REAL *out = s->H + 2 * at;
            memcpy(out, s->X + 2 * at, width * sizeof(REAL));
            for (int64_t j = 0; j < N; j++) {
                int64_t from = 2 * (s->rows ? plan[j] : j), to = 2 * (s->rows ? j : plan[j]);
                out[to] += D[2 * j] * h[from] - D[2 * j + 1] * h[from + 1];
                out[to + 1] += D[2 * j] * h[from + 1] + D[2 * j + 1] * h[from];
            }
            h = out;
        }
    }
}

void pdssm_backward(const Moves *s, int64_t first, int64_t last, REAL *before) {
    int64_t N = s->N, width = 2 * N;
    for (int64_t b = first; b < last; b++) {
        REAL *G = s->G + b * width;
        for (int64_t t = s->T - 1; t >= 0; t--) {
            int64_t at = (b * s->T + t) * N;
            const int64_t *plan = s->plan + at;
            const REAL *D = s->D + 2 * at, *h = t ? s->H + 2 * (at - N) : s->h0 + b * width;
            REAL *g = s->dX + 2 * at, *dD = s->dD + 2 * at;
            for (int64_t j = 0; j < width; j++) g[j] = G[j] + s->dH[2 * at + j];
            memset(before, 0, width * sizeof(REAL));
            for (int64_t j = 0; j < N; j++) {
                int64_t from = 2 * (s->rows ? plan[j] : j), to = 2 * (s->rows ? j : plan[j]);
                dD[2 * j] = g[to] * h[from] + g[to + 1] * h[from + 1];
                dD[2 * j + 1] = g[to + 1] * h[from] - g[to] * h[from + 1];
                before[from] += g[to] * D[2 * j] + g[to + 1] * D[2 * j + 1];
                before[from + 1] += g[to + 1] * D[2 * j] - g[to] * D[2 * j + 1];
            }
            memcpy(G, before, width * sizeof(REAL));
        }
    }
}
