/* A matrix for every sequence and head that the input decays, erases from and writes to: the equations are in outer.py.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. Its matrix has a row for
 * every key and a column for every value. In scratch memory rows of values are W numbers apart, whole vectors, with
 * zeros behind the e that count. The reverse writes the states anew and keeps them for its steps.
 */

#include "square.h"
#include "rows.h"

typedef struct {
    int64_t T, B, H, d, e;     /* d keys, e values of a head */
    REAL *g, *q, *k, *r, *p;   /* (B, T, H, d); g = exp(ln g); r is null where nothing is erased, and p where it is k */
    REAL *v, *O, *dO, *dv;     /* (B, T, H, e) */
    REAL *S0, *S, *dS;         /* (B, H, d, e); dS is dL/dS_T at the start, dL/dS_0 at the end */
    REAL *dlog_g, *dq, *dk, *dr, *dp;
} OuterState;

enum { ADD, DELTA, APART }; /* nothing is erased; p is k; p is another */
enum { DQ, DK, DP, DR, DG, SUMS };

#define FIXED static inline __attribute__((always_inline))
#define PANELS for (int x = 0; x < panels; x++)

typedef struct { const REAL *g, *q, *k, *r, *p, *v; } Step;

static Step step_at(const OuterState *s, int64_t line, int64_t t, REAL *v) {
    int64_t place = ((line / s->H) * s->T + t) * s->H + line % s->H, at = place * s->d;
    const REAL *values = s->v + place * s->e;
    if (v) widened(values, 1, s->e, whole(s->e), v), values = v;
    return (Step){s->g + at, s->q + at, s->k + at, s->r ? s->r + at : 0, s->p ? s->p + at : 0, values};
}

#define AHEAD 3 /* steps */

/* What a later step reads begins to come: heads are far apart, and the processor foresees no rows that are. */
static inline void foresee_step(const OuterState *s, int64_t line, int64_t t, const REAL *outside) {
    if (t < 0 || t >= s->T) return;
    Step later = step_at(s, line, t, 0);
    const REAL *rows[] = {later.g, later.q, later.k, later.r, later.p};
    UNROLL for (int i = 0; i < 5; i++) foresee(rows[i], s->d);
    foresee(later.v, s->e);
    if (outside) foresee(outside + (later.v - s->v), s->e);
}

/* What a step erases, u = (diag(g) S)^T r. */
static void erased(Step now, int64_t d, int64_t W, const REAL *S, REAL *u) {
    for (int64_t w = 0; w < W; w += LANES) {
        vector sum = {0};
        for (int64_t i = 0; i < d; i++) sum += now.r[i] * now.g[i] * VECTOR(S + i * W + w);
        VECTOR(u + w) = sum;
    }
}

/* out = diag(g) S + k v^T - p u^T, o = out^T q, and `next` what the step behind erases from it. */
FIXED void columns(const int panels, const int kind, const int reads, Step now, Step behind, int64_t d, int64_t W,
                   const REAL *S, const REAL *v, const REAL *u, REAL *o, REAL *next, REAL *out) {
    vector given[2], taken[2], read[2], later[2];
    UNROLL PANELS {
        given[x] = VECTOR(v + x * LANES), read[x] = later[x] = (vector){0};
        if (kind == DELTA) given[x] -= VECTOR(u + x * LANES);
        if (kind == APART) taken[x] = VECTOR(u + x * LANES);
    }
    for (int64_t i = 0; i < d; i++) {
        REAL rg = kind == ADD ? 0 : behind.r[i] * behind.g[i];
        UNROLL PANELS {
            vector row = now.g[i] * VECTOR(S + i * W + x * LANES) + now.k[i] * given[x];
            if (kind == APART) row -= now.p[i] * taken[x];
            if (reads) read[x] += now.q[i] * row;
            if (kind != ADD) later[x] += rg * row;
            VECTOR(out + i * W + x * LANES) = row;
        }
    }
    UNROLL PANELS {
        if (kind != ADD) VECTOR(next + x * LANES) = later[x];
        if (reads) VECTOR(o + x * LANES) = read[x];
    }
}

