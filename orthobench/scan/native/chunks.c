/* The two passes of chunks.h. */

#include "chunks.h"

#define TILE (VECTORS == 4 ? 8 : 4) /* by two vectors; twice as many by one */
#define ANY static inline __attribute__((always_inline))

/* out (rows, vectors) = or += A B; the number (m, k) of A is A[m * width + k], or where it is turned A[k * width + m]. */
ANY void tile(const int rows, const int vectors, const int add, const int turned, const REAL *A, int64_t width, int64_t K,
              const REAL *B, int64_t W, REAL *out) {
    vector sum[2 * TILE];
    UNROLL for (int m = 0; m < rows; m++)
        UNROLL for (int v = 0; v < vectors; v++)
            sum[m * vectors + v] = add ? VECTOR(out + m * W + v * LANES) : (vector){0};
    for (int64_t k = 0; k < K; k++) {
        vector b[2];
        UNROLL for (int v = 0; v < vectors; v++) b[v] = VECTOR(B + k * W + v * LANES);
        UNROLL for (int m = 0; m < rows; m++) {
            REAL a = turned ? A[k * width + m] : A[m * width + k];
            UNROLL for (int v = 0; v < vectors; v++) sum[m * vectors + v] += a * b[v];
        }
    }
    UNROLL for (int m = 0; m < rows; m++)
        UNROLL for (int v = 0; v < vectors; v++) VECTOR(out + m * W + v * LANES) = sum[m * vectors + v];
}

ANY void tiles(const int add, const int turned, const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B,
               int64_t W, REAL *out) {
    int64_t w = 0, next = turned ? 1 : width;
    for (; w + 2 * LANES <= W; w += 2 * LANES)
        for (int64_t m = 0; m < rows; m += TILE)
            tile(TILE, 2, add, turned, A + m * next, width, K, B + w, W, out + m * W + w);
    for (; w < W; w += LANES) {
        int64_t m = 0;
        for (; m + 2 * TILE <= rows; m += 2 * TILE)
            tile(2 * TILE, 1, add, turned, A + m * next, width, K, B + w, W, out + m * W + w);
        for (; m < rows; m += TILE) tile(TILE, 1, add, turned, A + m * next, width, K, B + w, W, out + m * W + w);
    }
}

/* The usual widths are known to the compiler. */
#define USUAL 32
ANY void any_tiles(const int add, const int turned, const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B,
                   int64_t W, REAL *out) {
    if (width == USUAL && W == USUAL) tiles(add, turned, A, USUAL, rows, K, B, USUAL, out);
    else if (width == CHUNK && W == USUAL) tiles(add, turned, A, CHUNK, rows, K, B, USUAL, out);
    else if (width == USUAL && W == CHUNK) tiles(add, turned, A, USUAL, rows, K, B, CHUNK, out);
    else tiles(add, turned, A, width, rows, K, B, W, out);
}

/* out (rows, W) = A B, for A (rows, K) and B (K, W). */
void multiply(const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B, int64_t W, REAL *out) {
    any_tiles(0, 0, A, width, rows, K, B, W, out);
}

/* out += A B. */
void add_product(const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B, int64_t W, REAL *out) {
    any_tiles(1, 0, A, width, rows, K, B, W, out);
}

/* out += A^T B, for A (K, rows). */
void add_turned(const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B, int64_t W, REAL *out) {
    any_tiles(1, 1, A, width, rows, K, B, W, out);
}

void turn_over(const REAL *X, int64_t rows, int64_t columns, REAL *out) {
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t j = 0; j < columns; j += LANES) {
            vector square[LANES];
            UNROLL_LANES for (int m = 0; m < LANES; m++) square[m] = VECTOR(X + (i + m) * columns + j);
            transpose(square);
            UNROLL_LANES for (int m = 0; m < LANES; m++) VECTOR(out + (j + m) * rows + i) = square[m];
        }
}

ANY void dots(const REAL *X, const REAL *Y, int64_t Y_row, int64_t rows, int64_t W, REAL *out) {
    for (int64_t i = 0; i < rows; i += LANES) {
        vector sums[LANES];
        UNROLL_LANES for (int m = 0; m < LANES; m++) {
            sums[m] = (vector){0};
            const REAL *x = X + (i + m) * W, *y = Y + (i + m) * Y_row;
            for (int64_t w = 0; w < W; w += LANES) sums[m] += VECTOR(x + w) * VECTOR(y + w);
        }
        VECTOR(out + i) = sum_each(sums);
    }
}

void row_dots(const REAL *X, const REAL *Y, int64_t rows, int64_t W, REAL *out) { dots(X, Y, W, rows, W, out); }

