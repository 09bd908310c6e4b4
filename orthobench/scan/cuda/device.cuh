// What a kernel asks of the device. The tests have a file of the same functions for a CPU.
//
// A cluster of CLUSTER blocks computes the same sequences, each block some of the units. What every unit needs at the
// next step is sent into the shared memory of all blocks (st.async), and each block's barrier counts the bytes that
// have come: no block waits for another one's writes to global memory.

#pragma once
typedef float real;

__device__ inline int thread() { return threadIdx.x; }
__device__ inline long long member() { return blockIdx.y; }
__device__ inline int group() { return blockIdx.x / CLUSTER; }
__device__ inline int block_rank() { return CLUSTER == 1 ? 0 : blockIdx.x % CLUSTER; }
__device__ inline real from_lane(real x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
__device__ inline real quotient(real a, real b) { return __fdividef(a, b); }

// Keeps the compiler from reading the vectors of several sequences at once, for which there are no registers.
__device__ inline void in_order() { asm volatile("" ::: "memory"); }

// a where `first`, else b, without a branch: lanes that part could not exchange numbers.
__device__ inline real select(bool first, real a, real b) {
    real found;
    asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.f32 %0, %1, %2, p; }"
        : "=f"(found)
        : "f"(a), "f"(b), "r"((unsigned)first));
    return found;
}

__device__ inline unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

__device__ inline void read_chunk(real (&x)[CHUNK], const real* at) {
    static_assert(CHUNK == 4 || CHUNK == 2, "16 or 8 bytes");
    if constexpr (CHUNK == 4) {
        const float4 four = *(const float4*)at;
        x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
    } else {
        const float2 two = *(const float2*)at;
        x[0] = two.x, x[1] = two.y;
    }
}

// The two barriers of a block, one for each buffer of vectors; `filled` alternates between them.
struct Exchange {
    unsigned barriers, phases, bytes;

    __device__ Exchange(void* memory, int bytes) : barriers(shared_address(memory)), phases(0), bytes(bytes) {
        if (CLUSTER > 1 && threadIdx.x == 0) {
            for (int i = 0; i < 2; i++)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8 * i) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
    }

    // All blocks and threads have come so far.
    __device__ void meet() {
        if constexpr (CLUSTER > 1) {
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        } else {
            __syncthreads();
        }
    }

    // Write a number to the same place of every block's memory, in the given buffer.
    __device__ void send(real* at, real x, int buffer) {
        if constexpr (CLUSTER == 1) {
            *at = x;
        } else {
            const unsigned own = shared_address(at), barrier = barriers + 8 * buffer;
#pragma unroll
            for (int rank = 0; rank < CLUSTER; rank++) {
                unsigned there, signal;
                asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
                asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(barrier), "r"(rank));
                asm volatile(
                    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there),
                    "r"(__float_as_uint(x)), "r"(signal)
                    : "memory");
            }
        }
    }

    // Wait until `vectors` whole vectors are in the buffer.
    __device__ void wait(int buffer, int vectors) {
        if constexpr (CLUSTER == 1) {
            __syncthreads();
        } else {
            const unsigned barrier = barriers + 8 * buffer, parity = phases >> buffer & 1;
            if (threadIdx.x == 0)
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                             "r"(bytes * vectors)
                             : "memory");
            unsigned done = 0;
            while (!done)
                asm volatile(
                    "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                    " selp.u32 %0, 1, 0, p; }"
                    : "=r"(done)
                    : "r"(barrier), "r"(parity)
                    : "memory");
            phases ^= 1u << buffer;
        }
    }
};

#if CLUSTER > 1
#define KERNEL(NAME) extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1) NAME
#else
#define KERNEL(NAME) extern "C" __global__ void __launch_bounds__(THREADS, 1) NAME
#endif
#define SHARED extern __shared__ __align__(16) unsigned char shared[]
