// A simulated step as a page to look at.
#ifndef PARTITA_COMPILER_SIMULATOR_REPORT_H_
#define PARTITA_COMPILER_SIMULATOR_REPORT_H_

#include <string>

#include "compiler/simulator/simulate.h"

namespace partita::simulator {

struct ReportTitle {
  std::string model, mesh, cluster;
  double device_memory = 0;  // bytes that programs have on one of its devices
};

// One HTML page that opens from a file without a network: where the time goes,
// the timeline of each class of devices, memory over time, every collective and
// transfer, the most expensive operations. The simulation must be one with
// spans. What is too short to be seen is drawn with its neighbours.
std::string WriteReport(const Simulation& simulation,
                        const program::Program& program,
                        const ReportTitle& title);

// `text` with what HTML gives a meaning written as entities.
std::string HtmlText(const std::string& text);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_REPORT_H_