void dots_with(const REAL *X, const REAL *y, int64_t rows, int64_t W, REAL *out) { dots(X, y, 0, rows, W, out); }

static REAL *taken(REAL **memory, int64_t count) {
    *memory += count;
    return *memory - count;
}

int64_t chunk_size(const Head *h) {
    return (STACK + CHUNK + h->V + 1) * h->K + (3 * CHUNK + STACK) * h->V + (CHUNK + STACK) * CHUNK;
}

Chunk chunk_at(const Head *h, REAL *m) {
    Chunk c = {0};
    c.L = taken(&m, STACK * h->K), c.KT = taken(&m, CHUNK * h->K), c.S = taken(&m, h->K * h->V);
    c.U = taken(&m, CHUNK * h->V), c.Y = taken(&m, CHUNK * h->V), c.E = taken(&m, STACK * h->V);
    c.kept = h->gated ? taken(&m, CHUNK * h->V) : c.Y;
    c.D = taken(&m, CHUNK * CHUNK), c.M = taken(&m, STACK * CHUNK), c.z = taken(&m, h->K);
    return c;
}

int64_t chunk_back_size(const Head *h) {
    return STACK * h->K + (3 * CHUNK + 2 * STACK) * h->V + STACK * CHUNK + 2 * h->K * h->V + CHUNK;
}

ChunkBack chunk_back_at(const Head *h, REAL *m) {
    ChunkBack b = {0};
    b.dL = taken(&m, STACK * h->K), b.dU = taken(&m, CHUNK * h->V), b.N = taken(&m, STACK * h->V);
    b.F = taken(&m, STACK * h->V), b.dM = taken(&m, STACK * CHUNK), b.ST = taken(&m, h->K * h->V);
    b.GT = taken(&m, h->K * h->V), b.YT = taken(&m, CHUNK * h->V), b.dr = taken(&m, CHUNK);
    b.dO = b.N + CHUNK * h->V;
    return b;
}

/* The gates between two writes, D_ij for j <= i, and those since the first and up to the last. */
static void between(const Head *h, Chunk *c) {
    if (!h->gated && c->closing[0] == 1) return; /* as it was */
    UNROLL for (int w = 0; w < CHUNK; w += (int)LANES) {
        vector row = {0};
        UNROLL for (int i = 0; i < CHUNK; i++) {
            row *= h->gated ? c->gate[i] : 1;
            if (i >= w && i < w + LANES) row[i - w] = 1;
            VECTOR(c->D + i * CHUNK + w) = row;
        }
        VECTOR(c->closing + w) = row;
    }
    for (int64_t i = 0; i < CHUNK; i++) c->since[i] = (i ? c->since[i - 1] : 1) * (h->gated ? c->gate[i] : 1);
}

/* M = X * D, row by row, with no write of its own in a key's. */
static void between_rows(const Head *h, const Chunk *c, REAL *M) {
    for (int64_t i = 0; i < CHUNK && h->delta; i++) {
        for (int64_t w = 0; w < CHUNK; w += LANES) VECTOR(M + i * CHUNK + w) *= VECTOR(c->D + i * CHUNK + w);
        M[i * CHUNK + i] = 0;
    }
    M += CHUNK * CHUNK;
    for (int64_t q = 0; q < c->reads; q++)
        for (int64_t w = 0; w < CHUNK; w += LANES) VECTOR(M + q * CHUNK + w) *= VECTOR(c->D + c->place[q] * CHUNK + w);
}

/* U <- the solution of (I + A diag(beta)) U = U, where A is below the diagonal; Y = diag(beta) U. */
static void solve(const REAL *A, const REAL *beta, int64_t W, REAL *U, REAL *Y) {
    for (int64_t w = 0; w < W; w += LANES) {
        vector u[CHUNK];
        UNROLL for (int i = 0; i < CHUNK; i++) u[i] = VECTOR(U + i * W + w);
        UNROLL for (int j = 0; j < CHUNK; j++) {
            vector y = beta[j] * u[j];
            VECTOR(U + j * W + w) = u[j];
            VECTOR(Y + j * W + w) = y;
            UNROLL for (int i = 0; i < CHUNK; i++)
                if (i > j) u[i] -= A[i * CHUNK + j] * y;
        }
    }
}

