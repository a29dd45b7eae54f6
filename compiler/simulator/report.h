// Writes a simulated step as an HTML page.
#ifndef PARTITA_COMPILER_SIMULATOR_REPORT_H_
#define PARTITA_COMPILER_SIMULATOR_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/simulator/simulate.h"

namespace partita::simulator {

// The planner's findings about the program's plan.
struct ReportPlan {
  struct Row {
    std::string division, why;  // the division; why it is no better
    double step = 0;            // seconds
    double memory = 0;          // bytes per device
  };
  struct Gain {
    std::string what;  // "1 GB/s more on nvlink"
    double saved = 0;  // seconds per step
  };
  std::string text;       // the plan file
  std::string binds;      // "matrix products, 81 % of the step"
  std::vector<Row> rows;  // the chosen plan, then the runners-up
  std::vector<Gain> gains;
};

struct ReportFacts {
  std::string model, mesh, cluster;
  double device_memory = 0;        // bytes available to programs, per device
  std::optional<ReportPlan> plan;  // none: no section about the plan
};

// One HTML page that opens from a file without a network. It shows how the time
// is spent, the timeline of each class of devices, memory over time, every
// collective and transfer with its reason, the most expensive operations, and
// the plan with its runners-up. The simulation must have spans. Spans too short
// to be visible are merged with their neighbours.
std::string WriteReport(const Simulation& simulation,
                        const program::Program& program,
                        const ReportFacts& facts);

// `text` with HTML's special characters escaped.
std::string HtmlText(const std::string& text);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_REPORT_H_
