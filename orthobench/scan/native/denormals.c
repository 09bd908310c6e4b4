/* Denormal numbers, below 1e-38 in float, take some processors a hundred times as long as others, and gradients that
 * vanish are full of them. The loops take them for zero. */

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define FLUSH_AND_READ_AS_ZERO 0x8040
#elif defined(__aarch64__)
#define FLUSH_TO_ZERO ((int64_t)1 << 24)
#endif

/* Take them for zero in this thread; returns what `restore_denormals` is given afterwards. */
int64_t flush_denormals(void) {
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | FLUSH_AND_READ_AS_ZERO);
    return before;
#elif defined(__aarch64__)
    int64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | FLUSH_TO_ZERO));
    return before;
#else
    return 0;
#endif
}

void restore_denormals(int64_t before) {
#if defined(__x86_64__)
    _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}
