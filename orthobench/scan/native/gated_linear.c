/* Recurrences of which the input sets the factor and the term of every unit: the equations are in gated_linear.py.
 *
 * A call does the units first..last-1 of some sequences each, STEPS steps at a time. Their projections, factors and terms
 * are computed while they are in cache, again in the backward pass, so that states alone are kept; or projections are
 * given. Complex states have both parts of a unit side by side.
 */

#include "scan.h"
#include <math.h>

typedef struct {
    int64_t T, B, N, kind, width, I, unit; /* width of a projection; sequences of a unit */
    int64_t P_time, P_row, X_time, X_row, dP_time, dP_row, dH_time, dH_row, tokens_time, tokens_row;
    REAL *P, *dP;           /* (T, B, width), or null: they are U x + bias */
    int64_t *tokens;        /* (T, B), or null: x of tokens are one-hot vectors */
    REAL *X, *bias, *table; /* (T, B, I); (width), or null; U^T (I, width) of tokens */
    REAL *W[2];             /* of x, U^T and, where dX is needed, U, packed */
    REAL *h0, *H, *dH;     /* (B, N), (B, T, N); dH is the gradient of every state from outside, or null */
    REAL *G;               /* dL/dh_T at the start, dL/dh_0 at the end */
    REAL *dX, *dU, *dbias; /* (B, T, I), or null; (units, I, width) and (units, width), zero at first */
} GatedLinear;

enum { MINGRU, MINGRU_IDENTITY, MINLSTM, MINLSTM_IDENTITY, ROTATION, UNITARY };

#define STEPS 32
#define INLINE static inline __attribute__((always_inline)) /* with constants for what a cell is */

/* ---- real states: h = kept h + given v, where kept + given = 1 and each is computed without cancellation ---- */

typedef struct { REAL kept, given, v, slope, f_shut, i_shut; } Gates; /* slope = dv / dx */

INLINE Gates gates(int lstm, int identity, const REAL *z, int64_t j, int64_t n) {
    Gates g;
    REAL x = z[(1 + lstm) * n + j], e = exp_negative(-magnitude(x)), below = e / (1 + e);
    g.v = identity ? x : x > 0 ? x + (REAL)0.5 : below;
    g.slope = identity || x > 0 ? 1 : below * (1 - below);
    if (lstm) { /* given / kept = sigmoid(i) / sigmoid(f), where sigmoid(x) = exp(min(x, 0)) / (1 + exp(-|x|)) */
        REAL f = z[j], i = z[n + j], ef = exp_negative(-magnitude(f)), ei = exp_negative(-magnitude(i));
        REAL d = (i < 0 ? i : 0) - (f < 0 ? f : 0), power = exp_negative(-magnitude(d));
        REAL ratio = d < 0 ? power * (1 + ef) / (1 + ei) : power * (1 + ei) / (1 + ef);
        REAL large = 1 / (1 + ratio), small = ratio * large;
        g.kept = d < 0 ? large : small;
        g.given = d < 0 ? small : large;
        g.f_shut = (f < 0 ? 1 : ef) / (1 + ef);
        g.i_shut = (i < 0 ? 1 : ei) / (1 + ei);
    } else {
        REAL k = exp_negative(-magnitude(z[j])), large = 1 / (1 + k), small = k * large;
        g.kept = z[j] < 0 ? large : small;
        g.given = z[j] < 0 ? small : large;
        g.f_shut = g.i_shut = 0;
    }
    return g;
}

INLINE void step(int lstm, int identity, const REAL *restrict z, const REAL *restrict h, REAL *restrict out, int64_t n) {
    EACH {
        Gates g = gates(lstm, identity, z, j, n);
        out[j] = g.kept * h[j] + g.given * g.v;
    }
}

INLINE void step_back(int lstm, int identity, const REAL *restrict z, const REAL *restrict h, REAL *restrict G,
                      const REAL *restrict outside, REAL *restrict dz, int64_t n) {
    EACH {
        Gates g = gates(lstm, identity, z, j, n);
        REAL change = (g.v - h[j]) * g.kept * g.given * G[j]; /* of what is given, by the logarithm of given / kept */
        if (lstm) {
            dz[j] = -change * g.f_shut;
            dz[n + j] = change * g.i_shut;
        } else dz[j] = change;
        dz[(1 + lstm) * n + j] = g.given * g.slope * G[j];
        G[j] = g.kept * G[j] + (outside ? outside[j] : 0);
    }
}

/* ---- complex states: h = m exp(i phi) h + b, where m = sigmoid(-a) or 1 ---- */

/* Cosines and sines by their Taylor series of phi - k pi/2, where pi/2 is the sum of three numbers whose products with k
 * are exact but for the last; far from zero by the library, which few phases need. */
