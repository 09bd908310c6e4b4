/* The windows of sequences.h. */

#include "sequences.h"

/* Sums over the steps of a window are added to a matrix as often as there are windows: so long ones for large matrices. */
Window window_of(const HeadSequences *s, int64_t block, int64_t backward, REAL **memory) {
    int64_t longest = s->I > s->N ? s->I : s->N, V = s->H * s->e;
    Window w = {.s = s, .past = s->K ? s->K - 1 : 0, .W = padded(s->width) + PADDING, .V = V};
    w.steps = (longest + 2 * block - 1) / (2 * block) * block;
    int64_t rows = w.past + w.steps, most = s->width > V ? s->width : V;
    w.p = take(memory, rows * w.W), w.y_room = take(memory, w.steps * V);
    if (backward) {
        w.dp = take(memory, rows * w.W), w.dy_room = take(memory, w.steps * V);
        w.outer = take(memory, outer_scratch(most));
    }
    w.convolution = (Convolution){INT64_MAX, 1, s->channels, s->K, 0, w.W, 0, w.W, w.p, 0, s->kernel, 0, 0, w.dp, 0, 0};
    return w;
}

/* Rows of what is convolved, from `from` to `to`. */
static void copy_past(const Window *w, int64_t rows, const REAL *from, int64_t from_row, REAL *to, int64_t to_row) {
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, w->s->channels * sizeof(REAL));
}

static REAL *past_of(const Window *w, REAL *rows) { return rows + w->row * w->past * w->s->channels; }

void enter(Window *w, int64_t row, int64_t backward) {
    const HeadSequences *s = w->s;
    w->row = row, w->unit = row / s->unit, w->start = w->count = 0;
    if (!backward) return;
    w->convolution.dkernel = s->dkernel + w->unit * s->K * s->channels;
    copy_past(w, w->past, past_of(w, s->dP), s->channels, w->dp, w->W);
}

void leave(const Window *w, int64_t backward) {
    const HeadSequences *s = w->s;
    if (backward) copy_past(w, w->past, w->dp, w->W, past_of(w, s->dP), s->channels);
    else if (s->T) copy_past(w, w->past, w->p + w->count * w->W, w->W, past_of(w, s->P), s->channels);
    else copy_past(w, w->past, past_of(w, s->P0), s->channels, past_of(w, s->P), s->channels);
}

static Tokens tokens_of(const Window *w, int64_t t) {
    const HeadSequences *s = w->s;
    return (Tokens){s->tokens + t * s->tokens_time + w->row * s->tokens_row, s->tokens_time, s->width};
}

void open_window(Window *w, int64_t start) {
    const HeadSequences *s = w->s;
    int64_t W = w->W, V = w->V, begin = start < w->past ? 0 : start - w->past;
    w->start = start, w->count = s->T - start < w->steps ? s->T - start : w->steps;
    if (w->dp) foresee(s->dY + (w->row * s->T + start) * s->N, w->count * s->N);
    if (start < w->past) copy_past(w, w->past - start, past_of(w, s->P0) + start * s->channels, s->channels, w->p, W);
    REAL *p = w->p + place_of(w, begin) * W;
    const REAL *x = s->X + begin * s->X_time + w->row * s->X_row;
    int64_t rows = start + w->count - begin, at = w->row * s->T + start;
    if (s->tokens) look_up(tokens_of(w, begin), s->table, rows, p, W);
    else if (s->UT) product((Product){s->I, x, s->X_time, s->bias, 0, p, W, 0}, rows, s->width, s->UT);
    else for (int64_t i = 0; i < rows; i++) memcpy(p + i * W, x + i * s->X_time, s->width * sizeof(REAL));
    w->y = s->Y && !s->OT ? s->Y + at * V : w->y_room;
    if (!w->dp) return;
    memmove(w->dp + w->count * W, w->dp, w->past * W * sizeof(REAL));
    w->dy = s->O ? w->dy_room : s->dY + at * V;
    if (s->O) product((Product){s->N, s->dY + at * s->N, s->N, 0, 0, w->dy, V, 0}, w->count, V, s->O);
}

void close_window(Window *w) {
    const HeadSequences *s = w->s;
    REAL *out = s->Y + (w->row * s->T + w->start) * s->N;
    if (s->OT) product((Product){w->V, w->y, w->V, 0, 0, out, s->N, 0}, w->count, s->N, s->OT);
}

void close_window_back(Window *w) {
    const HeadSequences *s = w->s;
    int64_t W = w->W, V = w->V, J = s->width, at = w->row * s->T + w->start;
    const REAL *dp = w->dp + w->past * W, *x = s->X + w->start * s->X_time + w->row * s->X_row;
    REAL *dx = s->dX ? s->dX + w->start * s->dX_time + w->row * s->dX_row : 0;
    if (s->tokens) look_up_back(tokens_of(w, w->start), s->dU + w->unit * s->I * J, w->count, dp, W);
    else if (s->dU) add_outer(x, s->X_time, dp, W, w->count, J, s->dU + w->unit * s->I * J, w->outer, 0, s->I);
    else for (int64_t i = 0; i < w->count; i++) memcpy(dx + i * s->dX_time, dp + i * W, J * sizeof(REAL));
    if (s->U) product((Product){J, dp, W, 0, 0, dx, s->dX_time, 0}, w->count, s->I, s->U);
    for (int64_t i = 0; s->dbias && i < w->count; i++) add_to(s->dbias + w->unit * J, dp + i * W, J);
    if (s->dO) add_outer(s->dY + at * s->N, s->N, w->y, V, w->count, V, s->dO + w->unit * s->N * V, w->outer, 0, s->N);
}
