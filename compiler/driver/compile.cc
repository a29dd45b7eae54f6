// Runs the phases, generates code, plans memory and writes the artifact; keeps
// count of what happened.
#include "compiler/driver/compile.h"

#include <chrono>
#include <filesystem>

#include "compiler/driver/pipeline.h"
#include "compiler/emit/emit.h"
#include "compiler/kernels/generate_code.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::func::FuncOp;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Compilation {
 public:
  Compilation(mlir::ModuleOp module, const CompileOptions& options)
      : module_(module), options_(options), start_(now()) {}

  FailureOr<CompileReport> run() {
    if (mlir::failed(checkModel())) return failure();
    countModel();
    if (mlir::failed(dump("import"))) return failure();
    if (mlir::failed(runPhases(lowerToExec()))) return failure();
    countProgram();
    kernels::ObjectOptions object_options;
    object_options.cpu = options_.cpu;
    FailureOr<std::string> code = failure();
    LogicalResult generated = phase("code", [&] {
      code = kernels::generateCode(module_, object_options);
      return success(mlir::succeeded(code));
    });
    if (mlir::failed(generated) || mlir::failed(runPhases(planResources())))
      return failure();
    if (mlir::failed(phase("write", [&] { return write(std::move(*code)); })))
      return failure();
    report_.seconds = now() - start_;
    return report_;
  }

 private:
  // What no program can express, all at once, each where it first occurs.
  LogicalResult checkModel() {
    bool fine = true;
    for (FuncOp function : module_.getOps<FuncOp>()) {
      if (!function.isExternal()) continue;
      function.emitError("expected every function to have a body, found '")
          << function.getName() << "' without one";
      fine = false;
    }
    for (const auto& [name, loc] : unsupportedTypes(module_)) {
      mlir::emitError(loc)
          << "expected tensors of static shape with elements f32, f64, f16, "
             "bf16, i1, i8, i16, i32 or i64, found "
          << name << "; sizes are settled at import, with --dim";
      fine = false;
    }
    return success(fine);
  }

  LogicalResult phase(const std::string& name,
                      llvm::function_ref<LogicalResult()> body) {
    const double begin = now();
    LogicalResult result = body();
    report_.phase_seconds.push_back({name, now() - begin});
    // Quick compilations say nothing; slow ones show where they are.
    if (now() - start_ > 2)
      llvm::errs() << llvm::formatv("  {0,-14} {1,6:F1} s\n", name,
                                    now() - start_);
    if (mlir::failed(result)) return failure();
    return dump(name);
  }

  LogicalResult runPhases(const std::vector<Phase>& phases) {
    for (const Phase& next : phases) {
      LogicalResult result = phase(next.name, [&] {
        mlir::PassManager manager(module_.getContext());
        next.build(manager);
        return manager.run(module_);
      });
      if (mlir::failed(result)) return failure();
    }
    return success();
  }

  LogicalResult dump(const std::string& name) {
    if (options_.dump_dir.empty()) return success();
    std::error_code error;
    std::filesystem::create_directories(options_.dump_dir, error);
    std::string path =
        llvm::formatv("{0}/{1,0-2}-{2}.mlir", options_.dump_dir,
                      llvm::formatv("{0:02}", dumps_++).str(), name);
    llvm::raw_fd_ostream stream(path, error);
    if (error)
      return mlir::emitError(module_.getLoc())
             << "cannot write " << path << ": " << error.message();
    module_.print(stream, mlir::OpPrintingFlags().elideLargeElementsAttrs(64));
    stream.close();
    if (!stream.has_error()) return success();
    error = stream.error();
    stream.clear_error();  // or the stream's destructor ends the process
    return mlir::emitError(module_.getLoc())
           << "cannot write " << path << ": " << error.message();
  }

  void countModel() {
    if (auto name = module_.getName()) report_.model = name->str();
    module_.walk([&](mlir::Operation* op) {
      report_.operations +=
          !llvm::isa<mlir::ModuleOp, FuncOp, mlir::func::ReturnOp>(op);
    });
    FuncOp main = module_.lookupSymbol<FuncOp>("main");
    if (!main) return;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
      if (!kind || kind.getValue() != "parameter") continue;
      ++report_.parameters;
      report_.parameter_elements +=
          llvm::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i])
              .getNumElements();
    }
  }

  void countProgram() {
    for (FuncOp function : module_.getOps<FuncOp>()) {
      if (function->hasAttr(exec::kKernelAttr))
        ++report_.kernels;
      else if (function.isPrivate())
        ++report_.layer_kinds;
    }
    module_.walk([&](mlir::Operation* op) {
      report_.launches += llvm::isa<exec::LaunchOp>(op);
      report_.gemms += llvm::isa<exec::GemmOp>(op);
      report_.convolutions += llvm::isa<exec::ConvOp>(op);
      report_.layer_calls += llvm::isa<mlir::func::CallOp>(op);
    });
  }

  LogicalResult write(std::string code) {
    if (auto main = module_.lookupSymbol<FuncOp>("main"))
      report_.arena_bytes =
          main->getAttrOfType<mlir::IntegerAttr>(exec::kFrameBytesAttr)
              .getInt();
    if (auto init = module_.lookupSymbol<FuncOp>("init"))
      for (mlir::Type type : init.getResultTypes())
        report_.derived_bytes +=
            exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(type));
    emit::EmitOptions emit_options;
    emit_options.cpu_features = kernels::requiredFeatures(options_.cpu);
    llvm::json::Value summary = report_.toJson();
    for (const char* unknown_yet : {"artifact_bytes", "seconds"})
      summary.getAsObject()->erase(unknown_yet);
    emit_options.summary_json = llvm::formatv("{0}", summary).str();
    emit_options.source_folder = options_.source_folder;
    emit_options.artifact_folder =
        std::filesystem::path(options_.output).parent_path().string();
    emit_options.embed_weights = options_.embed_weights;
    auto parts = emit::buildArtifact(module_, std::move(code), emit_options);
    if (mlir::failed(parts)) return failure();
    absl::Status written = program::WriteArtifact(options_.output, *parts);
    if (!written.ok())
      return mlir::emitError(mlir::UnknownLoc::get(module_.getContext()))
             << std::string(written.message());
    std::error_code error;
    report_.artifact_bytes = std::filesystem::file_size(options_.output, error);
    return success();
  }

  mlir::ModuleOp module_;
  const CompileOptions& options_;
  const double start_;
  int dumps_ = 0;
  CompileReport report_;
};

}  // namespace

