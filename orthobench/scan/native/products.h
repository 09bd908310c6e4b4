/* Vectors of this build, and matrix products with them; products.c has the code.
 *
 * Every file here is compiled once per REAL (float, double) into one library at first use; see library.py.
 */

#pragma once

#include <stdint.h>
#include <string.h>

#ifndef REAL
#define REAL float
#endif

#if defined(__AVX512F__)
#define WIDEST 64
#define VECTORS 4 /* per panel: 6 x 4 sums and 4 factors of 32 registers */
#elif defined(__AVX__)
#define WIDEST 32
#define VECTORS 2 /* 6 x 2 sums and 2 factors of 16 registers */
#elif defined(__aarch64__)
#define WIDEST 16
#define VECTORS 4
#else
#define WIDEST 16
#define VECTORS 2
#endif

#ifdef HALVES /* halves.c */
#define BYTES (WIDEST > 16 ? WIDEST / 2 : WIDEST)
#else
#define BYTES WIDEST
#endif

#define LANES ((int64_t)(BYTES / sizeof(REAL)))
#define WIDEST_LANES ((int64_t)(WIDEST / sizeof(REAL)))

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 18") /* the longest of them is the series in slstm.c */
#endif

typedef REAL vector __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));

typedef struct {
    int64_t K;
    const REAL *A;
    int64_t A_row; /* zero where all rows are one */
    const REAL *start; /* what the sums start from; null: zero */
    int64_t start_row;
    REAL *out;
    int64_t out_row;
    int64_t by_columns; /* A is read by columns, whose rows are A_row apart, and the sums are added to out */
} Product;

/* A row that is read later begins to come; the processor foresees none of rows that are far apart, or read from the last
 * on. */
static inline void foresee(const REAL *row, int64_t n) {
    for (int64_t j = 0; row && j < n; j += 64 / (int64_t)sizeof(REAL)) __builtin_prefetch(row + j);
}

/* How many numbers a packed (K, J) matrix has. */
int64_t packed_size(int64_t K, int64_t J);

/* out = start + A M for `rows` rows and a packed (K, J) matrix M; start and out may be the same. */
void product(Product p, int64_t rows, int64_t J, const REAL *packed);

/* out (M, N) += D^T H over R rows of D and of H (R, N), whose distances are D_row and H_row, for the rows first..last-1
 * of out; the sums of a panel's depth each are added one after another. `scratch` has room for outer_scratch(N). */
void add_outer(const REAL *D, int64_t D_row, const REAL *H, int64_t H_row, int64_t R, int64_t N, REAL *out,
               REAL *scratch, int64_t first, int64_t last);
int64_t outer_scratch(int64_t N);
