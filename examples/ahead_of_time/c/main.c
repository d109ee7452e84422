#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

/* Exits with the message of the last error if a function failed. */
static void check(pliant_status status)
{
    if (status != PLIANT_OK) {
        fprintf(stderr, "error %d: %s\n", (int)status, pliant_error_message());
        exit(EXIT_FAILURE);
    }
}

/* Sets an input to a matrix with 4 columns. The model reads the elements in every run until the
 * input is set again. */
static void set_rows(pliant_model *model, size_t input, float (*rows)[4], int64_t count)
{
    int64_t shape[] = {count, 4};
    pliant_tensor tensor = {rows, shape, 2, PLIANT_FLOAT32};
    check(pliant_set_input(model, input, &tensor));
}

int main(void)
{
    float queries[2][4] = {{5, 0, 0, 0}, {0, 0, 5, 0}};
    float keys[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
    pliant_model *model;
    check(pliant_create(&model_program, NULL, &model));
    for (size_t i = 0; i < pliant_input_count(model); i++) {
        printf("input %s:", pliant_input_name(model, i));
        for (int64_t axis = 0; axis < pliant_input_rank(model, i); axis++)
            printf(" %s", pliant_input_dim_text(model, i, (size_t)axis));
        printf("\n");
    }
    set_rows(model, 1, keys, 3);
    for (int64_t count = 1; count <= 2; count++) {
        int64_t n;
        pliant_tensor scores;
        set_rows(model, 0, queries, count);
        check(pliant_symbol(model, "n", &n));
        check(pliant_run(model));
        check(pliant_output(model, 0, &scores));
        printf("n = %" PRId64 "\n", n);
        for (int64_t i = 0; i < scores.shape[0] * scores.shape[1]; i++)
            printf("%.3f%c", ((float *)scores.data)[i], (i + 1) % scores.shape[1] == 0 ? '\n' : ' ');
    }
    pliant_destroy(model);
    return EXIT_SUCCESS;
}
