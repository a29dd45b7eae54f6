// Options for loading a compiled model.
#ifndef PARTITA_RUNTIME_SESSION_OPTIONS_H_
#define PARTITA_RUNTIME_SESSION_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace partita::session {

// More CPU threads than any machine has processors.
inline constexpr int kMostThreads = 4096;

struct SessionOptions {
  std::string model;  // path of the artifact
  // Base folder of relative weight paths; empty: the artifact's folder.
  std::string weights_dir;
  // A name in the list of devices (devices.h); empty: the device that runs the
  // model's target.
  std::string device;
  int threads = 0;  // over all CPU devices of this process; 0: ThreadsOf
  int devices = 0;  // expected number; 0: as the model was compiled for
  std::optional<double> timeout;  // seconds that ranks wait for each other
  bool share_gpu = false;         // all devices use GPU 0
  // Existing folder for files of optimizer states, and an upper bound on their
  // buffers in bytes per device. Empty, 0: as the model was compiled.
  std::string offload_dir;
  int64_t offload_buffers = 0;
};

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_OPTIONS_H_
