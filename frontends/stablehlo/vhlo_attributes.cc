// Types and attributes of vhlo, by their codes in the bytecode.
#include <optional>

#include "frontends/builder/element_type.h"
#include "frontends/stablehlo/attribute_readers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::stablehlo {
namespace {

using llvm::failed;
using llvm::failure;
using llvm::FailureOr;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::success;
using mlir::Attribute;
using mlir::Type;
using Reader = mlir::DialectBytecodeReader;

// Maximum number of elements of a constant.
constexpr int64_t kMaxElements = int64_t{1} << 32;

Attribute fail(Reader& reader, const llvm::Twine& message) {
  reader.emitError(message);
  return {};
}

// An enum, as the number of its case.
Attribute readEnum(Reader& reader) {
  uint64_t value;
  if (failed(reader.readVarInt(value))) return {};
  return mlir::Builder(reader.getContext())
      .getI32IntegerAttr(static_cast<int32_t>(value));
}

Attribute readArray(Reader& reader) {
  SmallVector<Attribute> elements;
  if (failed(reader.readAttributes(elements))) return {};
  return mlir::ArrayAttr::get(reader.getContext(), elements);
}

Attribute readDictionary(Reader& reader) {
  SmallVector<mlir::NamedAttribute> entries;
  const auto read_entry = [&]() -> FailureOr<mlir::NamedAttribute> {
    mlir::StringAttr name;
    Attribute value;
    if (failed(reader.readAttribute(name)) ||
        failed(reader.readAttribute(value)))
      return failure();
    if (name.empty()) {
      reader.emitError("expected names in a dictionary, found an empty one");
      return failure();
    }
    return mlir::NamedAttribute(name, value);
  };
  if (failed(reader.readList(entries, read_entry))) return {};
  if (mlir::DictionaryAttr::findDuplicate(entries, /*isSorted=*/false))
    return fail(reader, "expected different names in a dictionary");
  return mlir::DictionaryAttr::get(reader.getContext(), entries);
}

Attribute readFloat(Reader& reader) {
  Type type;
  if (failed(reader.readType(type))) return {};
  const auto float_type = mlir::dyn_cast<mlir::FloatType>(type);
  if (!float_type)
    return fail(reader, "expected a floating-point type of a number");
  FailureOr<llvm::APFloat> value =
      reader.readAPFloatWithKnownSemantics(float_type.getFloatSemantics());
  if (failed(value)) return {};
  return mlir::FloatAttr::get(type, *value);
}

Attribute readInteger(Reader& reader) {
  Type type;
  if (failed(reader.readType(type))) return {};
  if (!type.isIntOrIndex())
    return fail(reader, "expected an integer type of a number");
  const unsigned width = type.isIndex()
                             ? mlir::IndexType::kInternalStorageBitWidth
                             : type.getIntOrFloatBitWidth();
  FailureOr<llvm::APInt> value = reader.readAPIntWithKnownWidth(width);
  if (failed(value)) return {};
  return mlir::IntegerAttr::get(type, *value);
}

Attribute readOutputAlias(Reader& reader) {
  SmallVector<int64_t> output, operand;
  int64_t index;
  if (failed(reader.readSignedVarInts(output)) ||
      failed(reader.readSignedVarInt(index)) ||
      failed(reader.readSignedVarInts(operand)))
    return {};
  output.push_back(index);
  return mlir::DenseI64ArrayAttr::get(reader.getContext(), output);
}

// Booleans are packed into bits, or take a byte each, as the exporter's MLIR
// stores them. One byte stands for equal elements: all ones or zeros where
// booleans are packed, else 1 or 0. JAX up to 0.10 packs them.
Attribute readBooleans(Reader& reader, mlir::RankedTensorType type,
                       llvm::ArrayRef<char> bytes) {
  const size_t count = type.getNumElements();
  const bool is_splat = bytes.size() == 1 &&
                        (count > 8 || static_cast<uint8_t>(bytes[0]) == 0xff);
  if (!is_splat && bytes.size() != count &&
      bytes.size() != llvm::divideCeil(count, 8))
    return fail(reader, "expected as many booleans as the type has");
  if (is_splat)
    return mlir::DenseElementsAttr::get(type,
                                        llvm::ArrayRef<bool>({bytes[0] != 0}));
  SmallVector<bool> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = bytes.size() == count && count != 1
                    ? bytes[i] != 0
                    : (bytes[i / 8] >> (i % 8) & 1) != 0;
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(values));
}

