// The stored tensors of an imported model, read and written.
#ifndef PARTITA_FRONTENDS_PRUNING_STORED_TENSORS_H_
#define PARTITA_FRONTENDS_PRUNING_STORED_TENSORS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/dtype.h"
#include "runtime/base/mapped_file.h"

namespace partita::pruning {

struct StoredTensor {
  std::string name;
  base::DType dtype;
  std::vector<int64_t> shape;
  std::string_view bytes;  // in a mapped file, or in `own`
  std::string own;
};

class StoredTensors {
 public:
  // Opens the files of all stored arguments of @main. InvalidArgument if some
  // are not in files.
  static absl::StatusOr<StoredTensors> open(mlir::func::FuncOp main,
                                            const std::string& source_folder);

  // True if the tensor of an argument is stored in one piece.
  bool isWhole(unsigned argument) const;
  // Its elements as floats. Finite elements stay finite, and only zeros become
  // zero, also if the stored type has a larger range. InvalidArgument, with the
  // tensor's name, if an element is not finite. The tensor must be whole.
  absl::StatusOr<std::vector<float>> floats(unsigned argument) const;
  // Sets the elements to zero whose number in `values` is zero. The others keep
  // their bytes. The tensor must be whole.
  void setZeros(unsigned argument, const std::vector<float>& values);
  // Reorders the elements along a dimension: element i becomes order[i].
  void reorder(unsigned argument, int64_t dim,
               const std::vector<int64_t>& order);

  // Writes all tensors to one safetensors file. Returns its size.
  absl::StatusOr<int64_t> write(const std::string& path) const;

 private:
  absl::Status add(unsigned argument, const std::string& name,
                   mlir::Attribute file, std::vector<int64_t> shape,
                   const std::string& source_folder);

  std::map<std::string, base::MappedFile> files_;  // by path
  std::multimap<unsigned, StoredTensor> tensors_;  // by argument
};

}  // namespace partita::pruning

#endif  // PARTITA_FRONTENDS_PRUNING_STORED_TENSORS_H_
