// Process-wide streams, which the C library replaces.
#include "compiler/driver/console.h"

#include <atomic>

namespace partita::driver {
namespace {

// Null: the standard streams.
llvm::raw_ostream* own_results = nullptr;
llvm::raw_ostream* own_messages = nullptr;
std::atomic<bool> cancelled{false};

}  // namespace

llvm::raw_ostream& results() {
  return own_results != nullptr ? *own_results : llvm::outs();
}

llvm::raw_ostream& messages() {
  return own_messages != nullptr ? *own_messages : llvm::errs();
}

StreamsOfCommand::StreamsOfCommand(llvm::raw_ostream& results,
                                   llvm::raw_ostream& messages) {
  own_results = &results;
  own_messages = &messages;
}

StreamsOfCommand::~StreamsOfCommand() {
  own_results = nullptr;
  own_messages = nullptr;
}

void requestCancel() { cancelled = true; }

void clearCancel() { cancelled = false; }

bool isCancelled() { return cancelled; }

}  // namespace partita::driver
