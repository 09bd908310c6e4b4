/* Keys and queries of Mamba-3, which every head shifts and turns: the equations are in mamba3.py.
 *
 * A call does the sequences first..last-1 for all steps. In scratch memory rows of keys are W numbers long, whole
 * vectors, with zeros behind the K that count.
 */

#include "blocks.h"

typedef struct {
    int64_t T, B, H, K, pairs;
    REAL *b, *c, *b_shift, *c_shift;  /* (B, T, K), (H, K) */
    REAL *cosine, *sine, *share;      /* (B, T, H, pairs), (B, T, H) */
    REAL *old, *last, *k, *q, *dot;   /* (B, H, K), (B, T, H, K), (B, T, H) */
    REAL *dk, *dq, *ddot, *db, *dc, *dangle, *dshare, *dold; /* dold is dL/dlast at the start */
    REAL *db_shift, *dc_shift;        /* (B, H, K) parts, zero at first */
} KeyTurns;

/* out = x + shift, and behind its K numbers zeros. */
ROW shifted(const REAL *restrict x, const REAL *restrict shift, int64_t n, REAL *restrict out) {
    EACH out[j] = x[j] + shift[j];
}

/* x, of which pairs are turned, by an angle or back. */
ROW turned(const REAL *restrict x, const REAL *restrict cosine, const REAL *restrict sine, int back, int64_t n,
           int64_t K, REAL *restrict out) {
    REAL way = back ? -1 : 1;
    EACH {
        REAL s = way * sine[j];
        out[2 * j] = cosine[j] * x[2 * j] - s * x[2 * j + 1];
        out[2 * j + 1] = cosine[j] * x[2 * j + 1] + s * x[2 * j];
    }
    for (int64_t j = 2 * n; j < K; j++) out[j] = x[j];
}

/* The gradient of the angles by which x was turned, from x behind that and its gradient; added to. */
ROW angles_back(const REAL *restrict x, const REAL *restrict dx, int64_t n, REAL *restrict dangle) {
    EACH dangle[j] += dx[2 * j + 1] * x[2 * j] - dx[2 * j] * x[2 * j + 1];
}

ROW times(REAL factor, const REAL *restrict x, int64_t n, REAL *restrict out) { EACH out[j] = factor * x[j]; }

ROW add_times(REAL factor, const REAL *restrict x, int64_t n, REAL *restrict out) { EACH out[j] += factor * x[j]; }

typedef struct { int64_t keys, at, angles; } Place; /* of a step's b and c, a head's number, and a head's angles */

static inline Place place_of(const KeyTurns *s, int64_t row, int64_t t, int64_t head) {
    int64_t step = row * s->T + t, at = step * s->H + head;
    return (Place){step * s->K, at, at * s->pairs};
}

void mamba3_forward(const KeyTurns *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t H = s->H, K = s->K, W = whole(K);
    REAL *b = scratch, *c = b + W;
    memset(scratch, 0, 2 * W * sizeof(REAL));
    for (int64_t row = first; row < last; row++)
        for (int64_t head = 0; head < H; head++) {
            REAL *old = s->last + (row * H + head) * K;
            memcpy(old, s->old + (row * H + head) * K, K * sizeof(REAL));
            for (int64_t t = 0; t < s->T; t++) {
                Place p = place_of(s, row, t, head);
                shifted(s->b + p.keys, s->b_shift + head * K, K, b);
                shifted(s->c + p.keys, s->c_shift + head * K, K, c);
                s->dot[p.at] = inner(b, c, W);
                times(s->share[p.at], old, K, s->k + p.at * K);
                turned(b, s->cosine + p.angles, s->sine + p.angles, 0, s->pairs, K, old);
                turned(c, s->cosine + p.angles, s->sine + p.angles, 0, s->pairs, K, s->q + p.at * K);
            }
        }
}

void mamba3_backward(const KeyTurns *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t H = s->H, K = s->K, W = whole(K);
    REAL *b = scratch, *c = b + W, *now = c + W, *given = now + W, *db = given + W, *dc = db + W, *dnow = dc + W;
    memset(scratch, 0, 7 * W * sizeof(REAL));
    for (int64_t row = first; row < last; row++)
        for (int64_t head = 0; head < H; head++) {
            int64_t own = (row * H + head) * K;
            copied(s->dold + own, K, dnow);
            for (int64_t t = s->T - 1; t >= 0; t--) {
                Place p = place_of(s, row, t, head);
                const REAL *cosine = s->cosine + p.angles, *sine = s->sine + p.angles, *dq = s->dq + p.at * K;
                REAL *dangle = s->dangle + p.angles;
                memset(dangle, 0, s->pairs * sizeof(REAL));
                shifted(s->b + p.keys, s->b_shift + head * K, K, b);
                shifted(s->c + p.keys, s->c_shift + head * K, K, c);
                turned(c, cosine, sine, 0, s->pairs, K, now);
                angles_back(now, dq, s->pairs, dangle);
                turned(dq, cosine, sine, 1, s->pairs, K, dc);
                turned(b, cosine, sine, 0, s->pairs, K, now);
                angles_back(now, dnow, s->pairs, dangle);
                turned(dnow, cosine, sine, 1, s->pairs, K, db);
                add_times(s->ddot[p.at], c, K, db);
                add_times(s->ddot[p.at], b, K, dc);
                if (head == 0) memset(s->db + p.keys, 0, K * sizeof(REAL)), memset(s->dc + p.keys, 0, K * sizeof(REAL));
                add_to(s->db + p.keys, db, K), add_to(s->db_shift + own, db, K);
                add_to(s->dc + p.keys, dc, K), add_to(s->dc_shift + own, dc, K);
                if (t) { /* what the key wrote at this step is the one before's */
                    Place q = place_of(s, row, t - 1, head);
                    shifted(s->b + q.keys, s->b_shift + head * K, K, b);
                    turned(b, s->cosine + q.angles, s->sine + q.angles, 0, s->pairs, K, now);
                } else copied(s->old + own, K, now);
                copied(s->dk + p.at * K, K, given);
                s->dshare[p.at] = inner(given, now, W);
                times(s->share[p.at], given, K, dnow);
            }
            copied(dnow, K, s->dold + own);
        }
}
