// The command `partita`.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_CLI_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_CLI_H_

namespace partita::driver {

// Runs one command; returns the exit code: 0, 1 for a user's error, 2 for a
// wrong command line, 70 for a bug of ours. argv[0] is ignored. Prints to the
// streams of console.h.
int runCommand(int argc, const char* const* argv);
// The same, as a program: also reports a standard output that cannot be
// written.
int runPartita(int argc, char** argv);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_CLI_H_
