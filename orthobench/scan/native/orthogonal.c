/* Heads that decay as in decayed.c and are read by `orthogonalised` of cells/mlstm.py:
 *
 *     S <- g_t S + k_t v_t^T,   o_t = M_t^T q_t,   M_t = X_5,   X_0 = S_t / (|S_t| + 1e-6)
 *     X_{i+1} = a X_i + B X_i,   B = b A + c A^2,   A = X_i X_i^T
 *
 * X has as many rows as S has keys, or values if these are fewer: then it is the transpose. With G = dL/dX_{i+1} and
 * E = G X_i^T + X_i G^T,
 *
 *     dL/dX_i = a G + B G + (b E + c (E A + A E)) X_i
 *
 * The reverse keeps all states, and of one step at a time what was made of it.
 */

#include "decayed.h"

#define TURNS 5 /* as in cells/mlstm.py, and the same numbers */
static const REAL a = (REAL)3.4445, b = (REAL)-4.7750, c = (REAL)2.0315, least_norm = (REAL)1e-6;

typedef struct {
    int64_t K, V;                /* keys and values, padded */
    int64_t low, high, R, W;     /* of X, and padded */
    int64_t rows, flipped;       /* of a product, at least low; whether X is the transpose */
    REAL *X, *XT, *A, *B;        /* (TURNS + 1, R, W), (TURNS, W, R), (TURNS, R, R) twice */
    REAL *turned;                /* (K, V) */
    REAL *G, *dX, *E, *F, *P;    /* (R, W) twice, (R, R) three times */
    REAL *q, *v, *o, *dq;        /* (K), (V), (V), (K) */
    REAL norm, factor;
} Read;

static Read read_at(const DecayedState *s, REAL **memory) {
    Read r = {.K = padded(s->d), .V = padded(s->e), .flipped = s->d > s->e};
    r.low = r.flipped ? s->e : s->d, r.high = r.flipped ? s->d : s->e;
    r.R = r.flipped ? r.V : r.K, r.W = r.flipped ? r.K : r.V, r.rows = (r.low + 7) / 8 * 8;
    int64_t whole = r.R * r.W, square = r.R * r.R;
    r.X = take(memory, (TURNS + 1) * whole), r.XT = take(memory, TURNS * whole), r.turned = take(memory, whole);
    r.A = take(memory, TURNS * square), r.B = take(memory, TURNS * square);
    r.G = take(memory, whole), r.dX = take(memory, whole);
    r.E = take(memory, square), r.F = take(memory, square), r.P = take(memory, square);
    r.q = take(memory, r.K), r.dq = take(memory, r.K), r.v = take(memory, r.V), r.o = take(memory, r.V);
    return r;
}

/* X_0 ... X_5 of a state, and what they are made by. */
static void orthogonalise(Read *r, const REAL *S) {
    int64_t whole = r->R * r->W, square = r->R * r->R;
    REAL sum = inner(S, S, whole);
    r->norm = square_root(sum), r->factor = 1 / ((sum > 0 ? r->norm : sum == 0 ? 1 : sum) + least_norm);
    if (r->flipped) turn_over(S, r->K, r->V, r->X);
    scaled(r->factor, r->flipped ? r->X : S, whole, r->X);
    for (int64_t i = 0; i < TURNS; i++) {
        REAL *X = r->X + i * whole, *XT = r->XT + i * whole, *A = r->A + i * square, *B = r->B + i * square;
        turn_over(X, r->R, r->W, XT);
        multiply(X, r->W, r->rows, r->high, XT, r->R, A);
        multiply(A, r->R, r->rows, r->low, A, r->R, B);
        for (int64_t w = 0; w < square; w += LANES) VECTOR(B + w) = b * VECTOR(A + w) + c * VECTOR(B + w);
        multiply(B, r->R, r->rows, r->low, X, r->W, X + whole);
        add_scaled(a, X, whole, X + whole);
    }
}

/* o = M^T q. */
static void recall(const Read *r) {
    const REAL *M = r->X + TURNS * r->R * r->W;
    memset(r->o, 0, r->V * sizeof(REAL));
    for (int64_t i = 0; i < r->low; i++)
        if (r->flipped) r->o[i] = inner(M + i * r->W, r->q, r->W);
        else add_scaled(r->q[i], M + i * r->W, r->W, r->o);
}

