// #nn.rule<...>: the text of a sharding rule, and its verification on the
// operation that carries it.
#include "dialects/nn/dialect.h"
#include "dialects/terms/symbols.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/DialectImplementation.h"

namespace partita::nn {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::ParseResult;
using mlir::success;

// Parses the output of ToString. Factors are numbered in the order of their
// sizes, which come after the tensors; until then the parser keeps names.
class RuleParser {
 public:
  explicit RuleParser(mlir::AsmParser& parser) : parser_(parser) {}

  FailureOr<ShardingRule> parse() {
    Names operands, results;
    if (parser_.parseLess() || parseTensors(operands) || parser_.parseArrow() ||
        parseTensors(results) || parseSizes() ||
        resolve(operands, rule_.operands) || resolve(results, rule_.results))
      return failure();
    while (mlir::failed(parser_.parseOptionalGreater())) {
      if (parseProperty()) return failure();
    }
    return std::move(rule_);
  }

 private:
  struct Name {
    llvm::SMLoc loc;
    std::string text;
  };
  using Dim = std::vector<Name>;
  using Names = std::vector<std::vector<Dim>>;
  using Delimiter = mlir::AsmParser::Delimiter;

  ParseResult parseTensors(Names& tensors) {
    return parser_.parseCommaSeparatedList(Delimiter::Paren, [&] {
      std::vector<Dim>& tensor = tensors.emplace_back();
      return parser_.parseCommaSeparatedList(
          Delimiter::Square, [&] { return parseDim(tensor.emplace_back()); });
    });
  }

  // Parses "i", "ij", "iz_1" or "1".
  ParseResult parseDim(Dim& dim) {
    const llvm::SMLoc loc = parser_.getCurrentLocation();
    int64_t one;
    const mlir::OptionalParseResult number = parser_.parseOptionalInteger(one);
    if (number.has_value()) {
      if (mlir::failed(*number)) return failure();
      if (one == 1) return success();
      return parser_.emitError(loc) << "expected the factors of a dimension, "
                                       "or 1 where there are none, found "
                                    << one;
    }
    llvm::StringRef text;
    if (parser_.parseKeyword(&text)) return failure();
    while (!text.empty()) {
      size_t length = 1;
      if (text.size() > 1 && text[1] == '_')
        length = std::min(text.find_first_not_of("0123456789", 2), text.size());
      dim.push_back({loc, text.take_front(length).str()});
      text = text.drop_front(length);
    }
    return success();
  }

  ParseResult parseSizes() {
    return parser_.parseCommaSeparatedList(
        Delimiter::Braces, [&]() -> ParseResult {
          const llvm::SMLoc loc = parser_.getCurrentLocation();
          llvm::StringRef name;
          Factor factor;
          if (parser_.parseKeyword(&name) || parser_.parseEqual() ||
              parser_.parseInteger(factor.size))
            return failure();
          if (!factors_.try_emplace(name, rule_.factors.size()).second)
            return ParseResult(parser_.emitError(loc)
                               << "expected one size of factor " << name
                               << ", found two");
          rule_.factors.push_back(factor);
          return success();
        });
  }

  FailureOr<int> lookUp(const Name& name) {
    const auto factor = factors_.find(name.text);
    if (factor != factors_.end()) return factor->second;
    return parser_.emitError(name.loc)
           << "expected a size of factor " << name.text << ", found none";
  }

  ParseResult resolve(const Names& names, std::vector<TensorFactors>& tensors) {
    for (const std::vector<Dim>& tensor : names) {
      TensorFactors& dims = tensors.emplace_back();
      for (const Dim& dim : tensor) {
        DimFactors& factors = dims.emplace_back();
        for (const Name& name : dim) {
          const FailureOr<int> factor = lookUp(name);
          if (mlir::failed(factor)) return failure();
          factors.push_back(*factor);
        }
      }
    }
    return success();
  }

  ParseResult parseProperty() {
    const llvm::SMLoc loc = parser_.getCurrentLocation();
    llvm::StringRef name;
    if (parser_.parseKeyword(&name) || parser_.parseEqual()) return failure();
    if (name == "linear") return parseOperands(rule_.linear);
    if (name == "multilinear") return parseOperands(rule_.multilinear);
    if (name == "reduced") return parseKind(FactorKind::kReduced);
    if (name == "halo") return parseKind(FactorKind::kHalo);
    if (name == "reduced_halo") return parseKind(FactorKind::kReducedHalo);
    if (name == "whole") return parseKind(FactorKind::kWhole);
    if (name == "decompose") return parseKind(FactorKind::kDecompose);
    if (name == "keeps") return parseKeeping();
    return parser_.emitError(loc)
           << "expected reduced, halo, reduced_halo, whole, decompose, keeps, "
              "linear or multilinear, found "
           << name;
  }

