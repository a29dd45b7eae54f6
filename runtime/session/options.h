// How a compiled model is loaded.
#ifndef PARTITA_RUNTIME_SESSION_OPTIONS_H_
#define PARTITA_RUNTIME_SESSION_OPTIONS_H_

#include <optional>
#include <string>

namespace partita::session {

struct SessionOptions {
  std::string model;        // path of the artifact
  std::string weights_dir;  // where relative paths of weights begin; empty: the
                            // artifact's folder
  std::string device;       // "cpu", "cuda", "null"; empty: the model's target
  int threads = 0;  // of all CPU devices of this process; 0: one per core
  int devices = 0;  // expected; 0: as many as the model was compiled for
  std::optional<double> timeout;  // seconds that ranks wait for each other
  bool share_gpu = false;         // all devices use GPU 0
};

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_OPTIONS_H_
