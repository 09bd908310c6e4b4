/* A head's matrix for a chunk of writes at once, by small products of matrices: the equations are in deltaproduct.py.
 *
 * Rows of keys are K numbers long in scratch memory and rows of values V numbers, `padded`, with zeros behind those
 * that count. Rows 0 ... CHUNK - 1 of what is stacked belong to the writes of a chunk, those behind them to its reads.
 */

#pragma once

#include "rows.h"
#include "square.h"

#define CHUNK 16
#define STACK (2 * CHUNK)
#define PADDING (LANES > 8 ? LANES : 8) /* rows of a tile, too */

static inline int64_t padded(int64_t d) { return (d + PADDING - 1) / PADDING * PADDING; }

typedef struct {
    int64_t d, e, K, V;  /* keys, values of a head; the same, padded */
    int64_t delta, gated, summed;
} Head;

typedef struct {
    int64_t reads, place[CHUNK]; /* how many; the write behind which each of them is */
    REAL beta[CHUNK], gate[CHUNK], since[CHUNK], closing[CHUNK];
    REAL factor[STACK]; /* by which keys and queries were brought to length one */
    REAL *L;    /* (STACK, K): keys, queries */
    REAL *KT;   /* (K, CHUNK) the keys, transposed */
    REAL *U, *Y, *E; /* (CHUNK, V) what is written, times beta; (STACK, V) L S */
    REAL *kept;      /* (CHUNK, V) Y times `closing` */
    REAL *D, *M;     /* (CHUNK, CHUNK) gates between; (STACK, CHUNK) (L K^T) * D */
    REAL *S, *z;     /* (K, V) and (K) before the first write */
} Chunk;

typedef struct {
    REAL *dL, *dU, *N, *dM, *ST, *GT, *YT, *F; /* ST (V, K), F (STACK, V) N times `since`, and so on */
    REAL *dO, *dr;                           /* (CHUNK, V), (CHUNK): of the reads */
    REAL *G, *dz;                            /* (K, V), (K): behind the chunk at the start, before it at the end */
    REAL dbeta[CHUNK], dlog[CHUNK];
} ChunkBack;

int64_t chunk_size(const Head *h);
Chunk chunk_at(const Head *h, REAL *memory);
int64_t chunk_back_size(const Head *h);
ChunkBack chunk_back_at(const Head *h, REAL *memory);

/* From L, U = V, beta, gate, reads, place, S and z: all else, O (CHUNK, V) and r (CHUNK) of the reads, and S, z after. */
void chunk_forward(const Head *h, Chunk *c, REAL *O, REAL *r, REAL *S, REAL *z);

/* dL, dV in dU, dbeta, the gradients of the gates' logarithms, G and dz. */
void chunk_backward(const Head *h, Chunk *c, ChunkBack *b);

/* out (rows, W) = A B, += A B, and += A^T B where A is (K, rows); rows of A are `width` apart, `rows` is a multiple of
 * 8, and W of LANES. */
void multiply(const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B, int64_t W, REAL *out);
void add_product(const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B, int64_t W, REAL *out);
void add_turned(const REAL *A, int64_t width, int64_t rows, int64_t K, const REAL *B, int64_t W, REAL *out);

/* out (columns, rows) = X^T; both counts are multiples of LANES. */
void turn_over(const REAL *X, int64_t rows, int64_t columns, REAL *out);

/* out = the products of the rows of X and Y with each other, or with one y; as many rows as a multiple of LANES. */
void row_dots(const REAL *X, const REAL *Y, int64_t rows, int64_t W, REAL *out);
void dots_with(const REAL *X, const REAL *y, int64_t rows, int64_t W, REAL *out);

/* out = X, its rows times f; out may be X. */
ROW scale_rows(const REAL *X, const REAL *f, int64_t rows, int64_t W, REAL *out) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t w = 0; w < W; w += LANES) VECTOR(out + i * W + w) = f[i] * VECTOR(X + i * W + w);
}

ROW scaled(REAL factor, const REAL *x, int64_t n, REAL *out) {
    for (int64_t w = 0; w < n; w += LANES) VECTOR(out + w) = factor * VECTOR(x + w);
}

ROW add_scaled(REAL factor, const REAL *x, int64_t n, REAL *out) {
    for (int64_t w = 0; w < n; w += LANES) VECTOR(out + w) += factor * VECTOR(x + w);
}

static inline REAL inner(const REAL *x, const REAL *y, int64_t n) {
    vector sum = {0};
    for (int64_t w = 0; w < n; w += LANES) sum += VECTOR(x + w) * VECTOR(y + w);
    return summed(sum);
}
