// Text and invariants of the dist dialect's attributes.
#include "dialects/dist/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/attrs.cc.inc"

namespace partita::dist {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Attribute;
using mlir::failed;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using Delimiter = mlir::AsmParser::Delimiter;

namespace {

// Parses "a" or "a":(1)2.
FailureOr<AxisAttr> parseAxis(mlir::AsmParser& parser) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  std::string name;
  int64_t pre = 1, size = 0;
  if (parser.parseString(&name)) return failure();
  if (succeeded(parser.parseOptionalColon())) {
    if (parser.parseLParen() || parser.parseInteger(pre) ||
        parser.parseRParen() || parser.parseInteger(size))
      return failure();
    if (size < 1)
      return parser.emitError(loc)
             << "expected a part of an axis to have a size of at least 1, "
                "found "
             << size;
  }
  auto axis =
      parser.getChecked<AxisAttr>(loc, parser.getContext(), name, pre, size);
  if (!axis) return failure();
  return axis;
}

LogicalResult parseAxes(mlir::AsmParser& parser, Delimiter delimiter,
                        SmallVector<AxisAttr>& axes) {
  return parser.parseCommaSeparatedList(delimiter, [&]() -> mlir::ParseResult {
    FailureOr<AxisAttr> axis = parseAxis(parser);
    if (failed(axis)) return failure();
    axes.push_back(*axis);
    return success();
  });
}

void printAxes(llvm::raw_ostream& os, ArrayRef<AxisAttr> axes) {
  llvm::interleaveComma(axes, os, [&](AxisAttr axis) { axis.printShort(os); });
}

// Parses p1 (all axes) or p[1, 3] (one per axis). `priorities` stays empty if
// all are 0.
LogicalResult parsePriorities(mlir::AsmParser& parser, size_t axes,
                              SmallVector<int64_t>& priorities) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  llvm::StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword))) return success();
  int64_t all = 0;
  if (keyword == "p") {
    if (parser.parseCommaSeparatedList(Delimiter::Square, [&] {
          return parser.parseInteger(priorities.emplace_back());
        }))
      return failure();
  } else if (keyword.consume_front("p") && !keyword.getAsInteger(10, all)) {
    priorities.assign(axes, all);
  } else {
    return parser.emitError(loc,
                            "expected a priority, 'p' and a number, or "
                            "'p[...]' with one for each axis");
  }
  if (priorities.size() != axes || axes == 0)
    return parser.emitError(loc) << "expected priorities of " << axes
                                 << " axes, found " << priorities.size();
  if (llvm::all_of(priorities, [](int64_t value) { return value == 0; }))
    priorities.clear();
  return success();
}

// Parses {"a", ?}p1|28.
FailureOr<DimAttr> parseDim(mlir::AsmParser& parser) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  SmallVector<AxisAttr> axes;
  bool open = false;
  auto parse_entry = [&]() -> mlir::ParseResult {
    if (open)
      return parser.emitError(parser.getCurrentLocation(),
                              "expected '?' to be last");
    if (succeeded(parser.parseOptionalQuestion()))
      return open = true, success();
    FailureOr<AxisAttr> axis = parseAxis(parser);
    if (failed(axis)) return failure();
    axes.push_back(*axis);
    return success();
  };
  if (parser.parseCommaSeparatedList(Delimiter::Braces, parse_entry))
    return failure();
  int64_t block = 0;
  SmallVector<int64_t> priorities;
  if (failed(parsePriorities(parser, axes.size(), priorities)))
    return failure();
  if (succeeded(parser.parseOptionalVerticalBar()) &&
      parser.parseInteger(block))
    return failure();
  auto dim = parser.getChecked<DimAttr>(loc, parser.getContext(), axes, open,
                                        priorities, block);
  if (!dim) return failure();
  return dim;
}

void printDim(llvm::raw_ostream& os, DimAttr dim) {
  os << '{';
  printAxes(os, dim.getAxes());
  if (dim.getOpen()) os << (dim.getAxes().empty() ? "?" : ", ?");
  os << '}';
  const ArrayRef<int64_t> priorities = dim.getPriorities();
  if (!priorities.empty() && llvm::all_equal(priorities)) {
    os << 'p' << priorities.front();
  } else if (!priorities.empty()) {
    os << "p[";
    llvm::interleaveComma(priorities, os);
    os << ']';
  }
  if (dim.getBlock() != 0) os << '|' << dim.getBlock();
}

