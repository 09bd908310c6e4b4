/* W = D_3 R_2 F^-1 D_2 P R_1 F D_1: the equations are in parametrizations/unitary_product.py.
 *
 * s->factors has the angles of D_1, D_2, D_3, then the unit vectors of R_1, R_2, each as N real and N imaginary parts;
 * s->tables has the cosines and sines of the angles (3 N, 2). F and F^-1 here are sums, which are made unitary by a
 * factor 1 / N in D_2's. The transforms are done in place, so what lies between them, D_2, P and R_1, is in the order in
 * which the first leaves its results. s->plan has the permutation, the number of radices and the radices; s->tables goes
 * on with, for every radix r, the cosines and sines of 2 pi k / r, then the twiddle factors of its stage.
 */

#include "lanes.h"

static inline Number sum(Number a, Number b) { return (Number){a.re + b.re, a.im + b.im}; }
static inline Number difference(Number a, Number b) { return (Number){a.re - b.re, a.im - b.im}; }
static inline Number below(Number a, Number b) { return (Number){a.re + b.im, a.im - b.re}; } /* a - i b */
static inline Number above(Number a, Number b) { return (Number){a.re - b.im, a.im + b.re}; } /* a + i b */

/* y[k] = sum_j e^(-2 pi i j k / r) x[j step] for r = 2, 4, 8. */
static inline __attribute__((always_inline)) void even_points(const int64_t r, const Number *x, int64_t step, Number *y) {
    if (r == 2) {
        y[0] = sum(x[0], x[step]), y[1] = difference(x[0], x[step]);
    } else if (r == 4) {
        Number a = sum(x[0], x[2 * step]), b = difference(x[0], x[2 * step]);
        Number c = sum(x[step], x[3 * step]), d = difference(x[step], x[3 * step]);
        y[0] = sum(a, c), y[1] = below(b, d), y[2] = difference(a, c), y[3] = above(b, d);
    } else {
        Number a[4], b[4];
        even_points(4, x, 2 * step, a), even_points(4, x + step, 2 * step, b);
        const REAL half = (REAL)0.70710678118654752;
        Number c = below(b[1], b[1]), d = above(b[3], b[3]); /* b_1 and -b_3 turned by 45 degrees, but for a factor */
        c.re *= half, c.im *= half, d.re *= half, d.im *= half;
        y[0] = sum(a[0], b[0]), y[1] = sum(a[1], c), y[2] = below(a[2], b[2]), y[3] = difference(a[3], d);
        y[4] = difference(a[0], b[0]), y[5] = difference(a[1], c), y[6] = above(a[2], b[2]), y[7] = sum(a[3], d);
    }
}

/* The same for an odd r; x is used up. */
static inline __attribute__((always_inline)) void odd_points(const int64_t r, const REAL *turns, Number *x, Number *y) {
    y[0] = x[0];
    for (int64_t j = 1; 2 * j < r; j++) { /* the sum and the difference of x_j and x_(r-j) take their places */
        Number both = sum(x[j], x[r - j]);
        x[r - j] = difference(x[j], x[r - j]), x[j] = both, y[0] = sum(y[0], both);
    }
    for (int64_t k = 1; 2 * k < r; k++) {
        Number a = x[0], b = {{0}, {0}};
        for (int64_t j = 1, jk = k; 2 * j < r; j++, jk = jk + k < r ? jk + k : jk + k - r) {
            a.re += turns[jk] * x[j].re, a.im += turns[jk] * x[j].im;
            b.re += turns[r + jk] * x[r - j].re, b.im += turns[r + jk] * x[r - j].im;
        }
        y[k] = below(a, b), y[r - k] = above(a, b);
    }
}

typedef struct { int64_t m, blocks; const REAL *turns, *twiddles; Wave x; Number *spare; } Stage;

/* In every block of r m numbers, x[p + k m] <- e^(-2 pi i p k / (r m)) sum_j e^(-2 pi i j k / r) x[p + j m]; transposed,
 * the factor before the sum comes first. */
static inline __attribute__((always_inline)) void stage(const int64_t r, const int transposed, Stage a) {
    Number few[16], *z = r > 8 ? a.spare : few, *y = z + r;
    for (int64_t p = 0; p < a.m; p++)
        for (int64_t block = 0; block < a.blocks; block++) {
            Wave x = from(a.x, block * r * a.m + p);
            const REAL *twiddle = a.twiddles + 2 * p * r;
            UNROLL for (int64_t k = 0; k < r; k++) {
                z[k] = at(x, k * a.m);
                if (transposed && p && k) turn(twiddle[2 * k], twiddle[2 * k + 1], &z[k].re, &z[k].im);
            }
            if (r == 2 || r == 4 || r == 8) even_points(r, z, 1, y);
            else odd_points(r, a.turns, z, y);
            UNROLL for (int64_t k = 0; k < r; k++) {
                if (!transposed && p && k) turn(twiddle[2 * k], twiddle[2 * k + 1], &y[k].re, &y[k].im);
                put(x, k * a.m, y[k]);
            }
        }
}

static void any_stage(int64_t r, int transposed, Stage a) {
    switch (r) {
#define STAGE(r) case r: if (transposed) stage(r, 1, a); else stage(r, 0, a); break;
        STAGE(2) STAGE(3) STAGE(4) STAGE(5) STAGE(7) STAGE(8)
        default: if (transposed) stage(r, 1, a); else stage(r, 0, a);
    }
}

