// A peer in a benchmark: a process that answers requests, and is stopped
// between them so that it takes no time from other systems.
#ifndef PARTITA_COMPILER_DRIVER_BENCH_PEER_PROCESS_H_
#define PARTITA_COMPILER_DRIVER_BENCH_PEER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

// Requests and answers are JSON objects, one a line; peer.py describes them.
class PeerProcess {
 public:
  // Starts `command`, a program's path and its arguments, and waits for its
  // first answer. Its standard error goes to the file `messages`. Aborted if
  // the process ends without an answer; the error has its last message.
  static absl::StatusOr<std::unique_ptr<PeerProcess>> start(
      const std::vector<std::string>& command, const std::string& messages);
  // Ends the process.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  const llvm::json::Object& first() const { return first_; }
  absl::StatusOr<llvm::json::Object> ask(llvm::json::Object request);

 private:
  PeerProcess(pid_t process, int connection, std::string messages)
      : process_(process),
        connection_(connection),
        messages_(std::move(messages)) {}

  absl::StatusOr<llvm::json::Object> readAnswer();
  // Reads one line, without its end.
  absl::StatusOr<std::string> readLine();

  pid_t process_;
  int connection_;        // a socket: the peer's standard input and output
  std::string messages_;  // the file with its standard error
  std::string received_;  // bytes behind the last line
  llvm::json::Object first_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_BENCH_PEER_PROCESS_H_
