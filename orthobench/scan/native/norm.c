/* Rows of numbers at a length or a mean square of one, times a scale, with a gate before or behind: the equations are in
 * norm.py.
 *
 * A call does the sequences first..last-1, R rows of n numbers each.
 */

#include "tiles.h"

typedef struct {
    int64_t R, n, gate;
    double share, epsilon;      /* a row's factor is 1 / sqrt(share |w|^2 + epsilon) */
    REAL *x, *z, *y;            /* (B, R, n); z, the numbers of the gate, is null where there is none */
    REAL *scale;                /* (n); null for one */
    REAL *dx, *dz, *dy;
    REAL *dscale;               /* (B, n) parts, zero at first; null where scale is */
} Norm;

enum { UNGATED, SILU_BEHIND, SIGMOID_BEHIND, SILU_BEFORE };

#define FIXED static inline __attribute__((always_inline))

typedef struct {
    REAL *x, *z, *y, *dx, *dz, *dy, *scale, *dscale; /* copies of tensors; sums of dscale */
    REAL *open, *factor, *work, *along;
} Room;

#define TILES 12

static Room room_of(const Norm *s, REAL *m) {
    int64_t n = s->n, size = tile_size(n);
    memset(m, 0, TILES * size * sizeof(REAL));
    Room r = {m,            m + size,     m + 2 * size, m + 3 * size, m + 4 * size, m + 5 * size,
                  m + 6 * size, m + 7 * size, m + 8 * size, m + 9 * size, m + 10 * size, m + 11 * size};
    if (s->scale) repeat_row(s->scale, n, r.scale);
    else TILE VECTOR(r.scale + j) = (vector){0} + 1;
    return r;
}

FIXED vector opening(const int gate, vector z) {
    if (gate == SIGMOID_BEHIND) return sigmoids(z);
    return z * sigmoids(z);
}

/* The factors of a tile's rows, from what is normalised. */
static void factors(const Norm *s, const REAL *w, REAL *work, REAL *factor) {
    int64_t n = s->n;
    TILE VECTOR(work + j) = VECTOR(w + j) * VECTOR(w + j);
    spread(inverse_roots(row_sums(work, n) * (REAL)s->share + (REAL)s->epsilon), n, factor);
}

FIXED void forward(const int gate, const Norm *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->n, end = last * s->R;
    Room r = room_of(s, scratch);
    for (int64_t row = first * s->R; row < end; row += LANES) {
        int64_t count = end - row < LANES ? end - row : LANES;
        const REAL *x = tile_of(s->x + row * n, count, n, r.x), *w = x;
        const REAL *z = gate == UNGATED ? 0 : tile_of(s->z + row * n, count, n, r.z);
        REAL *y = tile_to(s->y + row * n, count, r.y);
        if (gate != UNGATED) TILE VECTOR(r.open + j) = opening(gate, VECTOR(z + j));
        if (gate == SILU_BEFORE) {
            TILE VECTOR(r.dy + j) = VECTOR(x + j) * VECTOR(r.open + j);
            w = r.dy;
        }
        factors(s, w, r.work, r.factor);
        TILE {
            vector made = VECTOR(w + j) * VECTOR(r.factor + j) * VECTOR(r.scale + j);
            if (gate == SILU_BEHIND || gate == SIGMOID_BEHIND) made *= VECTOR(r.open + j);
            VECTOR(y + j) = made;
        }
        tile_done(y, count, n, s->y + row * n);
    }
}

void norm_forward(const Norm *s, int64_t first, int64_t last, REAL *scratch) {
    if (s->gate == UNGATED) forward(UNGATED, s, first, last, scratch);
    else if (s->gate == SILU_BEHIND) forward(SILU_BEHIND, s, first, last, scratch);
    else if (s->gate == SIGMOID_BEHIND) forward(SIGMOID_BEHIND, s, first, last, scratch);
    else forward(SILU_BEFORE, s, first, last, scratch);
}

