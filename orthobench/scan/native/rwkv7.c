/* RWKV-7 from maps of the input to what every head decays, erases and writes: the equations are in cells/rwkv7.py and
 * rwkv7.py.
 *
 * A call does the sequences first..last-1 for all steps. In scratch memory rows are W numbers long, whole vectors, with
 * zeros behind the d that count.
 */

#include "blocks.h"

typedef struct {
    int64_t T, B, H, d, negative;
    REAL *r, *k, *v, *w, *a;                         /* (B, T, H d): maps; w and a before their sigmoids */
    REAL *K, *L, *R;                                 /* (H d) */
    REAL *log_w, *written, *erasing, *erased, *bonus; /* (B, T, H d) */
    REAL *dlog_w, *dwritten, *derasing, *derased, *dbonus;
    REAL *dr, *dk, *dv, *dw, *da;
    REAL *dK, *dL, *dR;                              /* (B, H d) parts, zero at first */
} MixedHeads;

#define SLOWEST ((REAL)-0.60653065971263342) /* -exp(-1/2) */
#define SHORTEST ((REAL)1e-12)

typedef struct {
    REAL *log_w, *kept, *rate, *unit, *written, *work; /* kept = w, rate = a; unit: what is removed, at length one */
    REAL *dunit, *given, *value;
    REAL length, rho;
} Row;

#define ROWS 9

static Row row_at(int64_t W, REAL *m) {
    memset(m, 0, ROWS * W * sizeof(REAL));
    return (Row){m, m + W, m + 2 * W, m + 3 * W, m + 4 * W, m + 5 * W, m + 6 * W, m + 7 * W, m + 8 * W, 0, 0};
}

ROW decays(const REAL *restrict w, const REAL *restrict a, REAL negative, REAL *restrict log_w, REAL *restrict kept,
           REAL *restrict rate, int64_t n) {
    EACH {
        log_w[j] = SLOWEST * sigmoid(w[j]);
        kept[j] = exp_negative(log_w[j]);
        rate[j] = sigmoid(a[j]) * (1 + negative * kept[j]);
    }
}

ROW times(const REAL *restrict x, const REAL *restrict y, REAL *restrict out, int64_t n) { EACH out[j] = x[j] * y[j]; }

ROW multiples(REAL factor, const REAL *restrict x, REAL *restrict out, int64_t n) { EACH out[j] = factor * x[j]; }

ROW quotients(const REAL *restrict x, const REAL *restrict y, REAL *restrict out, int64_t n) {
    EACH out[j] = x[j] / y[j];
}

ROW writes(const REAL *restrict k, const REAL *restrict rate, const REAL *restrict L, REAL *restrict out, int64_t n) {
    EACH out[j] = k[j] * (1 + (rate[j] - 1) * L[j]);
}

/* What is made of one head's numbers, from place `at` on, and of its parameters, from place `own` on. */
static void make_row(const MixedHeads *s, int64_t at, int64_t own, int64_t W, Row *row) {
    int64_t n = s->d;
    decays(s->w + at, s->a + at, s->negative ? 1 : 0, row->log_w, row->kept, row->rate, n);
    times(s->k + at, s->K + own, row->unit, n);
    writes(s->k + at, row->rate, s->L + own, row->written, n);
    times(s->r + at, s->R + own, row->work, n);
    REAL length = square_root(inner(row->unit, row->unit, W));
    row->length = length < SHORTEST ? SHORTEST : length;
    row->rho = inner(row->work, row->written, W);
    scaled(1 / row->length, row->unit, W, row->unit);
}

void rwkv7_forward(const MixedHeads *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->d, N = s->H * n, W = whole(n);
    Row row = row_at(W, scratch);
    for (int64_t step = first * s->T; step < last * s->T; step++)
        for (int64_t own = 0, at = step * N; own < N; own += n, at += n) {
            make_row(s, at, own, W, &row);
            copied(row.log_w, n, s->log_w + at), copied(row.written, n, s->written + at);
            quotients(row.unit, row.kept, s->erasing + at, n);
            times(row.rate, row.unit, s->erased + at, n);
            multiples(row.rho, s->v + at, s->bonus + at, n);
        }
}

ROW units_back(const REAL *restrict derasing, const REAL *restrict derased, const REAL *restrict kept,
               const REAL *restrict rate, REAL *restrict dunit, int64_t n) {
    EACH dunit[j] = derasing[j] / kept[j] + derased[j] * rate[j];
}

