// Sharding rules of arith and math operations on tensors, as external models.
// All are elementwise.
#include "dialects/nn/dialect.h"
#include "dialects/nn/rule_builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::nn {
namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;

// The operands through which partial sums may pass.
enum class Linearity { kNone, kJoint, kProduct, kDividend, kChoice };

ShardingRule elementwise(mlir::Operation* op, Linearity linearity) {
  RuleBuilder rule(op);
  for (int64_t dim = 0; dim < rule.resultRank(); ++dim) {
    const int factor = rule.factor(rule.resultSize(0, dim));
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      // The condition of a select may be a scalar.
      if (!RuleBuilder::shapeOf(op->getOperand(i).getType()).empty())
        rule.onOperand(i, dim, factor);
    }
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      rule.onResult(i, dim, factor);
  }
  if (linearity == Linearity::kJoint)
    rule.linear(op->getNumOperands() == 1 ? std::vector<int>{0}
                                          : std::vector<int>{0, 1});
  if (linearity == Linearity::kProduct) rule.multilinear({0, 1});
  if (linearity == Linearity::kDividend) rule.linear({0});
  if (linearity == Linearity::kChoice) rule.linear({1, 2});
  return rule.take();
}

template <typename Op, Linearity linearity>
struct Model
    : ShardingRuleOpInterface::ExternalModel<Model<Op, linearity>, Op> {
  ShardingRule getShardingRule(mlir::Operation* op) const {
    return elementwise(op, linearity);
  }
};

template <Linearity linearity, typename... Ops>
void attach(mlir::MLIRContext* context) {
  (Ops::template attachInterface<Model<Ops, linearity>>(*context), ...);
}

void attachToArith(mlir::MLIRContext* context, arith::ArithDialect*) {
  attach<Linearity::kJoint, arith::AddFOp, arith::SubFOp, arith::NegFOp,
         arith::AddIOp, arith::SubIOp, arith::ExtFOp, arith::TruncFOp>(context);
  attach<Linearity::kProduct, arith::MulFOp, arith::MulIOp>(context);
  attach<Linearity::kDividend, arith::DivFOp, arith::ShLIOp>(context);
  attach<Linearity::kChoice, arith::SelectOp>(context);
  attach<Linearity::kNone, arith::ConstantOp, arith::CmpFOp, arith::CmpIOp,
         arith::RemFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
         arith::MinNumFOp, arith::DivUIOp, arith::DivSIOp, arith::CeilDivUIOp,
         arith::CeilDivSIOp, arith::FloorDivSIOp, arith::RemUIOp,
         arith::RemSIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp,
         arith::ShRUIOp, arith::ShRSIOp, arith::MaxSIOp, arith::MaxUIOp,
         arith::MinSIOp, arith::MinUIOp, arith::ExtSIOp, arith::ExtUIOp,
         arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp,
         arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
         arith::BitcastOp>(context);
}

void attachToMath(mlir::MLIRContext* context, math::MathDialect*) {
  attach<Linearity::kNone, math::AbsFOp, math::AcosOp, math::AcoshOp,
         math::AsinOp, math::AsinhOp, math::AtanOp, math::AtanhOp, math::CbrtOp,
         math::CeilOp, math::CosOp, math::CoshOp, math::ErfOp, math::ErfcOp,
         math::ExpOp, math::Exp2Op, math::ExpM1Op, math::FloorOp, math::LogOp,
         math::Log10Op, math::Log1pOp, math::Log2Op, math::RoundEvenOp,
         math::RoundOp, math::RsqrtOp, math::SinOp, math::SincosOp,
         math::SinhOp, math::SqrtOp, math::TanOp, math::TanhOp, math::TruncOp,
         math::Atan2Op, math::CopySignOp, math::PowFOp, math::ClampFOp,
         math::FmaOp, math::FPowIOp, math::IsFiniteOp, math::IsInfOp,
         math::IsNaNOp, math::AbsIOp, math::CountLeadingZerosOp,
         math::CountTrailingZerosOp, math::CtPopOp, math::IPowIOp>(context);
}

}  // namespace

void registerShardingRuleModels(mlir::DialectRegistry& registry) {
  registry.addExtension(+attachToArith);
  registry.addExtension(+attachToMath);
}

}  // namespace partita::nn