/* dY <- the solution of (I + A^T diag(beta)) dY = dY, and minus = -diag(beta) dY. */
static void solve_back(const REAL *A, const REAL *beta, int64_t W, REAL *dY, REAL *minus) {
    for (int64_t w = 0; w < W; w += LANES) {
        vector y[CHUNK];
        UNROLL for (int i = 0; i < CHUNK; i++) y[i] = VECTOR(dY + i * W + w);
        UNROLL for (int j = CHUNK - 1; j >= 0; j--) {
            vector z = -beta[j] * y[j];
            VECTOR(dY + j * W + w) = y[j];
            VECTOR(minus + j * W + w) = z;
            UNROLL for (int i = 0; i < CHUNK; i++)
                if (i < j) y[i] += A[j * CHUNK + i] * z;
        }
    }
}

/* Rows of what is stacked that are needed: the first of them, and how many. */
static inline int64_t first_row(const Head *h) { return h->delta ? 0 : CHUNK; }

static inline int64_t rows_of(const Head *h, const Chunk *c) {
    return (c->reads + PADDING - 1) / PADDING * PADDING + CHUNK - first_row(h);
}

void chunk_forward(const Head *h, Chunk *c, REAL *O, REAL *r, REAL *S, REAL *z) {
    int64_t K = h->K, V = h->V, from = first_row(h), rows = rows_of(h, c);
    const REAL *keys = c->L, *queries = c->L + CHUNK * K, *L = c->L + from * K;
    between(h, c);
    turn_over(keys, CHUNK, K, c->KT);
    multiply(L, K, rows, h->d, c->KT, CHUNK, c->M + from * CHUNK);
    between_rows(h, c, c->M);
    multiply(L, K, rows, h->d, c->S, V, c->E + from * V);
    if (h->delta) {
        for (int64_t i = 0; i < CHUNK; i++) add_scaled(-c->since[i], c->E + i * V, V, c->U + i * V);
        solve(c->M, c->beta, V, c->U, c->Y);
    } else scale_rows(c->U, c->beta, CHUNK, V, c->Y);
    if (O) {
        for (int64_t q = 0; q < c->reads; q++) scaled(c->since[c->place[q]], c->E + (CHUNK + q) * V, V, O + q * V);
        int64_t count = rows - CHUNK + from;
        memset(O + c->reads * V, 0, (count - c->reads) * V * sizeof(REAL));
        add_product(c->M + CHUNK * CHUNK, CHUNK, count, CHUNK, c->Y, V, O);
    }
    if (h->summed && r) {
        REAL before[CHUNK];
        dots_with(queries, c->z, CHUNK, K, before);
        dots_with(c->M + CHUNK * CHUNK, c->beta, CHUNK, CHUNK, r);
        for (int64_t q = 0; q < c->reads; q++) r[q] += c->since[c->place[q]] * before[q];
    }
    REAL last = c->since[CHUNK - 1];
    if (h->summed && z) {
        scaled(last, c->z, K, z);
        for (int64_t j = 0; j < CHUNK; j++) add_scaled(c->beta[j] * c->closing[j], keys + j * K, K, z);
    }
    if (h->gated) scale_rows(c->Y, c->closing, CHUNK, V, c->kept);
    if (!S) return;
    if (S != c->S || h->gated) scaled(last, c->S, K * V, S);
    add_turned(keys, K, K, CHUNK, c->kept, V, S);
}

/* dlog: of a gate m, all that passes it: dM M from a write j < m to a row at m or behind, the share of S before the
 * chunk in such a row, and what reaches S behind the chunk. */
static void gates_back(const Head *h, const Chunk *c, const REAL *W, const REAL *share, const REAL *end, REAL whole,
                       REAL *dlog) {
    REAL sums[CHUNK], at[CHUNK][CHUNK] = {{0}}, from_start[CHUNK] = {0};
    for (int64_t i = 0; i < CHUNK && h->delta; i++) {
        from_start[i] += share[i];
        for (int64_t j = 0; j < CHUNK; j++) at[i][j] += W[i * CHUNK + j];
    }
    for (int64_t q = 0; q < c->reads; q++) {
        int64_t i = c->place[q];
        from_start[i] += share[CHUNK + q];
        for (int64_t j = 0; j < CHUNK; j++) at[i][j] += W[(CHUNK + q) * CHUNK + j];
    }
    REAL turned[CHUNK][CHUNK], passing[CHUNK][CHUNK], ones[CHUNK][CHUNK];
    turn_over(&at[0][0], CHUNK, CHUNK, &turned[0][0]); /* so that a vector holds what all rows get */
    for (int64_t m = 0; m < CHUNK; m++)
        for (int64_t i = 0; i < CHUNK; i++) {
            passing[m][i] = i < m ? 0 : from_start[i];
            from_start[i] += turned[m][i];
            ones[m][i] = 1;
        }
    row_dots(&passing[0][0], &ones[0][0], CHUNK, CHUNK, sums);
    for (int64_t m = 0; m < CHUNK; m++) {
        sums[m] += whole;
        whole += end[m];
    }
    memcpy(dlog, sums, sizeof sums);
}