FIXED void one_step(const int kind, const int reads, Step now, Step behind, int64_t d, int64_t W, const REAL *S,
                    const REAL *u, REAL *o, REAL *next, REAL *out) {
    int64_t w = 0;
    for (; w + 2 * LANES <= W; w += 2 * LANES)
        columns(2, kind, reads, now, behind, d, W, S + w, now.v + w, u + w, o + w, next + w, out + w);
    if (w < W) columns(1, kind, reads, now, behind, d, W, S + w, now.v + w, u + w, o + w, next + w, out + w);
}

#define FOR_KIND(call)                                                                                                 \
    if (!s->r) call(ADD);                                                                                              \
    else if (!s->p) call(DELTA);                                                                                       \
    else call(APART)

FIXED void forward(const int kind, const OuterState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, e = s->e, W = whole(e);
    REAL *room = scratch, *u = room + W, *next = u + W, *o = next + W, *S = o + W;
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, W, S);
        if (kind != ADD && s->T) erased(step_at(s, line, 0, 0), d, W, S, u);
        for (int64_t t = 0; t < s->T; t++) {
            Step now = step_at(s, line, t, W == e ? 0 : room), behind = step_at(s, line, t + 1 < s->T ? t + 1 : t, 0);
            foresee_step(s, line, t + AHEAD, 0);
            one_step(kind, 1, now, behind, d, W, S, u, o, next, S);
            narrowed(o, 1, e, W, s->O + (now.q - s->q) / d * e);
            REAL *before = u;
            u = next, next = before;
        }
        narrowed(S, d, e, W, s->S + line * d * e);
    }
}

void outer_forward(const OuterState *s, int64_t first, int64_t last, REAL *scratch) {
#define CALL(kind) forward(kind, s, first, last, scratch)
    FOR_KIND(CALL);
#undef CALL
}

#define SUM(name) (sums + ((name) * whole(d) + i) * LANES)

/* Of a step behind which the state is S and its gradient G: sums of dq, dk and dp over lanes, dv and du.
 * G gets q dO^T. */
FIXED void after(const int panels, const int kind, Step now, int64_t d, int64_t W, int add, const REAL *S,
                 const REAL *u, const REAL *dO, REAL *G, REAL *dv, REAL *du, REAL *sums) {
    vector given[2], taken[2], outside[2], to_v[2], to_u[2];
    UNROLL PANELS {
        given[x] = VECTOR(now.v + x * LANES), outside[x] = VECTOR(dO + x * LANES), to_v[x] = to_u[x] = (vector){0};
        if (kind != ADD) taken[x] = VECTOR(u + x * LANES);
        if (kind == DELTA) given[x] -= taken[x];
    }
    for (int64_t i = 0; i < d; i++) {
        vector dq = {0}, dk = {0}, dp = {0};
        if (add) dq = VECTOR(SUM(DQ)), dk = VECTOR(SUM(DK));
        if (add && kind == APART) dp = VECTOR(SUM(DP));
        UNROLL PANELS {
            vector row = VECTOR(G + i * W + x * LANES) + now.q[i] * outside[x];
            dq += VECTOR(S + i * W + x * LANES) * outside[x];
            dk += row * given[x];
            to_v[x] += now.k[i] * row;
            if (kind == APART) dp -= row * taken[x], to_u[x] -= now.p[i] * row;
            VECTOR(G + i * W + x * LANES) = row;
        }
        VECTOR(SUM(DQ)) = dq, VECTOR(SUM(DK)) = dk;
        if (kind == APART) VECTOR(SUM(DP)) = dp;
    }
    UNROLL PANELS {
        VECTOR(dv + x * LANES) = to_v[x];
        if (kind != ADD) VECTOR(du + x * LANES) = kind == APART ? to_u[x] : -to_v[x];
    }
}

/* From the state S before the step: sums of dr, without the factor g, and of dg; G becomes diag(g) (G + r du^T). */
FIXED void before(const int panels, const int kind, Step now, int64_t d, int64_t W, int add, const REAL *S,
                  const REAL *du, REAL *G, REAL *sums) {
    vector taken[2];
    UNROLL PANELS if (kind != ADD) taken[x] = VECTOR(du + x * LANES);
    for (int64_t i = 0; i < d; i++) {
        vector dr = {0}, dg = {0};
        if (add) dg = VECTOR(SUM(DG));
        if (add && kind != ADD) dr = VECTOR(SUM(DR));
        UNROLL PANELS {
            vector row = VECTOR(G + i * W + x * LANES), state = VECTOR(S + i * W + x * LANES);
            if (kind != ADD) dr += state * taken[x], row += now.r[i] * taken[x];
            dg += row * state;
            VECTOR(G + i * W + x * LANES) = now.g[i] * row;
        }
        VECTOR(SUM(DG)) = dg;
        if (kind != ADD) VECTOR(SUM(DR)) = dr;
    }
}

