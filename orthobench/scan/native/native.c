/* The recurrent scans of fused_elman.py and fused_gru.py, on one core, in plain C.
 *
 * Compiled once per REAL (float, double) at first use; see native.py, whose class Scan mirrors the struct below. A call
 * does the rows first..last-1 of the batch for the whole sequence. Rows are independent and every sum runs over k in
 * order, so the bits do not depend on how the rows are shared out.
 *
 * Shapes: T time, B batch, N hidden. Blocks (T, B, N) are contiguous except dH, whose rows only are.
 */

#include <stdint.h>
#include <string.h>

#ifndef REAL
#define REAL float
#endif

typedef struct {
    int64_t T, B, N;
    int64_t activation, reset;
    int64_t dH_time, dH_row; /* strides of dH */
    double slope;
    REAL *h0;            /* (B, N) the state before the first step */
    REAL *P;             /* projections (T, B, N), (T, B, 3 N) or (T, B, 2 N); replaced by a, or by r, u and c */
    REAL *H;             /* hidden states; null: they are in P */
    REAL *K;             /* GRU, reset after: W_c h + b_k */
    REAL *X;             /* GRU: dk or r h, (T, B, N); forward with reset before: one block (B, N) of scratch */
    REAL *b, *beta;      /* modReLU's bias (N); a number, the scalar gate, or null */
    REAL *late;          /* GRU: b_k (N) */
    REAL *weights[2];    /* packed matrices */
    int8_t *signs;       /* abs: the sign of z */
    REAL *dH;            /* gradient of every hidden state from outside, or null */
    REAL *dZ;            /* gradient of the projections, shaped as P */
    REAL *G;             /* (B, N): dL/dh_T at the start, dL/dh_0 at the end */
    REAL *S;             /* GRU, reset before: a block (B, N) of scratch */
    REAL *db, *dbeta;    /* (B, N) parts of the gradients of b and beta */
} Scan;

enum { MODRELU, RELU, LEAKY_RELU, ABS, TANH };
enum { AFTER, BEFORE, NONE };

/* ------------------------------------------------------------------------------------------ matrix products */

#if defined(__AVX512F__)
#define BYTES 64
#define VECTORS 4 /* per panel: 6 x 4 sums and 4 factors of 32 registers */
#elif defined(__AVX__)
#define BYTES 32
#define VECTORS 2 /* 6 x 2 sums and 2 factors of 16 registers */
#elif defined(__aarch64__)
#define BYTES 16
#define VECTORS 4
#else
#define BYTES 16
#define VECTORS 2
#endif

/* Whether the vectors of this build are wide enough to beat the products of a BLAS library, which picks its own. */
int64_t worthwhile(void) { return BYTES >= 32 || VECTORS == 4; }

#define LANES ((int64_t)(BYTES / sizeof(REAL)))
#define ROWS 6
#define DEPTH 128 /* rows of a panel used at a time, so that they stay in the first cache */

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

typedef REAL vector __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
typedef struct { int64_t start, vectors, kept; } Panel;

/* The panel from column j of J on: its first column, its width in vectors, and how many of its first columns belong to
 * the panel before. J that is no multiple of the lanes ends with a panel that reaches back instead of beyond. */
static Panel panel_at(int64_t j, int64_t J) {
    int64_t left = J - j, full = VECTORS * LANES;
    if (left >= full) return (Panel){j, VECTORS, 0};
    int64_t up = (left + LANES - 1) / LANES;
    if (up * LANES <= J) return (Panel){J - up * LANES, up, up * LANES - left};
    return (Panel){j, left / LANES, 0};
}

static int64_t after(Panel panel) { return panel.start + panel.vectors * LANES; }

/* How many numbers `pack` writes for a (K, J) matrix. */
int64_t packed_size(int64_t K, int64_t J) {
    if (J < LANES) return K * J;
    int64_t size = 0;
    for (int64_t j = 0; j < J;) {
        Panel panel = panel_at(j, J);
        size += K * panel.vectors * LANES;
        j = after(panel);
    }
    return size;
}

/* M[k, j] = W[k * step_k + j * step_j], panel by panel. */
void pack(const REAL *W, int64_t K, int64_t J, int64_t step_k, int64_t step_j, REAL *packed) {
    for (int64_t j = 0; j < J;) {
        Panel panel = J < LANES ? (Panel){0, 0, 0} : panel_at(j, J);
        int64_t width = J < LANES ? J : panel.vectors * LANES;
        for (int64_t k = 0; k < K; k++)
            for (int64_t i = 0; i < width; i++) *packed++ = W[k * step_k + (panel.start + i) * step_j];
        j = panel.start + width;
    }
}

