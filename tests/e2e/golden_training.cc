#include "tests/e2e/golden_training.h"

#include <regex>

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace partita::e2e {
namespace {

// Appends indices, which are nested as deep as the output's dimensions before
// the classes.
void flatten(const llvm::json::Value& value, std::string& bytes) {
  if (const llvm::json::Array* array = value.getAsArray()) {
    for (const llvm::json::Value& element : *array) flatten(element, bytes);
    return;
  }
  const int64_t index = value.getAsInteger().value_or(-1);
  bytes.append(reinterpret_cast<const char*>(&index), sizeof index);
}

template <typename T>
HostTensor Scalar(base::DType dtype, T value) {
  return {dtype,
          {},
          std::string(reinterpret_cast<const char*>(&value), sizeof value)};
}

// Joins the tensors of a model's experts, as the compiler does: the tensors
// "mlp.experts.0.up.weight", "mlp.experts.1.up.weight" ... become
// "mlp.experts.*.up.weight".
void StackExperts(std::map<std::string, HostTensor>& tensors) {
  static const std::regex kExpert("(.*\\.experts\\.(?:expert_)?)(\\d+)(\\..*)");
  std::map<std::string, std::map<int, HostTensor>> experts;
  for (auto it = tensors.begin(); it != tensors.end();) {
    std::smatch match;
    if (!std::regex_match(it->first, match, kExpert)) {
      ++it;
      continue;
    }
    experts[match.str(1) + "*" + match.str(3)][std::stoi(match.str(2))] =
        std::move(it->second);
    it = tensors.erase(it);
  }
  for (auto& [name, parts] : experts) {
    HostTensor whole = parts.begin()->second;
    whole.bytes.clear();
    for (const auto& [index, part] : parts) whole.bytes += part.bytes;
    whole.shape.insert(whole.shape.begin(), static_cast<int64_t>(parts.size()));
    tensors[name] = std::move(whole);
  }
}

}  // namespace

absl::StatusOr<GoldenTraining> ReadGoldenTraining(const std::string& folder,
                                                  const std::string& run) {
  GoldenTraining golden;
  for (auto [prefix, tensors] : {std::pair(std::string("in."), &golden.inputs),
                                 {run + "grad.", &golden.gradients},
                                 {run + "step1.", &golden.stepped}}) {
    auto read = ReadTensors(folder + "io.safetensors", prefix);
    if (!read.ok()) return read.status();
    *tensors = *read;
    StackExperts(*tensors);
  }
  auto losses = ReadTensors(folder + "io.safetensors", run + "losses");
  if (!losses.ok()) return losses.status();
  golden.losses = losses->at("");
  auto text = llvm::MemoryBuffer::getFile(folder + "targets.json");
  auto json =
      text ? llvm::json::parse((*text)->getBuffer()) : llvm::json::parse("");
  if (!json) {
    llvm::consumeError(json.takeError());
    return absl::NotFoundError(folder + "targets.json");
  }
  golden.targets.dtype = base::DType::kI64;
  flatten(*json->getAsObject()->get("targets"), golden.targets.bytes);
  return golden;
}

std::map<std::string, HostTensor> GoldenTraining::InputsOf(
    const std::vector<executor::TensorSpec>& specs, int64_t step) const {
  std::map<std::string, HostTensor> result = inputs;
  result["targets"] = targets;
  for (const executor::TensorSpec& spec : specs)
    if (spec.name == "targets") result["targets"].shape = spec.shape;
  result["lr"] = Scalar<float>(base::DType::kF32, kLearningRate);
  result["step"] = Scalar<int64_t>(base::DType::kI64, step);
  return result;
}

void GoldenTraining::Repeat(int64_t times) {
  const auto repeat = [&](HostTensor& tensor) {
    const std::string once = tensor.bytes;
    for (int64_t i = 1; i < times; ++i) tensor.bytes += once;
    if (!tensor.shape.empty()) tensor.shape[0] *= times;
  };
  for (auto& [name, tensor] : inputs) repeat(tensor);
  repeat(targets);
  for (auto it = stepped.begin(); it != stepped.end();)
    it = gradients.count(it->first) ? std::next(it) : stepped.erase(it);
}

}  // namespace partita::e2e
