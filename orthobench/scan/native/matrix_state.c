/* A matrix for every sequence and head that vectors are written to and read from: the equations are in matrix_state.py.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. Its matrix has a row for
 * every key and a column for every value. In scratch memory rows are W numbers apart, whole vectors, with zeros behind
 * the d that count, and so are all single vectors. The reverse needs sums along both sides of a matrix: it keeps states
 * transposed, and their gradient both ways, so that every sum runs over whole rows.
 */

#include "scan.h"

typedef struct {
    int64_t T, B, H, d, writes, delta;
    int64_t X_row, X_time; /* strides of X */
    REAL *X;               /* (B, T, (1 + 2 writes) H d): the query, the keys, the values, heads side by side in each */
    REAL *beta, *gate;     /* (B, T, writes, H); (B, T, H), or null */
    REAL *S0, *S;          /* (B, H, d, d) before and after all steps */
    REAL *O, *U;           /* (B, T, H, d) what was read; (B, T, writes, H, d) what the delta rule wrote, or null */
    REAL *dO, *dX, *dbeta, *dgate;
    REAL *dS;              /* dL/dS at the start, dL/dS0 at the end */
} MatrixState;

#define EACH_VECTOR for (int64_t w = 0; w < W; w += LANES)
#define AS_VECTOR(x) (*(vector *)(x))

static inline int64_t padded(int64_t d) { return (d + LANES - 1) / LANES * LANES; }

static inline __attribute__((always_inline)) void combine_panel(const int vectors, const int phases, const REAL *c,
                                                                const REAL *M, int64_t n, int64_t W, REAL *y) {
    vector sum[8];
    UNROLL for (int p = 0; p < 8; p++) sum[p] = (vector){0};
    int64_t i = 0;
    for (; i + phases <= n; i += phases)
        UNROLL for (int p = 0; p < phases; p++)
            UNROLL for (int v = 0; v < vectors; v++)
                sum[p * vectors + v] += c[i + p] * AS_VECTOR(M + (i + p) * W + v * LANES);
    for (; i < n; i++)
        UNROLL for (int v = 0; v < vectors; v++) sum[v] += c[i] * AS_VECTOR(M + i * W + v * LANES);
    UNROLL for (int v = 0; v < vectors; v++) {
        UNROLL for (int p = 1; p < phases; p++) sum[v] += sum[p * vectors + v];
        AS_VECTOR(y + v * LANES) = sum[v];
    }
}

/* y = the sum of the n rows of M times the numbers c. */
static void combine(const REAL *c, const REAL *M, int64_t n, int64_t W, REAL *y) {
    for (int64_t w = 0; w < W;) {
        int64_t left = (W - w) / LANES;
        if (left >= 4 && VECTORS == 4) combine_panel(4, 2, c, M + w, n, W, y + w), w += 4 * LANES;
        else if (left >= 2) combine_panel(2, 4, c, M + w, n, W, y + w), w += 2 * LANES;
        else combine_panel(1, 8, c, M + w, n, W, y + w), w += LANES;
    }
}

static inline __attribute__((always_inline)) void product_panel(const int vectors, const REAL *M, const REAL *a,
                                                                const REAL *y, int64_t n, int64_t W, REAL *out) {
    vector row[4];
    UNROLL for (int v = 0; v < vectors; v++) row[v] = AS_VECTOR(y + v * LANES);
    for (int64_t i = 0; i < n; i++)
        UNROLL for (int v = 0; v < vectors; v++)
            AS_VECTOR(out + i * W + v * LANES) = AS_VECTOR(M + i * W + v * LANES) + a[i] * row[v];
}

/* out = M + a y^T, of n rows; out may be M. */
static void add_product(const REAL *M, const REAL *a, const REAL *y, int64_t n, int64_t W, REAL *out) {
    for (int64_t w = 0; w < W;) {
        int64_t left = (W - w) / LANES;
        if (left >= 4) product_panel(4, M + w, a, y + w, n, W, out + w), w += 4 * LANES;
        else if (left >= 2) product_panel(2, M + w, a, y + w, n, W, out + w), w += 2 * LANES;
        else product_panel(1, M + w, a, y + w, n, W, out + w), w += LANES;
    }
}

