/* Products of a few rows with a packed matrix, at the rate of the processor's multiply-adds. Every sum runs over k in
 * order, so the bits do not depend on which rows are done together.
 */

#include "products.h"

/* Whether the vectors of this build are wide enough to beat the products of a BLAS library, which picks its own. */
int64_t worthwhile(void) { return BYTES >= 32 || VECTORS == 4; }

int64_t lanes(void) { return LANES; }

#define ROWS 6
#define DEPTH 128 /* rows of a panel used at a time, so that they stay in the first cache */
#define AHEAD 64  /* rows of A, read by columns, that begin to come before their turn */

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

/* How many numbers `pack` writes. */
int64_t packed_size(int64_t K, int64_t J) {
    if (J < LANES) return K * LANES;
    int64_t size = 0;
    for (int64_t j = 0; j < J;) {
        Panel panel = panel_at(j, J);
        size += K * panel.vectors * LANES;
        j = after(panel);
    }
    return size;
}

/* M[k, j] = W[k * step_k + j * step_j], panel by panel; fewer columns than lanes are filled up with zeros. */
void pack(const REAL *W, int64_t K, int64_t J, int64_t step_k, int64_t step_j, REAL *packed) {
    for (int64_t j = 0; j < J;) {
        Panel panel = J < LANES ? (Panel){0, 1, 0} : panel_at(j, J);
        int64_t width = panel.vectors * LANES;
        if (step_j == 1 && J >= LANES)
            for (int64_t k = 0; k < K; k++, packed += width)
                for (int64_t i = 0; i < width; i += LANES)
                    *(vector *)(packed + i) = *(const vector *)(W + k * step_k + panel.start + i);
        else for (int64_t k = 0; k < K; k++)
            for (int64_t i = panel.start; i < after(panel); i++) *packed++ = i < J ? W[k * step_k + i * step_j] : 0;
        j = after(panel);
    }
}

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
        if (columns) __builtin_prefetch(p.A + (k + AHEAD) * p.A_row);
        UNROLL for (int m = 0; m < rows; m++) {
            REAL a = columns ? p.A[k * p.A_row + m] : p.A[m * p.A_row + k];
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
    if (p.by_columns) HEIGHTS(1) else HEIGHTS(0)
}

/* The first J numbers of a row of fewer than LANES. */
static inline void copy_few(REAL *to, const REAL *from, int64_t J) {
    for (int64_t j = 0; j < LANES; j++)
        if (j < J) to[j] = from[j];
}

/* Fewer columns than lanes: whole vectors in a block of its own. */
static void narrow(Product p, int64_t rows, int64_t J, const REAL *packed) {
    for (int64_t row = 0; row < rows; row += ROWS) {
        REAL block[ROWS * LANES] = {0};
        int64_t count = rows - row < ROWS ? rows - row : ROWS;
        const REAL *before = p.by_columns ? p.out : p.start;
        int64_t before_row = p.by_columns ? p.out_row : p.start_row;
        for (int64_t m = 0; before && m < count; m++)
            copy_few(block + m * LANES, before + (row + m) * before_row, J);
        Product q = p;
        q.A += p.by_columns ? row : row * p.A_row;
        q.start = p.by_columns ? 0 : block, q.start_row = q.out_row = LANES, q.out = block;
        any_tile(count, 1, q, packed, 0);
        for (int64_t m = 0; m < count; m++) copy_few(p.out + (row + m) * p.out_row, block + m * LANES, J);
    }
}

/* out = start + A M for `rows` rows and a packed (K, J) matrix M; start and out may be the same. */
void product(Product p, int64_t rows, int64_t J, const REAL *packed) {
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
            if (k && !p.by_columns) q.start = p.out, q.start_row = p.out_row;
            for (int64_t i = 0; i < blocks; i++) {
                int64_t row = rows * i / blocks, count = rows * (i + 1) / blocks - row;
                Product r = q;
                r.A += p.by_columns ? row + k * p.A_row : row * p.A_row + k;
                if (q.start) r.start += row * q.start_row + panel.start;
                r.out += row * p.out_row + panel.start;
                if (p.start && p.start_row && !k) { /* what the next tile reads first is often in memory alone */
                    const REAL *next = i + 1 < blocks ? r.start + count * p.start_row : p.start + after(panel);
                    for (int64_t m = 0; m < ROWS; m++) foresee(next + m * p.start_row, (VECTORS + 1) * LANES);
                }
                any_tile(count, panel.vectors, r, packed + k * width, panel.kept);
            }
        }
        packed += K * width;
        j = after(panel);
    }
}

#define TOGETHER (16 * ROWS) /* rows of a long product: what is written stays in cache until it is whole */

/* out (R, J) = start + X M for the rows first..last-1 of X (R, K) and a packed (K, J) matrix M; start is (J), or null. */
void long_product(const REAL *X, int64_t K, const REAL *start, const REAL *packed, int64_t J, REAL *out, int64_t first,
                  int64_t last) {
    for (int64_t row = first; row < last; row += TOGETHER) {
        int64_t count = last - row < TOGETHER ? last - row : TOGETHER;
        product((Product){K, X + row * K, K, start, 0, out + row * J, J, 0}, count, J, packed);
    }
}

void add_outer(const REAL *D, int64_t D_row, const REAL *H, int64_t H_row, int64_t R, int64_t N, REAL *out,
               REAL *scratch, int64_t first, int64_t last) {
    for (int64_t row = 0; row < R; row += DEPTH) {
        int64_t count = R - row < DEPTH ? R - row : DEPTH;
        pack(H + row * H_row, count, N, H_row, 1, scratch);
        Product p = {count, D + row * D_row + first, D_row, 0, 0, out + first * N, N, 1};
        product(p, last - first, N, scratch);
    }
}

int64_t outer_scratch(int64_t N) { return packed_size(DEPTH, N); }
