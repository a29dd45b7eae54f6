// Named ranges for NVIDIA's profilers (NVTX), opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_RANGES_H_
#define PARTITA_RUNTIME_CUDA_RANGES_H_

#include <string>

namespace partita::cuda {

// Without the library, and where it is "none", ranges are nothing.
class Ranges {
 public:
  // `path` is the library to open; empty: the one that is installed.
  explicit Ranges(const std::string& path);

  void Begin(const char* name) const {
    if (push_ != nullptr) push_(name);
  }
  void End() const {
    if (pop_ != nullptr) pop_();
  }

 private:
  int (*push_)(const char* name) = nullptr;  // both or none
  int (*pop_)() = nullptr;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_RANGES_H_
