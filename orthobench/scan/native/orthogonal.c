/* Heads that decay as in decayed.c and are read by `orthogonalised` of cells/mlstm.py:
 *
 *     S <- g_t S + k_t v_t^T,   o_t = M_t^T q_t,   M_t = X_5,   X_0 = S_t / (|S_t| + 1e-6)
 *     X_{i+1} = B_i X_i,   B_i = a + b A_i + c A_i^2,   A_i = X_i X_i^T
 *
 * X has as many rows as S has keys, or values if these are fewer: then it is the transpose. As all that is made of A_i
 * commutes, A_{i+1} = B_i A_i B_i, and from i = TURNS on no X is made: o is found from X_i, B_i, ..., B_4 and q by
 * products with a vector. Rounding grows with each A that is made of the one before, and two are still as exact as X.
 *
 * With G = dL/dX_{i+1} and E = G X_i^T + X_i G^T, and with E = dL/dA_{i+1} and D = dL/dB_i, both symmetric,
 *
 *     dL/dX_i = B_i G + (b E + c (E A_i + A_i E)) X_i
 *     D <- D + E B_i A_i + B_i A_i E,   dL/dA_i = B_i E B_i + b D + c (D A_i + A_i D)
 *
 * A group is as many reads as a vector has lanes: a number of all their matrices is one vector, and a matrix needs no
 * padding. The reverse makes the states of a team of lines, then what their reads send back, then goes over the steps.
 */

#include "decayed.h"

#define TURNS 2 /* of X */
#define LATER 3 /* turns behind them */
#define SIDE (VECTORS == 4 ? 4 : 3) /* of a block of sums, which are in registers */
#define TEAM (4 * LANES) /* reads: a team ends with the line that brings as many */
#define CELL(M, place) VECTOR((M) + (place) * LANES)

static const REAL a = (REAL)3.4445, b = (REAL)-4.7750, c = (REAL)2.0315, least_norm = (REAL)1e-6;

typedef struct {
    int64_t d, e, n, m, size, flipped; /* keys and values; of X; d e; whether X is the transpose */
    int64_t N, M;                      /* vectors from row to row of n or m numbers: odd, as caches like it */
    int64_t count, place[LANES];
    REAL *X[TURNS + 1], *A[TURNS + LATER], *B[TURNS + LATER - 1], *T[LATER - 1]; /* T = B A */
    REAL *G, *dX, *E, *F;
    REAL *y[LATER + 1], *dy[LATER + 1], *u, *w; /* y: q or X q, and it times B_4, B_3, ... */
    REAL *q, *o;                                /* (d) and (e); o becomes dL/do */
    REAL *rows, *turned;                        /* of a group, (LANES, whole numbers) */
    REAL norm[LANES];
    vector factor;
} Reads;

static Reads reads_at(const DecayedState *s, REAL **memory) {
    Reads r = {.d = s->d, .e = s->e, .flipped = s->d > s->e, .size = s->d * s->e};
    r.n = r.flipped ? s->e : s->d, r.m = r.flipped ? s->d : s->e;
    r.N = r.n | 1, r.M = r.m | 1;
    int64_t whole_X = r.n * r.M * LANES, square = r.n * r.N * LANES, longest = whole(r.m) * LANES;
    for (int i = 0; i <= TURNS; i++) r.X[i] = take(memory, whole_X);
    for (int i = 0; i < TURNS + LATER; i++) r.A[i] = take(memory, square);
    for (int i = 0; i < TURNS + LATER - 1; i++) r.B[i] = take(memory, square);
    for (int i = 0; i < LATER - 1; i++) r.T[i] = take(memory, square);
    r.G = take(memory, whole_X), r.dX = take(memory, whole_X);
    r.E = take(memory, square), r.F = take(memory, square);
    for (int i = 0; i <= LATER; i++) r.y[i] = take(memory, longest), r.dy[i] = take(memory, longest);
    r.u = take(memory, longest), r.w = take(memory, longest), r.q = take(memory, longest), r.o = take(memory, longest);
    r.rows = take(memory, longest), r.turned = take(memory, whole(r.size) * LANES);
    return r;
}

