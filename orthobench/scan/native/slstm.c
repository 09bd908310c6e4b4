/* sLSTM: the equations are in slstm.py.
 *
 * A call does the rows first..last-1 of the batch for the whole sequence. States have one more place than there are
 * steps: the first is the state before them.
 */

#include "scan.h"

typedef struct {
    int64_t T, B, N, heads;
    int64_t dH_time, dH_row;
    REAL *P;                  /* (T, B, 4N) projections; replaced by the gates */
    REAL *H, *C, *count;      /* (T + 1, B, N) the states h, c and n */
    REAL *m, *shut;           /* (B, N) the state m; (T, B, N) 1 - sigmoid(z_f) */
    REAL *R;                  /* a packed (d, d) matrix for every head of every gate */
    REAL *dH, *dZ;            /* gradients of h_1 to h_T from outside, or null, and of the projections */
    REAL *G, *dC, *dn, *dm;   /* (B, N): the gradients of the last state at the start, of the first at the end */
} ExponentialScan;

static inline REAL larger(REAL x, REAL y) { return x > y ? x : y; }

/* log(1 + e) for 0 <= e <= 1, by the series of 2 artanh(e / (2 + e)). */
static inline REAL log1p_share(REAL e) {
    REAL u = e / (2 + e), square = u * u, sum = 0;
    UNROLL for (int k = sizeof(REAL) == 8 ? 17 : 7; k >= 0; k--) sum = sum * square + (REAL)1 / (2 * k + 1);
    return 2 * u * sum;
}

/* Gates of a row in place: i and f scaled by m, v and o. Then `shut`, 1 - sigmoid(z_f), and the new states. */
ROW exponential_gates(REAL *restrict z, REAL *restrict m, REAL *restrict shut, const REAL *restrict c0,
                      const REAL *restrict n0, REAL *restrict c, REAL *restrict count, REAL *restrict h, int64_t n) {
    REAL *restrict f = z + n, *restrict v = z + 2 * n, *restrict o = z + 3 * n;
    EACH {
        REAL e = exp_negative(-magnitude(f[j]));
        REAL kept = (f[j] < 0 ? f[j] : 0) - log1p_share(e) + m[j];
        shut[j] = (f[j] < 0 ? 1 : e) / (1 + e);
        m[j] = larger(kept, z[j]);
        f[j] = exp_negative(kept - m[j]);
        z[j] = exp_negative(z[j] - m[j]);
    }
    EACH {
        v[j] = hyperbolic_tangent(v[j]);
        o[j] = sigmoid(o[j]);
        c[j] = f[j] * c0[j] + z[j] * v[j];
        count[j] = f[j] * n0[j] + z[j];
        h[j] = o[j] * c[j] / count[j];
    }
}

/* out[:, part] += A[:, part] M for every head of every gate, with a packed (d, d) matrix for each. */
static void by_head(const ExponentialScan *s, int64_t rows, const REAL *A, int64_t A_row, int64_t A_gate, REAL *out,
                    int64_t out_row, int64_t out_gate) {
    int64_t heads = s->heads, d = s->N / heads, size = packed_size(d, d);
    for (int64_t part = 0; part < 4 * heads; part++) {
        int64_t gate = part / heads, head = part % heads;
        REAL *to = out + gate * out_gate + head * d;
        Product p = {d, A + gate * A_gate + head * d, A_row, to, out_row, to, out_row, 0};
        product(p, rows, d, s->R + part * size);
    }
}

void slstm_forward(const ExponentialScan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, width = 4 * N;
    for (int64_t t = 0; t < s->T; t++) {
        by_head(s, last - first, AT(s->H, t, first, N), N, 0, AT(s->P, t, first, width), width, N);
        for (int64_t i = first; i < last; i++)
            exponential_gates(AT(s->P, t, i, width), s->m + i * N, AT(s->shut, t, i, N), AT(s->C, t, i, N),
                              AT(s->count, t, i, N), AT(s->C, t + 1, i, N), AT(s->count, t + 1, i, N),
                              AT(s->H, t + 1, i, N), N);
    }
}

/* dz from dL/dh, dc, dn and dm of the new states; these become those of the states before. */
ROW exponential_back(const REAL *restrict G, REAL *restrict dc, REAL *restrict dn, REAL *restrict dm,
                     const REAL *restrict z, const REAL *restrict shut, const REAL *restrict c0, const REAL *restrict n0,
                     const REAL *restrict count, const REAL *restrict h, REAL *restrict dz, int64_t n) {
    const REAL *restrict f = z + n, *restrict v = z + 2 * n, *restrict o = z + 3 * n;
    EACH {
        REAL by_count = G[j] / count[j], at_c = dc[j] + by_count * o[j], at_n = dn[j] - by_count * h[j];
        REAL by_i = z[j] * (at_c * v[j] + at_n), by_f = f[j] * (at_c * c0[j] + at_n * n0[j]);
        REAL at_m = dm[j] - by_i - by_f;
        REAL share = f[j] < 1 ? 0 : z[j] < 1 ? 1 : (REAL)0.5; /* of m that is the forget gate's: the larger has exp(0) */
        dm[j] = by_f + share * at_m;
        dz[j] = by_i + (1 - share) * at_m;
        dz[n + j] = dm[j] * shut[j];
        dz[2 * n + j] = at_c * z[j] * (1 - v[j] * v[j]);
        dz[3 * n + j] = G[j] * h[j] * (1 - o[j]);
        dc[j] = f[j] * at_c;
        dn[j] = f[j] * at_n;
    }
}

void slstm_backward(const ExponentialScan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, width = 4 * N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        for (int64_t i = first; i < last; i++) {
            const REAL *outside = OUTSIDE(t - 1, i);
            REAL *G = s->G + i * N;
            exponential_back(G, s->dC + i * N, s->dn + i * N, s->dm + i * N, AT(s->P, t, i, width), AT(s->shut, t, i, N),
                             AT(s->C, t, i, N), AT(s->count, t, i, N), AT(s->count, t + 1, i, N),
                             AT(s->H, t + 1, i, N), AT(s->dZ, t, i, width), N);
            for (int64_t j = 0; j < N; j++) G[j] = outside ? outside[j] : 0;
        }
        by_head(s, last - first, AT(s->dZ, t, first, width), width, N, s->G + first * N, N, 0);
    }
}