ROW scaled(const REAL *x, REAL factor, REAL *out, int64_t W) { EACH_VECTOR AS_VECTOR(out + w) = factor * AS_VECTOR(x + w); }

static inline REAL dot(const REAL *x, const REAL *y, int64_t W) {
    vector sum = {0};
    EACH_VECTOR sum += AS_VECTOR(x + w) * AS_VECTOR(y + w);
    REAL total[LANES];
    AS_VECTOR(total) = sum;
    UNROLL for (int half = LANES / 2; half; half /= 2)
        UNROLL for (int m = 0; m < half; m++) total[m] += total[m + half];
    return total[0];
}

ROW copy(const REAL *restrict x, REAL *restrict out, int64_t n) { EACH out[j] = x[j]; }

/* The d numbers of x with zeros behind them. */
ROW load_row(const REAL *restrict x, int64_t d, int64_t W, REAL *restrict out) {
    for (int64_t j = 0; j < d; j++) out[j] = x[j];
    for (int64_t j = d; j < W; j++) out[j] = 0;
}

/* The same, under the delta rule at length 1; returns the factor. */
static inline REAL load_key(const MatrixState *s, const REAL *x, int64_t W, REAL *out) {
    load_row(x, s->d, W, out);
    if (!s->delta) return 1;
    REAL squared = dot(out, out, W) + (REAL)1e-6;
    REAL factor = 1 / (sizeof(REAL) == 4 ? __builtin_sqrtf((float)squared) : (REAL)__builtin_sqrt((double)squared));
    scaled(out, factor, out, W);
    return factor;
}

/* The gradient dk of what `load_key` made, brought back to what it was given. */
ROW store_key(const MatrixState *s, const REAL *k, REAL factor, REAL *dk, int64_t W, REAL *out) {
    if (s->delta) {
        REAL along = -dot(k, dk, W);
        EACH_VECTOR AS_VECTOR(dk + w) = factor * (AS_VECTOR(dk + w) + along * AS_VECTOR(k + w));
    }
    copy(dk, out, s->d);
}

static void load_matrix(const REAL *M, int64_t d, int64_t W, int64_t row, int64_t column, REAL *out) {
    memset(out, 0, d * W * sizeof(REAL));
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) out[i * W + j] = M[i * row + j * column];
}

static void store_matrix(const REAL *M, int64_t d, int64_t W, REAL *out) {
    for (int64_t i = 0; i < d; i++) copy(M + i * W, out + i * d, d);
}

static REAL *vector_of(REAL **scratch, int64_t W) {
    *scratch += W;
    return *scratch - W;
}

#define LINE                                                                                                           \
    int64_t b = line / s->H, head = line % s->H;                                                                       \
    const REAL *S0 = s->S0 + line * d * d;
#define STEP                                                                                                           \
    int64_t place = b * s->T + t;                                                                                      \
    const REAL *x = s->X + t * s->X_time + b * s->X_row + head * d;
#define BETA (s->beta[(place * s->writes + j) * s->H + head])
#define WRITTEN (s->U + (place * s->writes + j) * N + head * d)

void matrix_state_forward(const MatrixState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, W = padded(d), N = s->H * d;
    REAL *k = vector_of(&scratch, W), *u = vector_of(&scratch, W), *e = vector_of(&scratch, W), *S = scratch;
    for (int64_t line = first; line < last; line++) {
        LINE
        load_matrix(S0, d, W, d, 1, S);
        for (int64_t t = 0; t < s->T; t++) {
            STEP
            if (s->gate) scaled(S, s->gate[place * s->H + head], S, d * W);
            for (int64_t j = 0; j < s->writes; j++) {
                load_key(s, x + (1 + j) * N, W, k);
                load_row(x + (1 + s->writes + j) * N, d, W, u);
                if (s->delta) {
                    combine(k, S, d, W, e);
                    EACH_VECTOR AS_VECTOR(u + w) -= AS_VECTOR(e + w);
                    copy(u, WRITTEN, d);
                }
                scaled(k, BETA, k, W);
                add_product(S, k, u, d, W, S);
            }
            load_key(s, x, W, k);
            combine(k, S, d, W, e);
            copy(e, s->O + place * N + head * d, d);
        }
        store_matrix(S, d, W, s->S + line * d * d);
    }
}