  ParseResult parseOperands(std::vector<int>& operands) {
    return parser_.parseCommaSeparatedList(Delimiter::Braces, [&] {
      return parser_.parseInteger(operands.emplace_back());
    });
  }

  FailureOr<int> parseFactor() {
    const llvm::SMLoc loc = parser_.getCurrentLocation();
    llvm::StringRef name;
    if (parser_.parseKeyword(&name)) return failure();
    return lookUp({loc, name.str()});
  }

  ParseResult parseKeeping() {
    return parser_.parseCommaSeparatedList(
        Delimiter::Braces, [&]() -> ParseResult {
          const FailureOr<int> factor = parseFactor();
          if (mlir::failed(factor)) return failure();
          rule_.factors[*factor].keeps_axes = true;
          return success();
        });
  }

  ParseResult parseKind(FactorKind kind) {
    return parser_.parseCommaSeparatedList(
        Delimiter::Braces, [&]() -> ParseResult {
          const FailureOr<int> factor = parseFactor();
          if (mlir::failed(factor)) return failure();
          rule_.factors[*factor].kind = kind;
          if (kind != FactorKind::kReduced ||
              mlir::failed(parser_.parseOptionalColon()))
            return success();
          return parseReduction(rule_.factors[*factor]);
        });
  }

  ParseResult parseReduction(Factor& factor) {
    const llvm::SMLoc loc = parser_.getCurrentLocation();
    llvm::StringRef name;
    if (parser_.parseKeyword(&name)) return failure();
    const std::optional<Reduction> reduction = terms::symbolizeReduction(name);
    if (reduction) {
      factor.reduction = *reduction;
      return success();
    }
    return parser_.emitError(loc)
           << "expected sum, prod, max, min, any or all, found " << name;
  }

  mlir::AsmParser& parser_;
  ShardingRule rule_;
  llvm::StringMap<int> factors_;
};

}  // namespace

mlir::Attribute RuleAttr::parse(mlir::AsmParser& parser, mlir::Type) {
  const llvm::SMLoc loc = parser.getCurrentLocation();
  FailureOr<ShardingRule> rule = RuleParser(parser).parse();
  if (mlir::failed(rule)) return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    *std::move(rule));
}

void RuleAttr::print(mlir::AsmPrinter& printer) const {
  printer << "<" << ToString(getRule()) << ">";
}

LogicalResult RuleAttr::verify(
    llvm::function_ref<mlir::InFlightDiagnostic()> emit_error,
    ShardingRule rule) {
  const std::string flaw = FindFlaw(rule);
  if (flaw.empty()) return success();
  return emit_error() << flaw;
}

// A divided operation needs a local form. Returns the factor kind that the
// user's rule claims although the operation has no local form for it.
static std::string findKindWithoutForm(mlir::Operation* op,
                                       const ShardingRule& rule) {
  for (size_t i = 0; i < rule.factors.size(); ++i) {
    const std::string name = terms::FactorName(static_cast<int>(i));
    if (rule.factors[i].kind == FactorKind::kDecompose &&
        !mlir::isa<DecompositionOpInterface>(op))
      return "expected an operation with a decomposition for the factor " +
             name + ", which is 'decompose'";
    if (rule.factors[i].kind == FactorKind::kHalo &&
        !mlir::isa<ConvOp, ReduceWindowOp, ConvInputGradOp, ReduceWindowGradOp>(
            op))
      return "expected nn.conv, nn.reduce_window or a gradient of theirs for "
             "the factor " +
             name + ", which is 'halo'";
    if (rule.factors[i].kind == FactorKind::kReducedHalo &&
        !mlir::isa<ConvWeightGradOp>(op))
      return "expected nn.conv_weight_grad for the factor " + name +
             ", which is 'reduced_halo'";
  }
  return "";
}

LogicalResult NNDialect::verifyOperationAttribute(
    mlir::Operation* op, mlir::NamedAttribute attribute) {
  if (attribute.getName() != kRuleAttr) return success();
  const auto rule = mlir::dyn_cast<RuleAttr>(attribute.getValue());
  if (!rule)
    return op->emitOpError()
           << "expected '" << kRuleAttr << "' to be #nn.rule<...>, found "
           << attribute.getValue();
  std::string flaw =
      findFlaw(rule.getRule(), op->getOperandTypes(), op->getResultTypes());
  if (flaw.empty()) flaw = findKindWithoutForm(op, rule.getRule());
  if (flaw.empty()) return success();
  return op->emitOpError() << "'" << kRuleAttr << "': " << flaw;
}

}  // namespace partita::nn