/* x[place of k] <- sum_j e^(-2 pi i j k / N) x[j], or transposed; `spare` has room for 2 N numbers. */
static void transform(const Scan *s, int transposed, Wave x, vector *spare) {
    int64_t N = s->N, count = s->plan[N];
    const int64_t *radices = s->plan + N + 1;
    const REAL *table = s->tables + 6 * N;
    Stage stages[64];
    for (int64_t i = 0, m = N, blocks = 1; i < count; i++) {
        int64_t r = radices[i];
        m /= r;
        stages[i] = (Stage){m, blocks, table, table + 2 * r, x, (Number *)spare};
        table += 2 * r + 2 * r * m, blocks *= r;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t j = transposed ? count - 1 - i : i;
        any_stage(radices[j], transposed, stages[j]);
    }
}

static Wave exchanged(Wave x) { return (Wave){x.im, x.re}; }

/* F x, and F^-1 y of what F left: as F is symmetric, its transpose with real and imaginary parts exchanged. */
static void forth(const Scan *s, Wave x, vector *spare) { transform(s, 0, x, spare); }
static void back(const Scan *s, Wave y, vector *spare) { transform(s, 1, exchanged(y), spare); }

/* sum + conj(v_j) x */
static inline Number along(Number sum, const REAL *v, int64_t j, int64_t N, Number x) {
    sum.re += v[j] * x.re + v[N + j] * x.im;
    sum.im += v[j] * x.im - v[N + j] * x.re;
    return sum;
}

static Number inner(const REAL *v, Wave x, int64_t N) {
    Number sum = {{0}, {0}};
    for (int64_t j = 0; j < N; j++) sum = along(sum, v, j, N, at(x, j));
    return sum;
}

/* x - 2 v_j a; of all coordinates a reflection where a is v^H x. */
static inline Number reflected(Number x, const REAL *v, int64_t j, int64_t N, Number a) {
    x.re -= 2 * (v[j] * a.re - v[N + j] * a.im);
    x.im -= 2 * (v[j] * a.im + v[N + j] * a.re);
    return x;
}

/* dv -= 2 (conj(a) dy + conj(c) x), with a = v^H x and c = v^H dy; then dy becomes dx. */
static void reflect_back(const REAL *v, Number a, Number c, Wave x, Wave dy, vector *dv, int64_t N) {
    for (int64_t j = 0; j < N; j++) {
        Number u = at(x, j), w = at(dy, j);
        dv[j] -= 2 * (a.re * w.re + a.im * w.im + c.re * u.re + c.im * u.im);
        dv[N + j] -= 2 * (a.re * w.im - a.im * w.re + c.re * u.im - c.im * u.re);
        put(dy, j, reflected(w, v, j, N, c));
    }
}

/* D_2 P R_1 x, with a = v^H x. */
static inline void middle(const Scan *s, Number a, Wave x, Wave y) {
    int64_t N = s->N;
    const REAL *turns = s->tables + 2 * N, *v = s->factors + 3 * N;
    for (int64_t j = 0; j < N; j++) {
        int64_t k = s->plan[j];
        Number z = reflected(at(x, k), v, k, N, a);
        turn(turns[2 * j], turns[2 * j + 1], &z.re, &z.im);
        put(y, j, z);
    }
}

static void multiply_factors(const Scan *s, Wave h, vector *scratch) {
    int64_t N = s->N;
    const REAL *turns = s->tables, *v = s->factors + 3 * N, *w = v + 2 * N;
    Wave y = wave(&scratch, N);
    diagonal(turns, h, h, N);
    forth(s, h, scratch);
    middle(s, inner(v, h, N), h, y);
    back(s, y, scratch);
    Number c = inner(w, y, N);
    for (int64_t j = 0; j < N; j++) put(h, j, reflected(at(y, j), w, j, N, c));
    diagonal(turns + 4 * N, h, h, N);
}

static void multiply_factors_back(const Scan *s, Wave h, Wave G, vector *dfactors, vector *scratch) {
    int64_t N = s->N;
    const REAL *first = s->tables, *second = first + 2 * N, *third = second + 2 * N;
    const REAL *v = s->factors + 3 * N, *w = v + 2 * N;
    vector *dfirst = dfactors, *dsecond = dfirst + N, *dthird = dsecond + N, *dv = dthird + N, *dw = dv + 2 * N;
    Wave x = wave(&scratch, N), y = wave(&scratch, N);
    diagonal(first, h, x, N);
    forth(s, x, scratch); /* x: F D_1 h */
    Number a = inner(v, x, N);
    middle(s, a, x, y);
    back(s, y, scratch); /* y: F^-1 D_2 P R_1 x */
    Number c = inner(w, y, N), d = {{0}, {0}};
    for (int64_t j = 0; j < N; j++) {
        Number g = turned_back(third, reflected(at(y, j), w, j, N, c), at(G, j), dthird, j);
        d = along(d, w, j, N, g);
        put(G, j, g);
    }
    reflect_back(w, c, d, y, G, dw, N);
    forth(s, G, scratch);
    d = (Number){{0}, {0}};
    for (int64_t j = 0; j < N; j++) { /* y: from now on the gradient of R_1 x */
        int64_t k = s->plan[j];
        Number g = turned_back(second, reflected(at(x, k), v, k, N, a), at(G, j), dsecond, j);
        d = along(d, v, k, N, g);
        put(y, k, g);
    }
    reflect_back(v, a, d, x, y, dv, N);
    back(s, y, scratch);
    for (int64_t j = 0; j < N; j++) put(G, j, turned_back(first, at(h, j), at(y, j), dfirst, j));
}

LOOPS(fourier, multiply_factors, multiply_factors_back)
