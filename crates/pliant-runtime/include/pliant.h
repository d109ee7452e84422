/* The C interface to programs that Pliant compiled ahead of time.
 *
 * A compiled program is constant data. A model is a program that is ready to run. Usage:
 *
 *     pliant_model *model;
 *     if (pliant_create(&encoder_program, NULL, &model) != PLIANT_OK) ...
 *     pliant_set_input(model, 0, &tensor);
 *     pliant_run(model);
 *     pliant_output(model, 0, &result);
 *     pliant_destroy(model);
 *
 * Sizes of dims may differ in every run. Functions of different models may be called at the same time from different threads;
 * functions of one model must not, except pliant_interrupt. Models of the same program share its constants.
 */
#ifndef PLIANT_H
#define PLIANT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a function. pliant_error_message describes the last error. */
typedef enum {
    PLIANT_OK = 0,
    /* An argument is wrong: a null pointer, an index out of range, an input that is not set. */
    PLIANT_ERROR_ARGUMENT = 1,
    /* The program was compiled for another CPU or version of Pliant, or its data is damaged. */
    PLIANT_ERROR_PROGRAM = 2,
    /* The run failed: the inputs do not have the types that the program was compiled for, or a check of the program failed. */
    PLIANT_ERROR_RUN = 3,
    /* There is not enough memory. */
    PLIANT_ERROR_MEMORY = 4,
    /* The run was stopped by pliant_interrupt. */
    PLIANT_ERROR_INTERRUPTED = 5,
    /* The run exceeded its time limit. */
    PLIANT_ERROR_TIME_LIMIT = 6,
    /* A bug in Pliant. */
    PLIANT_ERROR_INTERNAL = 7
} pliant_status;

/* Element types: 256 * the type code of DLPack + the number of bits. */
typedef enum {
    PLIANT_UNKNOWN = 0,
    PLIANT_INT8 = 0x0008,
    PLIANT_INT16 = 0x0010,
    PLIANT_INT32 = 0x0020,
    PLIANT_INT64 = 0x0040,
    PLIANT_UINT8 = 0x0108,
    PLIANT_UINT16 = 0x0110,
    PLIANT_UINT32 = 0x0120,
    PLIANT_UINT64 = 0x0140,
    PLIANT_FLOAT16 = 0x0210,
    PLIANT_FLOAT32 = 0x0220,
    PLIANT_FLOAT64 = 0x0240,
    PLIANT_BFLOAT16 = 0x0410,
    PLIANT_BOOL = 0x0608
} pliant_dtype;

/* The size of a dim that is known only at run time, where a function returns the size of a dim. */
#define PLIANT_SYMBOLIC (-1)

/* A compiled program. The header that Pliant writes beside an object file or library declares it. */
typedef struct pliant_program pliant_program;

/* A program that is ready to run. */
typedef struct pliant_model pliant_model;

/* A row-major tensor. */
typedef struct {
    /* The first element. May be null if the tensor has no elements. */
    void *data;
    /* The sizes of the dims, `rank` numbers. May be null if the rank is 0. */
    const int64_t *shape;
    /* The number of dims, at most 64. */
    size_t rank;
    /* The element type, a pliant_dtype. */
    int32_t dtype;
} pliant_tensor;

/* Options of pliant_create. Initialize all fields to zero for the defaults. */
typedef struct {
    /* The function to run. Default: "main", or the only function of the program. */
    const char *function;
    /* The number of threads. Default: all CPUs that the process may use, or the environment variable PLIANT_NUM_THREADS. */
    size_t threads;
} pliant_options;

/* Creates a model. `options` may be null. On error, `*model` is null. */
pliant_status pliant_create(const pliant_program *program, const pliant_options *options, pliant_model **model);

/* Destroys a model and its outputs. `model` may be null. */
void pliant_destroy(pliant_model *model);

/* Returns a description of the last error of the calling thread, valid until the thread calls the next function. Empty if there
 * was no error. */
const char *pliant_error_message(void);

/* Returns the number of inputs. */
size_t pliant_input_count(const pliant_model *model);

/* Returns the name of an input, valid as long as the model; null if there is no such input. */
const char *pliant_input_name(const pliant_model *model, size_t input);

/* Returns the index of the input with this name; -1 if there is no such input. */
int64_t pliant_input_index(const pliant_model *model, const char *name);

/* Returns the element type of an input; PLIANT_UNKNOWN if the program accepts any, or if there is no such input. */
pliant_dtype pliant_input_dtype(const pliant_model *model, size_t input);

/* Returns the rank of an input; -1 if the program accepts any, or if there is no such input. A scalar is passed as a tensor of
 * rank 0, a shape as an int64 tensor of rank 1 with its sizes. */
int64_t pliant_input_rank(const pliant_model *model, size_t input);

/* Returns the size of a dim of an input; PLIANT_SYMBOLIC if it is known only at run time. */
int64_t pliant_input_dim(const pliant_model *model, size_t input, size_t axis);

/* Returns the size of a dim of an input as text: the name of a symbol, an expression such as "4 * n", or a number. Valid as long
 * as the model; null if there is no such dim. */
const char *pliant_input_dim_text(const pliant_model *model, size_t input, size_t axis);

/* Returns the number of outputs. */
size_t pliant_output_count(const pliant_model *model);

/* Returns the name of an output, which is empty if the program has no names for its outputs. Valid as long as the model; null if
 * there is no such output. */
const char *pliant_output_name(const pliant_model *model, size_t output);

/* Sets an input. Shape and element type are copied; the elements are not. They must stay valid until the input is set again or
 * the model is destroyed, and must not change during a run. The elements of an output of this model stay valid as long as they
 * are those of an input. */
pliant_status pliant_set_input(pliant_model *model, size_t input, const pliant_tensor *tensor);

/* Writes the value of a symbolic dim to `size`. The shapes of the inputs that are set determine it. */
pliant_status pliant_symbol(const pliant_model *model, const char *symbol, int64_t *size);

/* Runs the program on the inputs. The outputs of the previous run become invalid. */
pliant_status pliant_run(pliant_model *model);

/* Like pliant_run, but stops after this number of seconds. */
pliant_status pliant_run_for(pliant_model *model, double seconds);

/* Stops the current run of the model, from another thread. Without effect if the model does not run. */
void pliant_interrupt(const pliant_model *model);

/* Stores the description of an output. Its memory belongs to the model and is valid until the next run or the destruction of
 * the model. */
pliant_status pliant_output(const pliant_model *model, size_t output, pliant_tensor *tensor);

/* The main function of programs that `pliant compile --emit exe` writes: runs the program on NumPy files. Returns the exit
 * status. */
int pliant_main(const pliant_program *program, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
