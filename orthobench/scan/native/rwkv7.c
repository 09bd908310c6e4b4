/* RWKV-7 from maps of the input to what every head decays, erases and writes: the equations are in cells/rwkv7.py and
 * rwkv7.py.
 *
 * A call does the sequences first..last-1 for all steps. Heads of a sequence's steps are rows one behind the other, and
 * a tile of them begins at any head: parameters of all heads are repeated, so that those of its rows are one piece.
 */

#include "tiles.h"

enum { R, K, V, W, A, MAPS };
enum { LOG_W, WRITTEN, ERASING, ERASED, BONUS, MADE };
enum { OWN_K, OWN_L, OWN_R, OWN };

typedef struct {
    int64_t T, B, H, d, negative;
    REAL *maps[MAPS];           /* (B, T, H d): r, k, v, w and a, the latter two before their sigmoids */
    REAL *own[OWN];             /* (H d): K, L, R */
    REAL *made[MADE];           /* (B, T, H d): ln w, what is written, r and p of `Writes`, the bonus */
    REAL *dmade[MADE], *dmaps[MAPS];
    REAL *down[OWN];            /* (B, H d) parts */
} MixedHeads;

#define SLOWEST ((REAL)-0.60653065971263342) /* -exp(-1/2) */
#define SHORTEST ((REAL)1e-12)

typedef struct {
    REAL *given[MAPS + MADE], *made[MADE];   /* copies of few rows */
    REAL *log_w, *kept, *rate, *unit, *written, *over, *rho, *work, *given_back, *along, *drho;
    REAL *own[OWN], *down[OWN];              /* of LANES heads from any one on */
} Room;

static int64_t size_of(const MixedHeads *s) {
    return (MAPS + 2 * MADE + 11) * tile_size(s->d) + 2 * OWN * (LANES + s->H) * s->d;
}

static Room room_of(const MixedHeads *s, REAL *m) {
    int64_t n = s->d, rows = LANES + s->H, size = tile_size(n);
    Room r;
    memset(m, 0, size_of(s) * sizeof(REAL));
    for (int i = 0; i < MAPS + MADE; i++, m += size) r.given[i] = m;
    for (int i = 0; i < MADE; i++, m += size) r.made[i] = m;
    REAL **work[] = {&r.log_w, &r.kept, &r.rate, &r.unit, &r.written, &r.over, &r.rho, &r.work, &r.given_back, &r.along,
                     &r.drho};
    for (int i = 0; i < 11; i++, m += size) *work[i] = m;
    for (int i = 0; i < OWN; i++, m += 2 * rows * n) {
        r.own[i] = m, r.down[i] = m + rows * n;
        for (int64_t row = 0; row < rows; row++) memcpy(m + row * n, s->own[i] + row % s->H * n, n * sizeof(REAL));
    }
    return r;
}

/* 1 / |x| of a tile's rows by their squares; zero is taken for a short row. */
static vector inverse_lengths(vector squares) {
    REAL each[LANES];
    VECTOR(each) = squares;
    for (int64_t i = 0; i < LANES; i++) {
        REAL length = square_root(each[i]);
        each[i] = 1 / (length < SHORTEST ? SHORTEST : length);
    }
    return VECTOR(each);
}

/* What is made of a tile, whose parameters begin with those of `head`. */
static void make_tile(const MixedHeads *s, const REAL **given, int64_t head, Room r) {
    int64_t n = s->d, own = head * n;
    REAL negative = s->negative ? 1 : 0;
    TILE {
        vector k = VECTOR(given[K] + j), log_w = SLOWEST * sigmoids(VECTOR(given[W] + j)), kept = exponentials(log_w);
        vector rate = sigmoids(VECTOR(given[A] + j)) * (1 + negative * kept);
        vector removed = k * VECTOR(r.own[OWN_K] + own + j), written = k * (1 + (rate - 1) * VECTOR(r.own[OWN_L] + own + j));
        VECTOR(r.log_w + j) = log_w, VECTOR(r.kept + j) = kept, VECTOR(r.rate + j) = rate;
        VECTOR(r.unit + j) = removed, VECTOR(r.written + j) = written;
        VECTOR(r.over + j) = removed * removed;
        VECTOR(r.rho + j) = VECTOR(given[R] + j) * VECTOR(r.own[OWN_R] + own + j) * written;
    }
    spread(row_sums(r.rho, n), n, r.rho);
    spread(inverse_lengths(row_sums(r.over, n)), n, r.over);
    TILE VECTOR(r.unit + j) *= VECTOR(r.over + j);
}

void rwkv7_forward(const MixedHeads *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->d, rows = s->T * s->H, end = last * rows;
    Room r = room_of(s, scratch);
    for (int64_t row = first * rows; row < end; row += LANES) {
        int64_t count = end - row < LANES ? end - row : LANES, at = row * n;
        const REAL *given[MAPS];
        REAL *made[MADE];
        for (int i = 0; i < MAPS; i++) given[i] = tile_of(s->maps[i] + at, count, n, r.given[i]);
        for (int i = 0; i < MADE; i++) made[i] = tile_to(s->made[i] + at, count, r.made[i]);
        make_tile(s, given, row % s->H, r);
        TILE {
            vector unit = VECTOR(r.unit + j);
            VECTOR(made[LOG_W] + j) = VECTOR(r.log_w + j), VECTOR(made[WRITTEN] + j) = VECTOR(r.written + j);
            VECTOR(made[ERASING] + j) = unit / VECTOR(r.kept + j);
            VECTOR(made[ERASED] + j) = unit * VECTOR(r.rate + j);
            VECTOR(made[BONUS] + j) = VECTOR(r.rho + j) * VECTOR(given[V] + j);
        }
        for (int i = 0; i < MADE; i++) tile_done(made[i], count, n, s->made[i] + at);
    }
}

