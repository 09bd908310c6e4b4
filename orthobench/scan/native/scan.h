/* What every loop over time is given, and the row by row functions that several of them share.
 *
 * A call does the rows first..last-1 of the batch for the whole sequence. Rows are independent, so the bits do not
 * depend on how they are shared out. Shapes: T time, B batch, N hidden. Blocks (T, B, N) are contiguous except dH, whose
 * rows only are.
 */

#pragma once

#include "products.h"

typedef struct {
    int64_t T, B, N;
    int64_t activation, reset;
    int64_t dH_time, dH_row; /* strides of dH */
    double slope;        /* leaky ReLU's; complex modReLU's epsilon; the time step of a flow
                            or of an LEM; the stiffness of oscillators without a matrix */
    REAL *h0;            /* (B, N) the state before the first step */
    REAL *P;             /* projections (T, B, N) of every gate; replaced by a, or by the gates' values */
    REAL *H;             /* hidden states; null: they are in P */
    REAL *K;             /* GRU, reset after: W_c h + b_k; LSTM: the cells c; two states: the second, z */
    REAL *X;             /* GRU: dk or r h, (T, B, N); forward with reset before: one block (B, N) of scratch;
                            LSTM: c_0 (B, N); two states: z_0 (B, N);
                            flows: dL/dh_t, (T, B, N), of which the last is given */
    REAL *b, *beta;      /* modReLU's bias (N), or the weights w of oscillators without a matrix; a number, the scalar
                            gate, or three, dt, gamma and epsilon of oscillators, or null */
    REAL *late;          /* GRU: b_k (N); oscillators without a matrix: dt s (N) */
    REAL *weights[2];    /* packed matrices; null: there is none */
    int8_t *signs;       /* abs: the sign of z */
    REAL *dH;            /* gradient of every hidden state from outside, or null */
    REAL *dZ;            /* gradient of the projections, shaped as P */
    REAL *G;             /* (B, N): dL/dh_T at the start, dL/dh_0 at the end */
    REAL *S;             /* GRU, reset before: a block (B, N) of scratch; LSTM: dL/dc_T, at the end dL/dc_0;
                            two states: dL/dz_T, at the end dL/dz_0 */
    REAL *db, *dbeta;    /* (B, N) parts of the gradients of b and beta; oscillators without a matrix: of b and late */
    int64_t parameters;  /* how many numbers `factors` has */
    int64_t *plan;       /* how the factors are applied: rotations.c, fourier.c */
    REAL *factors, *tables;
    REAL *dfactors;      /* (B, parameters) */
    int64_t I, x_time, x_row, tokens_time, tokens_row; /* width of the inputs, or rows of U; strides */
    REAL *x, *U;         /* inputs (T, B, I) and their matrix, as lanes.h says, where a loop projects them; else null */
    int64_t *tokens;     /* (T, B), rows of U (I, 2 N) in place of x; or null */
    REAL *dx, *dU;       /* (T, B, I), or null; (blocks of LANES rows, I, 2 N), zero at first */
} Scan;

enum { MODRELU, RELU, LEAKY_RELU, ABS, TANH };
enum { AFTER, BEFORE, NONE };

#define ROW static inline void
#define EACH for (int64_t j = 0; j < n; j++)

/* For x <= 0: 2^k and exp(r) - 1, where x = k log 2 + r with |r| <= log(2) / 2; a Taylor series in r, 2^k by its bits. */
static inline void split_exponential(REAL x, REAL *two_to_k, REAL *rest) {
    if (sizeof(REAL) == 8) {
        double y = x < -700 ? -700 : x;
        double shifted = y * 1.4426950408889634 + 0x1.8p52, k = shifted - 0x1.8p52;
        double r = y - k * 0x1.62e42fefa3800p-1 - k * 0x1.ef35793c76730p-45;
        double s = 1.0 / 6227020800;
        s = s * r + 1.0 / 479001600;
        s = s * r + 1.0 / 39916800;
        s = s * r + 1.0 / 3628800;
        s = s * r + 1.0 / 362880;
        s = s * r + 1.0 / 40320;
        s = s * r + 1.0 / 5040;
        s = s * r + 1.0 / 720;
        s = s * r + 1.0 / 120;
        s = s * r + 1.0 / 24;
        s = s * r + 1.0 / 6;
        s = s * r + 0.5;
        s = s * r * r + r;
        int64_t bits;
        memcpy(&bits, &shifted, 8);
        bits = (int64_t)(((uint64_t)bits << 52) + 0x3ff0000000000000u);
        double power;
        memcpy(&power, &bits, 8);
        *two_to_k = (REAL)power;
        *rest = (REAL)s;
        return;
    }
    float y = x < -87 ? -87 : (float)x;
    float shifted = y * 1.44269504f + 0x1.8p23f, k = shifted - 0x1.8p23f;
    float r = y - k * 0x1.62e4p-1f - k * 0x1.7f7d1cp-20f;
    float s = 1.0f / 5040;
    s = s * r + 1.0f / 720;
    s = s * r + 1.0f / 120;
    s = s * r + 1.0f / 24;
    s = s * r + 1.0f / 6;
    s = s * r + 0.5f;
    s = s * r * r + r;
    int32_t bits;
    memcpy(&bits, &shifted, 4);
    bits = (int32_t)(((uint32_t)bits << 23) + 0x3f800000u);
    float power;
    memcpy(&power, &bits, 4);
    *two_to_k = (REAL)power;
    *rest = (REAL)s;
}

