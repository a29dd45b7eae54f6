// The subcommands of `partita`, one file each.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_COMMANDS_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_COMMANDS_H_

#include <functional>

namespace CLI {
class App;
}

namespace partita::driver {

// A subcommand that was added to an app, with its options. `run` is called
// after they were parsed and returns the exit code.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command addImport(CLI::App& app);
Command addCompile(CLI::App& app);
Command addExplain(CLI::App& app);
Command addVerify(CLI::App& app);
Command addAnnotate(CLI::App& app);
Command addInspect(CLI::App& app);
Command addRun(CLI::App& app);
Command addGenerate(CLI::App& app);
Command addTrain(CLI::App& app);
Command addPlanner(CLI::App& app);
Command addSimulate(CLI::App& app);
Command addMeasure(CLI::App& app);
Command addSlurm(CLI::App& app);
Command addLora(CLI::App& app);
Command addPrune(CLI::App& app);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_COMMANDS_H_