/* The reverse for a tile, whose parameters begin with those of `head`, from maps and gradients of what is made. */
static void tile_back(const MixedHeads *s, const REAL **given, int64_t head, Room r, REAL **found) {
    int64_t n = s->d, own = head * n;
    const REAL *const *d = given + MAPS;
    REAL negative = s->negative ? 1 : 0;
    make_tile(s, given, head, r);
    TILE {
        vector dunit = VECTOR(d[ERASING] + j) / VECTOR(r.kept + j) + VECTOR(d[ERASED] + j) * VECTOR(r.rate + j);
        VECTOR(r.work + j) = dunit, VECTOR(r.along + j) = dunit * VECTOR(r.unit + j);
        VECTOR(r.drho + j) = VECTOR(given[V] + j) * VECTOR(d[BONUS] + j);
    }
    spread(row_sums(r.drho, n), n, r.drho);
    spread(row_sums(r.along, n), n, r.along);
    TILE {
        vector k = VECTOR(given[K] + j), map_r = VECTOR(given[R] + j), L = VECTOR(r.own[OWN_L] + own + j);
        vector own_R = VECTOR(r.own[OWN_R] + own + j), unit = VECTOR(r.unit + j), rate = VECTOR(r.rate + j);
        vector kept = VECTOR(r.kept + j), over = VECTOR(r.over + j), drho = VECTOR(r.drho + j);
        vector free = (vector)((lane_index)VECTOR(r.along + j) & (lane_index)(over < 1 / SHORTEST)); /* else |x| is fixed */
        vector removed = (VECTOR(r.work + j) - free * unit) * over;
        vector written = VECTOR(d[WRITTEN] + j) + drho * map_r * own_R, x = drho * VECTOR(r.written + j);
        vector drate = VECTOR(d[ERASED] + j) * unit + written * k * L, share = sigmoids(VECTOR(given[A] + j));
        vector open = VECTOR(r.log_w + j) / SLOWEST;
        vector dlog = VECTOR(d[LOG_W] + j) - VECTOR(d[ERASING] + j) * unit / kept + negative * drate * share * kept;
        VECTOR(found[R] + j) = x * own_R;
        VECTOR(found[K] + j) = written * (1 + (rate - 1) * L) + removed * VECTOR(r.own[OWN_K] + own + j);
        VECTOR(found[V] + j) = VECTOR(r.rho + j) * VECTOR(d[BONUS] + j);
        VECTOR(found[W] + j) = dlog * SLOWEST * open * (1 - open);
        VECTOR(found[A] + j) = drate * (1 + negative * kept) * share * (1 - share);
        VECTOR(r.down[OWN_K] + own + j) += removed * k;
        VECTOR(r.down[OWN_L] + own + j) += written * k * (rate - 1);
        VECTOR(r.down[OWN_R] + own + j) += x * map_r;
    }
}

void rwkv7_backward(const MixedHeads *s, int64_t first, int64_t last, REAL *scratch) {
    int64_t n = s->d, H = s->H, rows = s->T * H, N = H * n;
    Room r = room_of(s, scratch);
    for (int64_t unit = first; unit < last; unit++) {
        for (int i = 0; i < OWN; i++) memset(r.down[i], 0, (LANES + H) * n * sizeof(REAL));
        for (int64_t row = 0; row < rows; row += LANES) {
            int64_t count = rows - row < LANES ? rows - row : LANES, at = (unit * rows + row) * n;
            const REAL *given[MAPS + MADE];
            REAL *found[MAPS];
            for (int i = 0; i < MAPS; i++) given[i] = tile_of(s->maps[i] + at, count, n, r.given[i]);
            for (int i = 0; i < MADE; i++)
                given[MAPS + i] = tile_of(s->dmade[i] + at, count, n, r.given[MAPS + i]);
            for (int i = 0; i < MAPS; i++) found[i] = tile_to(s->dmaps[i] + at, count, r.made[i]);
            tile_back(s, given, row % H, r, found);
            for (int i = 0; i < MAPS; i++) tile_done(found[i], count, n, s->dmaps[i] + at);
        }
        for (int i = 0; i < OWN; i++) {
            REAL *sum = s->down[i] + unit * N;
            memset(sum, 0, N * sizeof(REAL));
            for (int64_t row = 0; row < LANES + H; row++)
                for (int64_t j = 0; j < n; j++) sum[row % H * n + j] += r.down[i][row * n + j];
        }
    }
}

/* Numbers of scratch memory that a pass needs. */
int64_t rwkv7_scratch(const MixedHeads *s, int64_t backward) {
    (void)backward;
    return size_of(s);
}
