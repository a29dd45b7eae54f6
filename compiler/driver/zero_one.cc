// One compilation per kind of step.
#include "compiler/driver/zero_one.h"

#include <filesystem>
#include <optional>

#include "compiler/driver/compile.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

namespace fs = std::filesystem;
using mlir::failure;
using mlir::FailureOr;

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
  fs::create_directories(options.output, error);
  if (error) return wrong("cannot create the folder: " + error.message());
  std::optional<CompileReport> exchange;
  double seconds = 0;
  int64_t bytes = 0;
  for (const char* step : {"variance", "local", "exchange"}) {
    CompileOptions own = options;
    own.train.zero_one_step = step;
    own.output =
        (fs::path(options.output) / (std::string(step) + ".partita")).string();
    if (!own.dump_dir.empty())
      own.dump_dir = (fs::path(own.dump_dir) / step).string();
    if (std::string refused = prepareOptions(own); !refused.empty())
      return wrong(refused);
    mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
    FailureOr<CompileReport> report = compileToFile(*copy, own, &fault);
    if (mlir::failed(report)) return failure();
    seconds += report->seconds;
    bytes += report->artifact_bytes;
    exchange = *std::move(report);
  }
  exchange->seconds = seconds;
  exchange->artifact_bytes = bytes;
  return *std::move(exchange);
}

}  // namespace partita::driver
