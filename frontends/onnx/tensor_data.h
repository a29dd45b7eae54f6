// Where a tensor's elements are, and what they are: types, bytes in the model's
// or an external file, constants.
#ifndef PARTITA_FRONTENDS_ONNX_TENSOR_DATA_H_
#define PARTITA_FRONTENDS_ONNX_TENSOR_DATA_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "frontends/onnx/model.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::onnx {

// An element type: unsigned integers are signless in nn, so their sign is kept
// apart.
struct ElementType {
  mlir::Type type;  // null: nn has no such type (strings, complex numbers)
  bool is_unsigned = false;

  bool operator==(const ElementType& other) const {
    return type == other.type && is_unsigned == other.is_unsigned;
  }
};

ElementType getElementType(DataType type, mlir::MLIRContext* context);
// The inverse.
DataType getDataType(ElementType type);

// A tensor whose bytes lie row-major and little-endian in a file, as `#nn.file`
// wants it.
struct FileRange {
  std::string path;
  uint64_t offset = 0;
  std::string_view bytes;
};

// The model's own file and the external files beside it.
class DataFiles {
 public:
  // `path` and `bytes` are those of the model's file; the bytes outlive this.
  DataFiles(std::string path, std::string_view bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  // Where the tensor's data lies; none if it is in typed fields that are not
  // laid out as in memory. Fails with `error` set if it has too few or too many
  // bytes, or lies outside of what may be read.
  mlir::FailureOr<std::optional<FileRange>> locate(const TensorProto& tensor,
                                                   std::string& error);

  // The tensor as a constant of any size.
  mlir::FailureOr<mlir::DenseElementsAttr> decode(const TensorProto& tensor,
                                                  mlir::MLIRContext* context,
                                                  std::string& error);

 private:
  mlir::FailureOr<FileRange> locateExternal(const TensorProto& tensor,
                                            std::string& error);
  mlir::FailureOr<const llvm::MemoryBuffer*> open(const std::string& location,
                                                  std::string& path,
                                                  std::string& error);

  std::string path_;
  std::string_view bytes_;
  std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>> external_;
};

// Number of elements of a shape; none if a size is negative or the product
// overflows.
std::optional<uint64_t> elementCount(llvm::ArrayRef<int64_t> dims);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_TENSOR_DATA_H_
