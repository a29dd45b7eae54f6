// Parses targets and PTX versions.
#include "runtime/cuda/target.h"

#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/program/target.h"

namespace partita::cuda {
namespace {

constexpr char kPrefix[] = "sm_";

struct Architecture {
  int number = 0;   // 90
  char suffix = 0;  // 'a', 'f' or none
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Parses "sm_90a".
std::optional<Architecture> Parse(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0) return std::nullopt;
  std::string rest = name.substr(sizeof(kPrefix) - 1);
  Architecture architecture;
  if (!rest.empty() && (rest.back() == 'a' || rest.back() == 'f')) {
    architecture.suffix = rest.back();
    rest.pop_back();
  }
  if (rest.size() < 2 || rest.size() > 3) return std::nullopt;
  for (const char c : rest) {
    if (!IsDigit(c)) return std::nullopt;
    architecture.number = architecture.number * 10 + (c - '0');
  }
  return architecture;
}

// True if the GPU's family runs machine code of this architecture.
bool RunsNatively(const Machine& machine, const Architecture& architecture) {
  const int number = machine.major * 10 + machine.minor;
  if (architecture.suffix == 'a') return architecture.number == number;
  return architecture.number / 10 == machine.major &&
         architecture.number <= number;
}

// The text of the target that suits a GPU.
std::string TargetFor(int number) {
  return program::TargetText(
      {program::kCudaTarget, absl::StrCat(kPrefix, number)});
}

// The first CUDA version whose driver accepts this PTX version, in the driver's
// numbering. From the release notes of the PTX documentation.
int DriverForPtx(int ptx) {
  if (ptx >= 90) return 13000 + (ptx - 90) * 10;
  if (ptx >= 86) return 12070 + (ptx - 86) * 10;
  if (ptx >= 80) return 12000 + (ptx - 80) * 10;
  if (ptx >= 70) return 11000 + (ptx - 70) * 10;
  return 0;
}

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status CheckFeature(const Machine& machine, const std::string& feature) {
  if (feature.empty()) return absl::OkStatus();
  if (feature.rfind("+ptx", 0) != 0 || feature.size() != 6 ||
      !IsDigit(feature[4]) || !IsDigit(feature[5]))
    return absl::FailedPreconditionError(
        absl::StrCat("expected the version of the PTX, as '+ptx80', found the "
                     "feature '",
                     feature, "'; compile the model again"));
  const int ptx = std::atoi(feature.c_str() + 4);
  const int needed = DriverForPtx(ptx);
  if (machine.driver_version >= needed) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the model's code is PTX ", ptx / 10, ".", ptx % 10,
      ", which needs a driver for CUDA ", VersionText(needed),
      " or newer, found one for CUDA ", VersionText(machine.driver_version),
      "; install a newer driver"));
}

}  // namespace

absl::Status CheckTarget(const Machine& machine, const std::string& target,
                         const std::string& features) {
  const std::optional<program::Target> parsed = program::ParseTarget(target);
  const std::optional<Architecture> wanted =
      parsed && parsed->kind == program::kCudaTarget
          ? Parse(parsed->architecture)
          : std::nullopt;
  const int number = machine.major * 10 + machine.minor;
  if (!wanted) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model was compiled for target '", target, "', this device is '",
        TargetFor(number), "' (", machine.gpu, ")"));
  }
  const bool runs = wanted->suffix == 0 ? wanted->number <= number
                                        : RunsNatively(machine, *wanted);
  if (!runs) {
    return absl::FailedPreconditionError(
        absl::StrCat("the model was compiled for ", parsed->architecture,
                     ", this GPU (", machine.gpu, ") is ", kPrefix, number,
                     "; compile the model with --target ", TargetFor(number)));
  }
  const std::vector<std::string> list = absl::StrSplit(features, ',');
  for (const std::string& feature : list) {
    const absl::Status status = CheckFeature(machine, feature);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool RunsMachineCode(const Machine& machine, const std::string& architecture) {
  const std::optional<Architecture> parsed = Parse(architecture);
  return parsed && RunsNatively(machine, *parsed);
}

}  // namespace partita::cuda