std::map<std::string, mlir::Location> unsupportedTypes(mlir::ModuleOp module) {
  std::map<std::string, mlir::Location> found;
  auto check = [&](mlir::Type type, mlir::Location loc) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    const bool is_static = tensor && tensor.hasStaticShape();
    mlir::Type element = is_static ? tensor.getElementType() : type;
    if (is_static && (element.isF32() || element.isF64() || element.isF16() ||
                      element.isBF16() || element.isInteger(1) ||
                      element.isInteger(8) || element.isInteger(16) ||
                      element.isInteger(32) || element.isInteger(64)))
      return;
    std::string name;
    llvm::raw_string_ostream(name) << element;
    found.try_emplace(name, loc);
  };
  module.walk([&](mlir::Operation* op) {
    for (mlir::Type type : op->getResultTypes()) check(type, op->getLoc());
    if (auto function = llvm::dyn_cast<FuncOp>(op))
      for (mlir::BlockArgument argument : function.getArguments())
        check(argument.getType(), argument.getLoc());
  });
  return found;
}

llvm::json::Value CompileReport::toJson() const {
  llvm::json::Object phases;
  for (const auto& [name, seconds] : phase_seconds) phases[name] = seconds;
  return llvm::json::Object{{"model", model},
                            {"operations", operations},
                            {"parameters", parameters},
                            {"parameter_elements", parameter_elements},
                            {"kernels", kernels},
                            {"launches", launches},
                            {"gemms", gemms},
                            {"convolutions", convolutions},
                            {"layer_kinds", layer_kinds},
                            {"layer_calls", layer_calls},
                            {"arena_bytes", arena_bytes},
                            {"derived_bytes", derived_bytes},
                            {"artifact_bytes", artifact_bytes},
                            {"phase_seconds", std::move(phases)},
                            {"seconds", seconds}};
}

FailureOr<CompileReport> compileToFile(mlir::ModuleOp module,
                                       const CompileOptions& options) {
  return Compilation(module, options).run();
}

}  // namespace partita::driver