static void turn(const REAL *restrict phi, REAL *restrict cosine, REAL *restrict sine, int64_t n) {
    int64_t is_double = sizeof(REAL) == 8, far = 0;
    REAL limit = is_double ? (REAL)1e6 : 8192;
    EACH far += magnitude(phi[j]) > limit;
    if (far) {
        EACH cosine[j] = (REAL)cos((double)phi[j]);
        EACH sine[j] = (REAL)sin((double)phi[j]);
        return;
    }
    REAL first = is_double ? (REAL)1.570796251296997 : (REAL)1.5703125;
    REAL second = is_double ? (REAL)7.549789415861596e-08 : (REAL)4.837512969970703e-4;
    REAL third = is_double ? (REAL)5.390302858158119e-15 : (REAL)7.549789948768648e-8;
    REAL round = is_double ? (REAL)0x1.8p52 : (REAL)0x1.8p23f;
    EACH {
        REAL k = (phi[j] * (REAL)0.63661977236758134 + round) - round;
        REAL r = phi[j] - k * first - k * second - k * third, square = r * r, c = 1, s = 1;
        UNROLL for (int i = is_double ? 9 : 5; i > 0; i--) {
            c = 1 - c * square * (REAL)(1.0 / (2 * i * (2 * i - 1)));
            s = 1 - s * square * (REAL)(1.0 / (2 * i * (2 * i + 1)));
        }
        s *= r;
        REAL half = k * (REAL)0.5, odd = k - 2 * ((half + round) - round); /* 0, 1 or -1 */
        REAL quarter = (k - odd) * (REAL)0.5, back = quarter - 2 * ((quarter * (REAL)0.5 + round) - round);
        REAL turned = back == 0 ? 1 : -1; /* half a turn, after k - odd quarters */
        cosine[j] = turned * (odd == 0 ? c : -odd * s);
        sine[j] = turned * (odd == 0 ? s : odd * c);
    }
}

typedef struct { REAL *cosine, *sine; } Factors;

/* The factors m exp(i phi) of a row. */
INLINE Factors factors(int damped, const REAL *restrict z, REAL *scratch, int64_t n) {
    REAL *restrict cosine = scratch, *restrict sine = scratch + n;
    turn(z + 2 * n, cosine, sine, n);
    if (damped) EACH {
        REAL m = sigmoid(-z[3 * n + j]);
        cosine[j] *= m;
        sine[j] *= m;
    }
    return (Factors){cosine, sine};
}

INLINE void complex_step(int damped, const REAL *restrict z, const REAL *restrict h, REAL *restrict out, REAL *scratch,
                         int64_t n) {
    Factors f = factors(damped, z, scratch, n);
    EACH {
        out[2 * j] = f.cosine[j] * h[2 * j] - f.sine[j] * h[2 * j + 1] + z[2 * j];
        out[2 * j + 1] = f.cosine[j] * h[2 * j + 1] + f.sine[j] * h[2 * j] + z[2 * j + 1];
    }
}

INLINE void complex_step_back(int damped, const REAL *restrict z, const REAL *restrict h, REAL *restrict G,
                              const REAL *restrict outside, REAL *restrict dz, REAL *scratch, int64_t n) {
    Factors f = factors(damped, z, scratch, n);
    EACH {
        REAL x = G[2 * j], y = G[2 * j + 1], c = f.cosine[j], s = f.sine[j];
        REAL re = h[2 * j] * x + h[2 * j + 1] * y, im = h[2 * j] * y - h[2 * j + 1] * x; /* of m cos and m sin */
        dz[2 * n + j] = c * im - s * re;
        if (damped) dz[3 * n + j] = -sigmoid(z[3 * n + j]) * (c * re + s * im);
    }
    EACH {
        REAL x = G[2 * j], y = G[2 * j + 1], c = f.cosine[j], s = f.sine[j];
        dz[2 * j] = x;
        dz[2 * j + 1] = y;
        G[2 * j] = c * x + s * y + (outside ? outside[2 * j] : 0);
        G[2 * j + 1] = c * y - s * x + (outside ? outside[2 * j + 1] : 0);
    }
}

/* ---- all steps ---- */

#define STEP(kind, call) case kind: call; break

typedef struct { const REAL *rows; int64_t apart; } Rows;

static Tokens tokens_of(const GatedLinear *s, int64_t row, int64_t t) {
    return (Tokens){s->tokens + t * s->tokens_time + row * s->tokens_row, s->tokens_time, s->width};
}

