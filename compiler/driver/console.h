// The streams of the running command, and its cancellation.
#ifndef PARTITA_COMPILER_DRIVER_CONSOLE_H_
#define PARTITA_COMPILER_DRIVER_CONSOLE_H_

#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

// Receives the results of a command: standard output by default.
llvm::raw_ostream& results();
// Receives errors, warnings, notes and progress: standard error by default.
llvm::raw_ostream& messages();

// Replaces both streams until destroyed. The streams are the process's: one
// command runs at a time.
class StreamsOfCommand {
 public:
  StreamsOfCommand(llvm::raw_ostream& results, llvm::raw_ostream& messages);
  ~StreamsOfCommand();
  StreamsOfCommand(const StreamsOfCommand&) = delete;
  StreamsOfCommand& operator=(const StreamsOfCommand&) = delete;
};

// Asks the running command to stop: its next phase fails. Any thread may call
// this.
void requestCancel();
// Begins a command, which nobody has cancelled yet.
void clearCancel();
bool isCancelled();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_CONSOLE_H_