Attribute readTensor(Reader& reader) {
  Type read_type;
  llvm::ArrayRef<char> bytes;
  if (failed(reader.readType(read_type)) || failed(reader.readBlob(bytes)))
    return {};
  const auto type = mlir::dyn_cast<mlir::RankedTensorType>(read_type);
  const bool is_index = type && type.getElementType().isIndex();
  if (!type || !type.hasStaticShape() ||
      !(is_index || (type.getElementType().isIntOrFloat() &&
                     type.getElementTypeBitWidth() % 8 == 0)) ||
      !builder::elementCount(type.getShape()) ||
      type.getNumElements() > kMaxElements) {
    if (type && type.hasStaticShape() && type.getElementType().isInteger(1) &&
        builder::elementCount(type.getShape()) &&
        type.getNumElements() <= kMaxElements)
      return readBooleans(reader, type, bytes);
    if (type && mlir::isa<mlir::ComplexType>(type.getElementType()))
      return fail(reader,
                  "constants of complex numbers are not supported: separate "
                  "real and imaginary parts");
    return fail(reader,
                "expected a constant of a tensor type of static shape with "
                "elements of whole bytes");
  }
  bool is_splat = false;
  if (type.getNumElements() == 0 ||
      !mlir::DenseElementsAttr::isValidRawBuffer(type, bytes, is_splat)) {
    if (type.getNumElements() == 0)
      return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<Attribute>());
    return fail(reader,
                "expected as many bytes as the type of the constant "
                "has, found " +
                    llvm::Twine(bytes.size()));
  }
  return mlir::DenseElementsAttr::getFromRawBuffer(type, bytes);
}

Attribute readTypeAttribute(Reader& reader) {
  Type type;
  if (failed(reader.readType(type))) return {};
  return mlir::TypeAttr::get(type);
}

Attribute readIntegers(Reader& reader) {
  SmallVector<int64_t> values;
  if (failed(reader.readSignedVarInts(values))) return {};
  return mlir::DenseI64ArrayAttr::get(reader.getContext(), values);
}

// How exact a function must be; ours do not depend on it.
Attribute readAccuracy(Reader& reader) {
  int64_t ulps;
  Attribute mode;
  const auto& f64 = llvm::APFloat::IEEEdouble();
  if (failed(reader.readAPFloatWithKnownSemantics(f64)) ||
      failed(reader.readAPFloatWithKnownSemantics(f64)) ||
      failed(reader.readSignedVarInt(ulps)) ||
      failed(reader.readAttribute(mode)))
    return {};
  return mode;
}

Type failType(Reader& reader, const llvm::Twine& message) {
  reader.emitError(message);
  return {};
}

// Types without parameters.
Type simpleType(uint64_t code, mlir::MLIRContext* context) {
  mlir::Builder b(context);
  switch (code) {
    case 0:
      return b.getI1Type();
    case 2:
      return b.getBF16Type();
    case 3:
      return b.getF16Type();
    case 4:
      return b.getF32Type();
    case 5:
      return b.getF64Type();
    case 6:
      return mlir::Float8E4M3FNType::get(context);
    case 7:
      return mlir::Float8E5M2Type::get(context);
    case 9:
      return b.getIndexType();
    case 22:
      return b.getTupleType({});
    case 27:
      return mlir::Float8E4M3FNUZType::get(context);
    case 28:
      return mlir::Float8E5M2FNUZType::get(context);
    case 29:
      return mlir::Float8E4M3B11FNUZType::get(context);
    case 33:
      return b.getNoneType();
    case 34:
      return mlir::FloatTF32Type::get(context);
    case 35:
      return mlir::Float8E4M3Type::get(context);
    case 36:
      return mlir::Float8E3M4Type::get(context);
    case 37:
      return mlir::Float4E2M1FNType::get(context);
    case 38:
      return mlir::Float6E2M3FNType::get(context);
    case 39:
      return mlir::Float6E3M2FNType::get(context);
    case 40:
      return mlir::Float8E8M0FNUType::get(context);
    default:
      break;
  }
  static constexpr unsigned kWidths[] = {4, 8, 16, 32, 64};
  if (code >= 10 && code < 15) return b.getIntegerType(kWidths[code - 10]);
  if (code >= 15 && code < 20)
    return b.getIntegerType(kWidths[code - 15], /*isSigned=*/false);
  if (code == 31) return b.getIntegerType(2);
  if (code == 32) return b.getIntegerType(2, /*isSigned=*/false);
  return {};
}