/* With w = x, or x open before the norm, N = factor w and dN: dw = factor (dN - share (N . dN) N). */
FIXED void tile_back(const int gate, const Norm *s, const REAL *x, const REAL *z, const REAL *dy, Room r, REAL *dx,
                     REAL *dz) {
    int64_t n = s->n;
    const REAL *w = x;
    if (gate != UNGATED) TILE VECTOR(r.open + j) = sigmoids(VECTOR(z + j));
    if (gate == SILU_BEFORE) {
        TILE VECTOR(r.y + j) = VECTOR(x + j) * VECTOR(z + j) * VECTOR(r.open + j);
        w = r.y;
    }
    factors(s, w, r.work, r.factor);
    TILE {
        vector N = VECTOR(w + j) * VECTOR(r.factor + j), dN = VECTOR(dy + j);
        if (gate == SILU_BEHIND || gate == SIGMOID_BEHIND) {
            vector open = VECTOR(r.open + j), u = open, slope = open * (1 - open);
            if (gate == SILU_BEHIND) slope = open * (1 + VECTOR(z + j) * (1 - open)), u = VECTOR(z + j) * open;
            VECTOR(dz + j) = dN * N * VECTOR(r.scale + j) * slope;
            dN *= u;
        }
        VECTOR(r.dscale + j) += dN * N;
        dN *= VECTOR(r.scale + j);
        VECTOR(dx + j) = dN, VECTOR(r.work + j) = dN * N;
    }
    spread(row_sums(r.work, n) * (REAL)s->share, n, r.along);
    TILE {
        vector factor = VECTOR(r.factor + j), N = VECTOR(w + j) * factor;
        vector dw = factor * (VECTOR(dx + j) - VECTOR(r.along + j) * N);
        if (gate == SILU_BEFORE) {
            vector open = VECTOR(r.open + j);
            VECTOR(dz + j) = dw * VECTOR(x + j) * open * (1 + VECTOR(z + j) * (1 - open));
            dw *= VECTOR(z + j) * open;
        }
        VECTOR(dx + j) = dw;
    }
}

FIXED void backward(const int gate, const Norm *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->n;
    Room r = room_of(s, scratch);
    for (int64_t unit = first; unit < last; unit++) {
        memset(r.dscale, 0, n * LANES * sizeof(REAL));
        for (int64_t row = unit * s->R, end = row + s->R; row < end; row += LANES) {
            int64_t count = end - row < LANES ? end - row : LANES, at = row * n;
            const REAL *x = tile_of(s->x + at, count, n, r.x), *dy = tile_of(s->dy + at, count, n, r.dy);
            const REAL *z = gate == UNGATED ? 0 : tile_of(s->z + at, count, n, r.z);
            REAL *dx = tile_to(s->dx + at, count, r.dx), *dz = gate == UNGATED ? 0 : tile_to(s->dz + at, count, r.dz);
            tile_back(gate, s, x, z, dy, r, dx, dz);
            tile_done(dx, count, n, s->dx + at);
            if (gate != UNGATED) tile_done(dz, count, n, s->dz + at);
        }
        if (s->dscale) add_rows(r.dscale, n, s->dscale + unit * n);
    }
}

void norm_backward(const Norm *s, int64_t first, int64_t last, REAL *scratch) {
    if (s->gate == UNGATED) backward(UNGATED, s, first, last, scratch);
    else if (s->gate == SILU_BEHIND) backward(SILU_BEHIND, s, first, last, scratch);
    else if (s->gate == SIGMOID_BEHIND) backward(SIGMOID_BEHIND, s, first, last, scratch);
    else backward(SILU_BEFORE, s, first, last, scratch);
}

/* Numbers of scratch memory that a pass needs. */
int64_t norm_scratch(const Norm *s, int64_t backward) {
    (void)backward;
    return TILES * tile_size(s->n);
}
