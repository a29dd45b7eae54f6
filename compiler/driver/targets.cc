// The only file of the compiler that names all code generators.
#include "compiler/driver/targets.h"

#include "compiler/kernels/assemble_ptx.h"
#include "compiler/kernels/chips.h"
#include "compiler/kernels/cpu_names.h"
#include "compiler/kernels/generate_code.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "runtime/program/code_bundle.h"
#include "runtime/program/target.h"

namespace partita::driver {
namespace {

using mlir::FailureOr;
using mlir::LogicalResult;

FailureOr<std::string> generateForCpu(mlir::ModuleOp module,
                                      const CodeOptions& options) {
  kernels::ObjectOptions object;
  object.cpu = options.cpu;
  return kernels::generateObject(module, object);
}

FailureOr<std::string> linkForCpu(mlir::Location loc, llvm::StringRef code,
                                  const CodeOptions&) {
  return kernels::linkSharedObject(loc, code);
}

LogicalResult describeForCpu(mlir::ModuleOp module, const CodeOptions&) {
  return kernels::describeObject(module);
}

std::string featuresOfCpu(const CodeOptions& options) {
  return kernels::requiredFeatures(options.cpu);
}

llvm::StringRef clusterOfCpus(llvm::StringRef) { return "cpu"; }

std::vector<llvm::StringRef> chipNames() {
  std::vector<llvm::StringRef> names;
  for (const kernels::Chip& chip : kernels::chips()) names.push_back(chip.name);
  return names;
}

FailureOr<std::string> generateForCuda(mlir::ModuleOp module,
                                       const CodeOptions& options) {
  return kernels::generatePtx(module, {.chip = options.architecture});
}

constexpr char kWithoutPtxas[] =
    "--cubins: expected NVIDIA's assembler ptxas in PATH, CUDA_HOME, CUDA_PATH "
    "or /usr/local/cuda, found none; install the CUDA toolkit, name the "
    "program in PARTITA_PTXAS, or leave --cubins out";

// Machine code for the GPUs that the options name; a failure is an error only
// if they name any. Without an assembler, or if it is too old, the driver
// compiles the PTX whenever the model is loaded.
FailureOr<std::string> linkForCuda(mlir::Location loc, llvm::StringRef ptx,
                                   const CodeOptions& options) {
  const std::vector<std::string> chips =
      options.cubins.value_or(std::vector<std::string>{options.architecture});
  if (chips.empty()) return ptx.str();
  const std::optional<std::string> ptxas = kernels::findPtxas();
  if (!ptxas && !options.cubins) return ptx.str();
  if (!ptxas) return mlir::emitError(loc, kWithoutPtxas);
  program::CodeBundle bundle;
  bundle.portable = ptx;
  std::vector<std::string> cubins(chips.size());
  for (auto [chip, cubin] : llvm::zip_equal(chips, cubins)) {
    kernels::AssembledPtx assembled = kernels::assemblePtx(*ptxas, ptx, chip);
    if (assembled.ok) {
      cubin = std::move(assembled.code);
      bundle.machine.push_back({chip, cubin});
      continue;
    }
    const std::string wrong =
        *ptxas + " cannot assemble the kernels for " + chip + ": ";
    if (options.cubins)
      return mlir::emitError(loc) << "--cubins: " << wrong
                                  << llvm::StringRef(assembled.report).rtrim();
    mlir::emitWarning(loc)
        << wrong << llvm::StringRef(assembled.report).rtrim()
        << "; the artifact has PTX only, which the GPU's driver compiles "
           "whenever the model is loaded";
  }
  return program::WriteCodeBundle(bundle);
}

LogicalResult describeForCuda(mlir::ModuleOp module,
                              const CodeOptions& options) {
  return kernels::describePtx(module, {.chip = options.architecture});
}

std::string featuresOfCuda(const CodeOptions&) { return kernels::kPtxFeatures; }

llvm::StringRef clusterOfCuda(llvm::StringRef architecture) {
  return architecture.starts_with("sm_9") ? "h100-sxm" : "a100-80-sxm";
}

bool hasFloat8OfCpus(llvm::StringRef) { return false; }

bool hasFloat8OfCuda(llvm::StringRef architecture) {
  const kernels::Chip* chip = kernels::findChip(architecture);
  return chip != nullptr && chip->float8;
}

// One entry per code generator.
constexpr TargetKind kTargetKinds[] = {
    {program::kCpuTarget, /*architectures=*/nullptr, /*example=*/"",
     generateForCpu, describeForCpu, linkForCpu, featuresOfCpu, clusterOfCpus,
     hasFloat8OfCpus},
    {program::kCudaTarget, chipNames, "sm_90", generateForCuda, describeForCuda,
     linkForCuda, featuresOfCuda, clusterOfCuda, hasFloat8OfCuda},
};

}  // namespace

llvm::ArrayRef<TargetKind> targetKinds() { return kTargetKinds; }

std::optional<CompileTarget> findTarget(llvm::StringRef text) {
  std::optional<program::Target> parsed = program::ParseTarget(text);
  if (!parsed) return std::nullopt;
  const auto* kind = llvm::find_if(kTargetKinds, [&](const TargetKind& each) {
    return each.name == parsed->kind;
  });
  if (kind == std::end(kTargetKinds)) return std::nullopt;
  const bool fits =
      kind->architectures != nullptr
          ? llvm::is_contained(kind->architectures(), parsed->architecture)
          : parsed->architecture.empty();
  if (!fits) return std::nullopt;
  return CompileTarget{kind, std::move(parsed->architecture)};
}

std::string checkTarget(llvm::StringRef text) {
  if (findTarget(text)) return "";
  std::vector<std::string> expected;
  for (const TargetKind& kind : kTargetKinds)
    expected.push_back(
        kind.architectures == nullptr
            ? kind.name.str()
            : (kind.name + ": with one of " +
               llvm::join(kind.architectures(), ", ") + ", as in " +
               program::TargetText({kind.name.str(), kind.example.str()}))
                  .str());
  return "--target: expected " + llvm::join(expected, ", or ") + ", found " +
         text.str();
}

std::string checkCubins(llvm::ArrayRef<std::string> chips) {
  for (auto [i, chip] : llvm::enumerate(chips))
    if (llvm::is_contained(chips.take_front(i), chip))
      return "--cubins: expected each GPU once, found " + chip + " twice";
  return chips.empty() || kernels::findPtxas() ? "" : kWithoutPtxas;
}

}  // namespace partita::driver
