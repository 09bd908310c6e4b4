/* PD-SSM from projections to states: the equations are in pdssm.py. Numbers of states are complex, as pairs.
 *
 * A call does the units first..last-1 of some sequences each. The mixed dictionary is made for STEPS steps and a vector
 * of columns at a time, again in the backward pass, so that it never leaves the cache.
 */

#include "vectors.h"

#include <math.h>

#define STEPS 8
#define NOWHERE (-1)
#define FIXED static inline __attribute__((always_inline))
#define EACH_STEP UNROLL for (int s = 0; s < STEPS; s++)

typedef struct {
    int64_t T, B, N, K, rows, unit; /* rows: i takes what plan[i] held, and turns it; else it turns, and goes there */
    int64_t P_time, P_row, dP_time, dP_row;
    int64_t *plan;      /* (B, T, N) */
    REAL *P;            /* (T, B, K + 4 N): shares, the parts of D, those of B x */
    REAL *M, *dM;       /* (K, N, N); (units, K, N, N), zero at first */
    REAL *h0, *H, *dH;  /* (B, N, 2), (B, T, N, 2) */
    REAL *G, *dP;       /* (B, N, 2): dL/dh_T at the start, dL/dh_0 at the end */
} Moves;

#define ROW_OF(t) (p->P + (t) * p->P_time + row * p->P_row)
#define D_ROW_OF(t) (p->dP + (t) * p->dP_time + row * p->dP_row)

/* The place in the dictionary of what is chosen among and of what chooses: a row of a column, or a column of a row. */
static inline int64_t entry(const Moves *p, int64_t k, int64_t a, int64_t c) {
    return (k * p->N + (p->rows ? c : a)) * p->N + (p->rows ? a : c);
}

/* packed (N, whole(N) / LANES, K, LANES): the dictionary, with what chooses in lanes. */
static void pack_dictionary(const Moves *p, REAL *packed) {
    for (int64_t a = 0; a < p->N; a++)
        for (int64_t w = 0; w < whole(p->N); w += LANES)
            for (int64_t k = 0; k < p->K; k++)
                for (int64_t c = w; c < w + LANES; c++) *packed++ = c < p->N ? p->M[entry(p, k, a, c)] : 0;
}

/* z (K, STEPS): shares of `count` steps; behind them again those of the last, of which nothing is used. */
static void read_shares(const Moves *p, int64_t row, int64_t t, int64_t count, REAL *z) {
    for (int64_t s = 0; s < STEPS; s++)
        for (int64_t k = 0; k < p->K; k++) z[k * STEPS + s] = ROW_OF(t + (s < count ? s : count - 1))[k];
}

FIXED void mix(const REAL *z, int64_t K, const REAL *M, vector *mixed) {
    EACH_STEP mixed[s] = (vector){0};
    for (int64_t k = 0; k < K; k++) {
        vector x = VECTOR(M + k * LANES);
        EACH_STEP mixed[s] += z[k * STEPS + s] * x;
    }
}

/* Where the mixed dictionary is largest, at the first such place; NOWHERE if its softmax is no number. */
static void choose(const Moves *p, const REAL *packed, const REAL *z, int64_t count, int64_t *plan) {
    int64_t N = p->N, K = p->K, W = whole(N);
    for (int64_t w = 0; w < W; w += LANES) {
        vector mixed[STEPS], best[STEPS];
        lane_index at[STEPS];
        mix(z, K, packed + w * K, best);
        EACH_STEP at[s] = (lane_index){0};
        for (int64_t a = 1; a < N; a++) {
            lane_index here = (lane_index){0} + (__typeof__(at[0][0]))a;
            mix(z, K, packed + (a * W + w) * K, mixed);
            EACH_STEP {
                lane_index more = (lane_index)(mixed[s] > best[s]) | (lane_index)(mixed[s] != mixed[s]);
                best[s] = CHOSEN(more, mixed[s], best[s]);
                at[s] = (here & more) | (at[s] & ~more);
            }
        }
        for (int64_t s = 0; s < count; s++) {
            lane_index finite = (lane_index)(best[s] - best[s] == (vector){0});
            at[s] = (at[s] & finite) | ~finite;
            for (int64_t c = w; c < N && c < w + LANES; c++) plan[s * N + c] = at[s][c - w];
        }
    }
}

/* What a choice that is none moves: by rows the unit that chose, else all of them. */
static void lose(const Moves *p, int by_rows, int64_t j, REAL *units) {
    for (int64_t i = by_rows ? 2 * j : 0; i < (by_rows ? 2 * j + 2 : 2 * p->N); i++) units[i] = (REAL)NAN;
}