/* From dL/do in r->o: dL/dq, and G, to which that of the state by its read is added. */
static void recall_back(const Read *r, REAL *G) {
    int64_t R = r->R, W = r->W, whole = R * W, square = R * R;
    const REAL *M = r->X + TURNS * whole;
    REAL *g = r->G, *dX = r->dX;
    memset(r->dq, 0, r->K * sizeof(REAL)), memset(g, 0, whole * sizeof(REAL));
    for (int64_t i = 0; i < r->low; i++) {
        if (r->flipped) add_scaled(r->o[i], M + i * W, W, r->dq);
        else r->dq[i] = inner(M + i * W, r->o, W);
        scaled(r->flipped ? r->o[i] : r->q[i], r->flipped ? r->q : r->o, W, g + i * W);
    }
    for (int64_t i = TURNS - 1; i >= 0; i--) {
        const REAL *X = r->X + i * whole, *A = r->A + i * square;
        multiply(r->B + i * square, R, r->rows, r->low, g, W, dX);
        add_scaled(a, g, whole, dX);
        multiply(g, W, r->rows, r->high, r->XT + i * whole, R, r->E);
        turn_over(r->E, R, R, r->F);
        add_scaled(1, r->F, square, r->E);
        multiply(r->E, R, r->rows, r->low, A, R, r->P);
        turn_over(r->P, R, R, r->F);
        for (int64_t w = 0; w < square; w += LANES)
            VECTOR(r->F + w) = b * VECTOR(r->E + w) + c * (VECTOR(r->F + w) + VECTOR(r->P + w));
        add_product(r->F, R, r->rows, r->low, X, W, dX);
        REAL *last = g;
        g = dX, dX = last;
    }
    if (r->norm != 0) add_scaled(-inner(g, r->X, whole) / (r->norm * r->factor), r->X, whole, g);
    if (r->flipped) turn_over(g, R, W, r->turned), g = r->turned;
    add_scaled(r->factor, g, whole, G);
}

/* after = exp(log_g) before + k v^T; the two may be the same. */
static void write_state(const DecayedState *s, const Read *r, int64_t place, const REAL *before, REAL *after) {
    REAL g = exp_negative(s->log_g[place]);
    copied(s->v + place * s->e, s->e, r->v);
    for (int64_t i = 0; i < s->d; i++) {
        REAL k = s->k[place * s->d + i];
        for (int64_t w = i * r->V; w < (i + 1) * r->V; w += LANES)
            VECTOR(after + w) = g * VECTOR(before + w) + k * VECTOR(r->v + w - i * r->V);
    }
}

static int is_wanted(const DecayedState *s, int64_t line, int64_t t) {
    return !s->wanted || s->wanted[line / s->H * s->T + t];
}

/* Numbers of scratch memory that a pass needs. */
int64_t orthogonal_scratch(const DecayedState *s, int64_t backward) {
    REAL *end = 0;
    Read r = read_at(s, &end);
    return (int64_t)(end - (REAL *)0) + (backward ? s->T + 2 : 1) * r.K * r.V + r.V;
}

void orthogonal_forward(const DecayedState *s, int64_t first, int64_t last, REAL *scratch) {
    memset(scratch, 0, orthogonal_scratch(s, 0) * sizeof(REAL));
    Read r = read_at(s, &scratch);
    REAL *S = take(&scratch, r.K * r.V);
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * s->d * s->e, s->d, s->e, r.V, S);
        for (int64_t t = 0; t < s->T; t++) {
            int64_t place = place_of(s, line, t);
            write_state(s, &r, place, S, S);
            copied(s->q + place * s->d, s->d, r.q);
            if (is_wanted(s, line, t)) orthogonalise(&r, S), recall(&r);
            else memset(r.o, 0, s->e * sizeof(REAL));
            copied(r.o, s->e, s->O + place * s->e);
        }
        narrowed(S, s->d, s->e, r.V, s->S + line * s->d * s->e);
    }
}

void orthogonal_backward(const DecayedState *s, int64_t first, int64_t last, REAL *scratch) {
    memset(scratch, 0, orthogonal_scratch(s, 1) * sizeof(REAL));
    Read r = read_at(s, &scratch);
    int64_t d = s->d, e = s->e, V = r.V, whole = r.K * V;
    REAL *G = take(&scratch, whole), *dv = take(&scratch, V), *states = take(&scratch, (s->T + 1) * whole);
    for (int64_t line = first; line < last; line++) {
        widened(s->S0 + line * d * e, d, e, V, states);
        for (int64_t t = 0; t < s->T; t++)
            write_state(s, &r, place_of(s, line, t), states + t * whole, states + (t + 1) * whole);
        widened(s->dS + line * d * e, d, e, V, G);
        for (int64_t t = s->T - 1; t >= 0; t--) {
            int64_t place = place_of(s, line, t);
            const REAL *k = s->k + place * d;
            copied(s->q + place * d, d, r.q), copied(s->v + place * e, e, r.v), copied(s->dO + place * e, e, r.o);
            if (is_wanted(s, line, t)) orthogonalise(&r, states + (t + 1) * whole), recall_back(&r, G);
            else memset(r.dq, 0, d * sizeof(REAL));
            copied(r.dq, d, s->dq + place * d);
            memset(dv, 0, V * sizeof(REAL));
            for (int64_t i = 0; i < d; i++) {
                s->dk[place * d + i] = inner(G + i * V, r.v, V);
                add_scaled(k[i], G + i * V, V, dv);
            }
            copied(dv, e, s->dv + place * e);
            scaled(exp_negative(s->log_g[place]), G, whole, G);
            s->dlog_g[place] = inner(G, states + t * whole, whole);
        }
        narrowed(G, d, e, V, s->dS + line * d * e);
    }
}
