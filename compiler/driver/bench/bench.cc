// Runs the systems in turns and collects their figures.
#include "compiler/driver/bench/bench.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/driver/bench/bench_files.h"
#include "compiler/driver/bench/peer_process.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/artifact.h"

namespace partita::driver {
namespace {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

constexpr char kPeerScript[] =
#include "compiler/driver/bench/peer.py.inc"
    ;

constexpr int kWarmup = 2;

std::vector<double> numbersOf(const Array* array) {
  std::vector<double> numbers;
  if (array != nullptr)
    for (const Value& value : *array)
      numbers.push_back(value.getAsNumber().value_or(0));
  return numbers;
}

// A system with its rounds.
struct System {
  std::string name, problem;
  std::vector<double> rounds_ms;      // the median of each round
  std::vector<double> rounds_cpu_ms;  // CPU time of a run, in each round
  int64_t peak_bytes = 0;
  std::optional<Difference> difference;
  std::string difference_problem;
  std::unique_ptr<PeerProcess> process;  // null: Partita

  // Takes the figures of one round.
  absl::Status add(const Object& answer) {
    const std::vector<double> times = numbersOf(answer.getArray("times_ms"));
    if (times.empty())
      return absl::AbortedError("expected times_ms in its answer, found none");
    rounds_ms.push_back(medianOf(times));
    rounds_cpu_ms.push_back(answer.getNumber("cpu_ms").value_or(0.0));
    peak_bytes =
        std::max(peak_bytes, answer.getInteger("peak_bytes").value_or(0));
    return absl::OkStatus();
  }
};

// Runs the artifact on the same inputs as the peers.
class PartitaRuns {
 public:
  PartitaRuns(const BenchOptions& options, const std::vector<NamedFile>& inputs)
      : options_(options) {
    arguments_ = {options.artifact, "--json", "--threads",
                  std::to_string(options.threads)};
    for (const NamedFile& input : inputs) {
      arguments_.push_back("--input");
      arguments_.push_back(input.name + "=" + input.path);
    }
  }

  // Runs once, after a warm-up, and writes the outputs. Sets the length of
  // rounds.
  absl::Status writeOutputs(const std::string& folder) {
    PARTITA_ASSIGN_OR_RETURN(
        const Object first,
        report({"--warmup", "1", "--repeat", "1", "--output-dir", folder}));
    const double ms =
        std::max(1e-3, first.getNumber("median_ms").value_or(0.0));
    repeat_ = static_cast<int>(
        std::clamp(std::ceil(1e3 * options_.seconds / ms), 1.0, 1e6));
    return absl::OkStatus();
  }

  absl::StatusOr<Object> round() const {
    PARTITA_ASSIGN_OR_RETURN(
        Object answer, report({"--warmup", std::to_string(kWarmup), "--repeat",
                               std::to_string(repeat_)}));
    if (const Object* memory = answer.getObject("memory"))
      answer["peak_bytes"] = memory->getInteger("peak_process").value_or(0);
    return answer;
  }

  absl::StatusOr<Object> profile() const {
    return report({"--warmup", std::to_string(kWarmup), "--repeat",
                   std::to_string(std::clamp(repeat_, 3, 100)), "--profile"});
  }

 private:
  absl::StatusOr<Object> report(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = arguments_;
    arguments.insert(arguments.end(), more.begin(), more.end());
    PARTITA_ASSIGN_OR_RETURN(const std::string text, options_.run(arguments));
    llvm::Expected<Value> value = llvm::json::parse(text);
    if (value && value->getAsObject() != nullptr)
      return std::move(*value->getAsObject());
    if (!value) llvm::consumeError(value.takeError());
    return absl::InternalError(
        "expected a JSON object from partita-run, found something else");
  }