void pdssm_forward(const Moves *p, int64_t first, int64_t last, REAL *scratch) {
    int64_t N = p->N, K = p->K;
    REAL *packed = scratch, *z = packed + N * whole(N) * K;
    pack_dictionary(p, packed);
    for (int64_t row = first * p->unit; row < last * p->unit && row < p->B; row++) {
        const REAL *h = p->h0 + row * 2 * N;
        for (int64_t t = 0; t < p->T; t++) {
            int64_t at = (row * p->T + t) * N, *plan = p->plan + at, left = p->T - t;
            const REAL *D = ROW_OF(t) + K, *X = D + 2 * N;
            REAL *out = p->H + 2 * at;
            if (t % STEPS == 0) {
                read_shares(p, row, t, left < STEPS ? left : STEPS, z);
                choose(p, packed, z, left < STEPS ? left : STEPS, plan);
            }
            for (int64_t j = 0; j < N; j++) out[2 * j] = X[j], out[2 * j + 1] = X[N + j];
            for (int64_t j = 0; j < N; j++) {
                int64_t from = 2 * (p->rows ? plan[j] : j), to = 2 * (p->rows ? j : plan[j]);
                if (plan[j] == NOWHERE) {
                    lose(p, p->rows != 0, j, out);
                    continue;
                }
                out[to] += D[j] * h[from] - D[N + j] * h[from + 1];
                out[to + 1] += D[j] * h[from + 1] + D[N + j] * h[from];
            }
            h = out;
        }
    }
}

typedef struct {
    REAL *packed, *dpacked, *z; /* the dictionary and its gradient, packed; shares */
    REAL *X[2], *Y[2];          /* (STEPS, whole(N)), (N, STEPS): parts of x and y; dL/dP is x . y, of what chooses
                                   and of what is chosen among */
    vector *soft, *dz;          /* (N, STEPS) the softmax and its gradient, (K, STEPS) sums for dz */
    REAL *before;               /* (N, 2) */
} Room;

/* One step back of row `row`: g = dL/dh_t to the gradients of D and B x, to x and y of place s, and to G. */
static void step_back(const Moves *p, Room *r, int64_t row, int64_t t, int64_t s) {
    int64_t N = p->N, K = p->K, W = whole(N), at = (row * p->T + t) * N;
    const int64_t *plan = p->plan + at;
    const REAL *D = ROW_OF(t) + K, *h = t ? p->H + 2 * (at - N) : p->h0 + 2 * row * N;
    REAL *dD = D_ROW_OF(t) + K, *dX = dD + 2 * N, *G = p->G + 2 * row * N;
    REAL *x[2] = {r->X[0] + s * W, r->X[1] + s * W}, *y[2] = {r->Y[0] + s, r->Y[1] + s};
    for (int64_t j = 0; j < N; j++) {
        dX[j] = G[2 * j] += p->dH[2 * (at + j)];
        dX[N + j] = G[2 * j + 1] += p->dH[2 * (at + j) + 1];
    }
    memset(r->before, 0, 2 * N * sizeof(REAL));
    for (int64_t j = 0; j < N; j++) {
        int64_t there = plan[j] == NOWHERE ? 0 : plan[j], from = p->rows ? there : j, to = p->rows ? j : there;
        REAL re = D[j], im = D[N + j], g = G[2 * to], gi = G[2 * to + 1], u = h[2 * from], ui = h[2 * from + 1];
        dD[j] = g * u + gi * ui;
        dD[N + j] = gi * u - g * ui;
        r->before[2 * from] += g * re + gi * im;
        r->before[2 * from + 1] += gi * re - g * im;
        if (p->rows) x[0][j] = g * re + gi * im, x[1][j] = gi * re - g * im;
        else x[0][j] = re * u - im * ui, x[1][j] = re * ui + im * u;
        if (plan[j] == NOWHERE) dD[j] = dD[N + j] = (REAL)NAN, lose(p, !p->rows, j, r->before);
        y[0][j * STEPS] = p->rows ? h[2 * j] : G[2 * j];
        y[1][j * STEPS] = p->rows ? h[2 * j + 1] : G[2 * j + 1];
    }
    memcpy(G, r->before, 2 * N * sizeof(REAL));
}

/* soft: of a vector of what chooses, the gradient of the mixed dictionary by its softmax. */
static void softmax_back(const Moves *p, const Room *r, int64_t w) {
    int64_t N = p->N, K = p->K, W = whole(N);
    vector best[STEPS], sum[STEPS], dot[STEPS], x[STEPS], xi[STEPS];
    for (int64_t a = 0; a < N; a++) {
        vector *mixed = r->soft + a * STEPS;
        mix(r->z, K, r->packed + (a * W + w) * K, mixed);
        EACH_STEP best[s] = a ? CHOSEN((lane_index)(mixed[s] > best[s]), mixed[s], best[s]) : mixed[s];
    }
    EACH_STEP sum[s] = dot[s] = (vector){0}, x[s] = VECTOR(r->X[0] + s * W + w), xi[s] = VECTOR(r->X[1] + s * W + w);
    for (int64_t a = 0; a < N; a++) {
        vector *soft = r->soft + a * STEPS;
        EACH_STEP {
            soft[s] = exponentials(soft[s] - best[s]);
            sum[s] += soft[s];
            dot[s] += soft[s] * (r->Y[0][a * STEPS + s] * x[s] + r->Y[1][a * STEPS + s] * xi[s]);
        }
    }
    EACH_STEP sum[s] = 1 / sum[s], dot[s] *= sum[s];
    for (int64_t a = 0; a < N; a++) {
        vector *soft = r->soft + a * STEPS;
        EACH_STEP soft[s] *= sum[s] * (r->Y[0][a * STEPS + s] * x[s] + r->Y[1][a * STEPS + s] * xi[s] - dot[s]);
    }
}

