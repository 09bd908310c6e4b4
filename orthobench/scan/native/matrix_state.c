/* A matrix for every sequence and head that vectors are written to and read from: the equations are in matrix_state.py.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. Its matrix has a row for
 * every key and a column for every value. In scratch memory rows are W numbers apart, whole vectors, with zeros behind
 * the d that count, and so are all single vectors. The reverse needs sums along both sides of a matrix: it keeps states
 * transposed, and their gradient both ways, so that every sum runs over whole rows.
 */

#include "rows.h"

typedef struct {
    int64_t T, B, H, d, writes, delta;
    int64_t X_row, X_time; /* strides of X */
    REAL *X;               /* (B, T, (1 + 2 writes) H d): the query, the keys, the values, heads side by side in each */
    REAL *beta, *gate;     /* (B, T, writes, H); (B, T, H), or null */
    REAL *S0, *S;          /* (B, H, d, d) before and after all steps */
    REAL *O, *U;           /* (B, T, H, d) what was read; (B, T, writes, H, d) what the delta rule wrote, or null */
    REAL *dO, *dX, *dbeta, *dgate;
    REAL *dS;              /* dL/dS at the start, dL/dS0 at the end */
    REAL *z0, *z, *r;      /* (B, H, d) the sum of keys before and after all steps; (B, T, H) q . z; or null */
    REAL *dz, *dr;         /* as dS; dL/dr */
} MatrixState;

