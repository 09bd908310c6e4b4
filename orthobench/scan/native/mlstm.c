/* mLSTM from projections to outputs: the equations are in cells/mlstm.py.
 *
 * A call does the sequences first..last-1, block by block of some steps, as in deltaproduct.c. What is kept of a head
 * before a block is C, n and m.
 */

#include "sequences.h"

typedef struct {
    union { HeadSequences shared; struct { HEAD_SEQUENCES }; }; /* p: q, k, v, the output gate, i and f if of x */
    int64_t inside;                 /* gates read q, k and v */
    REAL *G, *biases, *scale;       /* G (2 H, 2 H d + H e), its biases (2 H), scale (H e) */
    REAL *C0, *n0, *m0, *C, *n, *m; /* (B, H, d, e), (B, H, d), (B, H) */
    REAL *kept;                     /* (B, blocks, H, d e + d + 1), or null */
    REAL *dG, *dbiases, *dscale;    /* (units, ...), zero at first */
    REAL *dC, *dn, *dm;             /* of the states behind all steps at the start, before them at the end */
} MemoryHeads;

#define EPSILON ((REAL)1e-5)
#define STEPS BLOCK

typedef struct {
    Head h;
    Window w;
    int64_t X, J, inputs;  /* widths of rows: of inputs, which q, k and v are, and of the gates' */
    REAL *x, *slope, *dx;  /* (STEPS, X) */
    REAL *z, *dz;          /* (STEPS, J) what i and f are computed from */
    REAL *G, *GT, *dG;     /* (J, X), (X, J), (J, X) */
    REAL *beta, *gate, *m; /* (STEPS, H); m (STEPS + 1, H), the first before the block */
    REAL *kept;            /* (STEPS, H) ln sigmoid(f) + m before the step */
    REAL *dbeta, *dlog, *dm;
    REAL *rows, *normal, *ones, *shown, *r; /* (CHUNK, V), but (2, V), (CHUNK) */
    REAL *scale, *dscale;  /* (H, V) */
    REAL *states, *sums;   /* (H, K, V) and (H, K): C and n, or their gradients */
    REAL *N, *dr;          /* of a head's chunks, (chunks, STACK, V), (chunks, CHUNK) */
} Block;

static Block block_of(const MemoryHeads *s, int64_t backward, REAL **memory) {
    int64_t H = s->H, n = 2 * H * s->d + H * s->e;
    Block b = {.h = {s->d, s->e, padded(s->d), padded(s->e), 0, 1, 1}, .X = padded(n), .J = padded(2 * H), .inputs = n};
    b.w = window_of(&s->shared, STEPS, backward, memory);
    b.x = take(memory, STEPS * b.X), b.slope = take(memory, STEPS * b.X), b.dx = take(memory, STEPS * b.X);
    b.z = take(memory, STEPS * b.J), b.dz = take(memory, STEPS * b.J);
    b.G = take(memory, b.J * b.X), b.GT = take(memory, b.J * b.X), b.dG = take(memory, b.J * b.X);
    b.beta = take(memory, STEPS * H), b.gate = take(memory, STEPS * H), b.m = take(memory, (STEPS + 1) * H);
    b.kept = take(memory, STEPS * H), b.dbeta = take(memory, STEPS * H), b.dlog = take(memory, STEPS * H);
    b.dm = take(memory, (STEPS + 1) * H);
    b.rows = take(memory, CHUNK * b.h.V), b.normal = take(memory, CHUNK * b.h.V), b.r = take(memory, CHUNK);
    b.ones = take(memory, CHUNK * b.h.V), b.shown = take(memory, 2 * b.h.V);
    b.scale = take(memory, H * b.h.V), b.dscale = take(memory, H * b.h.V);
    b.states = take(memory, H * b.h.K * b.h.V), b.sums = take(memory, H * b.h.K);
    if (backward) b.N = take(memory, chunks_of(STEPS) * STACK * b.h.V), b.dr = take(memory, STEPS);
    return b;
}

