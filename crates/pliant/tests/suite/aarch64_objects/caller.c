/* Calls the first loop function of a program, which computes max(x * y + x, 0), without the run-time library, at several sizes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tensor;

typedef int64_t (*loop_body)(void *context, int64_t begin, int64_t end);

/* The struct KernelRuntime of pliant_exec::abi. */
typedef struct {
    int64_t (*parallel_launch)(const void *, loop_body, void *, int64_t, int64_t);
    const void *team;
    void *alloc_workspace, *free_workspace;
    const char *interrupt;
    void *call_packed;
    const void *call;
    int64_t *assert_args;
    void *report_error, *flops;
} runtime;

/* The struct ProgramHeader of pliant_exec::ahead_of_time_abi. */
typedef struct {
    uint64_t version;
    const void *executable;
    uint64_t executable_len;
    const void *description;
    uint64_t description_len;
    int64_t (**loop_functions)(const uint64_t *, const runtime *);
    uintptr_t *imports;
} program_header;

extern const program_header elementwise_program;

static int64_t run_in_pieces(const void *team, loop_body body, void *context, int64_t extent, int64_t grain) {
    for (int64_t i = 0; i < extent; i += 3) {
        int64_t status = body(context, i, i + 3 < extent ? i + 3 : extent);
        if (status) return status;
    }
    return 0;
}

/* Stands for pliant_check_tensor, the only import. */
static int64_t accept(void) { return 0; }

int main(void) {
    static char interrupt;
    static int64_t assert_args[16];
    runtime r = {run_in_pieces, 0, malloc, free, &interrupt, 0, 0, assert_args, 0, 0};
    elementwise_program.imports[0] = (uintptr_t)accept;
    for (int64_t n = 0; n < 40; n += 13) {
        int64_t shape[2] = {n, 8};
        float *data[3];
        tensor tensors[3];
        for (int k = 0; k < 3; k++) {
            data[k] = malloc(n * 8 * sizeof(float) + 1);
            tensors[k] = (tensor){data[k], 1, 0, 2, 2, 32, 1, shape, 0, 0};
        }
        for (int64_t i = 0; i < n * 8; i++) data[0][i] = i % 7 - 3, data[1][i] = i % 5 * 0.5f - 1, data[2][i] = -99;
        uint64_t args[3] = {(uint64_t)&tensors[0], (uint64_t)&tensors[1], (uint64_t)&tensors[2]};
        if (elementwise_program.loop_functions[0](args, &r)) return 1;
        for (int64_t i = 0; i < n * 8; i++) {
            float expected = data[0][i] * data[1][i] + data[0][i];
            if (data[2][i] != (expected < 0 ? 0 : expected)) return 2;
        }
    }
    puts("all results are right");
    return 0;
}