#define EACH_VECTOR for (int64_t w = 0; w < W; w += LANES)
static inline __attribute__((always_inline)) void combine_panel(const int vectors, const int phases, const REAL *c,
                                                                const REAL *M, int64_t n, int64_t W, REAL *y) {
    vector sum[8];
    UNROLL for (int p = 0; p < 8; p++) sum[p] = (vector){0};
    int64_t i = 0;
    for (; i + phases <= n; i += phases)
        UNROLL for (int p = 0; p < phases; p++)
            UNROLL for (int v = 0; v < vectors; v++)
                sum[p * vectors + v] += c[i + p] * VECTOR(M + (i + p) * W + v * LANES);
    for (; i < n; i++)
        UNROLL for (int v = 0; v < vectors; v++) sum[v] += c[i] * VECTOR(M + i * W + v * LANES);
    UNROLL for (int v = 0; v < vectors; v++) {
        UNROLL for (int p = 1; p < phases; p++) sum[v] += sum[p * vectors + v];
        VECTOR(y + v * LANES) = sum[v];
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

/* Of n rows M: out = factor M + a x^T, and where there are more parts, + b y^T, sum = out^T c, dot = <out, other>. */
typedef struct {
    REAL factor;
    const REAL *a, *x, *b, *y, *c, *other;
    REAL *sum, dot;
} Update;

enum { WRITES, READS, TWICE, COMPARES }; /* each with what those before it do */

static inline __attribute__((always_inline)) void update_panel(const int vectors, const int kind, Update *by,
                                                               const REAL *M, int64_t n, int64_t W, int64_t w, REAL *out) {
    vector x[4], y[4], sum[4], dot = {0};
    UNROLL for (int v = 0; v < vectors; v++) {
        x[v] = VECTOR(by->x + w + v * LANES), sum[v] = (vector){0};
        if (kind >= TWICE) y[v] = VECTOR(by->y + w + v * LANES);
    }
    for (int64_t i = 0; i < n; i++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            int64_t place = i * W + w + v * LANES;
            vector row = by->factor * VECTOR(M + place) + by->a[i] * x[v];
            if (kind >= TWICE) row += by->b[i] * y[v];
            if (kind >= READS) sum[v] += by->c[i] * row;
            if (kind >= COMPARES) dot += row * VECTOR(by->other + place);
            VECTOR(out + place) = row;
        }
    }
    if (kind >= READS) UNROLL for (int v = 0; v < vectors; v++) VECTOR(by->sum + w + v * LANES) = sum[v];
    if (kind >= COMPARES) by->dot += summed(dot);
}

/* Every row is read and written once; out may be M. */
static inline __attribute__((always_inline)) void update(const int kind, Update *by, const REAL *M, int64_t n, int64_t W,
                                                         REAL *out) {
    by->dot = 0;
    for (int64_t w = 0; w < W;) {
        int64_t left = (W - w) / LANES;
        if (left >= 4) update_panel(4, kind, by, M, n, W, w, out), w += 4 * LANES;
        else if (left >= 2) update_panel(2, kind, by, M, n, W, w, out), w += 2 * LANES;
        else update_panel(1, kind, by, M, n, W, w, out), w += LANES;
    }
}

ROW add_scaled(REAL f, const REAL *x, REAL g, const REAL *y, REAL *out, int64_t W) {
    EACH_VECTOR VECTOR(out + w) = f * VECTOR(x + w) + g * VECTOR(y + w);
}

ROW scaled(const REAL *x, REAL factor, REAL *out, int64_t W) { EACH_VECTOR VECTOR(out + w) = factor * VECTOR(x + w); }

static inline REAL dot(const REAL *x, const REAL *y, int64_t W) {
    vector sum = {0};
    EACH_VECTOR sum += VECTOR(x + w) * VECTOR(y + w);
    return summed(sum);
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
        EACH_VECTOR VECTOR(dk + w) = factor * (VECTOR(dk + w) + along * VECTOR(k + w));
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
#define GATE(j) ((j) == 0 && s->gate ? s->gate[place * s->H + head] : 1)
#define BETA (s->beta[(place * s->writes + j) * s->H + head])
#define WRITTEN (s->U + (place * s->writes + j) * N + head * d)

void matrix_state_forward(const MatrixState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, W = whole(d), N = s->H * d;
    REAL *q = vector_of(&scratch, W), *k = vector_of(&scratch, W), *u = vector_of(&scratch, W);
    REAL *e = vector_of(&scratch, W), *z = vector_of(&scratch, W), *S = scratch;
    for (int64_t line = first; line < last; line++) {
        LINE
        load_matrix(S0, d, W, d, 1, S);
        if (s->z0) load_row(s->z0 + line * d, d, W, z);
        for (int64_t t = 0; t < s->T; t++) {
            STEP
            load_key(s, x, W, q);
            for (int64_t j = 0; j < s->writes; j++) {
                load_key(s, x + (1 + j) * N, W, k);
                load_row(x + (1 + s->writes + j) * N, d, W, u);
                if (s->delta) {
                    combine(k, S, d, W, e);
                    EACH_VECTOR VECTOR(u + w) -= GATE(j) * VECTOR(e + w);
                    copy(u, WRITTEN, d);
                }
                scaled(k, BETA, k, W);
                if (s->z0) add_scaled(GATE(j), z, 1, k, z, W);
                Update by = {.factor = GATE(j), .a = k, .x = u, .c = q, .sum = e};
                if (j + 1 < s->writes) update(WRITES, &by, S, d, W, S);
                else update(READS, &by, S, d, W, S);
            }
            copy(e, s->O + place * N + head * d, d);
            if (s->z0) s->r[place * s->H + head] = dot(q, z, W);
        }
        if (s->z0) copy(z, s->z + line * d, d);
        store_matrix(S, d, W, s->S + line * d * d);
    }
}

/* All states of a line, transposed, and sums of keys: before every write, and after the last. */
static void retrace(const MatrixState *s, int64_t line, REAL *k, REAL *u, REAL *S, REAL *z) {
    int64_t d = s->d, W = whole(d), N = s->H * d;
    LINE
    load_matrix(S0, d, W, 1, d, S);
    if (s->z0) load_row(s->z0 + line * d, d, W, z);
    for (int64_t t = 0; t < s->T; t++) {
        STEP
        for (int64_t j = 0; j < s->writes; j++, S += d * W) {
            load_key(s, x + (1 + j) * N, W, k);
            load_row(s->delta ? WRITTEN : x + (1 + s->writes + j) * N, d, W, u);
            if (s->z0) add_scaled(GATE(j), z, BETA, k, z + W, W), z += W;
            scaled(u, BETA, u, W);
            Update by = {.factor = GATE(j), .a = u, .x = k};
            update(WRITES, &by, S, d, W, S + d * W);
        }
    }
}

/* What a write takes from G, and its gate, are left to the next pass over G: `earlier` of `behind` and `taken`. */
void matrix_state_backward(const MatrixState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t d = s->d, W = whole(d), N = s->H * d, size = d * W;
    REAL *q = vector_of(&scratch, W), *dO = vector_of(&scratch, W), *none = vector_of(&scratch, W);
    REAL *k = vector_of(&scratch, W), *u = vector_of(&scratch, W), *dk = vector_of(&scratch, W);
    REAL *dv = vector_of(&scratch, W), *e = vector_of(&scratch, W);
    REAL *behind = vector_of(&scratch, W), *taken = vector_of(&scratch, W);
    REAL *dz = vector_of(&scratch, W), *G = vector_of(&scratch, size), *G_t = vector_of(&scratch, size);
    REAL *trail = scratch, *sums = trail + (s->T * s->writes + 1) * size;
    memset(none, 0, W * sizeof(REAL));
    for (int64_t line = first; line < last; line++) {
        LINE
        (void)S0;
        retrace(s, line, k, u, trail, sums);
        REAL *S = trail + s->T * s->writes * size, *z = sums + s->T * s->writes * W, earlier = 1;
        load_matrix(s->dS + line * d * d, d, W, d, 1, G);
        load_matrix(s->dS + line * d * d, d, W, 1, d, G_t);
        if (s->z0) load_row(s->dz + line * d, d, W, dz);
        memset(behind, 0, W * sizeof(REAL));
        memset(taken, 0, W * sizeof(REAL));
        for (int64_t t = s->T - 1; t >= 0; t--) {
            STEP
            REAL *dx = s->dX + place * (1 + 2 * s->writes) * N + head * d, factor = load_key(s, x, W, q);
            load_row(s->dO + place * N + head * d, d, W, dO);
            combine(dO, S, d, W, dk);
            if (s->z0) {
                REAL dr = s->dr[place * s->H + head];
                add_scaled(1, dk, dr, z, dk, W);
                add_scaled(1, dz, dr, q, dz, W);
            }
            store_key(s, q, factor, dk, W, dx);
            for (int64_t j = s->writes - 1; j >= 0; j--) {
                S -= size;
                factor = load_key(s, x + (1 + j) * N, W, k);
                load_row(s->delta ? WRITTEN : x + (1 + s->writes + j) * N, d, W, u);
                int after_all = j + 1 == s->writes;
                const REAL *left = after_all ? q : none, *right = after_all ? dO : none;
                Update by = {.factor = earlier, .a = left, .x = right, .b = behind, .y = taken, .c = k, .sum = dv};
                Update by_t = {.factor = earlier, .a = right, .x = left, .b = taken, .y = behind, .c = u, .sum = dk};
                by_t.other = S;
                update(TWICE, &by, G, d, W, G);
                if (s->gate && j == 0) update(COMPARES, &by_t, G_t, d, W, G_t);
                else update(TWICE, &by_t, G_t, d, W, G_t);
                REAL dbeta = dot(dv, u, W);
                if (s->z0) {
                    z -= W;
                    add_scaled(1, dk, 1, dz, dk, W);
                    dbeta += dot(dz, k, W);
                    by_t.dot += dot(dz, z, W);
                    scaled(dz, GATE(j), dz, W);
                }
                s->dbeta[(place * s->writes + j) * s->H + head] = dbeta;
                scaled(dv, BETA, dv, W);
                scaled(dk, BETA, dk, W);
                copy(dv, dx + (1 + s->writes + j) * N, d);
                earlier = GATE(j);
                if (s->delta) {
                    combine(dv, S, d, W, e);
                    by_t.dot -= dot(k, e, W);
                    EACH_VECTOR VECTOR(dk + w) -= earlier * VECTOR(e + w);
                    scaled(k, 1, behind, W);
                    scaled(dv, -earlier, taken, W);
                }
                if (s->gate && j == 0) s->dgate[place * s->H + head] = by_t.dot;
                store_key(s, k, factor, dk, W, dx + (1 + j) * N);
            }
        }
        Update by = {.factor = earlier, .a = behind, .x = taken};
        update(WRITES, &by, G, d, W, G);
        store_matrix(G, d, W, s->dS + line * d * d);
        if (s->z0) copy(dz, s->dz + line * d, d);
    }
}
