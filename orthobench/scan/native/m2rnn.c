/* M2RNN: the equations are in m2rnn.py.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. In scratch memory rows of
 * values are W numbers apart, whole vectors, with zeros behind the e that count. The reverse writes the states anew.
 */

#include "rows.h"

typedef struct {
    int64_t T, B, H, d, e, linear; /* d keys, e values of a head; linear: no tanh */
    double bound;                  /* of every entry of dL/dS; infinite for none */
    REAL *f;                       /* (B, T, H) */
    REAL *q, *k;                   /* (B, T, d), of all heads */
    REAL *v, *O, *dO, *dv;         /* (B, T, H, e) */
    REAL *M, *dM;                  /* (H, e, e), and its gradient of every line, (B, H, e, e) */
    REAL *S0, *S, *dS;             /* (B, H, d, e); dS is dL/dS_T at the start, dL/dS_0 at the end */
    REAL *df, *dq, *dk;            /* (B, T, H), and of every head (B, T, H, d) */
} MatrixRNN;

#define EACH_OF(n) for (int64_t w = 0; w < n; w++)
#define STEP int64_t b = line / s->H, head = line % s->H, at = b * s->T + t, place = at * s->H + head;

/* z += x M, with the rows of M W apart; x has e numbers. */
ROW row_product(const REAL *restrict x, const REAL *restrict M, REAL *restrict z, int64_t e, int64_t W) {
    for (int64_t m = 0; m < e; m++) EACH_OF(W) z[w] += x[m] * M[m * W + w];
}

/* A = tanh(S M + k v^T), out = f S + (1 - f) A, row by row. */
ROW one_step(const MatrixRNN *s, const REAL *restrict S, const REAL *restrict M, const REAL *restrict k,
             const REAL *restrict v, REAL f, REAL *restrict A, REAL *restrict out, int64_t W) {
    for (int64_t i = 0; i < s->d; i++) {
        REAL *restrict a = A + i * W;
        EACH_OF(W) a[w] = k[i] * v[w];
        row_product(S + i * W, M, a, s->e, W);
        if (!s->linear) EACH_OF(W) a[w] = hyperbolic_tangent(a[w]);
        EACH_OF(W) out[i * W + w] = f * S[i * W + w] + (1 - f) * a[w];
    }
}

void m2rnn_forward(const MatrixRNN *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, e = s->e, W = whole(e);
    REAL *v = scratch, *o = v + W, *M = o + W, *A = M + e * W, *S = A + d * W, *new = S + d * W;
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, W, S);
        widened(s->M + line % s->H * e * e, e, e, W, M);
        for (int64_t t = 0; t < s->T; t++) {
            STEP
            widened(s->v + place * e, 1, e, W, v);
            one_step(s, S, M, s->k + at * d, v, s->f[place], A, new, W);
            EACH_OF(W) o[w] = 0;
            for (int64_t i = 0; i < d; i++) EACH_OF(W) o[w] += s->q[at * d + i] * new[i * W + w];
            narrowed(o, 1, e, W, s->O + place * e);
            REAL *old = S;
            S = new, new = old;
        }
        narrowed(S, d, e, W, s->S + line * d * e);
    }
}

void m2rnn_backward(const MatrixRNN *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, e = s->e, W = whole(e), T = s->T, size = d * W;
    REAL *v = scratch, *dO = v + W, *dv = dO + W, *z = dv + W, *M = z + W, *across = M + e * W, *dM = across + e * W;
    REAL *G = dM + e * W, *acts = G + size, *trail = acts + T * size, bound = (REAL)s->bound;
    for (int64_t line = first; line < last; line++) {
        const REAL *own = s->M + line % s->H * e * e;
        widened(own, e, e, W, M);
        memset(across, 0, 2 * e * W * sizeof(REAL)); /* dM, too */
        for (int64_t i = 0; i < e; i++)
            for (int64_t j = 0; j < e; j++) across[j * W + i] = own[i * e + j];
        widened(s->S0 + line * d * e, d, e, W, trail);
        for (int64_t t = 0; t < T; t++) {
            STEP
            widened(s->v + place * e, 1, e, W, v);
            one_step(s, trail + t * size, M, s->k + at * d, v, s->f[place], acts + t * size, trail + (t + 1) * size, W);
        }
        widened(s->dS + line * d * e, d, e, W, G);
        for (int64_t t = T - 1; t >= 0; t--) {
            STEP
            const REAL *before = trail + t * size, *after = before + size, *a = acts + t * size, *k = s->k + at * d;
            REAL f = s->f[place], at_f = 0;
            widened(s->v + place * e, 1, e, W, v);
            widened(s->dO + place * e, 1, e, W, dO);
            memset(dv, 0, W * sizeof(REAL));
            for (int64_t i = 0; i < d; i++) {
                REAL *restrict g = G + i * W, read = 0, written = 0;
                const REAL *restrict old = before + i * W, *restrict act = a + i * W;
                EACH_OF(e) read += after[i * W + w] * dO[w];
                EACH_OF(W) {
                    REAL sum = g[w] + s->q[at * d + i] * dO[w];
                    g[w] = sum > bound ? bound : sum < -bound ? -bound : sum;
                }
                EACH_OF(e) at_f += g[w] * (old[w] - act[w]);
                EACH_OF(W) z[w] = (1 - f) * g[w] * (s->linear ? 1 : 1 - act[w] * act[w]);
                EACH_OF(e) written += z[w] * v[w];
                EACH_OF(W) dv[w] += k[i] * z[w], g[w] *= f;
                for (int64_t m = 0; m < e; m++) EACH_OF(W) dM[m * W + w] += old[m] * z[w];
                row_product(z, across, g, e, W);
                s->dq[place * d + i] = read;
                s->dk[place * d + i] = written;
            }
            s->df[place] = at_f;
            narrowed(dv, 1, e, W, s->dv + place * e);
        }
        narrowed(G, d, e, W, s->dS + line * d * e);
        narrowed(dM, e, e, W, s->dM + line * e * e);
    }
}
