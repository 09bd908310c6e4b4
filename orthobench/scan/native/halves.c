/* The loops of lanes.h with half as many lanes, for the last rows of a batch. */

#define HALVES

#include "fourier.c"
#include "rotations.c"