/* out = the sums over lanes of d vectors; they are lost. */
static void totals(REAL *sums, int64_t d, REAL *out) {
    for (int64_t i = 0; i < d; i += LANES) {
        REAL row[LANES];
        VECTOR(row) = sum_each((vector *)(void *)(sums + i * LANES));
        for (int64_t j = i; j < d && j < i + LANES; j++) out[j] = row[j - i];
    }
}

FIXED void backward(const int kind, const OuterState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, e = s->e, W = whole(e), T = s->T, K = whole(d);
    REAL *v = scratch, *room = v + W, *dv = room + W, *du = dv + W, *sums = du + W, *G = sums + SUMS * K * LANES;
    REAL *u = G + d * W, *trail = u + (T + 1) * W;
    memset(sums, 0, SUMS * K * LANES * sizeof(REAL));
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, W, trail);
        if (kind != ADD && T) erased(step_at(s, line, 0, 0), d, W, trail, u);
        for (int64_t t = 0; t < T; t++) {
            Step now = step_at(s, line, t, W == e ? 0 : v), behind = step_at(s, line, t + 1 < T ? t + 1 : t, 0);
            foresee_step(s, line, t + AHEAD, 0);
            one_step(kind, 0, now, behind, d, W, trail + t * d * W, u + t * W, dv, u + (t + 1) * W,
                     trail + (t + 1) * d * W);
        }
        widened(s->dS + line * d * e, d, e, W, G);
        for (int64_t t = T - 1; t >= 0; t--) {
            Step now = step_at(s, line, t, W == e ? 0 : v);
            int64_t keys = now.q - s->q, values = keys / d * e;
            foresee_step(s, line, t - AHEAD, s->dO);
            if (t >= AHEAD) {
                int64_t there = keys - AHEAD * s->H * d;
                REAL *made[] = {s->dlog_g, s->dq, s->dk, s->dr, s->dp};
                UNROLL for (int i = 0; i < 5; i++) if (made[i]) foresee(made[i] + there, d);
                foresee(s->dv + there / d * e, e);
            }
            const REAL *S = trail + t * d * W, *ut = u + t * W, *dO = s->dO + values;
            if (W != e) widened(dO, 1, e, W, room), dO = room;
            int64_t w = 0;
            for (; w + 2 * LANES <= W; w += 2 * LANES, now.v += 2 * LANES)
                after(2, kind, now, d, W, w > 0, S + d * W + w, ut + w, dO + w, G + w, dv + w, du + w, sums);
            if (w < W) after(1, kind, now, d, W, w > 0, S + d * W + w, ut + w, dO + w, G + w, dv + w, du + w, sums);
            for (w = 0; w + 2 * LANES <= W; w += 2 * LANES)
                before(2, kind, now, d, W, w > 0, S + w, du + w, G + w, sums);
            if (w < W) before(1, kind, now, d, W, w > 0, S + w, du + w, G + w, sums);
            narrowed(dv, 1, e, W, s->dv + values);
            totals(sums + DQ * K * LANES, d, s->dq + keys);
            totals(sums + DK * K * LANES, d, s->dk + keys);
            totals(sums + DG * K * LANES, d, s->dlog_g + keys);
            for (int64_t i = 0; i < d; i++) s->dlog_g[keys + i] *= now.g[i];
            if (kind == APART) totals(sums + DP * K * LANES, d, s->dp + keys);
            if (kind == ADD) continue;
            totals(sums + DR * K * LANES, d, s->dr + keys);
            for (int64_t i = 0; i < d; i++) s->dr[keys + i] *= now.g[i];
        }
        narrowed(G, d, e, W, s->dS + line * d * e);
    }
}

void outer_backward(const OuterState *s, int64_t first, int64_t last, REAL *scratch) {
#define CALL(kind) backward(kind, s, first, last, scratch)
    FOR_KIND(CALL);
#undef CALL
}
