/* What the cells whose state is a matrix share: blocks of some steps of a sequence, and rows of them. */

#pragma once

#include <math.h>

#include "chunks.h"
#include "convolution.h"

#define BLOCK 64 /* writes of a block, more where a step has more */

static inline int64_t steps_of_block(int64_t writes) { return writes < BLOCK ? BLOCK / writes : 1; }

static inline int64_t chunks_of(int64_t writes) { return (writes + CHUNK - 1) / CHUNK; }

static inline int64_t blocks_of(int64_t T, int64_t steps) { return (T + steps - 1) / steps; }

static inline REAL *take(REAL **memory, int64_t count) {
    *memory += (count + LANES - 1) / LANES * LANES;
    return *memory - (count + LANES - 1) / LANES * LANES;
}

ROW copied(const REAL *x, int64_t n, REAL *out) {
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) VECTOR(out + j) = VECTOR(x + j);
    for (; j < n; j++) out[j] = x[j];
}

/* A copy in scratch memory, with zeros behind it: what is there may be of a row that had a number that is none. */
ROW padded_copy(const REAL *x, int64_t n, int64_t W, REAL *out) {
    copied(x, n, out);
    for (int64_t j = n; j < W; j++) out[j] = 0;
}

/* The same of a matrix of d rows of e numbers, as K rows of V. */
ROW padded_matrix(const REAL *x, int64_t d, int64_t e, int64_t K, int64_t V, REAL *out) {
    widened(x, d, e, V, out);
    memset(out + d * V, 0, (K - d) * V * sizeof(REAL));
}

/* A row of n numbers that vectors may read: itself, or where it ends before its last vector a copy in `room`. */
static inline const REAL *padded_row(const REAL *x, int64_t n, int64_t W, REAL *room) {
    if (n == W) return x;
    padded_copy(x, n, W, room);
    return room;
}

ROW scaled_row(const REAL *restrict o, const REAL *restrict scale, REAL factor, REAL *restrict y, int64_t n) {
    EACH y[j] = factor * o[j] * scale[j];
}

ROW gated_row(const REAL *restrict o, const REAL *restrict scale, const REAL *restrict shown, REAL factor,
              REAL *restrict y, int64_t n) {
    EACH y[j] = factor * o[j] * scale[j] * shown[j] * sigmoid(shown[j]);
}

/* Of y = n scale SiLU(shown), or without a gate, n = factor o: y, dn in `out`, dshown, and dscale is added to. */
ROW outputs_back(const REAL *restrict o, const REAL *restrict scale, const REAL *restrict shown,
                 const REAL *restrict dy, REAL factor, REAL *restrict dshown, REAL *restrict dscale, REAL *restrict y,
                 REAL *restrict out, int64_t n) {
    if (shown) EACH {
        REAL open = sigmoid(shown[j]), number = factor * o[j];
        REAL changed = dy[j] * shown[j] * open;
        y[j] = number * scale[j] * shown[j] * open;
        dshown[j] = dy[j] * number * scale[j] * open * (1 + shown[j] * (1 - open));
        dscale[j] += changed * number;
        out[j] = changed * scale[j];
    }
    else EACH {
        dscale[j] += dy[j] * factor * o[j];
        y[j] = factor * o[j] * scale[j];
        out[j] = dy[j] * scale[j];
    }
}
