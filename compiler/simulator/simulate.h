// Simulates the programs of all devices without data, by advancing clocks.
#ifndef PARTITA_COMPILER_SIMULATOR_SIMULATE_H_
#define PARTITA_COMPILER_SIMULATOR_SIMULATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/simulator/costs.h"
#include "compiler/simulator/folding.h"

namespace partita::simulator {

struct SimulateOptions {
  // Number of consecutive runs of main. Each rank begins the next run when it
  // has finished its own. Results are of the last run. A schedule without
  // a flush needs several runs to fill its pipeline.
  int steps = 1;
  bool spans = false;  // fill Simulation::spans
};

// An activity of a device or of its links.
struct Span {
  enum class Kind {
    kCompute,
    kCollective,  // from the arrival of the last rank; blocks the device
    kOverlapped,  // a started collective, concurrent with other work
    kTransfer,    // on the sender's link
    kReceive,     // the part of a wait in which the message is in flight
    kWait         // for other ranks to be ready
  };
  Kind kind = Kind::kCompute;
  int device_class = 0;
  double start = 0, end = 0;
  int name = -1;  // in Simulation::names
  int call = -1;  // name of the call in main that contains it, or -1
};

// How a class's devices spent the last step, in seconds. The parts add up to
// the step.
struct DeviceTimes {
  double compute = 0;
  double collectives = 0;  // exposed: the device does nothing else
  double transfers = 0;    // exposed: waiting for a message in flight
  double idle = 0;         // waiting for other ranks to be ready: the bubble
};

// All operations of one function (or of main) with the same name, kind and
// size, over all calls.
struct OperationTotal {
  std::string function, name, kind;
  // The beginning of the operation's name in runtime profiles: "gemm
  // 1x256x768x768 f32", or a kernel's label. Empty for communication.
  std::string label;
  double calls = 0;    // per step, mean over all devices
  double seconds = 0;  // per step, mean over all devices
  int64_t bytes = 0;   // collective or transfer: the larger operand
  int64_t group = 0;   // collective: number of devices
  std::string axes;    // collective: "data", "data,tensor"
  // The program's reasons for a collective or transfer. Distinct reasons are
  // joined by "; ".
  std::string why;
};

struct Simulation {
  double step = 0;  // seconds
  std::vector<DeviceClass> classes;
  std::vector<DeviceTimes> times;  // [class]
  // [class]: when each instruction of main begins in the last step. For a run
  // of computing instructions, only the first is listed.
  struct Beginning {
    unsigned instruction = 0;
    double time = 0;
  };
  std::vector<std::vector<Beginning>> main;
  std::vector<Span> spans;  // last step; times from its beginning
  std::vector<std::string> names;
  std::vector<OperationTotal> operations;  // most expensive first

  // Shares of all devices' time in a step, 0 .. 1: waiting for other ranks, and
  // exposed communication.
  double Bubble() const;
  double Exposed() const;
};

// Simulates the program. It must be valid (Artifact::Open checks it), so that
// no rank waits forever.
Simulation Simulate(const program::Program& program, const Costs& costs,
                    const SimulateOptions& options = {});

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_SIMULATE_H_
