// The recurrent products of some sequences, with the matrices in registers; device.cuh says what a cluster is.
//
// A block owns UNITS of the N units. TEAM lanes of a warp compute JOINT units together: each lane holds, of these rows
// of every matrix, each TEAM-th chunk of columns, multiplies it by that part of the vector in shared memory, and the
// lanes add up what they found, so that each of them is left with the sum of one unit. COPIES lanes have the same
// one, and take every COPIES-th of the SEQUENCES: all that follows a product is done by one lane for each unit and sequence.
//
// Set by the caller: N, GATES, CLUSTER, JOINT, TEAM, TEAMS, THREADS, CHUNK, SEQUENCES, DEPTH; OUTSIDE, whether a reverse
// reads gradients of all states, beside those of the last.

#pragma once

constexpr int COPIES = TEAM / JOINT;
constexpr int OWN = (SEQUENCES + COPIES - 1) / COPIES;  // sequences of a lane
constexpr int UNITS = TEAMS * JOINT;
constexpr int CHUNKS = (N + CHUNK * TEAM - 1) / (CHUNK * TEAM);
constexpr int LENGTH = CHUNKS * CHUNK * TEAM;  // of a vector in shared memory, zeros beyond N
typedef real Weights[GATES][JOINT][CHUNKS][CHUNK];

// What a lane owns: one unit of some sequences.
struct Place {
    int lane, unit, copy, first;
    long long B;
    bool own[OWN];

    __device__ Place(int B) : B(B) {
        const int team = thread() / TEAM;
        lane = thread() % TEAM, copy = lane % COPIES, first = group() * SEQUENCES;
        const int local = team * JOINT + lane / COPIES;
        unit = block_rank() * UNITS + local;
        for (int e = 0; e < OWN; e++)
            own[e] = local < UNITS && unit < N && sequence(e) < SEQUENCES && first + sequence(e) < B;
    }
    __device__ int sequence(int e) const { return e * COPIES + copy; }
    // The lane's numbers of a step, in a tensor whose rows have `width` numbers.
    __device__ long long at(long long step, int e, int width) const {
        return (step * B + first + sequence(e)) * width + unit;
    }
    __device__ void read(real (&x)[OWN], const real* X, long long step, int width, bool present = true) const {
#pragma unroll
        for (int e = 0; e < OWN; e++) x[e] = own[e] && present ? X[at(step, e, width)] : real(0);
    }
    // The gradient of h_t from outside, row t - 1 of dH (T, B, N); zero for h_0.
    __device__ void read_outside(real (&x)[OWN], const real* dH, long long t) const {
        read(x, dH, t - 1, N, OUTSIDE && t >= 1);
    }
    // The gradient of h_T from outside: what dlast has, and the last row of dH.
    __device__ void read_last(real (&x)[OWN], const real* dH, const real* dlast, long long T) const {
        real last[OWN];
        read(last, dlast, 0, N);
        read_outside(x, dH, T);
#pragma unroll
        for (int e = 0; e < OWN; e++) x[e] += last[e];
    }
    __device__ void write(real* X, const real (&x)[OWN], long long step, int width) const {
#pragma unroll
        for (int e = 0; e < OWN; e++)
            if (own[e]) X[at(step, e, width)] = x[e];
    }
    __device__ real parameter(const real* b, bool present) const {
        return present && unit < N ? b[unit] : real(0);
    }
};

// w of the matrices M (GATES, N, N): row k of M is what number k of the vector gives to every unit.
__device__ inline void read_weights(Weights& w, const real* M) {
    const int team = thread() / TEAM, lane = thread() % TEAM;
#pragma unroll
    for (int g = 0; g < GATES; g++)
#pragma unroll
        for (int j = 0; j < JOINT; j++) {
            const int local = team * JOINT + j, unit = block_rank() * UNITS + local;
#pragma unroll
            for (int i = 0; i < CHUNKS; i++)
#pragma unroll
                for (int q = 0; q < CHUNK; q++) {
                    const int k = (i * TEAM + lane) * CHUNK + q;
                    w[g][j][i][q] = local < UNITS && unit < N && k < N ? M[((long long)g * N + k) * N + unit] : real(0);
                }
        }
}

