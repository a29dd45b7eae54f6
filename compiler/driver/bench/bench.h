// Measures one compiled model beside other systems, in alternating rounds.
#ifndef PARTITA_COMPILER_DRIVER_BENCH_BENCH_H_
#define PARTITA_COMPILER_DRIVER_BENCH_BENCH_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

// A system to compare with.
struct BenchPeer {
  std::string name;     // "onnxruntime", "torch" or "torch-compile"
  std::string model;    // a file of the kind it reads
  std::string problem;  // why it cannot be measured; empty: it can
};

// Speeds of the machine, for the threads in use; 0: unknown.
struct BenchLimits {
  double flops = 0;   // FLOP/s of products
  double memory = 0;  // bytes/s
};

struct BenchOptions {
  std::string artifact;
  std::string folder;  // exists, for temporary files
  int threads = 1;
  int rounds = 5;
  double seconds = 0.5;  // of each system in each round
  std::string python;    // a program; peers with a model need it
  std::vector<BenchPeer> peers;
  BenchLimits limits;
  // Runs partita-run with arguments and returns its output.
  std::function<absl::StatusOr<std::string>(const std::vector<std::string>&)>
      run;
  // Called with the system that runs next, e.g. "round 1/5: torch".
  std::function<void(const std::string&)> progress;
};

// Median; 0 for no values.
double medianOf(std::vector<double> values);
// Median over rounds of our time over theirs in the same round: rounds that
// are next to each other share the load of the machine.
double ratioOf(const std::vector<double>& ours,
               const std::vector<double>& theirs);
// Geometric mean; 0 for no values.
double geometricMean(const std::vector<double>& values);

// Returns "systems" (one object each: "name", and "ms", "rounds_ms",
// "cpu_ms", "peak_bytes", "ratio", "difference", or "problem"), "flops",
// "bytes", "product_share", "memory_share", "layers" and "steps". Fails if
// Partita does; a peer that fails has a "problem".
absl::StatusOr<llvm::json::Object> measureModel(const BenchOptions& options);

// The table of one measurement.
void printMeasurement(const llvm::json::Object& row, llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_BENCH_BENCH_H_