typedef struct {
    int64_t K;
    const REAL *A;
    int64_t A_row;
    const REAL *start; /* what the sums start from; null: zero */
    int64_t start_row;
    REAL *out;
    int64_t out_row;
    int64_t A_step; /* zero: rows of A are contiguous; else A is read by columns, and the sums are added to out */
} Product;

static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, const int columns, Product p,
                                                       const REAL *packed, int64_t kept) {
    vector sum[ROWS][VECTORS];
    UNROLL for (int m = 0; m < rows; m++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            if (p.start) sum[m][v] = *(const vector *)(p.start + m * p.start_row + v * LANES);
            else sum[m][v] = (vector){0};
        }
    }
    for (int64_t k = 0; k < p.K; k++) {
        vector w[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) w[v] = *(const vector *)(packed + (k * vectors + v) * LANES);
        UNROLL for (int m = 0; m < rows; m++) {
            REAL a = columns ? p.A[k * p.A_step + m] : p.A[m * p.A_row + k];
            UNROLL for (int v = 0; v < vectors; v++) sum[m][v] += a * w[v];
        }
    }
    UNROLL for (int m = 0; m < rows; m++) {
        REAL *out = p.out + m * p.out_row;
        if (columns) {
            UNROLL for (int v = 0; v < vectors; v++) sum[m][v] += *(const vector *)(out + v * LANES);
        }
        if (kept) { /* the first lanes hold finished sums of the panel before */
            REAL first[LANES];
            memcpy(first, &sum[m][0], sizeof first);
            memcpy(out + kept, first + kept, (LANES - kept) * sizeof(REAL));
        } else *(vector *)out = sum[m][0];
        UNROLL for (int v = 1; v < vectors; v++) *(vector *)(out + v * LANES) = sum[m][v];
    }
}

#define WIDTHS(rows, columns)                                                                                          \
    switch (vectors) {                                                                                                 \
        case 1: tile(rows, 1, columns, p, packed, kept); break;                                                        \
        case 2: tile(rows, 2, columns, p, packed, kept); break;                                                        \
        case 3: tile(rows, VECTORS > 2 ? 3 : 1, columns, p, packed, kept); break;                                      \
        case 4: tile(rows, VECTORS > 2 ? 4 : 1, columns, p, packed, kept); break;                                      \
    }                                                                                                                  \
    break;
#define HEIGHTS(columns)                                                                                               \
    switch (rows) {                                                                                                    \
        case 1: WIDTHS(1, columns)                                                                                     \
        case 2: WIDTHS(2, columns)                                                                                     \
        case 3: WIDTHS(3, columns)                                                                                     \
        case 4: WIDTHS(4, columns)                                                                                     \
        case 5: WIDTHS(5, columns)                                                                                     \
        case 6: WIDTHS(6, columns)                                                                                     \
    }

static void any_tile(int64_t rows, int64_t vectors, Product p, const REAL *packed, int64_t kept) {
    if (p.A_step) HEIGHTS(1) else HEIGHTS(0)
}

/* Fewer columns than lanes. */
static void narrow(Product p, int64_t rows, int64_t J, const REAL *packed) {
    for (int64_t m = 0; m < rows; m++)
        for (int64_t j = 0; j < J; j++) {
            REAL sum = p.start ? p.start[m * p.start_row + j] : 0, *out = p.out + m * p.out_row + j;
            for (int64_t k = 0; k < p.K; k++)
                sum += p.A[p.A_step ? k * p.A_step + m : m * p.A_row + k] * packed[k * J + j];
            *out = p.A_step ? *out + sum : sum;
        }
}

/* out = start + A M for `rows` rows and a packed (K, J) matrix M; start and out may be the same. */
static void product(Product p, int64_t rows, int64_t J, const REAL *packed) {
    if (J < LANES) {
        narrow(p, rows, J, packed);
        return;
    }
    int64_t blocks = (rows + ROWS - 1) / ROWS, K = p.K;
    for (int64_t j = 0; j < J;) {
        Panel panel = panel_at(j, J);
        int64_t width = panel.vectors * LANES;
        for (int64_t k = 0; k < K; k += DEPTH) {
            Product q = p;
            q.K = K - k < DEPTH ? K - k : DEPTH;
            if (k && !p.A_step) q.start = p.out, q.start_row = p.out_row;
            for (int64_t i = 0; i < blocks; i++) {
                int64_t row = rows * i / blocks, count = rows * (i + 1) / blocks - row;
                Product r = q;
                r.A += p.A_step ? row + k * p.A_step : row * p.A_row + k;
                if (q.start) r.start += row * q.start_row + panel.start;
                r.out += row * p.out_row + panel.start;
                any_tile(count, panel.vectors, r, packed + k * width, panel.kept);
            }
        }
        packed += K * width;
        j = after(panel);
    }
}

