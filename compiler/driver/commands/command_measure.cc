// partita measure: describes this machine as a cluster, from times measured
// with Partita's own runtime.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/core/precision.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/commands/measure_kernels.h"
#include "compiler/driver/commands/runner.h"
#include "compiler/driver/commands/temporary_folder.h"
#include "compiler/driver/console.h"
#include "compiler/measure/measure.h"
#include "compiler/planner/cluster/cluster.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status_macros.h"

namespace partita::driver {
namespace {

using core::Precision;
using llvm::formatv;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using planner::RateTable;

struct MeasureCommand {
  std::string output;
  int devices = 0, repeat = 5;
  std::vector<std::string> precisions = {"f32", "bf16"};
  bool small = false, json = false;
};

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

double memoryOfMachine() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

double most(const RateTable* table) {
  return table == nullptr
             ? 0
             : *std::max_element(table->rates.begin(), table->rates.end());
}

absl::StatusOr<measure::ProfileTimes> runProbe(const MeasureCommand& command,
                                               const std::string& artifact,
                                               int threads) {
  PARTITA_ASSIGN_OR_RETURN(
      const std::string report,
      outputOfRunner({artifact, "--json", "--profile", "--random-inputs", "1",
                      "--warmup", "1", "--repeat",
                      std::to_string(command.repeat), "--threads",
                      std::to_string(threads)}));
  return measure::ProfileTimes::Parse(report);
}

planner::Cluster describe(const MeasureCommand& command,
                          const KernelCosts& kernels,
                          planner::RateTables tables) {
  planner::Cluster cluster;
  cluster.name = "local";
  cluster.devices = command.devices;
  planner::Device& device = cluster.device;
  device.name = "cpu";
  for (const Precision precision :
       {Precision::kF32, Precision::kBF16, Precision::kF16})
    device.peak[static_cast<size_t>(precision)] = most(planner::FindTable(
        tables, planner::ProductName(core::ToString(precision),
                                     planner::ProductForm::kPacked)));
  device.memory = memoryOfMachine() / command.devices;
  device.memory_bandwidth = kernels.tables.at(planner::kCopyName).rates.back();
  device.launch = kernels.launch;
  device.cycle = kernels.cycle;
  device.attention =
      std::min(1.0, most(&kernels.tables.at(planner::AttentionName(false))) /
                        device.peak[0]);
  device.overlaps = false;
  if (command.devices > 1) {
    planner::Level level;
    level.name = "memory";
    level.devices = command.devices;
    const RateTable& sends = tables.at(planner::kSendName);
    level.bandwidth = sends.rates.back();
    level.latency = sends.Seconds(1);
    cluster.levels.push_back(std::move(level));
  }
  device.tables = std::move(tables);
  device.tables.insert(kernels.tables.begin(), kernels.tables.end());
  return cluster;
}

absl::StatusOr<planner::Cluster> measureMachine(const MeasureCommand& command) {
  const TemporaryFolder folder;
  measure::MeasureOptions options;
  options.devices = command.devices;
  options.small = command.small;
  options.folder = folder.path();
  if (options.folder.empty())
    return absl::InternalError("cannot make a temporary folder");
  for (const Precision precision :
       {Precision::kF32, Precision::kBF16, Precision::kF16})
    if (std::find(command.precisions.begin(), command.precisions.end(),
                  core::ToString(precision)) != command.precisions.end())
      options.precisions.push_back(precision);
  options.run = [&](const std::string& artifact) {
    return runProbe(command, artifact, std::max(command.devices, processors()));
  };
  options.progress = [](const std::string& what, int number, int count) {
    messages() << formatv("[{0}/{1}] {2}\n", number, count, what);
  };
  Session session;
  options.progress("kernels", 0, 1);
  PARTITA_ASSIGN_OR_RETURN(const KernelCosts kernels,
                           measureKernels(session, options));
  PARTITA_ASSIGN_OR_RETURN(planner::RateTables tables,
                           measure::MeasureTables(options));
  planner::Cluster cluster = describe(command, kernels, std::move(tables));
  PARTITA_RETURN_IF_ERROR(planner::CheckCluster(cluster));
  return cluster;
}

Value factsOf(const planner::Cluster& cluster, const std::string& output) {
  Array tables;
  for (const auto& [name, table] : cluster.device.tables)
    tables.push_back(Object{
        {"of", name},
        {"lowest", *std::min_element(table.rates.begin(), table.rates.end())},
        {"highest", most(&table)}});
  return Object{{"kind", "measured"},
                {"output", output},
                {"devices", cluster.devices},
                {"memory_bytes", cluster.device.memory},
                {"launch_seconds", cluster.device.launch},
                {"cycle_seconds", cluster.device.cycle},
                {"tables", std::move(tables)}};
}

void print(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  stream << formatv("{0,-38} {1,10} {2,10}\n", "GFLOP/s or GB/s of a device",
                    "lowest", "highest");
  for (const Value& each : *facts.getArray("tables")) {
    const Object& table = *each.getAsObject();
    stream << formatv("{0,-38} {1,10:F2} {2,10:F1}\n", *table.getString("of"),
                      *table.getNumber("lowest") / 1e9,
                      *table.getNumber("highest") / 1e9);
  }
  stream << formatv("wrote {0}: {1} devices, a kernel takes {2:F2} us\n",
                    *facts.getString("output"), *facts.getInteger("devices"),
                    *facts.getNumber("launch_seconds") * 1e6);
}

int run(MeasureCommand& command) {
  if (command.devices == 0) command.devices = processors();
  if (command.output.empty()) {
    command.output = planner::LocalClusterPath();
    std::error_code error;
    std::filesystem::create_directories(
        std::filesystem::path(command.output).parent_path(), error);
  }
  // Open the file first: measuring takes minutes.
  auto file = base::AtomicFile::Create(command.output);
  absl::Status written = file.status();
  planner::Cluster cluster;
  if (written.ok()) {
    if (!take(measureMachine(command), cluster)) return kUserError;
    written = (*file)->Append(planner::WriteCluster(cluster));
    written.Update((*file)->Commit());
  }
  if (!written.ok()) {
    complain("-o: " + std::string(written.message()));
    return kUserError;
  }
  show(factsOf(cluster, command.output), command.json, print);
  return kSuccess;
}

}  // namespace

Command addMeasure(CLI::App& app) {
  auto state = std::make_shared<MeasureCommand>();
  CLI::App* command = app.add_subcommand(
      "measure", "Measure this machine and describe it as a cluster");
  command->add_option(
      "-o,--output", state->output,
      "Write this cluster.yaml; default: where --cluster local finds it");
  command
      ->add_option("--devices", state->devices,
                   "Number of devices that share the processors; default: one "
                   "per processor")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--precision", state->precisions,
                   "Measure products in f32, bf16, f16; default: f32,bf16")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  command
      ->add_option(
          "--repeat", state->repeat,
          "Time each operation this often and take the median; default: 5")
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag("--small", state->small,
                    "Measure the smallest sizes only, to try out the command");
  addJson(state->json, command);
  command->footer(
      "Example, on a quiet machine:\n  partita measure && partita simulate "
      "gpt2.partita --cluster local");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
