/* alpha W h for a real W that is a sequence of rotations of two coordinates each and then a permutation, with a row of the
 * batch in every lane of a vector: parametrizations/plane_rotations.py has the equations.
 *
 * s->plan has the number of rotations, the two places of each in the order in which they act, and for every coordinate the
 * place from which the permutation takes it. s->factors has alpha, and the cosine and the sine of every angle. A
 * coordinate's place is that of `gather`, which takes an even and the odd number after it for the parts of a complex one.
 */

#pragma once

#include "lanes.h"

typedef struct {
    int64_t count;
    const int64_t *places, *order;
    const REAL *turns;
    REAL alpha;
    int64_t N, room; /* vectors that the N places of a state take */
} Rotations;

static inline Rotations rotations_of(const Scan *s) {
    int64_t count = s->plan[0];
    return (Rotations){count, s->plan + 1, s->plan + 1 + 2 * count, s->factors + 1, s->factors[0], s->N, s->N + 2 * APART};
}

static inline int64_t place(Rotations w, int64_t j) { return (j & 1) * (w.N / 2 + APART) + j / 2; }

static inline void take(Rotations w, const REAL *rows, int64_t distance, int64_t count, vector *to) {
    Places at = places(count, distance);
    gather(rows, &at, w.N / 2, (Wave){to, to + w.N / 2 + APART});
}

static inline void give(Rotations w, vector *from, REAL *rows, int64_t count) {
    Places at = places(count, w.N);
    scatter((Wave){from, from + w.N / 2 + APART}, rows, &at, w.N / 2);
}

static inline void rotate(Rotations w, vector *u) {
    for (int64_t r = 0; r < w.count; r++) {
        vector *a = u + w.places[2 * r], *b = u + w.places[2 * r + 1], x = *a, y = *b;
        turn(w.turns[2 * r], w.turns[2 * r + 1], &x, &y);
        *a = x, *b = y;
    }
}

/* out = out + alpha W h for at most LANES rows. */
static inline void add_rotated(Rotations w, const REAL *h, REAL *out, int64_t count, vector *scratch) {
    vector *u = scratch, *z = u + w.room;
    take(w, h, w.N, count, u);
    rotate(w, u);
    take(w, out, w.N, count, z);
    for (int64_t j = 0; j < w.N; j++) z[place(w, j)] += w.alpha * u[w.order[j]];
    give(w, z, out, count);
}

/* From dz = dL/d(alpha W h): out = start + alpha W^T dz. The gradients of alpha and, but for its factor alpha, of every
 * angle are added to `sums`. The rotations are undone, so that their inputs need not be kept. */
static inline void rotate_back(Rotations w, const REAL *h, const REAL *dz, const REAL *start, int64_t start_row,
                               REAL *out, int64_t count, vector *sums, vector *scratch) {
    vector *u = scratch, *g = u + w.room, *given = g + w.room;
    take(w, h, w.N, count, u);
    rotate(w, u);
    take(w, dz, w.N, count, given);
    for (int64_t j = 0; j < w.N; j++) g[w.order[j]] = given[place(w, j)];
    for (int64_t r = w.count - 1; r >= 0; r--) {
        int64_t a = w.places[2 * r], b = w.places[2 * r + 1];
        REAL c = w.turns[2 * r], s = w.turns[2 * r + 1];
        vector x = u[a], y = u[b], p = g[a], q = g[b];
        sums[1 + r] += dangle(x, y, p, q);
        turn_back(c, s, &x, &y), turn_back(c, s, &p, &q);
        u[a] = x, u[b] = y, g[a] = p, g[b] = q;
    }
    vector along = {0};
    for (int64_t j = 0; j < w.N; j++) along += g[place(w, j)] * u[place(w, j)];
    sums[0] += along;
    if (start) take(w, start, start_row, count, given);
    else memset(given, 0, w.room * sizeof *given);
    for (int64_t j = 0; j < w.N; j++) given[place(w, j)] += w.alpha * g[place(w, j)];
    give(w, given, out, count);
}