/* exp(x) - 1 for x <= 0. */
static inline REAL expm1_negative(REAL x) {
    REAL power, rest;
    split_exponential(x, &power, &rest);
    return power * rest + (power - 1);
}

/* exp(x) for x <= 0, at least exp(-87) or exp(-700). */
static inline REAL exp_negative(REAL x) {
    REAL power, rest;
    split_exponential(x, &power, &rest);
    return power * rest + power;
}

static inline REAL magnitude(REAL x) { return x < 0 ? -x : x; }

static inline REAL hyperbolic_tangent(REAL x) {
    REAL e = expm1_negative(-2 * magnitude(x)), y = -e / (2 + e);
    return x < 0 ? -y : y;
}

static inline REAL sigmoid(REAL x) {
    REAL e = exp_negative(-magnitude(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static inline REAL sign(REAL x) { return (REAL)((x > 0) - (x < 0)); }

/* z -> a in place. A number that is not one stays so, which is how a diverged run is seen. */
ROW activate(const Scan *s, REAL *restrict z, int8_t *restrict signs, int64_t n) {
    const REAL *restrict b = s->b;
    REAL slope = (REAL)s->slope;
    switch (s->activation) {
        case MODRELU: EACH {
            REAL size = magnitude(z[j]) + b[j];
            size = size < 0 ? 0 : size;
            z[j] = z[j] > 0 ? size : z[j] < 0 ? -size : 0 * size;
        } break;
        case RELU: EACH z[j] = z[j] < 0 ? 0 : z[j]; break;
        case LEAKY_RELU: EACH z[j] = z[j] < 0 ? slope * z[j] : z[j]; break;
        case ABS:
            if (signs) EACH signs[j] = (int8_t)((z[j] > 0) - (z[j] < 0));
            EACH z[j] = magnitude(z[j]);
            break;
        case TANH: EACH z[j] = hyperbolic_tangent(z[j]); break;
    }
}

/* dz = da act'(z), written in terms of a; modReLU's bias gradient is added to db. dz and da may not overlap. */
ROW derive(const Scan *s, const REAL *restrict da, const REAL *restrict a, REAL *restrict dz, REAL *restrict db,
           const int8_t *restrict signs, int64_t n) {
    REAL slope = (REAL)s->slope;
    switch (s->activation) {
        case MODRELU: EACH {
            REAL signed_da = a[j] > 0 ? da[j] : a[j] < 0 ? -da[j] : 0;
            db[j] += signed_da;
            dz[j] = a[j] == 0 ? 0 : da[j];
        } break;
        case RELU: EACH dz[j] = a[j] > 0 ? da[j] : 0; break;
        case LEAKY_RELU: EACH dz[j] = a[j] > 0 ? da[j] : slope * da[j]; break;
        case ABS: EACH dz[j] = da[j] * (REAL)signs[j]; break;
        case TANH: EACH dz[j] = da[j] * (1 - a[j] * a[j]); break;
    }
}

ROW add_to(REAL *restrict x, const REAL *restrict y, int64_t n) { EACH x[j] += y[j]; }

/* Tokens of some steps, each the place of a row of a table in place of U x + b. */
typedef struct { const int64_t *first; int64_t apart, width; } Tokens;

/* Their rows, written to `out`. */
ROW look_up(Tokens tokens, const REAL *table, int64_t steps, REAL *out, int64_t apart) {
    for (int64_t i = 0; i < steps; i++)
        memcpy(out + i * apart, table + tokens.first[i * tokens.apart] * tokens.width, tokens.width * sizeof(REAL));
}

/* The gradients d of what was looked up, added to that of the table. */
ROW look_up_back(Tokens tokens, REAL *dtable, int64_t steps, const REAL *d, int64_t apart) {
    for (int64_t i = 0; i < steps; i++)
        add_to(dtable + tokens.first[i * tokens.apart] * tokens.width, d + i * apart, tokens.width);
}

#define AT(X, t, row, width) ((X) ? (X) + (((t) * B + (row)) * (width)) : 0)
#define OUTSIDE(t, row) (s->dH && (t) >= 0 ? s->dH + (t) * s->dH_time + (row) * s->dH_row : 0)