/* The gradients of the shares and of the dictionary by that of the mixed one, for matrices k ... k + n - 1. */
FIXED void mix_back(const int n, const Moves *p, const Room *r, int64_t w, int64_t k) {
    int64_t N = p->N, K = p->K, W = whole(N);
    const REAL *z = r->z + k * STEPS;
    vector dz[2 * STEPS];
    UNROLL for (int i = 0; i < n * STEPS; i++) dz[i] = r->dz[k * STEPS + i];
    for (int64_t a = 0; a < N; a++) {
        const vector *given = r->soft + a * STEPS;
        const REAL *M = r->packed + ((a * W + w) * K + k * LANES);
        REAL *dM = r->dpacked + ((a * W + w) * K + k * LANES);
        UNROLL for (int i = 0; i < n; i++) {
            vector sum = VECTOR(dM + i * LANES), more = {0}, x = VECTOR(M + i * LANES);
            UNROLL for (int s = 0; s < STEPS; s += 2) {
                dz[i * STEPS + s] += given[s] * x, dz[i * STEPS + s + 1] += given[s + 1] * x;
                sum += z[i * STEPS + s] * given[s], more += z[i * STEPS + s + 1] * given[s + 1];
            }
            VECTOR(dM + i * LANES) = sum + more;
        }
    }
    UNROLL for (int i = 0; i < n * STEPS; i++) r->dz[k * STEPS + i] = dz[i];
}

static void steps_back(const Moves *p, Room *r, int64_t row, int64_t t, int64_t count) {
    int64_t N = p->N, K = p->K, W = whole(N);
    read_shares(p, row, t, count, r->z);
    memset(r->dz, 0, K * STEPS * sizeof(vector));
    for (int64_t s = count; s < STEPS; s++) { /* steps that are none */
        memset(r->X[0] + s * W, 0, W * sizeof(REAL)), memset(r->X[1] + s * W, 0, W * sizeof(REAL));
        for (int64_t a = 0; a < N; a++) r->Y[0][a * STEPS + s] = r->Y[1][a * STEPS + s] = 0;
    }
    for (int64_t s = count - 1; s >= 0; s--) step_back(p, r, row, t + s, s);
    for (int64_t w = 0; w < W; w += LANES) {
        int64_t k = 0;
        softmax_back(p, r, w);
        for (; k + 2 <= K; k += 2) mix_back(2, p, r, w, k);
        if (k < K) mix_back(1, p, r, w, k);
    }
    for (int64_t s = 0; s < count; s++)
        for (int64_t k = 0; k < K; k++) D_ROW_OF(t + s)[k] = summed(r->dz[k * STEPS + s]);
}

static Room room_at(const Moves *p, REAL *memory) {
    int64_t N = p->N, K = p->K, W = whole(N), size = N * W * K;
    Room r = {.packed = memory, .dpacked = memory + size, .X = {memory + 2 * size, memory + 2 * size + STEPS * W}};
    memory += 2 * size + 2 * STEPS * W;
    r.Y[0] = memory, r.Y[1] = memory + N * STEPS;
    r.z = memory + 2 * N * STEPS, r.before = r.z + K * STEPS, memory = r.before + 2 * N;
    r.soft = (vector *)(void *)memory, r.dz = r.soft + N * STEPS;
    return r;
}

void pdssm_backward(const Moves *p, int64_t first, int64_t last, REAL *scratch) {
    int64_t N = p->N, K = p->K, W = whole(N);
    Room r = room_at(p, scratch);
    pack_dictionary(p, r.packed);
    memset(r.X[0], 0, 2 * STEPS * W * sizeof(REAL)); /* behind the N that count, too */
    for (int64_t unit = first; unit < last; unit++) {
        memset(r.dpacked, 0, N * W * K * sizeof(REAL));
        for (int64_t row = unit * p->unit; row < (unit + 1) * p->unit && row < p->B; row++)
            for (int64_t t = (p->T - 1) / STEPS * STEPS; t >= 0; t -= STEPS)
                steps_back(p, &r, row, t, p->T - t < STEPS ? p->T - t : STEPS);
        const REAL *from = r.dpacked;
        for (int64_t a = 0; a < N; a++)
            for (int64_t w = 0; w < W; w += LANES)
                for (int64_t k = 0; k < K; k++, from += LANES)
                    for (int64_t c = w; c < N && c < w + LANES; c++)
                        p->dM[unit * K * N * N + entry(p, k, a, c)] = from[c - w];
    }
}

/* Numbers of scratch memory that a pass needs. */
int64_t pdssm_scratch(const Moves *p, int64_t backward) {
    int64_t N = p->N, K = p->K, W = whole(N);
    if (!backward) return N * W * K + K * STEPS;
    return 2 * N * W * K + STEPS * (2 * W + 2 * N + K + (N + K) * LANES) + 2 * N;
}
