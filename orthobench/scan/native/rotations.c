/* W = D G_L ... G_1, layers of rotations of pairs: the equations are in parametrizations/givens.py.
 *
 * s->plan has the number M of pairs, then their coordinates (M, 2) in the order in which they are rotated. s->dfactors is
 * for theta and phi of every pair (M, 2), then omega (N); s->tables has the cosine and the sine of each.
 */

#include "lanes.h"

static inline void rotate_pairs(int64_t M, const int64_t *restrict pairs, const REAL *restrict turns, Wave x) {
    for (int64_t m = 0; m < M; m++, pairs += 2, turns += 4) {
        Number a = at(x, pairs[0]), b = at(x, pairs[1]);
        turn(turns[2], turns[3], &b.re, &b.im);
        turn(turns[0], turns[1], &a.re, &b.re), turn(turns[0], turns[1], &a.im, &b.im);
        put(x, pairs[0], a), put(x, pairs[1], b);
    }
}

static void rotate(const Scan *s, Wave h, vector *scratch) {
    (void)scratch;
    rotate_pairs(s->plan[0], s->plan + 1, s->tables, h);
    diagonal(s->tables + 4 * s->plan[0], h, h, s->N);
}

/* The rotations are undone, so that their inputs need not be kept; of a copy, because h has zeros that rounding would move. */
static void rotate_back(const Scan *s, Wave h, Wave G, vector *dfactors, vector *scratch) {
    int64_t N = s->N, M = s->plan[0];
    const int64_t *pairs = s->plan + 1;
    const REAL *turns = s->tables, *omega = turns + 4 * M;
    vector *domega = dfactors + 2 * M;
    Wave y = wave(&scratch, N);
    memcpy(y.re, h.re, N * sizeof *h.re), memcpy(y.im, h.im, N * sizeof *h.im);
    rotate_pairs(M, pairs, turns, y);
    for (int64_t j = 0; j < N; j++) put(G, j, turned_back(omega, at(y, j), at(G, j), domega, j));
    for (int64_t m = M - 1; m >= 0; m--) {
        const REAL *theta = turns + 4 * m, *phi = theta + 2;
        int64_t j = pairs[2 * m], k = pairs[2 * m + 1];
        Number a = at(y, j), b = at(y, k), p = at(G, j), q = at(G, k);
        dfactors[2 * m] += dangle(a.re, b.re, p.re, q.re) + dangle(a.im, b.im, p.im, q.im);
        turn_back(theta[0], theta[1], &a.re, &b.re), turn_back(theta[0], theta[1], &a.im, &b.im);
        turn_back(theta[0], theta[1], &p.re, &q.re), turn_back(theta[0], theta[1], &p.im, &q.im);
        dfactors[2 * m + 1] += dangle(b.re, b.im, q.re, q.im);
        turn_back(phi[0], phi[1], &b.re, &b.im), turn_back(phi[0], phi[1], &q.re, &q.im);
        put(y, j, a), put(y, k, b), put(G, j, p), put(G, k, q);
    }
}

LOOPS(rotations, rotate, rotate_back)