/* The projections of the steps t ... t + count - 1; `block` has room for them. */
static Rows projections(const GatedLinear *s, int64_t row, int64_t t, int64_t count, REAL *block) {
    if (s->P) return (Rows){s->P + t * s->P_time + row * s->P_row, s->P_time};
    if (s->tokens) look_up(tokens_of(s, row, t), s->table, count, block, s->width);
    else product((Product){s->I, s->X + t * s->X_time + row * s->X_row, s->X_time, s->bias, 0, block, s->width, 0}, count,
                 s->width, s->W[0]);
    return (Rows){block, s->width};
}

void gated_linear_forward(const GatedLinear *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->N, M = s->kind < ROTATION ? n : 2 * n;
    REAL *block = scratch + 2 * n;
    for (int64_t row = first * s->unit; row < last * s->unit && row < s->B; row++) {
        const REAL *h = s->h0 + row * M;
        Rows p = {0};
        for (int64_t t = 0; t < s->T; t++) {
            if (t % STEPS == 0) p = projections(s, row, t, s->T - t < STEPS ? s->T - t : STEPS, block);
            const REAL *z = p.rows + t % STEPS * p.apart;
            REAL *out = s->H + (row * s->T + t) * M;
            switch (s->kind) {
                STEP(MINGRU, step(0, 0, z, h, out, n));
                STEP(MINGRU_IDENTITY, step(0, 1, z, h, out, n));
                STEP(MINLSTM, step(1, 0, z, h, out, n));
                STEP(MINLSTM_IDENTITY, step(1, 1, z, h, out, n));
                STEP(ROTATION, complex_step(1, z, h, out, scratch, n));
                STEP(UNITARY, complex_step(0, z, h, out, scratch, n));
            }
            h = out;
        }
    }
}

/* From the gradients dz of the projections of some steps to those of x, U and the bias. */
static void projections_back(const GatedLinear *s, int64_t row, int64_t t, int64_t count, const REAL *dz, REAL *scratch) {
    int64_t unit = row / s->unit, J = s->width;
    REAL *dU = s->dU + unit * s->I * J;
    if (s->tokens) look_up_back(tokens_of(s, row, t), dU, count, dz, J);
    else add_outer(s->X + t * s->X_time + row * s->X_row, s->X_time, dz, J, count, J, dU, scratch, 0, s->I);
    for (int64_t i = 0; s->bias && i < count; i++) add_to(s->dbias + unit * J, dz + i * J, J);
    if (s->dX)
        product((Product){J, dz, J, 0, 0, s->dX + (row * s->T + t) * s->I, s->I, 0}, count, s->I, s->W[1]);
}

#define AHEAD 6 /* steps whose rows are foreseen */

void gated_linear_backward(const GatedLinear *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->N, M = s->kind < ROTATION ? n : 2 * n;
    REAL *block = scratch + 2 * n, *dblock = block + STEPS * s->width, *room = dblock + STEPS * s->width;
    for (int64_t row = first * s->unit; row < last * s->unit && row < s->B; row++) {
        REAL *G = s->G + row * M;
        for (int64_t start = (s->T - 1) / STEPS * STEPS; start >= 0; start -= STEPS) {
            int64_t count = s->T - start < STEPS ? s->T - start : STEPS;
            Rows p = projections(s, row, start, count, block);
            for (int64_t i = count - 1, t = start + i; i >= 0; i--, t--) {
                const REAL *z = p.rows + i * p.apart, *outside = OUTSIDE(t - 1, row);
                const REAL *h = t ? s->H + (row * s->T + t - 1) * M : s->h0 + row * M;
                if (t > AHEAD) foresee(s->H + (row * s->T + t - 1 - AHEAD) * M, M);
                if (t > AHEAD && outside) foresee(OUTSIDE(t - 1 - AHEAD, row), M);
                REAL *dz = s->P ? s->dP + t * s->dP_time + row * s->dP_row : dblock + i * s->width;
                switch (s->kind) {
                    STEP(MINGRU, step_back(0, 0, z, h, G, outside, dz, n));
                    STEP(MINGRU_IDENTITY, step_back(0, 1, z, h, G, outside, dz, n));
                    STEP(MINLSTM, step_back(1, 0, z, h, G, outside, dz, n));
                    STEP(MINLSTM_IDENTITY, step_back(1, 1, z, h, G, outside, dz, n));
                    STEP(ROTATION, complex_step_back(1, z, h, G, outside, dz, scratch, n));
                    STEP(UNITARY, complex_step_back(0, z, h, G, outside, dz, scratch, n));
                }
            }
            if (!s->P) projections_back(s, row, start, count, dblock, room);
        }
    }
}

/* Numbers of scratch memory that a pass needs. */
int64_t gated_linear_scratch(const GatedLinear *s, int64_t backward) {
    return 2 * s->N + (1 + backward) * STEPS * s->width + backward * outer_scratch(s->width);
}