/* A product A B of which sums are made: strides in vectors, from row to row (column to column) and along the sum. */
typedef struct { const REAL *A; int64_t A_row, A_step; const REAL *B; int64_t B_column, B_step; } Factors;

/* out = sums * by + C * more + diagonal; of a symmetric matrix the part below the diagonal, which is written twice. */
typedef struct { REAL *out; int64_t columns, row; REAL by, more, diagonal; const REAL *C; int symmetric; } Sums;

#define EACH_SUM UNROLL for (int v = 0; v < rows; v++) UNROLL for (int w = 0; w < columns; w++)

static inline __attribute__((always_inline)) void block(int rows, int columns, int64_t depth, const Factors *f, int count,
                                                        Sums s, int64_t i, int64_t j) {
    vector sum[SIDE][SIDE] = {{{0}}};
    for (int p = 0; p < count; p++) {
        const REAL *A = f[p].A + i * f[p].A_row * LANES, *B = f[p].B + j * f[p].B_column * LANES;
        int64_t A_row = f[p].A_row * LANES, B_column = f[p].B_column * LANES;
        for (int64_t k = 0; k < depth; k++, A += f[p].A_step * LANES, B += f[p].B_step * LANES) {
            vector of_B[SIDE];
            UNROLL for (int w = 0; w < columns; w++) of_B[w] = VECTOR(B + w * B_column);
            UNROLL for (int v = 0; v < rows; v++) {
                vector of_A = VECTOR(A + v * A_row);
                UNROLL for (int w = 0; w < columns; w++) sum[v][w] += of_A * of_B[w];
            }
        }
    }
    const REAL *C = s.C ? s.C + (i * s.row + j) * LANES : 0;
    if (C) EACH_SUM sum[v][w] = s.by * sum[v][w] + s.more * CELL(C, v * s.row + w);
    else if (s.by != 1) EACH_SUM sum[v][w] = s.by * sum[v][w];
    if (s.diagonal != 0 && i == j) UNROLL for (int v = 0; v < rows; v++) sum[v][v < columns ? v : 0] += s.diagonal;
    EACH_SUM CELL(s.out, (i + v) * s.row + j + w) = sum[v][w];
    if (s.symmetric && i != j) EACH_SUM CELL(s.out, (j + w) * s.row + i + v) = sum[v][w];
}

static void sum_products(int64_t rows, int64_t depth, const Factors *f, int count, Sums s) {
    for (int64_t i = 0, high; i < rows; i += high) {
        high = rows - i < SIDE ? 1 : SIDE;
        int64_t end = s.symmetric ? i + high : s.columns;
        for (int64_t j = 0, wide; j < end; j += wide) {
            wide = s.columns - j < SIDE ? 1 : SIDE;
            if (high == SIDE && wide == SIDE) block(SIDE, SIDE, depth, f, count, s, i, j);
            else if (high == SIDE) block(SIDE, 1, depth, f, count, s, i, j);
            else if (wide == SIDE) block(1, SIDE, depth, f, count, s, i, j);
            else block(1, 1, depth, f, count, s, i, j);
        }
    }
}

/* A B, with so many vectors from row to row. */
static Factors plain(const REAL *A, int64_t A_row, const REAL *B, int64_t B_row) {
    return (Factors){A, A_row, 1, B, 1, B_row};
}

/* A B^T */
static Factors by_rows(const REAL *A, const REAL *B, int64_t row) { return (Factors){A, row, 1, B, row, 1}; }

/* out = M x, of `rows`, or with the transpose of M, whose columns they are. */
static void apply(const REAL *M, int64_t row, int64_t rows, int64_t columns, int turned, const REAL *x, REAL *out) {
    Factors f = turned ? (Factors){M, 1, row, x, 1, 1} : (Factors){M, row, 1, x, 1, 1};
    sum_products(rows, columns, &f, 1, (Sums){out, 1, 1, 1, 0, 0, 0, 0});
}

