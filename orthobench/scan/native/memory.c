/* Large pages for large buffers: without them the first touch of each 4 KB costs as much as the cheap loops' arithmetic. */

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define LARGE_PAGE ((uintptr_t)2 << 20)

/* A hint alone: where it is not taken, pages are small. */
void prefer_large_pages(void *start, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    uintptr_t first = ((uintptr_t)start + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    uintptr_t last = ((uintptr_t)start + (uintptr_t)bytes) / LARGE_PAGE * LARGE_PAGE;
    if (last > first) madvise((void *)first, last - first, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}
