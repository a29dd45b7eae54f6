/* Partita's runtime as a C library: loads a compiled model (an artifact,
 * `model.partita`) and runs it on CPUs or GPUs.
 *
 *   partita_session* session;
 *   if (partita_open("model.partita", NULL, &session) != PARTITA_OK)
 *     fprintf(stderr, "%s\n", partita_last_error());
 *   partita_run(session, inputs, input_count, outputs, output_count);
 *   partita_close(session);
 *
 * Link with -lpartita_runtime. C99 and C++.
 *
 * Threads: a session is used by one thread at a time. Different sessions may be
 * used by different threads at once. The first partita_open of a process reads
 * and writes the environment (OpenMP's and CUDA's variables): no other thread
 * may do so meanwhile.
 *
 * Errors: functions that can fail return a partita_status.
 * partita_last_error() then says what was expected, what was found and what to
 * do. A failed call leaves its results untouched. No function ends the process,
 * throws, or prints.
 *
 * Memory: strings and shapes that a function returns belong to the session and
 * are valid until it is closed. Tensors that are passed in belong to the caller
 * and are not used after the call.
 */
#ifndef PARTITA_RUNTIME_API_PARTITA_H_
#define PARTITA_RUNTIME_API_PARTITA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Programs built for one ABI version run with
 * every library of that version; partita_open refuses others. */
#define PARTITA_ABI_VERSION 1

uint32_t partita_abi_version(void);
/* "0.1.0", the version of the library. */
const char* partita_version(void);

typedef enum partita_status {
  PARTITA_OK = 0,
  /* The caller's error: a wrong argument, tensor, file, or state. */
  PARTITA_INVALID = 1,
  PARTITA_NOT_FOUND = 2,   /* a file or a name that does not exist */
  PARTITA_NO_MEMORY = 3,   /* on the host or a device */
  PARTITA_UNAVAILABLE = 4, /* a device or rank failed, or a timeout passed */
  PARTITA_DATA_LOSS = 5,   /* a damaged file */
  PARTITA_INTERNAL = 6     /* a bug in Partita */
} partita_status;

/* The message of this thread's last failed call; "" before the first. Valid
 * until the thread's next call that fails. Never NULL. */
const char* partita_last_error(void);

/* ---- Tensors ---- */

/* Layouts of DLTensor and DLManagedTensor of DLPack (github.com/dmlc/dlpack,
 * dlpack.h, unchanged from 0.2 to 1.x): pointers may be cast both ways. */

/* DLDevice. */
typedef struct partita_device {
  int32_t type; /* 1: host memory, the only accepted type */
  int32_t id;
} partita_device;

typedef enum partita_type_code {
  PARTITA_INT = 0,
  PARTITA_UINT = 1,
  PARTITA_FLOAT = 2,
  PARTITA_BFLOAT = 4,
  PARTITA_BOOL = 6, /* one byte, 0 or 1 */
  PARTITA_FLOAT8_E4M3FN = 10,
  PARTITA_FLOAT8_E5M2 = 12
} partita_type_code;

/* DLDataType. */
typedef struct partita_type {
  uint8_t code;   /* partita_type_code */
  uint8_t bits;   /* of one element */
  uint16_t lanes; /* 1 */
} partita_type;

/* DLTensor: a view of memory, row-major without gaps. `strides`, counted in
 * elements, must be NULL or match `shape`. Tensors that begin at a multiple of
 * 64 bytes are used in place on CPUs; others are copied. */
typedef struct partita_tensor {
  void* data;
  partita_device device;
  int32_t ndim;
  partita_type type;
  int64_t* shape;   /* [ndim]; may be NULL if ndim is 0 */
  int64_t* strides; /* [ndim] or NULL */
  uint64_t byte_offset;
} partita_tensor;

/* DLManagedTensor: a tensor and how to release it. */
typedef struct partita_managed_tensor {
  partita_tensor tensor;
  void* manager;
  void (*deleter)(struct partita_managed_tensor* self); /* may be NULL */
} partita_managed_tensor;

/* ---- Opening ---- */

/* Opaque: one loaded model with its parameters and memory. */
typedef struct partita_session partita_session;

