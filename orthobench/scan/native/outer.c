/* A matrix for every sequence and head that the input decays, erases from and writes to: the equations are in outer.py.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. Its matrix has a row for
 * every key and a column for every value. In scratch memory rows of values are W numbers apart, whole vectors, with
 * zeros behind the e that count. The reverse writes the states anew and keeps them for its steps.
 */

#include "rows.h"

typedef struct {
    int64_t T, B, H, d, e;     /* d keys, e values of a head */
    REAL *g, *q, *k, *r, *p;   /* (B, T, H, d); r is null where nothing is erased, and p where it is k */
    REAL *v, *O, *dO, *dv;     /* (B, T, H, e) */
    REAL *S0, *S, *dS;         /* (B, H, d, e); dS is dL/dS_T at the start, dL/dS_0 at the end */
    REAL *dg, *dq, *dk, *dr, *dp;
} OuterState;

#define EACH_OF(W) for (int64_t w = 0; w < W; w += LANES)
static inline REAL inner(const REAL *x, const REAL *y, int64_t W) {
    vector sum = {0};
    EACH_OF(W) sum += VECTOR(x + w) * VECTOR(y + w);
    return summed(sum);
}

#define PLACE int64_t place = ((line / s->H) * s->T + t) * s->H + line % s->H, keys = place * d, values = place * s->e;

/* out = diag(g) S + k v^T - p u^T, where u = (diag(g) S)^T r; sum += out^T q where there is a q. */
static inline void one_step(const OuterState *s, int64_t keys, int64_t W, const REAL *S, const REAL *v, REAL *u,
                            const REAL *q, REAL *sum, REAL *out) {
    int64_t d = s->d;
    const REAL *g = s->g + keys, *k = s->k + keys, *r = s->r ? s->r + keys : 0, *p = s->p ? s->p + keys : k;
    EACH_OF(W) {
        vector erased = {0}, read = {0}, written = VECTOR(v + w);
        if (r)
            for (int64_t i = 0; i < d; i++) erased += r[i] * g[i] * VECTOR(S + i * W + w);
        for (int64_t i = 0; i < d; i++) {
            vector row = g[i] * VECTOR(S + i * W + w) + k[i] * written;
            if (r) row -= p[i] * erased;
            if (q) read += q[i] * row;
            VECTOR(out + i * W + w) = row;
        }
        VECTOR(u + w) = erased;
        if (q) VECTOR(sum + w) = read;
    }
}

void outer_forward(const OuterState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, e = s->e, W = whole(e);
    REAL *v = scratch, *u = v + W, *o = u + W, *S = o + W;
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, W, S);
        for (int64_t t = 0; t < s->T; t++) {
            PLACE
            widened(s->v + values, 1, e, W, v);
            one_step(s, keys, W, S, v, u, s->q + keys, o, S);
            narrowed(o, 1, e, W, s->O + values);
        }
        narrowed(S, d, e, W, s->S + line * d * e);
    }
}

void outer_backward(const OuterState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, e = s->e, W = whole(e), T = s->T;
    REAL *v = scratch, *dO = v + W, *dv = dO + W, *du = dv + W, *G = du + W, *u = G + d * W, *trail = u + T * W;
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, W, trail);
        for (int64_t t = 0; t < T; t++) {
            PLACE
            widened(s->v + values, 1, e, W, v);
            one_step(s, keys, W, trail + t * d * W, v, u + t * W, 0, 0, trail + (t + 1) * d * W);
        }
        widened(s->dS + line * d * e, d, e, W, G);
        for (int64_t t = T - 1; t >= 0; t--) {
            PLACE
            const REAL *g = s->g + keys, *q = s->q + keys, *k = s->k + keys, *r = s->r ? s->r + keys : 0;
            const REAL *p = s->p ? s->p + keys : k, *before = trail + t * d * W, *after = before + d * W, *ut = u + t * W;
            widened(s->v + values, 1, e, W, v);
            widened(s->dO + values, 1, e, W, dO);
            memset(dv, 0, 2 * W * sizeof(REAL)); /* du, too */
            for (int64_t i = 0; i < d; i++) {
                REAL *row = G + i * W;
                vector read = {0}, written = {0}, erased = {0};
                EACH_OF(W) {
                    read += VECTOR(after + i * W + w) * VECTOR(dO + w);
                    VECTOR(row + w) += q[i] * VECTOR(dO + w);
                    written += VECTOR(row + w) * VECTOR(v + w);
                    VECTOR(dv + w) += k[i] * VECTOR(row + w);
                    if (r) erased += VECTOR(row + w) * VECTOR(ut + w), VECTOR(du + w) -= p[i] * VECTOR(row + w);
                }
                s->dq[keys + i] = summed(read);
                s->dk[keys + i] = summed(written);
                if (r && s->p) s->dp[keys + i] = -summed(erased);
                else if (r) s->dk[keys + i] -= summed(erased);
            }
            narrowed(dv, 1, e, W, s->dv + values);
            for (int64_t i = 0; i < d; i++) {
                REAL *row = G + i * W;
                if (r) {
                    s->dr[keys + i] = g[i] * inner(before + i * W, du, W);
                    EACH_OF(W) VECTOR(row + w) += r[i] * VECTOR(du + w);
                }
                s->dg[keys + i] = inner(row, before + i * W, W);
                EACH_OF(W) VECTOR(row + w) *= g[i];
            }
        }
        narrowed(G, d, e, W, s->dS + line * d * e);
    }
}
