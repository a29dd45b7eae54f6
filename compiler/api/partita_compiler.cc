// Runs commands with streams in memory, one at a time.
#include "compiler/api/partita_compiler.h"

#include <atomic>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "compiler/api/line_stream.h"
#include "compiler/driver/commands/cli.h"
#include "compiler/driver/console.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/version.h"

namespace {

using partita::api::LineStream;

constexpr llvm::StringLiteral kCommands[] = {"import",   "compile", "plan",
                                             "explain",  "verify",  "annotate",
                                             "simulate", "inspect", "generate"};

struct Answer {
  partita_answer answer = {};
  std::string output, messages;
};

std::mutex one_at_a_time;
std::atomic<bool> is_running{false};

// LLVM installs handlers when a temporary file is first registered for removal.
// It does so once per process, so that the process's handlers, restored here,
// stay in place. LLVM's SIGINT handler would end a Python process.
void keepSignalHandlers() {
  static const bool done = [] {
    std::vector<struct sigaction> handlers(NSIG);
    std::vector<bool> known(NSIG);
    for (int signal = 1; signal < NSIG; ++signal)
      known[signal] = sigaction(signal, nullptr, &handlers[signal]) == 0;
    const char* unused = "/nonexistent/partita-compiler";
    llvm::sys::RemoveFileOnSignal(unused);
    llvm::sys::DontRemoveFileOnSignal(unused);
    for (int signal = 1; signal < NSIG; ++signal)
      if (known[signal]) sigaction(signal, &handlers[signal], nullptr);
    return true;
  }();
  (void)done;
}

// Returns an error, or an empty text if these are the words of a command that
// runs in this process.
std::string refuse(const char* const* arguments, size_t count) {
  const std::string expected =
      "error: expected one of " + llvm::join(llvm::ArrayRef(kCommands), ", ");
  if (count == 0 || arguments == nullptr) return expected + ", found nothing";
  for (size_t i = 0; i < count; ++i)
    if (arguments[i] == nullptr)
      return "error: expected " + std::to_string(count) +
             " arguments, found NULL at " + std::to_string(i);
  const std::string command = arguments[0];
  // Options without a command: --help, --version.
  if (llvm::is_contained(kCommands, command) || command.rfind("--", 0) == 0)
    return "";
  return expected + ", found '" + command +
         "'; use partita.h to run or train a model, and the program partita "
         "for its other commands";
}

int run(const char* const* arguments, size_t count, Answer& answer,
        LineStream& messages) {
  if (const std::string wrong = refuse(arguments, count); !wrong.empty()) {
    messages << wrong << "\n";
    return PARTITA_USAGE_ERROR;
  }
  keepSignalHandlers();
  std::vector<const char*> argv = {"partita"};
  argv.insert(argv.end(), arguments, arguments + count);
  llvm::raw_string_ostream results(answer.output);
  const partita::driver::StreamsOfCommand streams(results, messages);
  const int code =
      partita::driver::runCommand(static_cast<int>(argv.size()), argv.data());
  return code != PARTITA_SUCCESS && partita::driver::isCancelled()
             ? static_cast<int>(PARTITA_CANCELLED)
             : code;
}

}  // namespace

uint32_t partita_compiler_abi_version(void) {
  return PARTITA_COMPILER_ABI_VERSION;
}

const char* partita_compiler_version(void) { return partita::base::kVersion; }

const partita_answer* partita_command(const char* const* arguments,
                                      size_t count,
                                      partita_message_function on_message,
                                      void* data) {
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  try {
    auto answer = std::make_unique<Answer>();
    partita::driver::clearCancel();
    is_running = true;
    {
      LineStream messages(answer->messages, on_message, data);
      try {
        answer->answer.exit_code = run(arguments, count, *answer, messages);
      } catch (const std::exception& exception) {
        messages << "error: expected no exception, found: " << exception.what()
                 << "\n";
        answer->answer.exit_code = PARTITA_COMPILER_ERROR;
      }
    }
    is_running = false;
    answer->answer.output = answer->output.c_str();
    answer->answer.messages = answer->messages.c_str();
    return &answer.release()->answer;
  } catch (const std::bad_alloc&) {
    is_running = false;
    return nullptr;
  }
}

void partita_free_answer(const partita_answer* answer) {
  // The answer is the first member of an Answer.
  delete reinterpret_cast<const Answer*>(answer);
}

void partita_cancel(void) {
  if (is_running) partita::driver::requestCancel();
}
