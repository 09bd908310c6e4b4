/* M2RNN: the equations are in m2rnn.py.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. In scratch memory matrices
 * have K rows of W numbers, both `padded`, with zeros behind the d rows and e numbers that count; products go over R rows.
 * The reverse writes the states anew.
 */

#include "blocks.h"
#include "vectors.h"

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

static int64_t tiled(int64_t rows) { return (rows + 7) / 8 * 8; }

ROW tanh_of(REAL *restrict a, int64_t n) { EACH_OF(n) a[w] = hyperbolic_tangent(a[w]); }

/* A = tanh(S M + k v^T), out = f S + (1 - f) A. */
ROW one_step(const MatrixRNN *s, const REAL *S, const REAL *M, const REAL *k, const REAL *v, REAL f, REAL *A, REAL *out,
             int64_t W) {
    int64_t n = s->d * W;
    for (int64_t i = 0; i < s->d; i++) scaled(k[i], v, W, A + i * W);
    add_product(S, W, tiled(s->d), s->e, M, W, A);
    if (!s->linear) tanh_of(A, n);
    for (int64_t w = 0; w < n; w += LANES) VECTOR(out + w) = f * VECTOR(S + w) + (1 - f) * VECTOR(A + w);
}

/* Numbers of scratch memory that a pass needs. */
int64_t m2rnn_scratch(const MatrixRNN *s, int64_t backward) {
    int64_t K = padded(s->d), W = padded(s->e), size = K * W;
    return backward ? (3 * W + 3 * W * W + 2 * size + 2 * K) + (2 * s->T + 1) * size : 2 * W + W * W + 3 * size;
}

void m2rnn_forward(const MatrixRNN *s, int64_t first, int64_t last, REAL *scratch) {
    memset(scratch, 0, m2rnn_scratch(s, 0) * sizeof(REAL));
    int64_t d = s->d, e = s->e, W = padded(e), size = padded(d) * W;
    REAL *v = scratch, *o = v + W, *M = o + W, *A = M + W * W, *S = A + size, *new = S + size;
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, W, S);
        widened(s->M + line % s->H * e * e, e, e, W, M);
        for (int64_t t = 0; t < s->T; t++) {
            STEP
            copied(s->v + place * e, e, v);
            one_step(s, S, M, s->k + at * d, v, s->f[place], A, new, W);
            memset(o, 0, W * sizeof(REAL));
            for (int64_t i = 0; i < d; i++) add_scaled(s->q[at * d + i], new + i * W, W, o);
            copied(o, e, s->O + place * e);
            REAL *old = S;
            S = new, new = old;
        }
        narrowed(S, d, e, W, s->S + line * d * e);
    }
}

/* G + q dO^T, bounded, in place, and Z = (1 - f) G (1 - A^2); returns the sum of G (S - A), of which f's gradient is
 * made. */
static REAL through_gate(const MatrixRNN *s, const REAL *q, const REAL *dO, const REAL *S, const REAL *A, REAL f, REAL *G,
                         REAL *Z, int64_t W) {
    const vector most = (vector){0} + (REAL)s->bound;
    vector sum = {0};
    for (int64_t i = 0; i < s->d; i++)
        for (int64_t j = 0; j < W; j += LANES) {
            int64_t w = i * W + j;
            vector g = VECTOR(G + w) + q[i] * VECTOR(dO + j), a = VECTOR(A + w);
            g = CHOSEN(g > most, most, CHOSEN(g < -most, -most, g));
            sum += g * (VECTOR(S + w) - a);
            VECTOR(G + w) = g, VECTOR(Z + w) = (1 - f) * g * (s->linear ? (vector){0} + 1 : 1 - a * a);
        }
    return summed(sum);
}

void m2rnn_backward(const MatrixRNN *s, int64_t first, int64_t last, REAL *scratch) {
    memset(scratch, 0, m2rnn_scratch(s, 1) * sizeof(REAL));
    int64_t d = s->d, e = s->e, K = padded(d), W = padded(e), T = s->T, size = K * W, R = tiled(d);
    REAL *v = scratch, *dO = v + W, *dv = dO + W, *M = dv + W, *across = M + W * W, *dM = across + W * W;
    REAL *read = dM + W * W, *written = read + K, *G = written + K, *Z = G + size, *acts = Z + size;
    REAL *trail = acts + T * size;
    for (int64_t line = first; line < last; line++) {
        widened(s->M + line % s->H * e * e, e, e, W, M);
        turn_over(M, W, W, across);
        memset(dM, 0, W * W * sizeof(REAL));
        widened(s->S0 + line * d * e, d, e, W, trail);
        for (int64_t t = 0; t < T; t++) {
            STEP
            copied(s->v + place * e, e, v);
            one_step(s, trail + t * size, M, s->k + at * d, v, s->f[place], acts + t * size, trail + (t + 1) * size, W);
        }
        widened(s->dS + line * d * e, d, e, W, G);
        for (int64_t t = T - 1; t >= 0; t--) {
            STEP
            const REAL *before = trail + t * size, *k = s->k + at * d;
            copied(s->v + place * e, e, v), copied(s->dO + place * e, e, dO);
            s->df[place] = through_gate(s, s->q + at * d, dO, before, acts + t * size, s->f[place], G, Z, W);
            dots_with(before + size, dO, K, W, read), dots_with(Z, v, K, W, written);
            copied(read, d, s->dq + place * d), copied(written, d, s->dk + place * d);
            memset(dv, 0, W * sizeof(REAL));
            for (int64_t i = 0; i < d; i++) add_scaled(k[i], Z + i * W, W, dv);
            copied(dv, e, s->dv + place * e);
            add_turned(before, W, tiled(e), d, Z, W, dM);
            scaled(s->f[place], G, d * W, G);
            add_product(Z, W, R, e, across, W, G);
        }
        narrowed(G, d, e, W, s->dS + line * d * e);
        narrowed(dM, e, e, W, s->dM + line * e * e);
    }
}