/* The gradients of a sum of keys: into dM of the reads, dL, dbeta, `share`, `end` and dz; returns what `whole` gets. */
static REAL sums_back(const Head *h, const Chunk *c, ChunkBack *b, REAL *share, REAL *end) {
    int64_t K = h->K;
    const REAL *keys = c->L, *queries = c->L + CHUNK * K;
    REAL last = c->since[CHUNK - 1], whole = last * inner(b->dz, c->z, K);
    REAL found[STACK];
    dots_with(keys, b->dz, CHUNK, K, found);
    dots_with(queries, c->z, CHUNK, K, found + CHUNK);
    for (int64_t j = 0; j < CHUNK; j++) {
        REAL kept = c->closing[j] * found[j];
        b->dbeta[j] += kept;
        end[j] += c->beta[j] * kept;
        add_scaled(c->beta[j] * c->closing[j], b->dz, K, b->dL + j * K);
    }
    scaled(last, b->dz, K, b->dz);
    for (int64_t q = 0; q < c->reads; q++) {
        const REAL *M = c->M + (CHUNK + q) * CHUNK, *query = queries + q * K;
        REAL factor = c->since[c->place[q]] * b->dr[q];
        add_scaled(b->dr[q], M, CHUNK, b->dbeta);
        share[CHUNK + q] += factor * found[CHUNK + q];
        add_scaled(factor, c->z, K, b->dL + (CHUNK + q) * K);
        add_scaled(factor, query, K, b->dz);
    }
    return whole;
}

void chunk_backward(const Head *h, Chunk *c, ChunkBack *b) {
    int64_t K = h->K, V = h->V, from = first_row(h), rows = rows_of(h, c), count = rows - CHUNK + from;
    const REAL *keys = c->L, *L = c->L + from * K;
    REAL *N = b->N + from * V, *dM = b->dM + from * CHUNK, *dL = b->dL + from * K, *dY = b->dU;
    REAL end[CHUNK] = {0}, share[STACK] = {0}, last = c->since[CHUNK - 1], whole = 0;
    multiply(keys, K, CHUNK, h->d, b->G, V, dY);
    if (h->gated) {
        scale_rows(dY, c->closing, CHUNK, V, dY);
        row_dots(dY, c->Y, CHUNK, V, end);
    }
    add_turned(c->M + CHUNK * CHUNK, CHUNK, CHUNK, count, b->dO, V, dY);
    if (h->delta) solve_back(c->M, c->beta, V, dY, b->N);
    row_dots(dY, c->U, CHUNK, V, b->dbeta);

    turn_over(c->Y, CHUNK, V, b->YT);
    multiply(N, V, rows, h->e, b->YT, CHUNK, dM);
    if (h->summed)
        for (int64_t q = 0; q < c->reads; q++) add_scaled(b->dr[q], c->beta, CHUNK, b->dM + (CHUNK + q) * CHUNK);
    turn_over(c->S, K, V, b->ST);
    multiply(N, V, rows, h->e, b->ST, K, dL);
    if (!h->delta) memset(b->dL, 0, CHUNK * K * sizeof(REAL));
    REAL *F = b->N;
    if (h->gated) {
        REAL since[STACK], W[STACK * CHUNK];
        for (int64_t i = 0; i < CHUNK; i++) since[i] = c->since[i], since[CHUNK + i] = c->since[c->place[i]];
        F = b->F;
        scale_rows(N, since + from, rows, V, F + from * V);
        scale_rows(dL, since + from, rows, K, dL);
        row_dots(F + from * V, c->E + from * V, rows, V, share + from);
        for (int64_t i = from * CHUNK; i < (from + rows) * CHUNK; i++) W[i] = b->dM[i] * c->M[i];
        whole = last * inner(b->G, c->S, K * V);
        if (h->summed) whole += sums_back(h, c, b, share, end);
        gates_back(h, c, W, share, end, whole, b->dlog);
    } else if (h->summed) sums_back(h, c, b, share, end);
    between_rows(h, c, b->dM);

    add_product(dM, CHUNK, rows, CHUNK, keys, K, dL);
    add_turned(dM, CHUNK, CHUNK, rows, L, K, b->dL);
    turn_over(b->G, K, V, b->GT);
    add_product(c->kept, V, CHUNK, h->e, b->GT, K, b->dL);
    if (h->gated) scaled(last, b->G, K * V, b->G);
    add_turned(L, K, K, rows, F + from * V, V, b->G);
    scale_rows(dY, c->beta, CHUNK, V, b->dU);
}