/* out (M, N) += D^T H over R rows of D (their distance is D_row) and H (R, N), for the rows first..last-1 of out; the
 * sums of DEPTH rows each are added one after another. `scratch` has room for packed_size(DEPTH, N). */
void add_outer(const REAL *D, int64_t D_row, const REAL *H, int64_t R, int64_t N, REAL *out, REAL *scratch,
               int64_t first, int64_t last) {
    for (int64_t row = 0; row < R; row += DEPTH) {
        int64_t count = R - row < DEPTH ? R - row : DEPTH;
        pack(H + row * N, count, N, N, 1, scratch);
        Product p = {count, D + row * D_row + first, 0, 0, 0, out + first * N, N, D_row};
        product(p, last - first, N, scratch);
    }
}

int64_t outer_scratch(int64_t N) { return packed_size(DEPTH, N); }

/* ------------------------------------------------------------------------------------- elementwise functions */

#define ROW static inline void
#define EACH for (int64_t j = 0; j < n; j++)

/* exp(x) - 1 for x <= 0: x = k log 2 + r with |r| <= log(2) / 2, a Taylor series in r, and 2^k by its bits. */
static inline REAL expm1_negative(REAL x) {
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
        return (REAL)(power * s + (power - 1));
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
    return (REAL)(power * s + (power - 1));
}

static inline REAL magnitude(REAL x) { return x < 0 ? -x : x; }

static inline REAL hyperbolic_tangent(REAL x) {
    REAL e = expm1_negative(-2 * magnitude(x)), y = -e / (2 + e);
    return x < 0 ? -y : y;
}

static inline REAL sigmoid(REAL x) {
    REAL e = 1 + expm1_negative(-magnitude(x));
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

#define AT(X, t, row, width) ((X) ? (X) + (((t) * B + (row)) * (width)) : 0)
#define OUTSIDE(t, row) (s->dH && (t) >= 0 ? s->dH + (t) * s->dH_time + (row) * s->dH_row : 0)

/* --------------------------------------------------------------------------- plain cell, and behind a scalar gate */

ROW add_scaled(const REAL *restrict a, REAL beta, const REAL *restrict h, REAL *restrict out, int64_t n) {
    EACH out[j] = a[j] + beta * h[j];
}

void elman_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N;
    const REAL *states = s->H ? s->H : s->P;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *before = t ? AT(states, t - 1, first, N) : s->h0 + first * N;
        REAL *block = AT(s->P, t, first, N);
        product((Product){N, before, N, block, N, block, N, 0}, last - first, N, s->weights[0]);
        for (int64_t i = first; i < last; i++) activate(s, AT(s->P, t, i, N), AT(s->signs, t, i, N), N);
        if (s->beta) add_scaled(block, *s->beta, before, AT(s->H, t, first, N), (last - first) * N);
    }
}

/* dbeta += G h, and G becomes beta G + outside. */
ROW gate_back(REAL *restrict G, REAL beta, const REAL *restrict h, const REAL *restrict outside, REAL *restrict dbeta,
              int64_t n) {
    EACH dbeta[j] += G[j] * h[j];
    if (outside) EACH G[j] = beta * G[j] + outside[j];
    else EACH G[j] *= beta;
}

void elman_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        for (int64_t i = first; i < last; i++) {
            REAL *G = s->G + i * N, *db = AT(s->db, 0, i, N);
            derive(s, G, AT(s->P, t, i, N), AT(s->dZ, t, i, N), db, AT(s->signs, t, i, N), N);
            const REAL *h = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N;
            if (s->beta) gate_back(G, *s->beta, h, OUTSIDE(t - 1, i), AT(s->dbeta, 0, i, N), N);
        }
        REAL *G = s->G + first * N;
        Product p = {N, AT(s->dZ, t, first, N), N, OUTSIDE(t - 1, first), s->dH_row, G, N, 0};
        if (s->beta) p.start = G, p.start_row = N;
        product(p, last - first, N, s->weights[0]);
    }
}

/* --------------------------------------------------------------------------------------- gated recurrent unit */

ROW sigmoids(REAL *z, int64_t n) { EACH z[j] = sigmoid(z[j]); }
ROW multiply(const REAL *restrict x, const REAL *restrict y, REAL *restrict out, int64_t n) { EACH out[j] = x[j] * y[j]; }
ROW add_product(const REAL *restrict x, const REAL *restrict y, REAL *restrict out, int64_t n) { EACH out[j] += x[j] * y[j]; }
ROW blend(const REAL *restrict u, const REAL *restrict h, const REAL *restrict c, REAL *restrict out, int64_t n) {
    EACH out[j] = u[j] * h[j] + (1 - u[j]) * c[j];
}