// The sum over the lanes of a team of one of LEFT numbers: each lane keeps the half that is its own, step by step.
template <int LEFT, int MASK>
__device__ inline real team_sum(real (&x)[JOINT], int lane) {
    if constexpr (MASK == 0) {
        return x[0];
    } else if constexpr (LEFT > 1) {
        const bool upper = lane & MASK;
#pragma unroll
        for (int i = 0; i < LEFT / 2; i++) {
            const real give = select(upper, x[i], x[i + LEFT / 2]);
            x[i] = select(upper, x[i + LEFT / 2], x[i]) + from_lane(give, MASK);
        }
        return team_sum<LEFT / 2, MASK / 2>(x, lane);
    } else {
        x[0] += from_lane(x[0], MASK);
        return team_sum<1, MASK / 2>(x, lane);
    }
}

// Part of the products of one sequence: x_j += sum over a lane's chunks of w_gate v.
__device__ inline void multiply(real (&x)[JOINT], const real (&w)[JOINT][CHUNKS][CHUNK], const real* v, int lane) {
    real odd[JOINT];
#pragma unroll
    for (int j = 0; j < JOINT; j++) odd[j] = 0;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        real part[CHUNK];
        read_chunk(part, v + (i * TEAM + lane) * CHUNK);
#pragma unroll
        for (int q = 0; q < CHUNK; q++)
#pragma unroll
            for (int j = 0; j < JOINT; j++) (q % 2 ? odd[j] : x[j]) += w[j][i][q] * part[q];
    }
#pragma unroll
    for (int j = 0; j < JOINT; j++) x[j] += odd[j];
}

// The vectors of all blocks, in two buffers: one is read while the other is filled.
template <int VECTORS>
struct Vectors {
    Exchange exchange;
    real* memory;
    int buffer;

    __device__ Vectors(unsigned char* shared, const Place& place)
        : exchange(shared, (int)sizeof(real) * N * min(SEQUENCES, (int)place.B - place.first)),
          memory((real*)(shared + 16)),
          buffer(0) {
        for (int i = thread(); i < 2 * VECTORS * SEQUENCES * LENGTH; i += THREADS) memory[i] = 0;
        exchange.meet();
    }
    __device__ real* vector(int which, int index, int sequence) {
        return memory + ((which * VECTORS + index) * SEQUENCES + sequence) * LENGTH;
    }
    // Put a lane's numbers into vector `index` of the buffer that is filled next.
    __device__ void send(const Place& place, int index, const real (&x)[OWN]) {
#pragma unroll
        for (int e = 0; e < OWN; e++)
            if (place.own[e])
                exchange.send(vector(buffer ^ 1, index, place.sequence(e)) + place.unit, x[e], buffer ^ 1);
    }
    __device__ void wait(int vectors) {
        buffer ^= 1;
        exchange.wait(buffer, vectors);
    }
    // z_g = W_g v_0 for the gates from FIRST up to LAST.
    template <int FIRST, int LAST>
    __device__ void products(real (&z)[GATES][OWN], const Weights& w, const Place& place) {
#pragma unroll
        for (int r = 0; r < SEQUENCES; r++) {
            in_order();
#pragma unroll
            for (int g = FIRST; g < LAST; g++) {
                real x[JOINT] = {};
                multiply(x, w[g], vector(buffer, 0, r), place.lane);
                keep(z[g], team_sum<JOINT, TEAM / 2>(x, place.lane), r, place);
            }
        }
    }
    // z += sum of W_g v_{g - FIRST} over the gates from FIRST up to LAST.
    template <int FIRST, int LAST>
    __device__ void add_products(real (&z)[OWN], const Weights& w, const Place& place) {
        real sums[OWN] = {};
#pragma unroll
        for (int r = 0; r < SEQUENCES; r++) {
            in_order();
            real x[JOINT] = {};
#pragma unroll
            for (int g = FIRST; g < LAST; g++) multiply(x, w[g], vector(buffer, g - FIRST, r), place.lane);
            keep(sums, team_sum<JOINT, TEAM / 2>(x, place.lane), r, place);
        }
#pragma unroll
        for (int e = 0; e < OWN; e++) z[e] += sums[e];
    }
    __device__ static void keep(real (&z)[OWN], real sum, int r, const Place& place) {
#pragma unroll
        for (int e = 0; e < OWN; e++) z[e] = select(r == place.sequence(e), sum, z[e]);
    }
    // Nobody leaves while others may still write here.
    __device__ ~Vectors() {
        if (CLUSTER > 1) exchange.meet();
    }
};

#define EACH _Pragma("unroll") for (int e = 0; e < OWN; e++)
