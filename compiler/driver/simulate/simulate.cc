// Runs the simulator on files, and prints tables.
#include "compiler/driver/simulate/simulate.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/driver/simulate/read_choice.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/memory.h"
#include "compiler/simulator/price.h"
#include "compiler/simulator/report.h"
#include "compiler/simulator/simulate.h"
#include "compiler/simulator/trace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/quantity.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/artifact.h"
#include "runtime/program/loop.h"
#include "runtime/program/mesh.h"

namespace partita::driver {
namespace {

using llvm::formatv;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using simulator::Simulation;

absl::Status write(const std::string& option, const std::string& path,
                   const std::string& text) {
  absl::Status written = base::WriteFileAtomically(path, text);
  if (written.ok()) return written;
  return absl::Status(written.code(),
                      option + ": " + std::string(written.message()));
}

Array ranksOf(const Simulation& simulation, const program::Program& program) {
  Array ranks;
  for (auto [index, device_class] : llvm::enumerate(simulation.classes)) {
    const simulator::DeviceTimes& times = simulation.times[index];
    const simulator::DeviceMemory memory =
        simulator::MemoryOf(program, device_class.entry);
    ranks.push_back(
        Object{{"rank", device_class.rank},
               {"devices", device_class.devices},
               {"stage", device_class.entry},
               {"name", simulator::Describe(simulation, index)},
               {"compute_seconds", times.compute},
               {"collectives_seconds", times.collectives},
               {"transfers_seconds", times.transfers},
               {"idle_seconds", times.idle},
               {"parameters_bytes", memory.parameters + memory.derived},
               {"states_bytes", memory.states},
               {"host_bytes", memory.host},
               {"files_bytes", memory.files},
               {"arena_bytes", memory.arena},
               {"reserved_bytes", memory.reserved},
               {"memory_bytes", memory.total()}});
  }
  return ranks;
}

Array operationsOf(const Simulation& simulation, int64_t count) {
  Array operations;
  for (const simulator::OperationTotal& total : simulation.operations) {
    if (static_cast<int64_t>(operations.size()) == count) break;
    if (total.seconds == 0) continue;
    Object row{{"function", total.function},
               {"name", total.name},
               {"kind", total.kind},
               {"calls", total.calls},
               {"seconds", total.seconds}};
    if (!total.why.empty()) row["why"] = total.why;
    if (!total.label.empty()) row["label"] = total.label;
    if (total.bytes > 0) row["bytes"] = total.bytes;
    if (total.group > 0) row["devices"] = total.group;
    operations.push_back(std::move(row));
  }
  return operations;
}

// Traffic that leaves devices, by kind, axes and size, including traffic that
// is hidden behind other work.
Array trafficOf(const Simulation& simulation) {
  std::map<std::tuple<std::string, std::string, int64_t>, double> calls;
  for (const simulator::OperationTotal& total : simulation.operations)
    if ((total.group > 1 && total.kind != "all_slice") || total.kind == "send")
      calls[{total.kind, total.axes, total.bytes}] += total.calls;
  Array traffic;
  for (const auto& [what, count] : calls)
    traffic.push_back(Object{{"kind", std::get<0>(what)},
                             {"axes", std::get<1>(what)},
                             {"bytes", std::get<2>(what)},
                             {"calls", count}});
  return traffic;
}

std::string secondsText(double seconds) {
  if (seconds >= 1) return formatv("{0:F3} s", seconds).str();
  if (seconds >= 1e-3) return formatv("{0:F3} ms", seconds * 1e3).str();
  return formatv("{0:F1} us", seconds * 1e6).str();
}

double number(const Object& object, llvm::StringRef key) {
  return object.getNumber(key).value_or(0);
}

std::string shareText(double part, double whole) {
  return formatv("{0:F1}%", whole > 0 ? 100 * part / whole : 0).str();
}

void printRanks(const Object& facts, double step, llvm::raw_ostream& stream) {
  stream << formatv("{0,-34} {1,9} {2,12} {3,10} {4,8} {5,10}\n", "",
                    "computes", "collectives", "transfers", "bubble", "memory");
  for (const Value& value : *facts.getArray("ranks")) {
    const Object& rank = *value.getAsObject();
    stream << formatv(
        "{0,-34} {1,9} {2,12} {3,10} {4,8} {5,10}\n",
        rank.getString("name").value_or(""),
        shareText(number(rank, "compute_seconds"), step),
        shareText(number(rank, "collectives_seconds"), step),
        shareText(number(rank, "transfers_seconds"), step),
        shareText(number(rank, "idle_seconds"), step),
        base::FormatBytes(rank.getInteger("memory_bytes").value_or(0)));
  }
}

void printOperations(const Object& facts, double step,
                     llvm::raw_ostream& stream) {
  stream << formatv("{0,10} {1,7} {2,8}  most expensive, mean of a device\n",
                    "time", "of step", "calls");
  for (const Value& value : *facts.getArray("operations")) {
    const Object& row = *value.getAsObject();
    const auto kind = row.getString("kind").value_or("");
    const auto name = row.getString("name").value_or("");
    stream << formatv(
        "{0,10} {1,7} {2,8:F1}  {3} {4} in {5}",
        secondsText(number(row, "seconds")),
        shareText(number(row, "seconds"), step), number(row, "calls"), kind,
        kind == "kernel" ? row.getString("label").value_or(name) : name,
        row.getString("function").value_or(""));
    if (auto bytes = row.getInteger("bytes"))
      stream << ", " << base::FormatBytes(*bytes);
    if (auto devices = row.getInteger("devices"))
      stream << " among " << *devices << " devices";
    stream << "\n";
  }
}

}  // namespace

absl::StatusOr<Value> simulateArtifact(const SimulateArguments& arguments) {
  PARTITA_ASSIGN_OR_RETURN(const program::Artifact artifact,
                           program::Artifact::Open(arguments.artifact));
  const program::Program& program = artifact.program();
  const int64_t devices = program::SizeOf(program.mesh());
  PARTITA_ASSIGN_OR_RETURN(const planner::Cluster cluster,
                           planner::OpenCluster(arguments.cluster));
  if (devices > cluster.devices)
    return absl::InvalidArgumentError(
        formatv("--cluster: expected at least {0} devices, which the program "
                "runs on, found '{1}' with {2}; take a larger cluster, as in "
                "\"{0}x a100-80-sxm\"",
                devices, arguments.cluster, cluster.devices)
            .str());
  PARTITA_ASSIGN_OR_RETURN(const simulator::Faults faults,
                           simulator::ParseFaults(arguments.faults, devices));
  PARTITA_ASSIGN_OR_RETURN(
      simulator::StepPrice price,
      simulator::PriceStep(
          program, cluster, faults,
          /*spans=*/!arguments.trace.empty() || !arguments.html.empty()));
  const Simulation& simulation = price.simulation;
  if (!arguments.trace.empty())
    PARTITA_RETURN_IF_ERROR(write("--trace", arguments.trace,
                                  simulator::WriteTrace(simulation, program)));
  if (!arguments.html.empty()) {
    simulator::ReportFacts page;
    page.model = arguments.artifact;
    page.mesh = program::DescribeMesh(program.mesh());
    page.cluster = cluster.name;
    page.device_memory = cluster.device.room();
    if (!arguments.choice.empty()) {
      PARTITA_ASSIGN_OR_RETURN(page.plan,
                               readChoice(arguments.choice, program));
    }
    PARTITA_RETURN_IF_ERROR(
        write("--html", arguments.html,
              simulator::WriteReport(simulation, program, page)));
  }
  Object facts{{"kind", "simulation"},
               {"cluster", cluster.name},
               {"device", cluster.device.name},
               {"devices", devices},
               {"mesh", program::DescribeMesh(program.mesh())},
               {"step_seconds", simulation.step},
               {"bubble", simulation.Bubble()},
               {"exposed", simulation.Exposed()},
               {"memory_bytes", price.memory_bytes},
               {"device_memory_bytes", price.room_bytes},
               {"host_bytes", price.host_bytes},
               {"files_bytes", price.files_bytes},
               {"host_memory_bytes", price.host_room_bytes},
               {"fits", price.fits()},
               {"ranks", ranksOf(simulation, program)},
               {"traffic", trafficOf(simulation)},
               {"operations", operationsOf(simulation, arguments.operations)}};
  if (const int64_t loops = program::CountLoops(program))
    facts["loops"] = loops;
  return facts;
}

// States in host memory and in files; empty if there are none.
std::string hostText(const Object& facts) {
  const int64_t bytes = facts.getInteger("host_bytes").value_or(0),
                room = facts.getInteger("host_memory_bytes").value_or(0),
                files = facts.getInteger("files_bytes").value_or(0);
  if (bytes == 0) return "";
  return ", and " + base::FormatBytes(bytes) + " of " +
         (files > 0 ? "buffers for states" : "states") + " in host memory" +
         (room > 0 ? " of " + base::FormatBytes(room) : "") +
         (files > 0
              ? ", and " + base::FormatBytes(files) + " of states in files"
              : "");
}

void printSimulation(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  const double step = number(facts, "step_seconds");
  const int64_t devices = facts.getInteger("devices").value_or(1);
  stream << formatv(
      "a step takes {0} on {1} device{2} of {3}: bubble {4:P1}, exposed "
      "communication {5:P1}\n",
      secondsText(step), devices, devices == 1 ? "" : "s",
      facts.getString("cluster").value_or(""), number(facts, "bubble"),
      number(facts, "exposed"));
  const std::string device = facts.getString("device").value_or("").str();
  stream << formatv(
      "memory: at most {0} of the {1} that programs have on a device"
      "{2}{4}{3}\n",
      base::FormatBytes(facts.getInteger("memory_bytes").value_or(0)),
      base::FormatBytes(facts.getInteger("device_memory_bytes").value_or(0)),
      device.empty() ? "" : " (" + device + ")",
      facts.getBoolean("fits").value_or(true) ? "" : ": it does not fit",
      hostText(facts));
  if (facts.getInteger("files_bytes").value_or(0) > 0)
    stream << "the time to read and write states in files is not counted\n";
  if (const int64_t loops = facts.getInteger("loops").value_or(0))
    stream << "loops whose number of iterations depends on data: " << loops
           << ", counted as one iteration each\n";
  stream << "\n";
  printRanks(facts, step, stream);
  stream << "\n";
  printOperations(facts, step, stream);
}

}  // namespace partita::driver