/* out (n, n) = by times a sum of products that is symmetric, + more E + diagonal. */
static void symmetric(const Reads *r, int64_t depth, const Factors *f, int count, REAL by, REAL more, const REAL *E,
                      REAL diagonal, REAL *out) {
    sum_products(r->n, depth, f, count, (Sums){out, r->n, r->N, by, more, diagonal, E, 1});
}

/* out (n, m) = by times a sum of products, + C. */
static void as_X(const Reads *r, const Factors *f, int count, REAL by, const REAL *C, REAL *out) {
    sum_products(r->n, r->n, f, count, (Sums){out, r->m, r->M, by, 1, 0, C, 0});
}

/* out += by (x y^T + y x^T) */
static void add_pair(const Reads *r, REAL by, const REAL *x, const REAL *y, REAL *out) {
    for (int64_t i = 0; i < r->n; i++) {
        vector of_x = by * CELL(x, i), of_y = by * CELL(y, i);
        for (int64_t j = 0; j < r->n; j++) CELL(out, i * r->N + j) += of_x * CELL(y, j) + of_y * CELL(x, j);
    }
}

/* The numbers of a group at their places, `width` each, in the lanes of vectors. */
static void gather(Reads *r, const REAL *from, int64_t width, REAL *out) {
    int64_t W = whole(width);
    memset(r->rows, 0, LANES * W * sizeof(REAL));
    for (int64_t lane = 0; lane < r->count; lane++) copied(from + r->place[lane] * width, width, r->rows + lane * W);
    turn_over(r->rows, LANES, W, out);
}

static void scatter(Reads *r, REAL *lanes, int64_t width, REAL *to) {
    int64_t W = whole(width);
    memset(lanes + width * LANES, 0, (W - width) * LANES * sizeof(REAL));
    turn_over(lanes, W, LANES, r->rows);
    for (int64_t lane = 0; lane < r->count; lane++) copied(r->rows + lane * W, width, to + r->place[lane] * width);
}

/* The place in the state of a number of X. */
static int64_t in_state(const Reads *r, int64_t i, int64_t j) { return r->flipped ? j * r->n + i : i * r->m + j; }

/* X_0 of the states of a group, one in each row. */
static void load(Reads *r, const REAL *states) {
    vector sum[4] = {{0}};
    turn_over(states, LANES, whole(r->size), r->turned);
    for (int64_t i = 0; i < r->size; i++) sum[i % 4] += CELL(r->turned, i) * CELL(r->turned, i);
    vector squares = sum[0] + sum[1] + (sum[2] + sum[3]);
    for (int64_t lane = 0; lane < LANES; lane++) {
        REAL square = squares[lane];
        r->norm[lane] = square_root(square);
        r->factor[lane] = 1 / ((square > 0 ? r->norm[lane] : square == 0 ? 1 : square) + least_norm);
    }
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t j = 0; j < r->m; j++)
            CELL(r->X[0], i * r->M + j) = r->factor * CELL(r->turned, in_state(r, i, j));
}

/* All X, A, B and T of X_0. */
static void orthogonalise(Reads *r) {
    int64_t n = r->n, N = r->N, M = r->M;
    for (int i = 0; i < TURNS + LATER - 1; i++) {
        REAL *A = r->A[i], *B = r->B[i], *T = i < TURNS ? 0 : r->T[i - TURNS];
        if (i <= TURNS) symmetric(r, r->m, (Factors[]){by_rows(r->X[i], r->X[i], M)}, 1, 1, 0, 0, 0, A);
        symmetric(r, n, (Factors[]){plain(A, N, A, N)}, 1, c, b, A, a, B);
        if (T) {
            symmetric(r, n, (Factors[]){plain(B, N, A, N)}, 1, 1, 0, 0, 0, T);
            symmetric(r, n, (Factors[]){plain(T, N, B, N)}, 1, 1, 0, 0, 0, r->A[i + 1]);
        } else as_X(r, (Factors[]){plain(B, N, r->X[i], M)}, 1, 1, 0, r->X[i + 1]);
    }
}

