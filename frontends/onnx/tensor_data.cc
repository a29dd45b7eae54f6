// Locates and decodes tensor data: raw bytes, typed fields, external files
// confined to the model's folder.
#include "frontends/onnx/tensor_data.h"

#include "dialects/nn/tensor.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "mlir/IR/Builders.h"

namespace partita::onnx {
namespace {

using llvm::failed;
using llvm::failure;
using llvm::FailureOr;

struct TypeRow {
  DataType code;
  mlir::Type (*make)(mlir::Builder&);
  bool is_unsigned;
};

template <typename T>
mlir::Type makeType(mlir::Builder& builder) {
  return builder.getType<T>();
}
template <unsigned width>
mlir::Type makeInt(mlir::Builder& builder) {
  return builder.getIntegerType(width);
}

constexpr TypeRow kTypes[] = {
    {DataType::kFloat, makeType<mlir::Float32Type>, false},
    {DataType::kUint8, makeInt<8>, true},
    {DataType::kInt8, makeInt<8>, false},
    {DataType::kUint16, makeInt<16>, true},
    {DataType::kInt16, makeInt<16>, false},
    {DataType::kInt32, makeInt<32>, false},
    {DataType::kInt64, makeInt<64>, false},
    {DataType::kBool, makeInt<1>, false},
    {DataType::kFloat16, makeType<mlir::Float16Type>, false},
    {DataType::kDouble, makeType<mlir::Float64Type>, false},
    {DataType::kUint32, makeInt<32>, true},
    {DataType::kUint64, makeInt<64>, true},
    {DataType::kBfloat16, makeType<mlir::BFloat16Type>, false},
    {DataType::kFloat8E4M3FN, makeType<mlir::Float8E4M3FNType>, false},
    {DataType::kFloat8E4M3FNUZ, makeType<mlir::Float8E4M3FNUZType>, false},
    {DataType::kFloat8E5M2, makeType<mlir::Float8E5M2Type>, false},
    {DataType::kFloat8E5M2FNUZ, makeType<mlir::Float8E5M2FNUZType>, false},
    {DataType::kUint4, makeInt<4>, true},
    {DataType::kInt4, makeInt<4>, false},
    {DataType::kFloat4E2M1, makeType<mlir::Float4E2M1FNType>, false},
    {DataType::kFloat8E8M0, makeType<mlir::Float8E8M0FNUType>, false},
    {DataType::kUint2, makeInt<2>, true},
    {DataType::kInt2, makeInt<2>, false},
};

// Bits per element in a file; a bool takes a byte.
unsigned storedWidth(mlir::Type type) {
  return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth();
}

unsigned storedWidth(DataType type) {
  static constexpr uint8_t kWidths[] = {0, 32, 8,  8,  16, 16, 32,  64, 0,
                                        8, 16, 64, 32, 64, 64, 128, 16, 8,
                                        8, 8,  8,  4,  4,  4,  8,   2,  2};
  auto code = static_cast<size_t>(type);
  return code < std::size(kWidths) ? kWidths[code] : 0;
}

// The bits of element `i`, from raw bytes or from a typed field.
uint64_t rawBits(std::string_view raw, uint64_t i, unsigned width) {
  if (width < 8) {
    uint64_t bit = i * width;
    return (static_cast<uint8_t>(raw[bit / 8]) >> (bit % 8)) &
           ((1u << width) - 1);
  }
  uint64_t bits = 0;
  for (unsigned byte = 0; byte < width / 8; ++byte) {
    bits |=
        static_cast<uint64_t>(static_cast<uint8_t>(raw[i * (width / 8) + byte]))
        << (8 * byte);
  }
  return bits;
}

void setBits(nn::Tensor& tensor, uint64_t i, uint64_t bits,
             mlir::Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  if (auto type = mlir::dyn_cast<mlir::FloatType>(element)) {
    llvm::APFloat value(type.getFloatSemantics(), llvm::APInt(width, bits));
    bool loses;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &loses);
    tensor.setFloat(i, value.convertToDouble());
  } else if (width == 1) {
    tensor.setInt(i, bits != 0);
  } else {
    tensor.setInt(i, llvm::APInt(width, bits).getSExtValue());
  }
}

// Typed integer fields have one element per entry. Exception: sub-byte types
// are packed as in raw bytes, one byte per entry.
FailureOr<nn::Tensor> decodeInts(const TensorProto& proto,
                                 mlir::RankedTensorType type,
                                 std::string& error) {
  unsigned width = storedWidth(type.getElementType());
  uint64_t count = type.getNumElements();
  uint64_t expected = width < 8 ? (count * width + 7) / 8 : count;
  if (proto.ints.size() != expected) {
    error = "expected " + std::to_string(expected) + " integers, found " +
            std::to_string(proto.ints.size());
    return failure();
  }
  nn::Tensor tensor(type);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = proto.ints[width < 8 ? i * width / 8 : i];
    if (width < 8) bits >>= i * width % 8;
    if (type.getElementType().isInteger(1)) bits = bits != 0;
    setBits(tensor, i, bits, type.getElementType());
  }
  return tensor;
}

mlir::DenseElementsAttr decodeRaw(std::string_view raw,
                                  mlir::RankedTensorType type) {
  mlir::Type element = type.getElementType();
  unsigned width = storedWidth(element);
  if (width >= 8 && !element.isInteger(1) && type.getNumElements() > 0) {
    return mlir::DenseElementsAttr::getFromRawBuffer(
        type, llvm::ArrayRef<char>(raw.data(), raw.size()));
  }
  nn::Tensor tensor(type);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    uint64_t bits = rawBits(raw, i, width);
    setBits(tensor, i, element.isInteger(1) ? bits != 0 : bits, element);
  }
  return tensor.toAttr();
}