// Parses `keyword = {axes}` if present.
LogicalResult parseOptionalSet(mlir::AsmParser& parser, llvm::StringRef keyword,
                               SmallVector<AxisAttr>& axes) {
  if (failed(parser.parseOptionalKeyword(keyword))) return success();
  if (parser.parseEqual()) return failure();
  return parseAxes(parser, Delimiter::Braces, axes);
}

// Constraint C2 of the dialect without a mesh: an axis named whole overlaps all
// of its parts. Overlaps that depend on the axis's size need the mesh.
LogicalResult checkDistinct(EmitError error, ArrayRef<AxisAttr> axes) {
  for (auto [i, axis] : llvm::enumerate(axes))
    for (AxisAttr other : axes.take_front(i))
      if (axis.overlaps(other)) {
        std::string text;
        llvm::raw_string_ostream os(text);
        other.printShort(os), os << " and ", axis.printShort(os);
        return error() << "expected no axis to be used twice, found " << text;
      }
  return success();
}

}  // namespace

void DistDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/attrs.cc.inc"
      >();
}

bool AxisAttr::overlaps(AxisAttr other) const {
  if (getName() != other.getName()) return false;
  if (isWhole() || other.isWhole()) return true;
  if (getSize() == 1 || other.getSize() == 1) return false;
  return other.getPre() % (getPre() * getSize()) != 0 &&
         getPre() % (other.getPre() * other.getSize()) != 0;
}

void AxisAttr::printShort(llvm::raw_ostream& os) const {
  os << '"';
  llvm::printEscapedString(getName(), os);
  os << '"';
  if (!isWhole()) os << ":(" << getPre() << ')' << getSize();
}

LogicalResult AxisAttr::verify(EmitError error, llvm::StringRef name,
                               int64_t pre, int64_t size) {
  if (name.empty()) return error() << "expected an axis to have a name";
  if (pre < 1 || size < 0 || (size == 0 && pre != 1))
    return error() << "expected a part of an axis to be '(n)m' with n and m of "
                      "at least 1, found ("
                   << pre << ')' << size;
  return success();
}

Attribute AxisAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  if (parser.parseLess()) return {};
  FailureOr<AxisAttr> axis = parseAxis(parser);
  if (failed(axis) || parser.parseGreater()) return {};
  return *axis;
}

void AxisAttr::print(mlir::AsmPrinter& printer) const {
  printer << '<';
  printShort(printer.getStream());
  printer << '>';
}

LogicalResult AxesAttr::verify(EmitError error, ArrayRef<AxisAttr> axes) {
  return checkDistinct(error, axes);
}

Attribute AxesAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  SmallVector<AxisAttr> axes;
  const llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parseAxes(parser, Delimiter::Square, axes).failed() ||
      parser.parseGreater())
    return {};
  return parser.getChecked<AxesAttr>(loc, parser.getContext(), axes);
}

void AxesAttr::print(mlir::AsmPrinter& printer) const {
  printer << "<[";
  printAxes(printer.getStream(), getAxes());
  printer << "]>";
}

LogicalResult DimAttr::verify(EmitError error, ArrayRef<AxisAttr> axes, bool,
                              ArrayRef<int64_t> priorities, int64_t block) {
  if (block < 0 || llvm::any_of(priorities, [](int64_t p) { return p < 0; }))
    return error() << "expected a priority and a block that are not negative";
  if (!priorities.empty() && priorities.size() != axes.size())
    return error() << "expected a priority for each of " << axes.size()
                   << " axes, found " << priorities.size();
  return checkDistinct(error, axes);
}

Attribute DimAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  if (parser.parseLess()) return {};
  FailureOr<DimAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater()) return {};
  return *dim;
}

void DimAttr::print(mlir::AsmPrinter& printer) const {
  printer << '<';
  printDim(printer.getStream(), *this);
  printer << '>';
}