/* Gates r, u, c of a row, or u, c without a reset: weights[0] makes the first two from h, weights[1] the candidate. */
void gru_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, gates = s->reset == NONE ? 2 : 3, width = gates * N, rows = last - first;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *before = t ? AT(s->H, t - 1, first, N) : s->h0 + first * N;
        REAL *z = AT(s->P, t, first, width);
        product((Product){N, before, N, z, width, z, width, 0}, rows, 2 * N, s->weights[0]);
        if (s->reset == AFTER)
            product((Product){N, before, N, s->late, 0, AT(s->K, t, first, N), N, 0}, rows, N, s->weights[1]);
        for (int64_t i = first; i < last; i++) {
            REAL *r = AT(s->P, t, i, width), *c = r + width - N;
            sigmoids(r, width - N);
            if (s->reset == AFTER) add_product(r, AT(s->K, t, i, N), c, N);
            if (s->reset == BEFORE) multiply(r, before + (i - first) * N, s->X + i * N, N);
        }
        REAL *c = z + width - N;
        if (s->reset == BEFORE)
            product((Product){N, s->X + first * N, N, c, width, c, width, 0}, rows, N, s->weights[1]);
        for (int64_t i = first; i < last; i++, c += width) {
            activate(s, c, AT(s->signs, t, i, N), N);
            blend(c - N, before + (i - first) * N, c, AT(s->H, t, i, N), N);
        }
    }
}

/* da = G (1 - u), dz_u = G (h - c) u (1 - u), and G becomes u G. */
ROW update_back(REAL *restrict G, const REAL *restrict u, const REAL *restrict c, const REAL *restrict h,
                REAL *restrict da, REAL *restrict dz_u, int64_t n) {
    EACH {
        da[j] = G[j] * (1 - u[j]);
        dz_u[j] = G[j] * (h[j] - c[j]) * (u[j] * (1 - u[j]));
        G[j] *= u[j];
    }
}

/* Reset after: dk = r dz_c, dz_r = k dz_c r (1 - r). */
ROW reset_after_back(const REAL *restrict r, const REAL *restrict k, const REAL *restrict dz_c, REAL *restrict dk,
                     REAL *restrict dz_r, int64_t n) {
    EACH {
        dk[j] = r[j] * dz_c[j];
        dz_r[j] = k[j] * dz_c[j] * (r[j] * (1 - r[j]));
    }
}

/* Reset before, with S = W_c^T dz_c: dz_r = S h r (1 - r), G += r S, and x = r h for the weights' gradient. */
ROW reset_before_back(const REAL *restrict r, const REAL *restrict h, const REAL *restrict S, REAL *restrict x,
                      REAL *restrict dz_r, REAL *restrict G, int64_t n) {
    EACH {
        x[j] = r[j] * h[j];
        dz_r[j] = S[j] * h[j] * (r[j] * (1 - r[j]));
        G[j] += r[j] * S[j];
    }
}

ROW add(REAL *restrict G, const REAL *restrict outside, int64_t n) { EACH G[j] += outside[j]; }

void gru_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, gates = s->reset == NONE ? 2 : 3, width = gates * N, rows = last - first;
    REAL *G = s->G + first * N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        REAL *dz = AT(s->dZ, t, first, width);
        for (int64_t i = first; i < last; i++) {
            REAL *c = AT(s->P, t, i, width) + width - N, *dz_c = AT(s->dZ, t, i, width) + width - N;
            const REAL *h = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N;
            update_back(s->G + i * N, c - N, c, h, s->S + i * N, dz_c - N, N);
            derive(s, s->S + i * N, c, dz_c, AT(s->db, 0, i, N), AT(s->signs, t, i, N), N);
            if (s->reset == AFTER)
                reset_after_back(c - 2 * N, AT(s->K, t, i, N), dz_c, AT(s->X, t, i, N), dz_c - 2 * N, N);
        }
        if (s->reset == BEFORE) {
            REAL *S = s->S + first * N;
            product((Product){N, dz + 2 * N, width, 0, 0, S, N, 0}, rows, N, s->weights[1]);
            for (int64_t i = first; i < last; i++) {
                const REAL *h = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N;
                reset_before_back(AT(s->P, t, i, width), h, s->S + i * N, AT(s->X, t, i, N), AT(s->dZ, t, i, width),
                                  s->G + i * N, N);
            }
        }
        if (t && s->dH)
            for (int64_t i = first; i < last; i++) add(s->G + i * N, OUTSIDE(t - 1, i), N);
        product((Product){2 * N, dz, width, G, N, G, N, 0}, rows, N, s->weights[0]);
        if (s->reset == AFTER)
            product((Product){N, AT(s->X, t, first, N), N, G, N, G, N, 0}, rows, N, s->weights[1]);
    }
}
