/* W = D_3 R_2 F^-1 D_2 P R_1 F D_1: the equations are in parametrizations/unitary_product.py.
 *
 * s->factors has D_1, D_2, D_3 and the unit vectors of R_1, R_2, each as N real and N imaginary parts; what makes the
 * transforms unitary is in D_1 and D_2. s->plan has the permutation, the number of radices and the radices; s->tables, for
 * every radix r, the cosines and sines of 2 pi k / r, then the twiddle factors of its stage.
 */

#include "lanes.h"

typedef struct { int64_t m, s; const REAL *cosine, *sine, *twiddles; Wave x, y; } Stage;

/* y[(p r + k) s + q] = e^(-2 pi i p k / (r m)) sum_j e^(-2 pi i j k / r) x[(p + j m) s + q]; x is used up. */
static inline __attribute__((always_inline)) void stage(const int64_t r, Stage a) {
    for (int64_t p = 0; p < a.m; p++)
        for (int64_t q = 0; q < a.s; q++) {
            vector *xr = a.x.re + p * a.s + q, *xi = a.x.im + p * a.s + q;
            vector *yr = a.y.re + p * r * a.s + q, *yi = a.y.im + p * r * a.s + q;
            int64_t step = a.m * a.s;
            if (r == 2) {
                yr[0] = xr[0] + xr[step], yi[0] = xi[0] + xi[step];
                yr[a.s] = xr[0] - xr[step], yi[a.s] = xi[0] - xi[step];
            } else if (r == 4) {
                vector er = xr[0] + xr[2 * step], ei = xi[0] + xi[2 * step];
                vector fr = xr[0] - xr[2 * step], fi = xi[0] - xi[2 * step];
                vector gr = xr[step] + xr[3 * step], gi = xi[step] + xi[3 * step];
                vector hr = xr[step] - xr[3 * step], hi = xi[step] - xi[3 * step];
                yr[0] = er + gr, yi[0] = ei + gi;
                yr[a.s] = fr + hi, yi[a.s] = fi - hr;
                yr[2 * a.s] = er - gr, yi[2 * a.s] = ei - gi;
                yr[3 * a.s] = fr - hi, yi[3 * a.s] = fi + hr;
            } else if (r == 8) { /* two of four points, of the even and the odd */
                vector br[2][4], bi[2][4];
                UNROLL for (int half = 0; half < 2; half++) {
                    const vector *ur = xr + half * step, *ui = xi + half * step;
                    vector er = ur[0] + ur[4 * step], ei = ui[0] + ui[4 * step];
                    vector fr = ur[0] - ur[4 * step], fi = ui[0] - ui[4 * step];
                    vector gr = ur[2 * step] + ur[6 * step], gi = ui[2 * step] + ui[6 * step];
                    vector hr = ur[2 * step] - ur[6 * step], hi = ui[2 * step] - ui[6 * step];
                    br[half][0] = er + gr, bi[half][0] = ei + gi;
                    br[half][1] = fr + hi, bi[half][1] = fi - hr;
                    br[half][2] = er - gr, bi[half][2] = ei - gi;
                    br[half][3] = fr - hi, bi[half][3] = fi + hr;
                }
                UNROLL for (int k = 0; k < 4; k++) {
                    REAL wr = a.cosine[k], wi = -a.sine[k];
                    vector zr = wr * br[1][k] - wi * bi[1][k], zi = wr * bi[1][k] + wi * br[1][k];
                    yr[k * a.s] = br[0][k] + zr, yi[k * a.s] = bi[0][k] + zi;
                    yr[(k + 4) * a.s] = br[0][k] - zr, yi[(k + 4) * a.s] = bi[0][k] - zi;
                }
            } else { /* odd: the sum and the difference of x_j and x_(r-j) take their places */
                vector zero_r = xr[0], zero_i = xi[0], sum_r = zero_r, sum_i = zero_i;
                for (int64_t j = 1; 2 * j < r; j++) {
                    int64_t here = j * step, there = (r - j) * step;
                    vector ur = xr[here] + xr[there], ui = xi[here] + xi[there];
                    xr[there] = xr[here] - xr[there], xi[there] = xi[here] - xi[there];
                    xr[here] = ur, xi[here] = ui;
                    sum_r += ur, sum_i += ui;
                }
                yr[0] = sum_r, yi[0] = sum_i;
                for (int64_t k = 1; 2 * k < r; k++) {
                    vector er = zero_r, ei = zero_i, or = {0}, oi = {0};
                    for (int64_t j = 1, jk = k; 2 * j < r; j++, jk = jk + k < r ? jk + k : jk + k - r) {
                        er += a.cosine[jk] * xr[j * step], ei += a.cosine[jk] * xi[j * step];
                        or += a.sine[jk] * xr[(r - j) * step], oi += a.sine[jk] * xi[(r - j) * step];
                    }
                    yr[k * a.s] = er + oi, yi[k * a.s] = ei - or;
                    yr[(r - k) * a.s] = er - oi, yi[(r - k) * a.s] = ei + or;
                }
            }
            for (int64_t k = 1; p && k < r; k++) {
                REAL wr = a.twiddles[2 * (p * r + k)], wi = a.twiddles[2 * (p * r + k) + 1];
                vector zr = yr[k * a.s], zi = yi[k * a.s];
                yr[k * a.s] = wr * zr - wi * zi, yi[k * a.s] = wr * zi + wi * zr;
            }
        }
}