Type readTensorType(Reader& reader, bool has_encoding) {
  Attribute encoding;
  SmallVector<int64_t> shape;
  Type element;
  if (has_encoding && failed(reader.readAttribute(encoding))) return {};
  if (failed(reader.readSignedVarInts(shape)) ||
      failed(reader.readType(element)))
    return {};
  for (int64_t size : shape)
    if (size < 0 && !mlir::ShapedType::isDynamic(size))
      return failType(reader, "expected sizes that are not negative");
  if (!mlir::TensorType::isValidElementType(element))
    return failType(reader, "expected a type of elements in a tensor type");
  return mlir::RankedTensorType::get(shape, element, encoding);
}

Type readFunctionType(Reader& reader) {
  SmallVector<Type> inputs, results;
  if (failed(reader.readTypes(inputs)) || failed(reader.readTypes(results)))
    return {};
  return mlir::FunctionType::get(reader.getContext(), inputs, results);
}

Type readTupleType(Reader& reader) {
  SmallVector<Type> types;
  if (failed(reader.readTypes(types))) return {};
  return mlir::TupleType::get(reader.getContext(), types);
}

Type readComplexType(Reader& reader) {
  Type element;
  if (failed(reader.readType(element))) return {};
  if (!mlir::isa<mlir::FloatType>(element))
    return failType(reader, "expected complex numbers of floats");
  return mlir::ComplexType::get(element);
}

}  // namespace

Attribute readVhloAttribute(Reader& reader) {
  uint64_t code;
  if (failed(reader.readVarInt(code))) return {};
  switch (code) {
    case 1:
      return readArray(reader);
    case 2: {
      uint64_t value;
      if (failed(reader.readVarInt(value))) return {};
      return mlir::BoolAttr::get(reader.getContext(), value != 0);
    }
    case 3:   // comparison direction
    case 4:   // comparison type
    case 5:   // version of custom calls
    case 7:   // type of FFT
    case 11:  // precision
    case 12:  // algorithm of random bits
    case 13:  // distribution
    case 16:  // transpose
    case 19:  // accuracy mode
      return readEnum(reader);
    case 6:
      return readDictionary(reader);
    case 8:
      return readFloat(reader);
    case 9:
      return readInteger(reader);
    case 10:
      return readOutputAlias(reader);
    case 14: {
      llvm::StringRef text;
      if (failed(reader.readString(text))) return {};
      return mlir::StringAttr::get(reader.getContext(), text);
    }
    case 15:
      return readTensor(reader);
    case 17:
      return readTypeAttribute(reader);
    case 18:  // bounds of dynamic sizes
      return readIntegers(reader);
    case 20:
      return readAccuracy(reader);
    default:
      return fail(reader, "unknown attribute of vhlo, code " +
                              llvm::Twine(code) +
                              ": export for an older version");
  }
}

Type readVhloType(Reader& reader) {
  uint64_t code;
  if (failed(reader.readVarInt(code))) return {};
  if (Type type = simpleType(code, reader.getContext())) return type;
  switch (code) {
    case 1:
      return readComplexType(reader);
    case 8:
      return readFunctionType(reader);
    case 20:
      return readTensorType(reader, /*has_encoding=*/false);
    case 21:
      return readTensorType(reader, /*has_encoding=*/true);
    case 23:
      return readTupleType(reader);
    case 24:
    case 30:
      return failType(reader,
                      "quantized types are not supported: dequantize the "
                      "model before the export");
    case 25:
      return failType(reader, "tensors without a rank are not supported");
    default:
      return failType(reader, "unknown type of vhlo, code " +
                                  llvm::Twine(code) +
                                  ": export for an older version");
  }
}

}  // namespace partita::stablehlo