/* dunit becomes the gradient of what is removed, before it has length one; given: that of what is written. */
ROW removed_back(const REAL *restrict unit, REAL along, REAL over, const REAL *restrict dwritten, REAL drho,
                 const REAL *restrict work, REAL *restrict dunit, REAL *restrict given, int64_t n) {
    EACH {
        dunit[j] = (dunit[j] - along * unit[j]) * over;
        given[j] = dwritten[j] + drho * work[j];
    }
}

ROW keys_back(const REAL *restrict given, const REAL *restrict removed, const REAL *restrict rate,
              const REAL *restrict K, const REAL *restrict L, REAL *restrict dk, int64_t n) {
    EACH dk[j] = given[j] * (1 + (rate[j] - 1) * L[j]) + removed[j] * K[j];
}

ROW parameters_back(const REAL *restrict given, const REAL *restrict removed, const REAL *restrict rate,
                    const REAL *restrict k, REAL *restrict dK, REAL *restrict dL, int64_t n) {
    EACH {
        dK[j] += removed[j] * k[j];
        dL[j] += given[j] * k[j] * (rate[j] - 1);
    }
}

/* drate = da, then da and dw by their sigmoids. */
ROW rates_back(const REAL *restrict given, const REAL *restrict unit, const REAL *restrict k, const REAL *restrict L,
               const REAL *restrict derased, REAL *restrict drate, int64_t n) {
    EACH drate[j] = derased[j] * unit[j] + given[j] * k[j] * L[j];
}

ROW decays_back(const REAL *restrict a, const REAL *restrict w, REAL negative, const REAL *restrict kept,
                const REAL *restrict dlog_w, const REAL *restrict dkept, REAL *restrict da, REAL *restrict dw,
                int64_t n) {
    EACH {
        REAL share = sigmoid(a[j]), open = sigmoid(w[j]), drate = da[j];
        REAL dlog = dlog_w[j] - dkept[j] + negative * drate * share * kept[j];
        da[j] = drate * (1 + negative * kept[j]) * share * (1 - share);
        dw[j] = dlog * SLOWEST * open * (1 - open);
    }
}

ROW sums_back(REAL drho, const REAL *restrict written, const REAL *restrict R, const REAL *restrict r,
              REAL *restrict dr, REAL *restrict dR, int64_t n) {
    EACH {
        REAL x = drho * written[j];
        dr[j] = x * R[j];
        dR[j] += x * r[j];
    }
}

/* The reverse for one head of one step, whose parameters' parts are from place `part` on. */
static void row_back(const MixedHeads *s, int64_t at, int64_t own, int64_t part, int64_t W, Row *row) {
    int64_t n = s->d;
    REAL negative = s->negative ? 1 : 0;
    const REAL *k = s->k + at, *L = s->L + own, *derasing = s->derasing + at, *derased = s->derased + at;
    make_row(s, at, own, W, row);
    copied(s->v + at, n, row->value), copied(s->dbonus + at, n, row->given);
    REAL drho = inner(row->value, row->given, W);
    multiples(row->rho, row->given, s->dv + at, n);
    units_back(derasing, derased, row->kept, row->rate, row->dunit, n);
    REAL along = row->length > SHORTEST ? inner(row->dunit, row->unit, W) : 0; /* else the length is a constant */
    removed_back(row->unit, along, 1 / row->length, s->dwritten + at, drho, row->work, row->dunit, row->given, n);
    keys_back(row->given, row->dunit, row->rate, s->K + own, L, s->dk + at, n);
    parameters_back(row->given, row->dunit, row->rate, k, s->dK + part, s->dL + part, n);
    sums_back(drho, row->written, s->R + own, s->r + at, s->dr + at, s->dR + part, n);
    rates_back(row->given, row->unit, k, L, derased, s->da + at, n);
    times(derasing, row->unit, row->value, n);
    quotients(row->value, row->kept, row->work, n);
    decays_back(s->a + at, s->w + at, negative, row->kept, s->dlog_w + at, row->work, s->da + at, s->dw + at, n);
}

void rwkv7_backward(const MixedHeads *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t H = s->H, N = H * s->d, W = whole(s->d);
    Row row = row_at(W, scratch);
    for (int64_t step = first * s->T; step < last * s->T; step++)
        for (int64_t own = 0; own < N; own += s->d)
            row_back(s, step * N + own, own, step / s->T * N + own, W, &row);
}