/* x[k] <- sum_j e^(-2 pi i j k / N) x[j]; y is scratch. The inverse is the same with real and imaginary parts exchanged. */
static void transform(const Scan *s, Wave *x, Wave *y) {
    const int64_t *radices = s->plan + s->N + 1;
    const REAL *table = s->tables;
    Stage a = {s->N, 1, 0, 0, 0, *x, *y};
    for (int64_t i = 0; i < radices[-1]; i++) {
        int64_t r = radices[i];
        a.m /= r, a.cosine = table, a.sine = table + r, a.twiddles = table + 2 * r;
        switch (r) {
            case 2: stage(2, a); break;
            case 3: stage(3, a); break;
            case 4: stage(4, a); break;
            case 5: stage(5, a); break;
            case 7: stage(7, a); break;
            case 8: stage(8, a); break;
            default: stage(r, a);
        }
        table += 2 * r + 2 * r * a.m;
        a.s *= r;
        Wave z = a.x;
        a.x = a.y, a.y = z;
    }
    *x = a.x, *y = a.y;
}

static Wave exchanged(Wave x) { return (Wave){x.im, x.re}; }

static void transform_back(const Scan *s, Wave *x, Wave *y) {
    Wave u = exchanged(*x), v = exchanged(*y);
    transform(s, &u, &v);
    *x = exchanged(u), *y = exchanged(v);
}

typedef struct { vector re, im; } Number;

/* v^H x */
static Number inner(const REAL *v, Wave x, int64_t N) {
    Number sum = {{0}, {0}};
    for (int64_t j = 0; j < N; j++) {
        sum.re += v[j] * x.re[j] + v[N + j] * x.im[j];
        sum.im += v[j] * x.im[j] - v[N + j] * x.re[j];
    }
    return sum;
}

/* y[j] = x[p[j]] - 2 v[p[j]] a, with a = v^H x; without a permutation y may be x. */
static inline void reflect(const REAL *v, Number a, Wave x, const int64_t *permutation, Wave y, int64_t N) {
    for (int64_t j = 0; j < N; j++) {
        int64_t k = permutation ? permutation[j] : j;
        vector re = x.re[k] - 2 * (v[k] * a.re - v[N + k] * a.im);
        y.im[j] = x.im[k] - 2 * (v[k] * a.im + v[N + k] * a.re);
        y.re[j] = re;
    }
}

/* dv -= 2 (conj(a) dy + conj(c) x), with c = v^H dy; then dy becomes dx. */
static void reflect_back(const REAL *v, Number a, Wave x, Wave dy, vector *dv, int64_t N) {
    Number c = inner(v, dy, N);
    for (int64_t j = 0; j < N; j++) {
        vector re = dy.re[j], im = dy.im[j];
        dv[j] -= 2 * (a.re * re + a.im * im + c.re * x.re[j] + c.im * x.im[j]);
        dv[N + j] -= 2 * (a.re * im - a.im * re + c.re * x.im[j] - c.im * x.re[j]);
        dy.re[j] = re - 2 * (v[j] * c.re - v[N + j] * c.im);
        dy.im[j] = im - 2 * (v[j] * c.im + v[N + j] * c.re);
    }
}

static void multiply_factors(const Scan *s, Wave h, vector *scratch) {
    int64_t N = s->N;
    const REAL *d = s->factors, *v = d + 6 * N, *w = d + 8 * N;
    Wave x = h, y = wave(&scratch, N);
    scale(x, d, x, N);
    transform(s, &x, &y);
    reflect(v, inner(v, x, N), x, s->plan, y, N);
    scale(y, d + 2 * N, y, N);
    transform_back(s, &y, &x);
    reflect(w, inner(w, y, N), y, 0, y, N);
    scale(y, d + 4 * N, h, N);
}

static void multiply_factors_back(const Scan *s, Wave h, Wave G, vector *dfactors, vector *scratch) {
    int64_t N = s->N;
    const REAL *d = s->factors, *v = d + 6 * N, *w = d + 8 * N;
    Wave x = wave(&scratch, N), y = wave(&scratch, N), z = wave(&scratch, N), u = wave(&scratch, N);
    scale(h, d, x, N);
    transform(s, &x, &z); /* x: F D_1 h */
    Number a = inner(v, x, N);
    reflect(v, a, x, s->plan, u, N); /* u: P R_1 x */
    scale(u, d + 2 * N, y, N);
    transform_back(s, &y, &z); /* y: F^-1 D_2 u */
    Number c = inner(w, y, N);
    reflect(w, c, y, 0, z, N);
    scale_back(z, G, d + 4 * N, G, dfactors + 4 * N, N);
    reflect_back(w, c, y, G, dfactors + 8 * N, N);
    y = G;
    transform(s, &y, &z);
    scale_back(u, y, d + 2 * N, y, dfactors + 2 * N, N);
    for (int64_t j = 0; j < N; j++) z.re[s->plan[j]] = y.re[j], z.im[s->plan[j]] = y.im[j];
    reflect_back(v, a, x, z, dfactors + 6 * N, N);
    transform_back(s, &z, &y);
    scale_back(h, z, d, G, dfactors, N);
}

void fourier_forward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    lanes_forward(s, first, last, scratch, multiply_factors);
}

void fourier_backward(const Scan *s, int64_t first, int64_t last, vector *scratch) {
    lanes_backward(s, first, last, scratch, multiply_factors_back);
}