LogicalResult ShardingAttr::verify(EmitError error, ArrayRef<DimAttr> dims,
                                   ArrayRef<AxisAttr> replicated,
                                   ArrayRef<AxisAttr> unreduced) {
  SmallVector<AxisAttr> all;
  for (DimAttr dim : dims) llvm::append_range(all, dim.getAxes());
  llvm::append_range(all, replicated);
  llvm::append_range(all, unreduced);
  return checkDistinct(error, all);
}

ShardingAttr ShardingAttr::getReplicated(mlir::MLIRContext* context,
                                         int64_t rank, bool open) {
  SmallVector<DimAttr> dims(rank,
                            DimAttr::get(context, ArrayRef<AxisAttr>(), open));
  return get(context, dims, {}, {});
}

Attribute ShardingAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  SmallVector<DimAttr> dims;
  SmallVector<AxisAttr> replicated, unreduced;
  auto parse_dim = [&]() -> mlir::ParseResult {
    FailureOr<DimAttr> dim = parseDim(parser);
    if (failed(dim)) return failure();
    dims.push_back(*dim);
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(Delimiter::Square, parse_dim) ||
      parseOptionalSet(parser, "replicated", replicated).failed() ||
      parseOptionalSet(parser, "unreduced", unreduced).failed() ||
      parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(loc, parser.getContext(), dims,
                                         replicated, unreduced);
}

void ShardingAttr::print(mlir::AsmPrinter& printer) const {
  llvm::raw_ostream& os = printer.getStream();
  os << "<[";
  llvm::interleaveComma(getDims(), os, [&](DimAttr dim) { printDim(os, dim); });
  os << ']';
  for (auto [keyword, axes] : {std::pair("replicated", getReplicated()),
                               std::pair("unreduced", getUnreduced())}) {
    if (axes.empty()) continue;
    os << ' ' << keyword << " = {";
    printAxes(os, axes);
    os << '}';
  }
  os << '>';
}

Attribute MeshAxisAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  std::string name;
  int64_t size = 0;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size) || parser.parseGreater())
    return {};
  return get(parser.getContext(), name, size);
}

void MeshAxisAttr::print(mlir::AsmPrinter& printer) const {
  printer << '<';
  printer.printString(getName());
  printer << '=' << getSize() << '>';
}

LogicalResult MeshAttr::verify(EmitError error, ArrayRef<MeshAxisAttr> axes) {
  llvm::StringSet<> names;
  for (MeshAxisAttr axis : axes) {
    // C2 of dist.mesh
    if (axis.getName().empty() || !names.insert(axis.getName()).second)
      return error() << "expected axes to have distinct names, found '"
                     << axis.getName() << "'"
                     << (axis.getName().empty() ? "" : " twice");
    if (axis.getSize() < 1)
      return error() << "expected axis '" << axis.getName()
                     << "' to have at least 1 position, found "
                     << axis.getSize();
  }
  return success();
}

Attribute MeshAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  SmallVector<MeshAxisAttr> axes;
  auto parse_axis = [&]() -> mlir::ParseResult {
    std::string name;
    int64_t size = 0;
    if (parser.parseString(&name) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    axes.push_back(MeshAxisAttr::get(parser.getContext(), name, size));
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(Delimiter::Square, parse_axis) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<MeshAttr>(loc, parser.getContext(), axes);
}

void MeshAttr::print(mlir::AsmPrinter& printer) const {
  printer << "<[";
  llvm::interleaveComma(getAxes(), printer, [&](MeshAxisAttr axis) {
    printer.printString(axis.getName());
    printer << '=' << axis.getSize();
  });
  printer << "]>";
}

// The axes of an operation, without < and >. The generated code in verify.cc
// uses these functions.
mlir::ParseResult parseAxes(mlir::OpAsmParser& parser, AxesAttr& attribute) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  SmallVector<AxisAttr> axes;
  if (parseAxes(parser, Delimiter::Square, axes).failed()) return failure();
  attribute = parser.getChecked<AxesAttr>(loc, parser.getContext(), axes);
  return success(attribute != nullptr);
}

void printAxes(mlir::OpAsmPrinter& printer, mlir::Operation*, AxesAttr axes) {
  printer << '[';
  printAxes(printer.getStream(), axes.getAxes());
  printer << ']';
}

}  // namespace partita::dist
