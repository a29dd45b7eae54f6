// Trains a compiled model from C++: ten steps on one batch, whose loss must
// fall, and a trained parameter read back. All memory belongs to this program.
//
// Needs `partita` on PATH, and in $PARTITA the folder of a release, which has
// include/partita.h and lib/libpartita_runtime.so. In this folder:
//
//   flags="-I $PARTITA/include -L $PARTITA/lib -Wl,-rpath,$PARTITA/lib"
//   model="../tiny_gpt2 --dim batch=4,seq=32"
//   partita compile $model --train adamw -o step.partita
//   c++ -std=c++17 train.cc $flags -lpartita_runtime -o train
//   ./train step.partita checkpoints
//
// Expect a line for each step, with a falling loss, then a line for the
// parameter. The second argument is optional: a folder for a checkpoint.
// partita_load_checkpoint loads it, and so does `partita compile --weights`.
#include <partita.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

constexpr int kHostMemory = 1;
constexpr int kSteps = 10;
constexpr double kLearningRate = 1e-3;

struct Close {
  void operator()(partita_session* session) const { partita_close(session); }
};
using Session = std::unique_ptr<partita_session, Close>;

bool Ok(partita_status status, const char* what) {
  if (status != PARTITA_OK)
    std::fprintf(stderr, "train: %s: %s\n", what, partita_last_error());
  return status == PARTITA_OK;
}

// A view of `data`, of the shape and type that an input or parameter has.
template <typename Info>
partita_tensor View(void* data, const Info& info) {
  partita_tensor tensor = {};
  tensor.data = data;
  tensor.device.type = kHostMemory;
  tensor.ndim = info.ndim;
  tensor.type = info.type;
  tensor.shape = const_cast<int64_t*>(info.shape);
  return tensor;
}

// A batch with the shapes that the model expects. Token ids and labels count
// up; images are a ramp.
struct Batch {
  std::vector<std::vector<char>> memory;
  std::vector<partita_tensor> tensors;  // views of `memory`

  bool Make(partita_session* session) {
    for (size_t i = 0; i < partita_input_count(session); ++i) {
      partita_tensor_info info;
      if (!Ok(partita_input(session, i, &info), "input")) return false;
      // The session sets the learning rate, the step and the seed itself.
      if (info.role != PARTITA_DATA) continue;
      memory.emplace_back(static_cast<size_t>(info.bytes));
      void* data = memory.back().data();
      if (info.type.code == PARTITA_INT && info.type.bits == 64)
        for (int64_t k = 0; k < info.bytes / 8; ++k)
          static_cast<int64_t*>(data)[k] = info.limit > 0 ? k % info.limit : k;
      if (info.type.code == PARTITA_FLOAT && info.type.bits == 32)
        for (int64_t k = 0; k < info.bytes / 4; ++k)
          static_cast<float*>(data)[k] = static_cast<float>(k % 17) / 17;
      tensors.push_back(View(data, info));
    }
    return true;
  }
};

// Prints the sum of squares of the first trained f32 parameter.
bool PrintParameter(partita_session* session) {
  for (size_t i = 0; i < partita_parameter_count(session); ++i) {
    partita_parameter_info info;
    if (!Ok(partita_parameter(session, i, &info), "parameter")) return false;
    if (info.is_state != 0 || info.is_updated == 0 ||
        info.type.code != PARTITA_FLOAT || info.type.bits != 32)
      continue;
    std::vector<float> values(static_cast<size_t>(info.bytes / 4));
    const partita_tensor tensor = View(values.data(), info);
    if (!Ok(partita_read_parameter(session, info.name, &tensor), "read"))
      return false;
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    std::printf("parameter %s, sum of squares %.6f\n", info.name, sum);
    return true;
  }
  std::fprintf(stderr, "train: expected a trained f32 parameter, found none\n");
  return false;
}

int Train(const char* path, const char* checkpoint_folder) {
  partita_session* opened = nullptr;
  if (!Ok(partita_open(path, nullptr, &opened), "open")) return 1;
  const Session session(opened);
  Batch batch;
  if (!batch.Make(session.get())) return 1;
  double first = 0, loss = 0;
  for (int step = 1; step <= kSteps; ++step) {
    if (!Ok(partita_train_step(session.get(), batch.tensors.data(),
                               batch.tensors.size(), kLearningRate, &loss),
            "step"))
      return 1;
    if (step == 1) first = loss;
    std::printf("step %d, loss %.6f\n", step, loss);
  }
  if (!PrintParameter(session.get())) return 1;
  if (checkpoint_folder != nullptr &&
      !Ok(partita_save_checkpoint(session.get(), checkpoint_folder), "save"))
    return 1;
  if (loss < first) return 0;
  std::fprintf(stderr,
               "train: expected the loss to fall, found %f at step 1 and %f at "
               "step %d; try another learning rate\n",
               first, loss, kSteps);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 || argc == 3)
    return Train(argv[1], argc == 3 ? argv[2] : nullptr);
  std::fprintf(stderr, "usage: train STEP.partita [CHECKPOINT_FOLDER]\n");
  return 2;
}
