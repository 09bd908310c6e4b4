/* A causal convolution over time, channel by channel, behind it SiLU: the equations are in convolution.py.
 *
 * A call does the rows first..last-1 of the batch for all steps.
 */

#include "scan.h"

typedef struct {
    int64_t T, B, M, K;    /* M channels, K steps that are seen */
    int64_t X_row, X_time; /* strides of X */
    REAL *X, *before;      /* (B, T, M); (B, K - 1, M), the steps before the first */
    REAL *kernel;          /* (K, M), the current step last */
    REAL *Y, *dY;          /* (B, T, M) */
    REAL *dX, *dbefore, *dkernel; /* as X, whole; as before; (B, K, M): the last two begin as zeros */
} Convolution;

/* The input that factor k meets at step t. */
static inline const REAL *seen(const Convolution *s, int64_t t, int64_t k, int64_t row) {
    int64_t at = t + k - s->K + 1;
    return at < 0 ? s->before + (row * (s->K - 1) + at + s->K - 1) * s->M : s->X + at * s->X_time + row * s->X_row;
}

ROW multiply(const REAL *restrict x, const REAL *restrict y, REAL *restrict z, int64_t n) { EACH z[j] = x[j] * y[j]; }

ROW multiply_add(const REAL *restrict x, const REAL *restrict y, REAL *restrict z, int64_t n) { EACH z[j] += x[j] * y[j]; }

ROW convolve(const Convolution *s, int64_t t, int64_t row, REAL *restrict z) {
    multiply(seen(s, t, 0, row), s->kernel, z, s->M);
    for (int64_t k = 1; k < s->K; k++) multiply_add(seen(s, t, k, row), s->kernel + k * s->M, z, s->M);
}

ROW silu(REAL *restrict z, int64_t n) { EACH z[j] *= sigmoid(z[j]); }

ROW silu_back(REAL *restrict z, const REAL *restrict dy, int64_t n) {
    EACH {
        REAL y = sigmoid(z[j]);
        z[j] = dy[j] * (y + z[j] * y * (1 - y));
    }
}

void convolution_forward(const Convolution *s, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++)
        for (int64_t t = 0; t < s->T; t++) {
            convolve(s, t, row, s->Y + (row * s->T + t) * s->M);
            silu(s->Y + (row * s->T + t) * s->M, s->M);
        }
}

void convolution_backward(const Convolution *s, int64_t first, int64_t last, REAL *dz) {
    int64_t M = s->M, K = s->K;
    for (int64_t row = first; row < last; row++)
        for (int64_t t = 0; t < s->T; t++) {
            convolve(s, t, row, dz);
            silu_back(dz, s->dY + (row * s->T + t) * M, M);
            for (int64_t k = 0; k < K; k++) {
                int64_t at = t + k - K + 1;
                multiply_add(seen(s, t, k, row), dz, s->dkernel + (row * K + k) * M, M);
                REAL *dx = at < 0 ? s->dbefore + (row * (K - 1) + at + K - 1) * M : s->dX + (row * s->T + at) * M;
                if (k == K - 1) multiply(s->kernel + k * M, dz, dx, M);
                else multiply_add(s->kernel + k * M, dz, dx, M);
            }
        }
}