/* All states of a line, transposed: before the gate, before every write, and after the last step. */
static void retrace(const MatrixState *s, int64_t line, REAL *k, REAL *u, REAL *S) {
    int64_t d = s->d, W = padded(d), N = s->H * d;
    LINE
    load_matrix(S0, d, W, 1, d, S);
    for (int64_t t = 0; t < s->T; t++) {
        STEP
        if (s->gate) scaled(S, s->gate[place * s->H + head], S + d * W, d * W), S += d * W;
        for (int64_t j = 0; j < s->writes; j++, S += d * W) {
            load_key(s, x + (1 + j) * N, W, k);
            load_row(s->delta ? WRITTEN : x + (1 + s->writes + j) * N, d, W, u);
            scaled(u, BETA, u, W);
            add_product(S, u, k, d, W, S + d * W);
        }
    }
}

void matrix_state_backward(const MatrixState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, W = padded(d), N = s->H * d, size = d * W;
    REAL *k = vector_of(&scratch, W), *u = vector_of(&scratch, W), *dk = vector_of(&scratch, W);
    REAL *dv = vector_of(&scratch, W), *e = vector_of(&scratch, W);
    REAL *G = vector_of(&scratch, size), *G_t = vector_of(&scratch, size), *trail = scratch;
    for (int64_t line = first; line < last; line++) {
        LINE
        (void)S0;
        retrace(s, line, k, u, trail);
        REAL *S = trail + s->T * (s->writes + (s->gate != 0)) * size;
        load_matrix(s->dS + line * d * d, d, W, d, 1, G);
        load_matrix(s->dS + line * d * d, d, W, 1, d, G_t);
        for (int64_t t = s->T - 1; t >= 0; t--) {
            STEP
            REAL *dx = s->dX + place * (1 + 2 * s->writes) * N + head * d, factor = load_key(s, x, W, k);
            load_row(s->dO + place * N + head * d, d, W, u);
            combine(u, S, d, W, dk);
            add_product(G, k, u, d, W, G);
            add_product(G_t, u, k, d, W, G_t);
            store_key(s, k, factor, dk, W, dx);
            for (int64_t j = s->writes - 1; j >= 0; j--) {
                S -= size;
                factor = load_key(s, x + (1 + j) * N, W, k);
                load_row(s->delta ? WRITTEN : x + (1 + s->writes + j) * N, d, W, u);
                combine(k, G, d, W, dv);
                combine(u, G_t, d, W, dk);
                s->dbeta[(place * s->writes + j) * s->H + head] = dot(dv, u, W);
                scaled(dv, BETA, dv, W);
                scaled(dk, BETA, dk, W);
                copy(dv, dx + (1 + s->writes + j) * N, d);
                if (s->delta) {
                    combine(dv, S, d, W, e);
                    EACH_VECTOR AS_VECTOR(dk + w) -= AS_VECTOR(e + w);
                    scaled(dv, -1, dv, W);
                    add_product(G, k, dv, d, W, G);
                    add_product(G_t, dv, k, d, W, G_t);
                }
                store_key(s, k, factor, dk, W, dx + (1 + j) * N);
            }
            if (s->gate) {
                REAL gate = s->gate[place * s->H + head];
                S -= size;
                s->dgate[place * s->H + head] = dot(G_t, S, size);
                scaled(G, gate, G, size);
                scaled(G_t, gate, G_t, size);
            }
        }
        store_matrix(G, d, W, s->dS + line * d * d);
    }
}
