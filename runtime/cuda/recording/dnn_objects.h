// The descriptors of the recorded cuDNN.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_DNN_OBJECTS_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_DNN_OBJECTS_H_

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/dnn_api.h"

namespace partita::cuda::recording {

struct Object {
  DnnKind kind;
  bool finished = false;
  std::map<int, std::string> values;  // bytes, by attribute
  size_t engine = 0;  // index, in an engine or its configuration

  template <typename T>
  std::vector<T> All(int attribute) const {
    const auto found = values.find(attribute);
    if (found == values.end()) return {};
    std::vector<T> all(found->second.size() / sizeof(T));
    std::memcpy(all.data(), found->second.data(), found->second.size());
    return all;
  }
  template <typename T>
  T One(int attribute) const {
    const std::vector<T> all = All<T>(attribute);
    return all.empty() ? T() : all[0];
  }
  const Object* Other(int attribute) const {
    return One<const Object*>(attribute);
  }
};

}  // namespace partita::cuda::recording

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_DNN_OBJECTS_H_
