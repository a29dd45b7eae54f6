// Named ranges for NVIDIA's profilers (NVTX), which is opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_RANGES_H_
#define PARTITA_RUNTIME_CUDA_RANGES_H_

#include <string>

namespace partita::cuda {

// Ranges do nothing if the library is missing or `path` is "none".
class Ranges {
 public:
  // `path` is the library to open. Empty: the installed one.
  explicit Ranges(const std::string& path);

  void Begin(const char* name) const {
    if (push_ != nullptr) push_(name);
  }
  void End() const {
    if (pop_ != nullptr) pop_();
  }

 private:
  int (*push_)(const char* name) = nullptr;  // both set or both null
  int (*pop_)() = nullptr;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_RANGES_H_