/* Initialise with PARTITA_OPTIONS, then change fields as needed. */
typedef struct partita_options {
  uint32_t abi_version; /* PARTITA_ABI_VERSION */
  uint32_t size;        /* sizeof(partita_options) */
  /* Base folder of relative weight paths; NULL: the artifact's folder. */
  const char* weights_dir;
  /* "cpu", "cuda" or "null"; NULL: the target the model was compiled for. */
  const char* device;
  /* CPU threads, shared by all devices of this process; 0: one per processor
   * that this process may use (affinity mask, cgroup), and at most its part of
   * the machine among the ranks of a job. */
  int32_t threads;
  /* 1: this process is one rank of an mpirun, srun or torchrun job. 0: all
   * devices are threads of this process. */
  int32_t join_job;
  /* Seconds that ranks wait for each other; 0: the default, 60. */
  double timeout_seconds;
  /* Seed of dropout in training steps, the same on all ranks. */
  int64_t seed;
} partita_options;

#define PARTITA_OPTIONS               \
  {PARTITA_ABI_VERSION,               \
   (uint32_t)sizeof(partita_options), \
   NULL,                              \
   NULL,                              \
   0,                                 \
   0,                                 \
   0.0,                               \
   0}

/* Loads the artifact `path` and its weights, and allocates all memory that a
 * run needs. `options` may be NULL. On success `*session` must be closed. All
 * ranks of a job call this together. */
partita_status partita_open(const char* path, const partita_options* options,
                            partita_session** session);
/* Releases everything; NULL is ignored. All ranks of a job call this together.
 */
void partita_close(partita_session* session);

/* Devices of the model's mesh. */
int32_t partita_device_count(const partita_session* session);
/* This process's rank in the job, and the number of processes: 0 and 1 without
 * join_job. */
int32_t partita_rank(const partita_session* session);
int32_t partita_process_count(const partita_session* session);

/* ---- Inputs and outputs ---- */

typedef enum partita_role {
  PARTITA_DATA = 0,
  /* Inputs of training steps that partita_train_step sets itself. */
  PARTITA_LEARNING_RATE = 1, /* f32 */
  PARTITA_STEP = 2,          /* i64, from 1 */
  PARTITA_SEED = 3           /* i64 */
} partita_role;

typedef struct partita_tensor_info {
  const char* name;
  const int64_t* shape; /* [ndim], of the whole tensor on all devices */
  int32_t ndim;
  partita_type type;
  partita_role role; /* of an input */
  int64_t bytes;
  /* Exclusive upper bound of an input's values, such as token ids; 0: none. */
  int64_t limit;
} partita_tensor_info;

size_t partita_input_count(const partita_session* session);
size_t partita_output_count(const partita_session* session);
partita_status partita_input(const partita_session* session, size_t index,
                             partita_tensor_info* info);
partita_status partita_output(const partita_session* session, size_t index,
                              partita_tensor_info* info);

/* Allocates a tensor for output `index`, aligned so that it is used in place.
 * Release it with its deleter, before or after the session is closed. */
partita_status partita_new_output(const partita_session* session, size_t index,
                                  partita_managed_tensor** tensor);

/* ---- Running ---- */

/* Runs the model once, with whole tensors for all inputs and outputs, in order.
 * In a job every rank passes the same inputs, and only rank 0 gets the outputs:
 * other ranks' output tensors may have NULL data and are not written. A
 * training step updates its parameters. */
partita_status partita_run(partita_session* session,
                           const partita_tensor* inputs, size_t input_count,
                           const partita_tensor* outputs, size_t output_count);

/* Runs one training step. `data` are the inputs with the role PARTITA_DATA, in
 * order. The session counts steps and seeds, and continues the counts of a
 * checkpoint. `*loss` is the same on all ranks and may be NaN or infinite; the
 * parameters are updated in any case. PARTITA_INVALID for models without a
 * training step. */
partita_status partita_train_step(partita_session* session,
                                  const partita_tensor* data, size_t count,
                                  double learning_rate, double* loss);
/* Steps taken, including steps before a loaded checkpoint. */
int64_t partita_step(const partita_session* session);

/* ---- Parameters and checkpoints ---- */

typedef struct partita_parameter_info {
  const char* name; /* as in the model's file */
  const int64_t* shape;
  int32_t ndim;
  partita_type type;
  int64_t bytes;
  int32_t is_state;   /* 1: optimizer state; 0: part of the model */
  int32_t is_updated; /* 1: training steps change it */
} partita_parameter_info;

size_t partita_parameter_count(const partita_session* session);
partita_status partita_parameter(const partita_session* session, size_t index,
                                 partita_parameter_info* info);
/* Copies the whole parameter `name` into `tensor`, between runs.
 * PARTITA_INVALID in a job, where each rank holds a part: save a checkpoint. */
