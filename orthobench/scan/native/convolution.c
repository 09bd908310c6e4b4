/* A causal convolution over time, channel by channel, behind it SiLU: the equations are in convolution.py.
 *
 * A call does the rows first..last-1 of the batch for all steps.
 */

#include "convolution.h"

void convolution_forward(const Convolution *s, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++)
        for (int64_t t = 0; t < s->T; t++) convolve(s, t, row, s->Y + (row * s->T + t) * s->M, 0);
}

void convolution_backward(const Convolution *s, int64_t first, int64_t last, REAL *scratch) {
    REAL *y = scratch, *slope = scratch + s->M;
    for (int64_t row = first; row < last; row++)
        for (int64_t t = s->T - 1; t >= 0; t--) {
            convolve(s, t, row, y, slope);
            convolve_back(s, t, row, s->dY + (row * s->T + t) * s->M, slope);
        }
}