static void load_parameters(const MemoryHeads *s, Block *b) {
    for (int64_t q = 0; q < CHUNK; q++)
        for (int64_t j = 0; j < s->e; j++) b->ones[q * b->h.V + j] = 1;
    for (int64_t head = 0; head < s->H; head++) copied(s->scale + head * s->e, s->e, b->scale + head * b->h.V);
    for (int64_t g = 0; s->inside && g < 2 * s->H; g++)
        for (int64_t j = 0; j < b->inputs; j++)
            b->G[g * b->X + j] = b->GT[j * b->J + g] = s->G[g * b->inputs + j];
}

static inline REAL exponential(REAL x) { return sizeof(REAL) == 8 ? (REAL)exp((double)x) : (REAL)expf((float)x); }

/* x, z, m and the gates of the steps t ... t + count - 1. */
static void read_block(const MemoryHeads *s, Block *b, int64_t t, int64_t count) {
    int64_t H = s->H, M = s->channels, N = H * s->e;
    REAL scale = 1 / square_root((REAL)s->d);
    for (int64_t i = 0; i < count; i++) {
        const REAL *p = row_of(&b->w, t + i);
        REAL *x = b->x + i * b->X;
        if (s->K) convolve(&b->w.convolution, place_of(&b->w, t + i), 0, x, b->w.dp ? b->slope + i * b->X : 0);
        else memcpy(x, p, M * sizeof(REAL));
        memcpy(x + M, p + M, N * sizeof(REAL));
        if (!s->inside) memcpy(b->z + i * b->J, p + M + 2 * N, 2 * H * sizeof(REAL));
    }
    if (s->inside) multiply(b->x, b->X, (count + PADDING - 1) / PADDING * PADDING, b->inputs, b->GT, b->J, b->z);
    for (int64_t i = 0; i < count; i++) {
        REAL *z = b->z + i * b->J;
        for (int64_t j = 0; s->inside && j < 2 * H; j++) z[j] += s->biases[j];
        memcpy(b->kept + i * H, z + H, H * sizeof(REAL));
    }
    for (int64_t at = 0; at < count * H; at += LANES) VECTOR(b->kept + at) = log_sigmoids(VECTOR(b->kept + at));
    for (int64_t at = 0; at < count * H; at++) {
        REAL log_i = b->z[at / H * b->J + at % H], kept = b->kept[at] += b->m[at];
        REAL m = kept > log_i || kept != kept ? kept : log_i;
        b->m[at + H] = m;
        b->beta[at] = log_i - m;
        b->gate[at] = kept - m;
    }
    for (int64_t at = 0; at < count * H; at += LANES) {
        VECTOR(b->beta + at) = scale * exponentials(VECTOR(b->beta + at));
        VECTOR(b->gate + at) = exponentials(VECTOR(b->gate + at));
    }
}

static void load_chunk(const MemoryHeads *s, const Block *b, int64_t i, int64_t head, int64_t count, Chunk *c) {
    const Head *h = &b->h;
    int64_t first = i * CHUNK, left = count - first;
    c->reads = left < CHUNK ? left : CHUNK;
    for (int64_t r = 0; r < CHUNK; r++) {
        REAL *key = c->L + r * h->K, *query = c->L + (CHUNK + r) * h->K, *value = c->U + r * h->V;
        c->place[r] = r;
        if (r >= left) {
            memset(key, 0, h->K * sizeof(REAL)), memset(query, 0, h->K * sizeof(REAL));
            memset(value, 0, h->V * sizeof(REAL));
            c->beta[r] = 0, c->gate[r] = 1;
            continue;
        }
        const REAL *x = b->x + (first + r) * b->X;
        padded_copy(x + head * s->d, s->d, h->K, query);
        padded_copy(x + (s->H + head) * s->d, s->d, h->K, key);
        padded_copy(x + 2 * s->H * s->d + head * s->e, s->e, h->V, value);
        c->beta[r] = b->beta[(first + r) * s->H + head];
        c->gate[r] = b->gate[(first + r) * s->H + head];
    }
}

