/* Runs a compiled model from C: opens it, makes its inputs, runs it once, and
 * prints the first numbers of each output. All memory belongs to this program.
 *
 * Needs `partita` on PATH, and in $PARTITA the folder of a release, which has
 * include/partita.h and lib/libpartita_runtime.so. In this folder:
 *
 *   partita compile ../tiny_gpt2 --dim batch=1,seq=16 -o model.partita
 *   flags="-I $PARTITA/include -L $PARTITA/lib -Wl,-rpath,$PARTITA/lib"
 *   cc run.c $flags -lpartita_runtime -o run
 *   ./run model.partita
 *
 * Expect a line for each input and output, such as
 *
 *     input input_ids [1,16]
 *     output y [1,16,256] 0.825431 0.143550 0.109879 0.033254 -0.229543
 *
 * A second argument names a file of int64 numbers for integer inputs, such as
 * token ids. Without it they count up: 0, 1, 2 ... Other inputs are zeros.
 */
#include <partita.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxTensors = 16, kAlignment = 64, kHostMemory = 1 };

static int Fail(const char* what) {
  fprintf(stderr, "run: %s: %s\n", what, partita_last_error());
  return 1;
}

/* Allocates and fills the input that `info` describes; the caller frees
 * `tensor->data`. The shape belongs to the session. Returns 0 after a message
 * if that fails. */
static int MakeInput(const partita_tensor_info* info, FILE* numbers,
                     partita_tensor* tensor) {
  memset(tensor, 0, sizeof *tensor);
  tensor->device.type = kHostMemory;
  tensor->ndim = info->ndim;
  tensor->type = info->type;
  tensor->shape = (int64_t*)info->shape;
  /* The runtime uses aligned memory in place and copies other memory. */
  const size_t bytes = ((size_t)info->bytes / kAlignment + 1) * kAlignment;
  tensor->data = aligned_alloc(kAlignment, bytes);
  if (tensor->data == NULL) {
    fprintf(stderr, "run: input '%s': no memory for %zu bytes\n", info->name,
            bytes);
    return 0;
  }
  memset(tensor->data, 0, bytes);
  if (info->type.code != PARTITA_INT || info->type.bits != 64) return 1;
  int64_t* values = tensor->data;
  const size_t count = (size_t)info->bytes / sizeof *values;
  if (numbers == NULL) {
    for (size_t i = 0; i < count; ++i)
      values[i] = info->limit > 0 ? (int64_t)i % info->limit : (int64_t)i;
    return 1;
  }
  const size_t found = fread(values, sizeof *values, count, numbers);
  if (found < count)
    fprintf(stderr,
            "run: input '%s': expected %zu int64 numbers in the file, found "
            "%zu; use a longer file\n",
            info->name, count, found);
  return found == count;
}

/* Prints name and shape, and the first numbers if `data` holds f32. */
static void Print(const char* kind, const partita_tensor_info* info,
                  const void* data) {
  printf("%s %s [", kind, info->name);
  for (int32_t i = 0; i < info->ndim; ++i)
    printf(i == 0 ? "%lld" : ",%lld", (long long)info->shape[i]);
  printf("]");
  if (info->type.code == PARTITA_FLOAT && info->type.bits == 32)
    for (int64_t i = 0; i < info->bytes / 4 && i < 5; ++i)
      printf(" %.6f", ((const float*)data)[i]);
  printf("\n");
}

/* Runs the model once. The process ends soon after an error, so only the way of
 * success releases memory. */
static int Run(partita_session* session, FILE* numbers) {
  const size_t input_count = partita_input_count(session);
  const size_t output_count = partita_output_count(session);
  partita_tensor inputs[kMaxTensors], outputs[kMaxTensors];
  partita_managed_tensor* owned[kMaxTensors];
  partita_tensor_info info;
  if (input_count > kMaxTensors || output_count > kMaxTensors) {
    fprintf(stderr,
            "run: expected at most %d inputs and outputs, found %zu and %zu; "
            "increase kMaxTensors\n",
            kMaxTensors, input_count, output_count);
    return 1;
  }
  for (size_t i = 0; i < input_count; ++i) {
    if (partita_input(session, i, &info) != PARTITA_OK) return Fail("input");
    if (!MakeInput(&info, numbers, &inputs[i])) return 1;
    Print("input", &info, inputs[i].data);
  }
  for (size_t i = 0; i < output_count; ++i) {
    if (partita_new_output(session, i, &owned[i]) != PARTITA_OK)
      return Fail("output");
    outputs[i] = owned[i]->tensor;
  }
  if (partita_run(session, inputs, input_count, outputs, output_count) !=
      PARTITA_OK)
    return Fail("run");
  for (size_t i = 0; i < output_count; ++i) {
    if (partita_output(session, i, &info) != PARTITA_OK) return Fail("output");
    Print("output", &info, outputs[i].data);
    owned[i]->deleter(owned[i]);
  }
  for (size_t i = 0; i < input_count; ++i) free(inputs[i].data);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: run MODEL.partita [NUMBERS]\n");
    return 2;
  }
  FILE* numbers = NULL;
  if (argc == 3 && (numbers = fopen(argv[2], "rb")) == NULL) {
    fprintf(stderr, "run: expected a file of int64 numbers, found no '%s'\n",
            argv[2]);
    return 1;
  }
  partita_session* session;
  if (partita_open(argv[1], NULL, &session) != PARTITA_OK) return Fail("open");
  const int status = Run(session, numbers);
  partita_close(session);
  if (numbers != NULL) fclose(numbers);
  return status;
}