/* out = B_i x */
static void times_B(const Reads *r, int i, const REAL *x, REAL *out) { apply(r->B[i], r->N, r->n, r->n, 0, x, out); }

/* out = B_4 x, and u = A_4 x. */
static void times_last_B(const Reads *r, const REAL *x, REAL *u, REAL *out) {
    const REAL *A = r->A[TURNS + LATER - 1];
    apply(A, r->N, r->n, r->n, 0, x, u);
    apply(A, r->N, r->n, r->n, 0, u, out);
    for (int64_t i = 0; i < r->n; i++) CELL(out, i) = a * CELL(x, i) + b * CELL(u, i) + c * CELL(out, i);
}

/* out (n) = X x, or (m) = X^T x if `turned`. */
static void times_X(const Reads *r, int turned, const REAL *x, REAL *out) {
    apply(r->X[TURNS], r->M, turned ? r->m : r->n, turned ? r->n : r->m, turned, x, out);
}

/* o = M^T q of the group. */
static void recall(Reads *r, const REAL *queries) {
    size_t short_row = r->n * LANES * sizeof(REAL);
    gather(r, queries, r->d, r->q);
    if (r->flipped) times_X(r, 0, r->q, r->y[0]);
    else memcpy(r->y[0], r->q, short_row);
    times_last_B(r, r->y[0], r->u, r->y[1]);
    for (int i = 1; i < LATER; i++) times_B(r, TURNS + LATER - 1 - i, r->y[i], r->y[i + 1]);
    if (r->flipped) memcpy(r->o, r->y[LATER], short_row);
    else times_X(r, 1, r->y[LATER], r->o);
}

/* From dL/do in r->o: dL/dq in r->q, and dL/dX_TURNS but for what its A sends back in r->G, dL/dA of that in r->E. */
static void recall_back(Reads *r) {
    int64_t n = r->n, N = r->N;
    size_t square = n * N * LANES * sizeof(REAL), short_row = n * LANES * sizeof(REAL);
    REAL *D = r->dX, **y = r->y, **dy = r->dy;
    if (r->flipped) memcpy(dy[LATER], r->o, short_row);
    else times_X(r, 0, r->o, dy[LATER]);
    for (int i = LATER; i > 1; i--) times_B(r, TURNS + LATER - i, dy[i], dy[i - 1]);
    times_last_B(r, dy[1], r->w, dy[0]);
    for (int64_t i = 0; i < n; i++) CELL(r->u, i) = b * CELL(y[0], i) + c * CELL(r->u, i);
    memset(r->E, 0, square);
    add_pair(r, (REAL)0.5, dy[1], r->u, r->E);
    add_pair(r, c / 2, r->w, y[0], r->E);
    for (int i = LATER - 2; i >= 0; i--) {
        const REAL *A = r->A[TURNS + i], *B = r->B[TURNS + i], *T = r->T[i];
        memset(r->F, 0, square);
        add_pair(r, c / 2, dy[LATER - i], y[LATER - 1 - i], r->F);
        symmetric(r, n, (Factors[]){plain(r->E, N, T, N), plain(T, N, r->E, N)}, 2, c, 1, r->F, 0, D);
        sum_products(n, n, (Factors[]){plain(r->E, N, B, N)}, 1, (Sums){r->F, n, N, 1, 1, 0, 0, 0});
        Factors all[] = {plain(B, N, r->F, N), plain(D, N, A, N), plain(A, N, D, N)};
        symmetric(r, n, all, 3, 1, b / c, D, 0, r->E);
    }
    const REAL *left = r->flipped ? dy[0] : y[LATER], *right = r->flipped ? r->q : r->o;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < r->m; j++) CELL(r->G, i * r->M + j) = CELL(left, i) * CELL(right, j);
    if (r->flipped) times_X(r, 1, dy[0], r->q);
    else memcpy(r->q, dy[0], short_row);
}

