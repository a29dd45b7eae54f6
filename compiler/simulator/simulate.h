// Executes the programs of all devices without data: their clocks alone.
#ifndef PARTITA_COMPILER_SIMULATOR_SIMULATE_H_
#define PARTITA_COMPILER_SIMULATOR_SIMULATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/simulator/costs.h"
#include "compiler/simulator/folding.h"

namespace partita::simulator {

struct SimulateOptions {
  // How many runs of main follow each other, each rank beginning the next when
  // its own is done. What is reported is the last: where a schedule does not
  // flush, a step is what a run takes when the ones before fill the pipeline.
  int steps = 1;
  bool spans = false;  // whether Simulation::spans is wanted
};

// Something that a device does, or that happens on its links.
struct Span {
  enum class Kind {
    kCompute,
    kCollective,  // from when the last of the group is there; nothing else is
                  // done meanwhile
    kOverlapped,  // a collective that was started, beside what else is done
    kTransfer,    // on the sender's link
    kReceive,     // the part of a wait in which the transfer is under way
    kWait         // for others to be ready
  };
  Kind kind = Kind::kCompute;
  int device_class = 0;
  double start = 0, end = 0;
  int name = -1;  // in Simulation::names
  int call = -1;  // the name of the call of main that it is part of, or -1
};

// Where the last step of a class's devices went. The parts add up to the step.
struct DeviceTimes {
  double compute = 0;
  double collectives = 0;  // exposed: nothing else is done then
  double transfers = 0;    // exposed: of what is received, while it is sent
  double idle = 0;         // for others to be ready; the bubble
};

// The operations of a function that have one name, kind and size, in all calls
// of it; or of main.
struct OperationTotal {
  std::string function, name, kind;
  // As profiles of the runtime begin to name it: "gemm 1x256x768x768 f32", a
  // kernel's symbol; empty where it sends.
  std::string label;
  double calls = 0;    // a step's, mean over all devices
  double seconds = 0;  // the same
  int64_t bytes = 0;   // of a collective or transfer: the larger operand's
  int64_t group = 0;   // of a collective: how many devices
  std::string axes;    // and along what: "data", "data,tensor"
  // The reasons that put a collective or transfer there, as the program says
  // them; different ones are joined by "; ".
  std::string why;
};

struct Simulation {
  double step = 0;  // seconds
  std::vector<DeviceClass> classes;
  std::vector<DeviceTimes> times;  // [class]
  // When main's instructions begin in the last step: [class], by instruction;
  // of neighbours that compute only the first is there.
  struct Beginning {
    unsigned instruction = 0;
    double time = 0;
  };
  std::vector<std::vector<Beginning>> main;
  std::vector<Span> spans;  // of the last step; times from its beginning
  std::vector<std::string> names;
  std::vector<OperationTotal> operations;  // the most expensive first

  // The part of all devices' time in a step in which they wait for others, and
  // the one in which they communicate: 0 .. 1.
  double Bubble() const;
  double Exposed() const;
};

// The program must be valid (Artifact::Open checks it): then no rank waits
// for ever.
Simulation Simulate(const program::Program& program, const Costs& costs,
                    const SimulateOptions& options = {});

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_SIMULATE_H_