typedef struct { REAL factor[CHUNK], deviation[CHUNK]; int by_r[CHUNK], by_m[CHUNK]; } Reading;

/* What the rows of O are multiplied by, and in `normal` those rows with zero mean and unit variance. */
static void normalise(const MemoryHeads *s, Block *b, const Chunk *c, int64_t i, int64_t head, const REAL *O, Reading *f) {
    int64_t V = b->h.V;
    REAL sums[CHUNK], squares[CHUNK], n = (REAL)s->e;
    row_dots(O, b->ones, CHUNK, V, sums);
    for (int64_t q = 0; q < c->reads; q++) {
        REAL m = b->m[(i * CHUNK + q + 1) * s->H + head], low = m < 0 || m != m ? m : 0, down = exponential(low);
        REAL size = magnitude(b->r[q]) * down, other = exponential(low - m);
        f->by_r[q] = size >= other, f->by_m[q] = other >= size;
        if (size < other) size = other;
        if (size == 0) size = 1, f->by_r[q] = f->by_m[q] = 0;
        f->factor[q] = down / size;
        scaled(f->factor[q], O + q * V, V, b->normal + q * V); /* first, as the squares of O may be too small */
        add_scaled(-f->factor[q] * sums[q] / n, b->ones, V, b->normal + q * V);
    }
    row_dots(b->normal, b->normal, CHUNK, V, squares);
    for (int64_t q = 0; q < c->reads; q++) {
        f->deviation[q] = 1 / square_root(squares[q] / n + EPSILON);
        scaled(f->deviation[q], b->normal + q * V, V, b->normal + q * V);
    }
}

static void write_outputs(const MemoryHeads *s, Block *b, const Chunk *c, int64_t t, int64_t i, int64_t head,
                          const REAL *O) {
    int64_t e = s->e, V = b->h.V, place = s->channels + s->H * e + head * e;
    Reading f;
    normalise(s, b, c, i, head, O, &f);
    for (int64_t q = 0; q < c->reads; q++) {
        int64_t at = t + i * CHUNK + q;
        const REAL *shown = padded_row(row_of(&b->w, at) + place, e, V, b->shown);
        REAL *out = y_of(&b->w, at) + head * e, *y = e == V ? out : b->rows;
        for (int64_t w = 0; w < V; w += LANES)
            VECTOR(y + w) = sigmoids(VECTOR(shown + w)) * VECTOR(b->normal + q * V + w) * VECTOR(b->scale + head * V + w);
        if (y != out) copied(y, e, out);
    }
}