std::string quoted(std::string_view name) {
  return "'" + std::string(name) + "'";
}

}  // namespace

ElementType getElementType(DataType type, mlir::MLIRContext* context) {
  mlir::Builder builder(context);
  for (const TypeRow& row : kTypes) {
    if (row.code == type) return {row.make(builder), row.is_unsigned};
  }
  return {};
}

DataType getDataType(ElementType type) {
  mlir::Builder builder(type.type.getContext());
  for (const TypeRow& row : kTypes) {
    if (row.make(builder) == type.type && row.is_unsigned == type.is_unsigned)
      return row.code;
  }
  return DataType::kUndefined;
}

FailureOr<const llvm::MemoryBuffer*> DataFiles::open(
    const std::string& location, std::string& path, std::string& error) {
  namespace fs = llvm::sys::fs;
  llvm::SmallString<256> folder(llvm::sys::path::parent_path(path_)),
      joined(folder);
  llvm::sys::path::append(joined, location);
  path = std::string(joined);
  auto found = external_.find(location);
  if (found != external_.end()) return found->second.get();

  bool escapes = location.empty() || llvm::sys::path::is_absolute(location);
  for (auto part = llvm::sys::path::begin(location);
       part != llvm::sys::path::end(location); ++part) {
    escapes |= *part == "..";
  }
  if (escapes) {
    error = "its external data " + quoted(location) +
            " must be a relative path without '..'";
    return failure();
  }
  llvm::SmallString<256> real_folder, real_file;
  if (std::error_code code =
          fs::real_path(folder.empty() ? "." : folder.str(), real_folder)) {
    error = "cannot resolve the model's folder: " + code.message();
    return failure();
  }
  if (std::error_code code = fs::real_path(joined, real_file)) {
    error =
        "cannot open its external data " + quoted(path) + ": " + code.message();
    return failure();
  }
  llvm::sys::path::append(real_folder, "");
  if (!llvm::StringRef(real_file).starts_with(real_folder)) {
    error = "its external data " + quoted(path) +
            " leads outside of the model's folder through a symbolic link";
    return failure();
  }
  auto buffer = llvm::MemoryBuffer::getFile(joined, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = "cannot open its external data " + quoted(path) + ": " +
            buffer.getError().message();
    return failure();
  }
  return (external_[location] = std::move(*buffer)).get();
}

FailureOr<FileRange> DataFiles::locateExternal(const TensorProto& tensor,
                                               std::string& error) {
  std::string location;
  std::optional<uint64_t> length;
  FileRange range;
  for (auto [key, value] : tensor.external) {
    uint64_t number = 0;
    if (key == "location") location = std::string(value);
    if (key != "offset" && key != "length") continue;
    if (llvm::StringRef(value).getAsInteger(10, number)) {
      error = "expected external_data." + std::string(key) +
              " to be a number, found " + quoted(value);
      return failure();
    }
    if (key == "offset") range.offset = number;
    if (key == "length") length = number;
  }
  auto buffer = open(location, range.path, error);
  if (failed(buffer)) return failure();
  uint64_t size = (*buffer)->getBufferSize();
  if (range.offset > size || (length && *length > size - range.offset)) {
    error = "its external data ends beyond " + quoted(range.path) +
            ": offset " + std::to_string(range.offset) +
            (length ? ", length " + std::to_string(*length) : "") +
            ", file size " + std::to_string(size);
    return failure();
  }
  range.bytes = std::string_view((*buffer)->getBufferStart() + range.offset,
                                 length.value_or(size - range.offset));
  return range;
}

FailureOr<std::optional<FileRange>> DataFiles::locate(const TensorProto& tensor,
                                                      std::string& error) {
  std::optional<uint64_t> count = elementCount(tensor.dims);
  if (!count) {
    error =
        "expected sizes that are not negative and whose product is below 2^48";
    return failure();
  }
  std::optional<FileRange> range;
  if (tensor.is_external) {
    auto external = locateExternal(tensor, error);
    if (failed(external)) return failure();
    range = *external;
  } else if (tensor.has_raw) {
    range = {path_, tensor.raw_offset, tensor.raw};
  } else if (tensor.type == DataType::kFloat) {
    range = {path_, tensor.floats_offset, tensor.floats};
  } else if (tensor.type == DataType::kDouble) {
    range = {path_, tensor.doubles_offset, tensor.doubles};
  } else {
    return range;
  }
  uint64_t expected = (*count * storedWidth(tensor.type) + 7) / 8;
  if (range->bytes.size() != expected) {
    error = "expected " + std::to_string(expected) +
            " bytes for its shape and type " + toString(tensor.type) +
            ", found " + std::to_string(range->bytes.size());
    return failure();
  }
  return range;
}

FailureOr<mlir::DenseElementsAttr> DataFiles::decode(const TensorProto& tensor,
                                                     mlir::MLIRContext* context,
                                                     std::string& error) {
  ElementType element = getElementType(tensor.type, context);
  if (!element.type) {
    error = "its element type " + toString(tensor.type) + " is not supported";
    return failure();
  }
  auto range = locate(tensor, error);
  if (failed(range)) return failure();
  auto type = mlir::RankedTensorType::get(tensor.dims, element.type);
  if (*range) return decodeRaw((*range)->bytes, type);
  auto decoded = decodeInts(tensor, type, error);
  if (failed(decoded)) return failure();
  return decoded->toAttr();
}

}  // namespace partita::onnx