  const BenchOptions& options_;
  std::vector<std::string> arguments_;
  int repeat_ = 1;
};

absl::StatusOr<std::unique_ptr<PeerProcess>> startPeer(
    const BenchOptions& options, const BenchPeer& peer,
    const std::vector<NamedFile>& inputs) {
  Array files;
  for (const NamedFile& input : inputs)
    files.push_back(Array{input.name, input.path});
  std::string request;
  llvm::raw_string_ostream(request)
      << Value(Object{{"system", peer.name},
                      {"model", peer.model},
                      {"threads", options.threads},
                      {"inputs", std::move(files)},
                      {"outputs", options.folder}});
  return PeerProcess::start({options.python, "-c", kPeerScript, request},
                            options.folder + "/" + peer.name + ".log");
}

// Starts the peer and compares its outputs with Partita's.
void prepare(System& system, const BenchOptions& options, const BenchPeer& peer,
             const std::vector<NamedFile>& inputs,
             const std::vector<std::string>& outputs) {
  auto process = startPeer(options, peer, inputs);
  if (!process.ok()) {
    system.problem = std::string(process.status().message());
    return;
  }
  system.process = *std::move(process);
  std::vector<std::string> theirs;
  if (const Array* files = system.process->first().getArray("outputs"))
    for (const Value& file : *files)
      theirs.push_back(file.getAsString().value_or("").str());
  auto difference = compareOutputs(outputs, theirs);
  if (difference.ok())
    system.difference = *difference;
  else
    system.difference_problem = std::string(difference.status().message());
}

// One round of one system. A failure of a peer ends its measurement.
absl::Status runRound(System& system, const BenchOptions& options,
                      const PartitaRuns& partita) {
  if (system.process == nullptr) {
    PARTITA_ASSIGN_OR_RETURN(const Object report, partita.round());
    return system.add(report);
  }
  auto answer = system.process->ask(
      Object{{"warmup", kWarmup}, {"seconds", options.seconds}});
  const absl::Status status =
      answer.ok() ? system.add(*answer) : answer.status();
  if (!status.ok()) {
    system.problem = std::string(status.message());
    system.process.reset();
    system.rounds_ms.clear();
  }
  return absl::OkStatus();
}

Object factsOf(const System& system, const System& partita) {
  Object facts{{"name", system.name}};
  if (!system.problem.empty()) {
    facts["problem"] = system.problem;
    return facts;
  }
  facts["ms"] = medianOf(system.rounds_ms);
  facts["rounds_ms"] = Array(system.rounds_ms);
  facts["cpu_ms"] = medianOf(system.rounds_cpu_ms);
  facts["peak_bytes"] = system.peak_bytes;
  if (&system == &partita) return facts;
  facts["ratio"] = ratioOf(partita.rounds_ms, system.rounds_ms);
  if (!system.difference) {
    facts["difference_problem"] = system.difference_problem;
    return facts;
  }
  // JSON has no infinity.
  facts["difference"] = std::isfinite(system.difference->largest)
                            ? Value(system.difference->largest)
                            : Value("not finite");
  facts["magnitude"] = system.difference->magnitude;
  return facts;
}

// Adds the profile: totals, shares of the limits, layers and steps.
void addProfile(const Object& report, double ms, const BenchLimits& limits,
                Object& row) {
  double flops = 0, bytes = 0;
  Array steps, layers;
  if (const Array* rows = report.getArray("profile"))
    for (const Value& value : *rows) {
      const Object& step = *value.getAsObject();
      flops += step.getNumber("flops").value_or(0.0);
      bytes += step.getNumber("bytes").value_or(0.0);
      steps.push_back(value);
    }
  if (const Array* rows = report.getArray("layers"))
    for (const Value& value : *rows) layers.push_back(value);
  row["flops"] = flops;
  row["bytes"] = bytes;
  const double seconds = 1e-3 * ms;
  if (limits.flops > 0 && seconds > 0)
    row["product_share"] = flops / seconds / limits.flops;
  if (limits.memory > 0 && seconds > 0)
    row["memory_share"] = bytes / seconds / limits.memory;
  row["steps"] = std::move(steps);
  row["layers"] = std::move(layers);
}

}  // namespace

double medianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : 0.5 * (values[middle - 1] + values[middle]);
}

double ratioOf(const std::vector<double>& ours,
               const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    if (theirs[i] > 0) ratios.push_back(ours[i] / theirs[i]);
  return medianOf(std::move(ratios));
}

double geometricMean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

absl::StatusOr<Object> measureModel(const BenchOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(const program::Artifact artifact,
                           program::Artifact::Open(options.artifact));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<NamedFile> inputs,
                           writeInputs(artifact.program(), options.folder));
  PartitaRuns partita(options, inputs);
  options.progress("first run: partita");
  const std::string folder = options.folder + "/outputs";
  PARTITA_RETURN_IF_ERROR(partita.writeOutputs(folder));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> outputs,
                           outputFiles(artifact.program(), folder));
  std::vector<System> systems(1 + options.peers.size());
  systems[0].name = "partita";
  for (size_t i = 0; i < options.peers.size(); ++i) {
    const BenchPeer& peer = options.peers[i];
    System& system = systems[i + 1];
    system.name = peer.name;
    system.problem = peer.problem;
    if (!peer.problem.empty()) continue;
    options.progress("first run: " + peer.name);
    prepare(system, options, peer, inputs, outputs);
  }
  // The order rotates, so that each system runs behind each other one.
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < systems.size(); ++i) {
      System& system =
          systems[(i + static_cast<size_t>(round)) % systems.size()];
      if (!system.problem.empty()) continue;
      options.progress(absl::StrCat("round ", round + 1, "/", options.rounds,
                                    ": ", system.name));
      PARTITA_RETURN_IF_ERROR(runRound(system, options, partita));
    }
  for (System& system : systems) system.process.reset();
  options.progress("profile: partita");
  PARTITA_ASSIGN_OR_RETURN(const Object profile, partita.profile());
  Object row{{"threads", options.threads}, {"rounds", options.rounds}};
  Array facts;
  for (const System& system : systems)
    facts.push_back(factsOf(system, systems[0]));
  row["systems"] = std::move(facts);
  addProfile(profile, medianOf(systems[0].rounds_ms), options.limits, row);
  return row;
}

}  // namespace partita::driver