/* O becomes dL/dO; the gradients of the output gate, the scale, r and m are written or added. */
static void read_gradients(const MemoryHeads *s, Block *b, const Chunk *c, int64_t t, int64_t i, int64_t head,
                           REAL *O, REAL *dr) {
    int64_t e = s->e, V = b->h.V, place = s->channels + s->H * e + head * e;
    REAL sums[CHUNK], along[CHUNK], dfactor[CHUNK];
    Reading f;
    normalise(s, b, c, i, head, O, &f);
    for (int64_t q = 0; q < c->reads; q++) {
        int64_t at = t + i * CHUNK + q;
        const REAL *shown = padded_row(row_of(&b->w, at) + place, e, V, b->shown);
        const REAL *dy = padded_row(dy_of(&b->w, at) + head * e, e, V, b->shown + V);
        REAL *out = d_row_of(&b->w, at) + place, *dshown = e == V ? out : b->shown;
        for (int64_t w = 0; w < V; w += LANES) {
            vector open = sigmoids(VECTOR(shown + w)), normal = VECTOR(b->normal + q * V + w);
            vector given = VECTOR(dy + w) * open, scale = VECTOR(b->scale + head * V + w);
            VECTOR(b->dscale + head * V + w) += given * normal;
            VECTOR(dshown + w) = given * (1 - open) * normal * scale;
            VECTOR(b->rows + q * V + w) = given * scale;
        }
        if (dshown != out) copied(dshown, e, out);
    }
    row_dots(b->rows, b->ones, CHUNK, V, sums);
    row_dots(b->rows, b->normal, CHUNK, V, along);
    for (int64_t q = 0; q < c->reads; q++) {
        REAL *dh = b->rows + q * V;
        add_scaled(-sums[q] / (REAL)e, b->ones, V, dh);
        add_scaled(-along[q] / (REAL)e, b->normal + q * V, V, dh);
        scaled(f.deviation[q], dh, V, dh);
    }
    row_dots(b->rows, O, CHUNK, V, dfactor);
    for (int64_t q = 0; q < c->reads; q++) {
        REAL share = f.by_r[q] && f.by_m[q] ? (REAL)0.5 : 1, change = share * f.factor[q] * dfactor[q];
        scaled(f.factor[q], b->rows + q * V, V, O + q * V);
        dr[q] = f.by_r[q] && b->r[q] != 0 ? -change / b->r[q] : 0;
        b->dm[(i * CHUNK + q + 1) * s->H + head] += f.by_m[q] ? change : 0;
    }
}

static void store_gradients(const MemoryHeads *s, const Block *b, int64_t i, int64_t head, int64_t count,
                            const ChunkBack *back) {
    const Head *h = &b->h;
    for (int64_t r = 0, step = i * CHUNK; r < CHUNK && step < count; r++, step++) {
        REAL *dx = b->dx + step * b->X;
        copied(back->dL + (CHUNK + r) * h->K, s->d, dx + head * s->d);
        copied(back->dL + r * h->K, s->d, dx + (s->H + head) * s->d);
        copied(back->dU + r * h->V, s->e, dx + 2 * s->H * s->d + head * s->e);
        b->dbeta[step * s->H + head] = back->dbeta[r];
        b->dlog[step * s->H + head] = back->dlog[r];
    }
}

/* The reverse of `read_block`; dm behind the block was added to what m's readers gave. */
static void block_back(const MemoryHeads *s, Block *b, int64_t t, int64_t count) {
    int64_t H = s->H, M = s->channels, N = H * s->e, whole = (count + PADDING - 1) / PADDING * PADDING;
    memset(b->dz + count * b->J, 0, (whole - count) * b->J * sizeof(REAL));
    for (int64_t i = count - 1; i >= 0; i--)
        for (int64_t head = 0; head < H; head++) {
            int64_t at = i * H + head;
            const REAL *z = b->z + i * b->J + head;
            REAL *dz = b->dz + i * b->J + head, di = b->dbeta[at] * b->beta[at], df = b->dlog[at];
            REAL dm = b->dm[at + H] - di - df, kept = b->kept[at];
            REAL share = kept == z[0] ? (REAL)0.5 : kept > z[0] ? 1 : 0;
            di += (1 - share) * dm;
            df += share * dm;
            b->dm[at] += df;
            dz[0] = di;
            dz[H] = df * sigmoid(-z[H]);
        }
    if (s->inside) {
        add_product(b->dz, b->J, whole, 2 * H, b->G, b->X, b->dx);
        add_turned(b->dz, b->J, (2 * H + 7) / 8 * 8, count, b->x, b->X, b->dG);
    }
    if (s->K) convolve_block_back(&b->w.convolution, place_of(&b->w, t), count, 0, b->dx, b->slope, b->X);
    for (int64_t i = count - 1; i >= 0; i--) {
        const REAL *dx = b->dx + i * b->X, *dz = b->dz + i * b->J;
        REAL *dp = d_row_of(&b->w, t + i);
        if (!s->K) memcpy(dp, dx, M * sizeof(REAL));
        memcpy(dp + M, dx + M, N * sizeof(REAL));
        if (s->inside) for (int64_t j = 0; j < 2 * H; j++) s->dbiases[b->w.unit * 2 * H + j] += dz[j];
        else memcpy(dp + M + 2 * N, dz, 2 * H * sizeof(REAL));
    }
}

