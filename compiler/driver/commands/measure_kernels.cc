// Compiles and runs small models. The expected cost of each launch is read back
// from the artifact.
#include "compiler/driver/commands/measure_kernels.h"

#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/measure/probe_program.h"
#include "compiler/plan/plan.h"
#include "compiler/simulator/cluster_costs.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/artifact.h"
#include "runtime/program/labels.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

using llvm::formatv;
using measure::MeasureOptions;

// Expected costs and measured time of launches.
struct Timed {
  double bytes = 0, cycles = 0, operations = 0, seconds = 0;
};

// State of the caches before a launch: as the previous run left them, or
// evicted.
enum class Caches { kWarm, kCold };

double bytesOf(const program::Instruction& instruction) {
  double bytes = 0;
  for (const program::Buffer* buffer : *instruction.operands())
    bytes += static_cast<double>(buffer->bytes());
  return bytes;
}

// Sums all launches of a program. Each function of the program must run once.
absl::StatusOr<Timed> launchesOf(const std::string& path,
                                 const measure::ProfileTimes& times) {
  PARTITA_ASSIGN_OR_RETURN(const program::Artifact artifact,
                           program::Artifact::Open(path));
  const std::vector<double> cycles =
      simulator::KernelCyclesOf(artifact.program());
  Timed all;
  for (const program::Function* function : *artifact.program().functions())
    for (unsigned i = 0; i < program::SizeOrZero(function->body()); ++i) {
      const program::Instruction& instruction = *function->body()->Get(i);
      const program::Launch* launch = instruction.operation_as_Launch();
      if (launch == nullptr) continue;
      const auto kernel = static_cast<unsigned>(launch->kernel());
      all.bytes += bytesOf(instruction);
      all.cycles += cycles[kernel] * static_cast<double>(launch->range());
      all.operations += static_cast<double>(launch->operations());
      // Equal kernels share a row of the profile, with the time of one call.
      PARTITA_ASSIGN_OR_RETURN(
          const double seconds,
          times.Seconds(
              program::KernelLabel(artifact.program(), *launch).str()));
      all.seconds += seconds;
    }
  if (all.seconds > 0 && all.cycles > 0) return all;
  return absl::InternalError(
      "expected a probe with a kernel that takes time, found none");
}

absl::StatusOr<Timed> run(Session& session, const MeasureOptions& options,
                          const std::string& text, Caches caches) {
  // All devices do the same work on purpose: ignore the warning.
  const mlir::ScopedDiagnosticHandler only_errors(
      session.context(), [](mlir::Diagnostic& diagnostic) {
        return mlir::success(diagnostic.getSeverity() !=
                             mlir::DiagnosticSeverity::Error);
      });
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(text, session.context());
  CompileOptions compile;
  compile.output = options.folder + "/kernels.partita";
  compile.plan.emplace();
  compile.plan->mesh = core::Mesh{{{"group", options.devices}}, {}};
  if (!module || mlir::failed(compileToFile(*module, compile)))
    return absl::InternalError(
        "expected a probe that compiles; see the errors above");
  if (caches == Caches::kCold)
    PARTITA_RETURN_IF_ERROR(measure::EvictCaches(compile.output));
  PARTITA_ASSIGN_OR_RETURN(const measure::ProfileTimes times,
                           options.run(compile.output));
  return launchesOf(compile.output, times);
}

// A sum of two vectors.
std::string sumOf(int64_t elements) {
  return formatv(
             "func.func @main(%a: tensor<{0}xf32>, %b: tensor<{0}xf32>) -> "
             "tensor<{0}xf32> {{ %r = arith.addf %a, %b : tensor<{0}xf32> "
             "return %r : tensor<{0}xf32> }",
             elements)
      .str();
}

// A sum that overwrites its first operand.
std::string updateOf(int64_t elements) {
  return formatv(
             "!t = tensor<{0}xf32>\n"
             "func.func @main(%g: !t, %p: !t {{nn.kind = \"parameter\", "
             "nn.name "
             "= \"p\", nn.source = #nn.init<\"uniform\", 1.0 : f64, 7>}) -> "
             "(!t {{nn.updates = \"p\"}) {{ %r = arith.addf %p, %g : !t "
             "return %r : !t }",
             elements)
      .str();
}

