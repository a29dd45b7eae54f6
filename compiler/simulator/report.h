// A simulated step as a page to look at.
#ifndef PARTITA_COMPILER_SIMULATOR_REPORT_H_
#define PARTITA_COMPILER_SIMULATOR_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/simulator/simulate.h"

namespace partita::simulator {

// What the planner had to say of the plan that the program was compiled with.
struct ReportPlan {
  struct Row {
    std::string division, why;  // in words; why it is no better
    double step = 0;            // seconds
    double memory = 0;          // bytes of a device
  };
  struct Gain {
    std::string what;  // "1 GB/s more on nvlink"
    double saved = 0;  // seconds of a step
  };
  std::string text;       // the plan file
  std::string binds;      // "matrix products, 81 % of the step"
  std::vector<Row> rows;  // the chosen one, then the runners-up
  std::vector<Gain> gains;
};

struct ReportFacts {
  std::string model, mesh, cluster;
  double device_memory = 0;  // bytes that programs have on one of its devices
  std::optional<ReportPlan> plan;  // none: the page has no section of it
};

// One HTML page that opens from a file without a network: where the time goes,
// the timeline of each class of devices, memory over time, every collective and
// transfer with its reason, the most expensive operations, the plan and its
// runners-up. The
// simulation must be one with spans. What is too short to be seen is drawn with
// its neighbours.
std::string WriteReport(const Simulation& simulation,
                        const program::Program& program,
                        const ReportFacts& facts);

// `text` with what HTML gives a meaning written as entities.
std::string HtmlText(const std::string& text);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_REPORT_H_
