// Writes a simulated step as a timeline for Perfetto or chrome://tracing.
#ifndef PARTITA_COMPILER_SIMULATOR_TRACE_H_
#define PARTITA_COMPILER_SIMULATOR_TRACE_H_

#include <string>

#include "compiler/simulator/simulate.h"

namespace partita::simulator {

// Readable name of a class of devices, e.g. "rank 2 and 3 like it, stage 1".
// With a pipeline, the stage is that of the class's rank.
std::string Describe(const Simulation& simulation, size_t device_class);

// JSON in Chrome's trace event format, in microseconds. Each class of devices
// is a process. Its threads show computing and waiting inside their calls,
// concurrent collectives, and the messages that its link sends. Its counter
// shows the bytes alive. The simulation must have spans.
std::string WriteTrace(const Simulation& simulation,
                       const program::Program& program);

// `text` as a quoted JSON string.
std::string JsonString(const std::string& text);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_TRACE_H_