// Attention with 12 heads of 64 elements, in which every query sees every key.
std::string attentionOf(int64_t tokens, bool backward) {
  return formatv(backward ? R"(!t = tensor<1x12x{0}x64xf32>
       func.func @main(%q: !t, %k: !t, %v: !t, %y: !t, %g: !t) -> (!t, !t, !t) {{
         %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %g scale = 1.25e-1 : (!t, !t, !t, !t, !t) -> (!t, !t, !t)
         return %dq, %dk, %dv : !t, !t, !t
       })"
                          : R"(!t = tensor<1x12x{0}x64xf32>
       func.func @main(%q: !t, %k: !t, %v: !t) -> !t {{
         %y = nn.attention %q, %k, %v scale = 1.25e-1 : (!t, !t, !t) -> !t
         return %y : !t
       })",
                 tokens)
      .str();
}

// Typical operations between products, each bound by the compute of a core.
constexpr const char* kKernels[] = {
    R"(func.func @main(%a: tensor<512x3072xf32>) -> tensor<512x3072xf32> {
         %t = math.tanh %a : tensor<512x3072xf32>
         %r = arith.mulf %a, %t : tensor<512x3072xf32>
         return %r : tensor<512x3072xf32>
       })",
    R"(func.func @main(%x: tensor<512x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<512x768xf32> {
         %y = nn.layer_norm %x scale(%g : tensor<768xf32>) bias(%b : tensor<768xf32>) axis = 1 epsilon = 1.0e-5 : tensor<512x768xf32>
         return %y : tensor<512x768xf32>
       })",
    R"(func.func @main(%x: tensor<3072x256xf32>) -> tensor<3072x256xf32> {
         %y = nn.softmax %x axis = 1 : tensor<3072x256xf32>
         return %y : tensor<3072x256xf32>
       })"};

// Sizes are in bytes. Operands are evicted from caches before each launch.
absl::Status measureStreams(Session& session, const MeasureOptions& options,
                            planner::RateTables& tables) {
  const std::pair<const char*, std::string (*)(int64_t)> streams[] = {
      {planner::kCopyName, sumOf}, {planner::kUpdateName, updateOf}};
  for (const auto& [name, text] : streams) {
    planner::RateTable& table = tables[name];
    table.sizes.emplace_back();
    for (const int64_t elements :
         {1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 25}) {
      if (options.small && elements > (1 << 14)) break;
      PARTITA_ASSIGN_OR_RETURN(
          const Timed sum,
          run(session, options, text(elements), Caches::kCold));
      table.sizes[0].push_back(sum.bytes);
      table.rates.push_back(measure::Rounded(sum.bytes / sum.seconds));
    }
  }
  return absl::OkStatus();
}

absl::Status measureAttention(Session& session, const MeasureOptions& options,
                              planner::RateTables& tables) {
  for (const bool backward : {false, true}) {
    planner::RateTable& table = tables[planner::AttentionName(backward)];
    table.sizes.emplace_back();
    for (const int64_t tokens : {32, 64, 128, 256, 512, 1024}) {
      if (options.small && tokens > 64) break;
      PARTITA_ASSIGN_OR_RETURN(
          const Timed attention,
          run(session, options, attentionOf(tokens, backward), Caches::kCold));
      table.sizes[0].push_back(attention.operations / attention.bytes);
      table.rates.push_back(
          measure::Rounded(attention.operations / attention.seconds));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelCosts> measureKernels(Session& session,
                                           const MeasureOptions& options) {
  KernelCosts costs;
  PARTITA_ASSIGN_OR_RETURN(
      const Timed nothing,
      run(session, options, sumOf(1 << 10), Caches::kWarm));
  costs.launch = nothing.seconds;
  PARTITA_RETURN_IF_ERROR(measureStreams(session, options, costs.tables));
  PARTITA_RETURN_IF_ERROR(measureAttention(session, options, costs.tables));
  // The geometric mean weights all kinds equally.
  double sum = 0;
  for (const char* text : kKernels) {
    PARTITA_ASSIGN_OR_RETURN(const Timed kernel,
                             run(session, options, text, Caches::kWarm));
    sum += std::log(kernel.seconds / kernel.cycles);
  }
  costs.cycle = std::exp(sum / static_cast<double>(std::size(kKernels)));
  return costs;
}

}  // namespace partita::driver