partita_status partita_read_parameter(partita_session* session,
                                      const char* name,
                                      const partita_tensor* tensor);
/* Sets a parameter that training steps update. All ranks of a job pass the same
 * whole tensor. */
partita_status partita_write_parameter(partita_session* session,
                                       const char* name,
                                       const partita_tensor* tensor);

/* Saves parameters, optimizer states and the step number in a new folder below
 * `folder`, under a temporary name until it is complete. Returns once it is on
 * disk. Keeps the newest three checkpoints. All ranks of a job call this
 * together. */
partita_status partita_save_checkpoint(partita_session* session,
                                       const char* folder);
/* Loads the newest complete checkpoint below `folder`, saved under any plan.
 * PARTITA_NOT_FOUND if there is none. */
partita_status partita_load_checkpoint(partita_session* session,
                                       const char* folder);

/* ---- Generating text ---- */

/* Opaque: a model that generates text, and its cache of keys and values. */
typedef struct partita_generator partita_generator;

/* Opens a folder that `partita generate -o` wrote. `options` may be NULL; its
 * join_job must be 0. On success `*generator` must be closed. One thread at a
 * time uses a generator. */
partita_status partita_open_generator(const char* folder,
                                      const partita_options* options,
                                      partita_generator** generator);
/* Releases everything; NULL is ignored. */
void partita_close_generator(partita_generator* generator);

/* Token ids of one text. */
typedef struct partita_tokens {
  const int64_t* ids; /* [count]; may be NULL if count is 0 */
  size_t count;
} partita_tokens;

typedef struct partita_generator_info {
  int64_t rows;          /* texts at a time; further ones wait for a free row */
  int64_t length;        /* most tokens of a text, the prompt included */
  int64_t vocabulary;    /* tokens are from 0 to vocabulary - 1 */
  partita_tokens end;    /* tokens that end a text, as the model's files say */
  const char* tokenizer; /* path of the model's tokenizer.json; NULL: none */
} partita_generator_info;

/* Strings and tokens belong to the generator. */
partita_status partita_describe_generator(const partita_generator* generator,
                                          partita_generator_info* info);

/* Called after each new token of a text with all its new tokens. Returns 1 to
 * end this text, 0 to go on. It must not use the generator. */
typedef int32_t (*partita_token_callback)(size_t text, partita_tokens tokens,
                                          void* user);

/* Initialise with PARTITA_GENERATE_OPTIONS, then change fields as needed. */
typedef struct partita_generate_options {
  uint32_t abi_version;   /* PARTITA_ABI_VERSION */
  uint32_t size;          /* sizeof(partita_generate_options) */
  int64_t max_new_tokens; /* of each text */
  /* The penalty, the temperature, top_k and top_p act in this order on the
   * scores of the next token. */
  double repetition_penalty; /* of tokens that occurred; 1: none */
  double temperature;        /* 0: the best token, without chance */
  int64_t top_k;             /* draw among the best tokens; 0: among all */
  double top_p;  /* draw among the best tokens that add up to this, in (0, 1] */
  uint64_t seed; /* a text depends on it and on its own number alone */
  partita_tokens end; /* tokens that end a text, as its last token */
  partita_token_callback callback; /* may be NULL */
  void* user;                      /* of the callback */
} partita_generate_options;

#define PARTITA_GENERATE_OPTIONS               \
  {PARTITA_ABI_VERSION,                        \
   (uint32_t)sizeof(partita_generate_options), \
   20,                                         \
   1.0,                                        \
   0.0,                                        \
   0,                                          \
   1.0,                                        \
   0,                                          \
   {NULL, 0},                                  \
   NULL,                                       \
   NULL}

typedef struct partita_generate_times {
  double first_token_seconds; /* until the first token of the first prompt */
  double prompt_seconds;      /* reading all prompts */
  double token_seconds;       /* all other steps */
} partita_generate_times;

/* Goes on from each of the `count` prompts. `texts[i]` gets the new tokens of
 * prompts[i], which belong to the generator until its next call. `options` and
 * `times` may be NULL. PARTITA_INVALID names a prompt that is empty, has a
 * token outside the vocabulary, or does not fit the cache. */
partita_status partita_generate(partita_generator* generator,
                                const partita_tokens* prompts, size_t count,
                                const partita_generate_options* options,
                                partita_tokens* texts,
                                partita_generate_times* times);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PARTITA_RUNTIME_API_PARTITA_H_ */
