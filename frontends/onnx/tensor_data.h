// Element types and data of tensors: bytes in the model's or an external file,
// or constants.
#ifndef PARTITA_FRONTENDS_ONNX_TENSOR_DATA_H_
#define PARTITA_FRONTENDS_ONNX_TENSOR_DATA_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "frontends/builder/element_type.h"
#include "frontends/onnx/model.h"
#include "llvm/Support/MemoryBuffer.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::onnx {

using builder::elementCount;
using builder::ElementType;

ElementType getElementType(DataType type, mlir::MLIRContext* context);
// The inverse of the function above.
DataType getDataType(ElementType type);

// A tensor's bytes in a file, row-major and little-endian: the contents of a
// `#nn.file`.
struct FileRange {
  std::string path;
  uint64_t offset = 0;
  std::string_view bytes;
};

// The model's own file and the external files beside it.
class DataFiles {
 public:
  // `path` and `bytes` are the model's file; `bytes` must outlive this object.
  DataFiles(std::string path, std::string_view bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  // The location of the tensor's data. Nothing if the data is in typed fields
  // whose layout differs from memory. Fails with `error` set if the number of
  // bytes is wrong or the data is outside of the permitted files.
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

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_TENSOR_DATA_H_
