// One compilation per kind of step.
#include "compiler/driver/zero_one.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/driver/console.h"
#include "compiler/driver/memory_limit.h"
#include "compiler/memory/memory_table.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

namespace fs = std::filesystem;
using memory::MemoryClass;
using memory::MemoryTable;
using mlir::failure;
using mlir::FailureOr;

namespace {

// Adds what one more program needs on the device. States are shared, and
// parameters too unless some are frozen: each program loads its own of those.
void add(const MemoryTable& other, bool all_trained, MemoryTable& sum) {
  for (int i = 0; i < memory::kMemoryClasses; ++i) {
    const auto part = static_cast<MemoryClass>(i);
    const bool shared = part == MemoryClass::kStates ||
                        (part == MemoryClass::kParameters && all_trained);
    if (shared)
      sum.at_peak[i] = std::max(sum.at_peak[i], other.at_peak[i]);
    else
      sum.at_peak[i] += other.at_peak[i];
  }
  sum.most_gradients = std::max(sum.most_gradients, other.most_gradients);
  sum.gaps += other.gaps;
}

}  // namespace

void tellStepOf(const TrainOptions& train) {
  if (isZeroOne(train))
    messages() << "note: of the three kinds of steps of 0/1-adam, this is the "
               << train.zero_one_step << " step\n";
}

std::string refuseFolderOfSteps(const std::string& path) {
  const auto program = [&](const char* step) {
    return (fs::path(path) / (std::string(step) + ".partita")).string();
  };
  std::error_code error;
  if (!fs::is_regular_file(program("exchange"), error)) return "";
  return path +
         ": expected one program, found the folder of the three kinds of steps "
         "of 0/1-adam; give " +
         program("variance") + ", " + program("exchange") + " or " +
         program("local");
}

FailureOr<CompileReport> compileZeroOne(mlir::ModuleOp module,
                                        const CompileOptions& options,
                                        Fault& fault) {
  const auto wrong = [&](const std::string& what) {
    fault = Fault::kUser;
    mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
        << options.output << ": " << what;
    return failure();
  };
  std::error_code error;
  if (fs::is_regular_file(options.output, error))
    return wrong(
        "expected a folder for the three steps of 0/1-adam, found a file; "
        "remove it, or name another folder");
  if (fs::path(options.output).extension() == ".partita")
    return wrong(
        "expected a name for the folder of the three steps of 0/1-adam, found "
        "that of a file; leave out .partita");
  if (options.plan && options.plan->state_files)
    return wrong(
        "expected the states of 0/1-adam in memory, found offload: "
        "{optimizer: nvme}: its three programs share them; leave it out, or "
        "take offload: optimizer");
  const bool is_new = fs::create_directories(options.output, error);
  if (error) return wrong("cannot create the folder: " + error.message());
  std::optional<CompileReport> exchange;
  std::vector<std::string> written;
  double seconds = 0;
  int64_t bytes = 0;
  MemoryTable memory;
  const auto discard = [&] {
    for (const std::string& file : written) fs::remove(file, error);
    if (is_new) fs::remove(options.output, error);
    return failure();
  };
  // The exchange step refuses the most, so nothing is written before.
  for (const char* step : {"exchange", "local", "variance"}) {
    CompileOptions own = options;
    own.train.zero_one_step = step;
    own.output =
        (fs::path(options.output) / (std::string(step) + ".partita")).string();
    if (!own.dump_dir.empty())
      own.dump_dir = (fs::path(own.dump_dir) / step).string();
    if (std::string refused = prepareOptions(own); !refused.empty()) {
      (void)discard();
      return wrong(refused);
    }
    mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
    FailureOr<CompileReport> report = compileToFile(*copy, own, &fault);
    if (mlir::failed(report)) return discard();
    seconds += report->seconds;
    bytes += report->artifact_bytes;
    add(report->memoryTable(), options.train.trained == "*", memory);
    written.push_back(own.output);
    if (!exchange) {
      memory.parts = report->memoryTable().parts;
      memory.host = report->memoryTable().host;
      memory.files = report->memoryTable().files;
      exchange = *std::move(report);
    }
  }
  const plan::Plan* plan = options.plan ? &*options.plan : nullptr;
  if (std::optional<MemoryLimit> limit = findLimit(plan, options.memory)) {
    limit->where += ", for the three steps of 0/1-adam together";
    if (mlir::failed(
            checkMemory(module, memory, *limit, plan, &options.train))) {
      fault = Fault::kUser;
      return discard();
    }
  }
  exchange->memory_tables = {std::move(memory)};
  exchange->seconds = seconds;
  exchange->artifact_bytes = bytes;
  return *std::move(exchange);
}

}  // namespace partita::driver
