// A simulated step as a timeline for Perfetto or chrome://tracing.
#ifndef PARTITA_COMPILER_SIMULATOR_TRACE_H_
#define PARTITA_COMPILER_SIMULATOR_TRACE_H_

#include <string>

#include "compiler/simulator/simulate.h"

namespace partita::simulator {

// "rank 2 and 3 like it, stage 1": the devices of a class, for people. Where
// there is a pipeline, a stage is what a rank of it runs.
std::string Describe(const Simulation& simulation, size_t device_class);

// JSON in Chrome's trace event format, microseconds. A process for each class
// of devices; its threads are what it computes and waits for, calls around
// their parts, and what its link sends. Its counter is the memory alive. The
// simulation must be one with spans.
std::string WriteTrace(const Simulation& simulation,
                       const program::Program& program);

// `text` as a JSON string, quotes included.
std::string JsonString(const std::string& text);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_TRACE_H_