/* A unit's sums are written, and begin anew. */
static void write_sums(const MemoryHeads *s, Block *b) {
    int64_t H = s->H, V = b->h.V, rows = 2 * H;
    for (int64_t head = 0; head < H; head++)
        copied(b->dscale + head * V, s->e, s->dscale + (b->w.unit * H + head) * s->e);
    for (int64_t g = 0; s->inside && g < rows; g++)
        copied(b->dG + g * b->X, b->inputs, s->dG + (b->w.unit * rows + g) * b->inputs);
    memset(b->dG, 0, b->J * b->X * sizeof(REAL)), memset(b->dscale, 0, H * V * sizeof(REAL));
}

void mlstm_forward(const MemoryHeads *s, int64_t first, int64_t last, REAL *scratch) {
    Block b = block_of(s, 0, &scratch);
    Chunk c = chunk_at(&b.h, take(&scratch, chunk_size(&b.h)));
    int64_t K = b.h.K, V = b.h.V, H = s->H, d = s->d, size = d * s->e;
    REAL *O = take(&scratch, CHUNK * V);
    memset(b.x, 0, (scratch - b.x) * sizeof(REAL));
    load_parameters(s, &b);
    for (int64_t row = first * s->unit; row < last * s->unit && row < s->B; row++) {
        REAL *kept = s->kept + row * blocks_of(s->T, STEPS) * H * (size + d + 1);
        enter(&b.w, row, 0);
        for (int64_t head = 0; head < H; head++) {
            padded_matrix(s->C0 + (row * H + head) * size, d, s->e, K, V, b.states + head * K * V);
            padded_copy(s->n0 + (row * H + head) * d, d, K, b.sums + head * K);
        }
        memcpy(b.m, s->m0 + row * H, H * sizeof(REAL));
        for (int64_t t = 0; t < s->T; t += STEPS) {
            int64_t count = s->T - t < STEPS ? s->T - t : STEPS;
            if (t == b.w.start + b.w.count) open_window(&b.w, t);
            read_block(s, &b, t, count);
            for (int64_t head = 0; head < H; head++) {
                c.S = b.states + head * K * V, c.z = b.sums + head * K;
                if (s->kept) {
                    narrowed(c.S, d, s->e, V, kept);
                    copied(c.z, d, kept + size);
                    kept[size + d] = b.m[head];
                    kept += size + d + 1;
                }
                for (int64_t i = 0; i < chunks_of(count); i++) {
                    load_chunk(s, &b, i, head, count, &c);
                    chunk_forward(&b.h, &c, O, b.r, c.S, c.z);
                    write_outputs(s, &b, &c, t, i, head, O);
                }
            }
            memcpy(b.m, b.m + count * H, H * sizeof(REAL));
            if (t + count == b.w.start + b.w.count) close_window(&b.w);
        }
        leave(&b.w, 0);
        for (int64_t head = 0; head < H; head++) {
            narrowed(b.states + head * K * V, d, s->e, V, s->C + (row * H + head) * size);
            copied(b.sums + head * K, d, s->n + (row * H + head) * d);
        }
        memcpy(s->m + row * H, b.m, H * sizeof(REAL));
    }
}