/* What the reads of a group send back to their states, one in each row, from dL/do at their places. */
static void read_back(Reads *r, const DecayedState *s, REAL *rows) {
    int64_t N = r->N, M = r->M, W = whole(r->size);
    load(r, rows), orthogonalise(r), recall(r, s->q);
    gather(r, s->dO, s->e, r->o);
    recall_back(r);
    scatter(r, r->q, s->d, s->dq);
    REAL *G = r->G, *dX = r->dX;
    as_X(r, (Factors[]){plain(r->E, N, r->X[TURNS], M)}, 1, 2, G, G);
    for (int i = TURNS - 1; i >= 0; i--) {
        const REAL *X = r->X[i], *A = r->A[i];
        symmetric(r, r->m, (Factors[]){by_rows(G, X, M), by_rows(X, G, M)}, 2, 1, 0, 0, 0, r->E);
        symmetric(r, r->n, (Factors[]){plain(r->E, N, A, N), plain(A, N, r->E, N)}, 2, c, b, r->E, 0, r->F);
        as_X(r, (Factors[]){plain(r->B[i], N, G, M), plain(r->F, N, X, M)}, 2, 1, 0, dX);
        REAL *last = G;
        G = dX, dX = last;
    }
    vector along = {0};
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t j = 0; j < r->m; j++) along += CELL(G, i * M + j) * CELL(r->X[0], i * M + j);
    for (int64_t lane = 0; lane < LANES; lane++)
        along[lane] = r->norm[lane] != 0 ? along[lane] / (r->norm[lane] * r->factor[lane]) : 0;
    memset(r->turned + r->size * LANES, 0, (W - r->size) * LANES * sizeof(REAL));
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t j = 0; j < r->m; j++) {
            vector given = CELL(G, i * M + j) - along * CELL(r->X[0], i * M + j);
            CELL(r->turned, in_state(r, i, j)) = r->factor * given;
        }
    turn_over(r->turned, W, LANES, rows);
}

/* after = exp(log_g) before + k v^T; the two may be the same. */
static void write_state(const DecayedState *s, int64_t place, const REAL *before, REAL *after) {
    REAL g = exp_negative(s->log_g[place]);
    const REAL *k = s->k + place * s->d, *v = s->v + place * s->e;
    for (int64_t i = 0; i < s->d; i++)
        for (int64_t j = 0; j < s->e; j++) after[i * s->e + j] = g * before[i * s->e + j] + k[i] * v[j];
}

static int is_wanted(const DecayedState *s, int64_t line, int64_t t) {
    return !s->wanted || s->wanted[line / s->H * s->T + t];
}

static int64_t most_reads(const DecayedState *s) { return (TEAM + s->T + LANES - 1) / LANES * LANES; }

/* Numbers of scratch memory that a pass needs. */
int64_t orthogonal_scratch(const DecayedState *s, int64_t backward) {
    REAL *end = 0;
    int64_t size = whole(s->d * s->e);
    reads_at(s, &end);
    return (int64_t)(end - (REAL *)0) + (backward ? most_reads(s) + s->T + 2 : LANES + 1) * size;
}

static void read_group(Reads *r, const DecayedState *s, const REAL *states) {
    load(r, states), orthogonalise(r), recall(r, s->q);
    scatter(r, r->o, s->e, s->O);
    r->count = 0;
}

