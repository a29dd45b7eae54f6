/* Runs a compiled model through the C interface, as a C program, and compares
 * with answers that PyTorch gave. Each of four threads opens a session of its
 * own.
 *
 *   api_golden MODEL.partita FILE...             inputs, then the first output
 *   api_golden --train RATE MODEL.partita FILE...   data inputs, then losses
 *
 * A FILE holds a tensor's elements, as they are in memory. Prints the largest
 * distance; exits with 1 where it is above 2e-4 of the largest value.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/partita.h"

enum { kThreads = 4, kRepeats = 3, kMostTensors = 16 };
static const double kTolerance = 2e-4;

struct Job {
  const char* model;
  const char** files;
  int file_count;
  double rate; /* of training; negative: inference */
  double distance, largest;
  int failed;
};

static int Complain(const char* what) {
  fprintf(stderr, "%s: %s\n", what, partita_last_error());
  return 1;
}

/* NULL where the file has not `bytes` bytes. The caller frees. */
static void* ReadFile(const char* path, int64_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  void* data = malloc((size_t)bytes + 1);
  const size_t read = fread(data, 1, (size_t)bytes + 1, file);
  fclose(file);
  if (read == (size_t)bytes) return data;
  fprintf(stderr, "%s: expected %lld bytes, found %zu or more\n", path,
          (long long)bytes, read);
  free(data);
  return NULL;
}

static void Compare(struct Job* job, const float* found, const float* expected,
                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const double distance = fabs((double)found[i] - (double)expected[i]);
    if (!(distance <= job->distance)) job->distance = distance;
    job->largest = fmax(job->largest, fabs((double)expected[i]));
  }
}

static int Infer(struct Job* job, partita_session* session,
                 const partita_tensor* inputs, size_t input_count) {
  const size_t output_count = partita_output_count(session);
  partita_managed_tensor* owned[kMostTensors];
  partita_tensor outputs[kMostTensors];
  partita_tensor_info info;
  if (output_count > kMostTensors) return 1;
  for (size_t i = 0; i < output_count; ++i) {
    if (partita_new_output(session, i, &owned[i]) != PARTITA_OK)
      return Complain("output");
    outputs[i] = owned[i]->tensor;
  }
  int failed = 0;
  for (int i = 0; i < kRepeats && !failed; ++i)
    if (partita_run(session, inputs, input_count, outputs, output_count) !=
        PARTITA_OK)
      failed = Complain("run");
  if (!failed && partita_output(session, 0, &info) != PARTITA_OK)
    failed = Complain("output");
  if (!failed) {
    float* expected = ReadFile(job->files[job->file_count - 1], info.bytes);
    failed = expected == NULL;
    if (!failed)
      Compare(job, (const float*)outputs[0].data, expected, info.bytes / 4);
    free(expected);
  }
  for (size_t i = 0; i < output_count; ++i) owned[i]->deleter(owned[i]);
  return failed;
}

static int Train(struct Job* job, partita_session* session,
                 const partita_tensor* data, size_t count) {
  float losses[kMostTensors];
  FILE* file = fopen(job->files[job->file_count - 1], "rb");
  if (file == NULL) return 1;
  const size_t steps = fread(losses, sizeof(float), kMostTensors, file);
  fclose(file);
  for (size_t i = 0; i < steps; ++i) {
    double loss;
    if (partita_train_step(session, data, count, job->rate, &loss) !=
        PARTITA_OK)
      return Complain("step");
    const float found = (float)loss;
    Compare(job, &found, &losses[i], 1);
  }
  return steps == 0 || partita_step(session) != (int64_t)steps;
}

static int RunSession(struct Job* job, partita_session* session) {
  partita_tensor tensors[kMostTensors];
  size_t count = 0;
  int failed = 0;
  for (size_t i = 0; i < partita_input_count(session) && !failed; ++i) {
    partita_tensor_info info;
    if (partita_input(session, i, &info) != PARTITA_OK)
      return Complain("input");
    if (job->rate >= 0 && info.role != PARTITA_DATA) continue;
    if (count == kMostTensors || (int)count + 1 >= job->file_count) return 1;
    partita_tensor* tensor = &tensors[count];
    memset(tensor, 0, sizeof *tensor);
    tensor->device.type = 1;
    tensor->ndim = info.ndim;
    tensor->type = info.type;
    tensor->shape = (int64_t*)info.shape;
    tensor->data = ReadFile(job->files[count], info.bytes);
    failed = tensor->data == NULL;
    ++count;
  }
  if (!failed)
    failed = job->rate >= 0 ? Train(job, session, tensors, count)
                            : Infer(job, session, tensors, count);
  for (size_t i = 0; i < count; ++i) free(tensors[i].data);
  return failed;
}

static void* RunJob(void* argument) {
  struct Job* job = argument;
  partita_session* session = NULL;
  partita_options options = PARTITA_OPTIONS;
  options.threads = 2;
  if (partita_open(job->model, &options, &session) != PARTITA_OK) {
    job->failed = Complain("open");
    return NULL;
  }
  job->failed = RunSession(job, session);
  partita_close(session);
  return NULL;
}

int main(int argc, char** argv) {
  const int trains = argc > 2 && strcmp(argv[1], "--train") == 0;
  const int first = trains ? 3 : 1;
  if (argc < first + 2) {
    fprintf(stderr, "usage: api_golden [--train RATE] MODEL FILE...\n");
    return 2;
  }
  if (partita_abi_version() != PARTITA_ABI_VERSION) return 1;
  struct Job jobs[kThreads];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    memset(&jobs[i], 0, sizeof jobs[i]);
    jobs[i].model = argv[first];
    jobs[i].files = (const char**)&argv[first + 1];
    jobs[i].file_count = argc - first - 1;
    jobs[i].rate = trains ? atof(argv[2]) : -1;
    if (pthread_create(&threads[i], NULL, RunJob, &jobs[i]) != 0) return 1;
  }
  int failed = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    if (jobs[i].failed || jobs[i].largest == 0 ||
        !(jobs[i].distance <= kTolerance * jobs[i].largest))
      failed = 1;
  }
  printf("distance %.3g of %.3g, in %d threads\n", jobs[0].distance,
         jobs[0].largest, kThreads);
  return failed;
}