/* A block of a sequence, the last one first. */
static void block_at(const MemoryHeads *s, Block *b, Chunk *c, ChunkBack *back, int64_t t) {
    int64_t K = b->h.K, V = b->h.V, H = s->H, d = s->d, size = d * s->e;
    int64_t count = s->T - t < STEPS ? s->T - t : STEPS, chunked = chunks_of(count);
    const REAL *kept = s->kept + (b->w.row * blocks_of(s->T, STEPS) + t / STEPS) * H * (size + d + 1);
    foresee(kept, H * (size + d + 1));
    for (int64_t head = 0; head < H; head++) b->m[head] = kept[head * (size + d + 1) + size + d];
    memmove(b->dm + count * H, b->dm, H * sizeof(REAL));
    memset(b->dm, 0, count * H * sizeof(REAL));
    read_block(s, b, t, count);
    for (int64_t head = 0; head < H; head++, kept += size + d + 1) {
        padded_matrix(kept, d, s->e, K, V, c->S);
        padded_copy(kept + size, d, K, c->z);
        for (int64_t i = 0; i < chunked; i++) {
            REAL *O = b->N + i * STACK * V + CHUNK * V;
            int more = i + 1 < chunked;
            load_chunk(s, b, i, head, count, c + i);
            chunk_forward(&b->h, c + i, O, b->r, more ? c[i + 1].S : 0, more ? c[i + 1].z : 0);
            read_gradients(s, b, c + i, t, i, head, O, b->dr + i * CHUNK);
        }
        back->G = b->states + head * K * V, back->dz = b->sums + head * K;
        for (int64_t i = chunked - 1; i >= 0; i--) {
            back->N = b->N + i * STACK * V, back->dO = back->N + CHUNK * V, back->dr = b->dr + i * CHUNK;
            chunk_backward(&b->h, c + i, back);
            store_gradients(s, b, i, head, count, back);
        }
    }
    block_back(s, b, t, count);
}

void mlstm_backward(const MemoryHeads *s, int64_t first, int64_t last, REAL *scratch) {
    Block b = block_of(s, 1, &scratch);
    ChunkBack back = chunk_back_at(&b.h, take(&scratch, chunk_back_size(&b.h)));
    int64_t K = b.h.K, V = b.h.V, H = s->H, d = s->d, size = d * s->e, own = chunk_size(&b.h), most = chunks_of(STEPS);
    REAL *chunks = take(&scratch, most * own);
    memset(b.x, 0, (scratch - b.x) * sizeof(REAL));
    load_parameters(s, &b);
    Chunk c[BLOCK / CHUNK];
    for (int64_t i = 0; i < most; i++) c[i] = chunk_at(&b.h, chunks + i * own);
    for (int64_t row = first * s->unit; row < last * s->unit && row < s->B; row++) {
        enter(&b.w, row, 1);
        memcpy(b.dm, s->dm + row * H, H * sizeof(REAL));
        for (int64_t head = 0; head < H; head++) {
            padded_matrix(s->dC + (row * H + head) * size, d, s->e, K, V, b.states + head * K * V);
            padded_copy(s->dn + (row * H + head) * d, d, K, b.sums + head * K);
        }
        for (int64_t block = blocks_of(s->T, STEPS) - 1; block >= 0; block--) {
            int64_t t = block * STEPS;
            if (t < b.w.start || b.w.count == 0) open_window(&b.w, t / b.w.steps * b.w.steps);
            block_at(s, &b, c, &back, t);
            if (t == b.w.start) close_window_back(&b.w);
        }
        leave(&b.w, 1);
        memcpy(s->dm + row * H, b.dm, H * sizeof(REAL));
        for (int64_t head = 0; head < H; head++) {
            narrowed(b.states + head * K * V, d, s->e, V, s->dC + (row * H + head) * size);
            copied(b.sums + head * K, d, s->dn + (row * H + head) * d);
        }
        if ((row + 1) % s->unit == 0 || row + 1 == s->B) write_sums(s, &b);
    }
}

/* Numbers of scratch memory that a pass needs. */
int64_t mlstm_scratch(const MemoryHeads *s, int64_t backward) {
    REAL *end = 0;
    Block b = block_of(s, backward, &end);
    int64_t own = (int64_t)(end - (REAL *)0) + 2 * LANES;
    if (!backward) return own + chunk_size(&b.h) + CHUNK * b.h.V;
    return own + chunk_back_size(&b.h) + chunks_of(STEPS) * chunk_size(&b.h);
}