void orthogonal_forward(const DecayedState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t size = s->d * s->e, W = whole(size);
    Reads r = reads_at(s, &scratch);
    REAL *S = take(&scratch, W), *states = take(&scratch, LANES * W);
    memset(states, 0, LANES * W * sizeof(REAL));
    for (int64_t line = first; line < last; line++) {
        memcpy(S, s->S0 + line * size, size * sizeof(REAL));
        for (int64_t t = 0; t < s->T; t++) {
            int64_t place = place_of(s, line, t);
            write_state(s, place, S, S);
            if (!is_wanted(s, line, t)) {
                memset(s->O + place * s->e, 0, s->e * sizeof(REAL));
                continue;
            }
            memcpy(states + r.count * W, S, size * sizeof(REAL));
            r.place[r.count++] = place;
            if (r.count == LANES) read_group(&r, s, states);
        }
        memcpy(s->S + line * size, S, size * sizeof(REAL));
    }
    if (r.count) read_group(&r, s, states);
}

/* What the reads of the lines first..last-1 send back to their states, in rows; dL/dq, too. Returns how many there are. */
static int64_t team_back(const DecayedState *s, Reads *r, int64_t first, int64_t *last, REAL *S, REAL *rows) {
    int64_t size = s->d * s->e, W = whole(size), made = 0, line = first;
    for (; line < *last && made < TEAM; line++) {
        memcpy(S, s->S0 + line * size, size * sizeof(REAL));
        for (int64_t t = 0; t < s->T; t++) {
            int64_t place = place_of(s, line, t);
            write_state(s, place, S, S);
            if (!is_wanted(s, line, t)) {
                memset(s->dq + place * s->d, 0, s->d * sizeof(REAL));
                continue;
            }
            memcpy(rows + made * W, S, size * sizeof(REAL));
            r->place[r->count++] = place, made++;
            if (r->count == LANES) read_back(r, s, rows + (made - LANES) * W), r->count = 0;
        }
    }
    if (r->count) read_back(r, s, rows + (made - r->count) * W), r->count = 0;
    *last = line;
    return made;
}

/* The reverse of the steps of a line, whose reads have sent `rows` back; G is dL/dS. */
static void line_back(const DecayedState *s, int64_t line, const REAL *rows, REAL *states, REAL *G) {
    int64_t d = s->d, e = s->e, size = d * e, W = whole(size);
    memcpy(states, s->S0 + line * size, size * sizeof(REAL));
    for (int64_t t = 0; t < s->T; t++) write_state(s, place_of(s, line, t), states + t * W, states + (t + 1) * W);
    padded_copy(s->dS + line * size, size, W, G);
    for (int64_t t = s->T - 1; t >= 0; t--) {
        int64_t place = place_of(s, line, t);
        const REAL *k = s->k + place * d, *v = s->v + place * e;
        REAL *dk = s->dk + place * d, *dv = s->dv + place * e;
        if (is_wanted(s, line, t)) rows -= W, add_scaled(1, rows, W, G);
        memset(dv, 0, e * sizeof(REAL));
        for (int64_t i = 0; i < d; i++) {
            REAL sum = 0;
            for (int64_t j = 0; j < e; j++) sum += G[i * e + j] * v[j];
            dk[i] = sum;
            for (int64_t j = 0; j < e; j++) dv[j] += k[i] * G[i * e + j];
        }
        scaled(exp_negative(s->log_g[place]), G, W, G);
        s->dlog_g[place] = inner(G, states + t * W, W);
    }
    memcpy(s->dS + line * size, G, size * sizeof(REAL));
}

void orthogonal_backward(const DecayedState *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t W = whole(s->d * s->e);
    Reads r = reads_at(s, &scratch);
    REAL *G = take(&scratch, W), *states = take(&scratch, (s->T + 1) * W), *rows = take(&scratch, most_reads(s) * W);
    memset(G, 0, (s->T + 2) * W * sizeof(REAL)); /* of the states, too: what is behind their numbers is read */
    while (first < last) {
        int64_t end = last, made = team_back(s, &r, first, &end, states, rows);
        for (int64_t line = end - 1; line >= first; line--) {
            line_back(s, line, rows + made * W, states, G);
            for (int64_t t = 0; t < s->T; t++) made -= is_wanted(s, line, t);
        }
        first = end;
    }
}
