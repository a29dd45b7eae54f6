// Names and marks in @main for optimizers whose state differs between devices
// that share the batch. Without a plan that divides B they mean nothing.
#ifndef PARTITA_COMPILER_AUTODIFF_DEVICE_MARKS_H_
#define PARTITA_COMPILER_AUTODIFF_DEVICE_MARKS_H_

namespace partita::autodiff {

// States `<parameter>/<name>` of which each device has its own value.
inline constexpr char kLocalMomentum[] = "local_exp_avg";
inline constexpr char kLocalSum[] = "local_sum";

// On @main, a unit attribute: its states of these names are such states, not
// states of the model.
inline constexpr char kOwnStatesAttr[] = "nn.own_states";

// On a call, the parameter's name: operand 1 is a gradient, of which each
// device takes its own.
inline constexpr char kOwnGradientAttr[] = "nn.own_gradient";

// On a call, the parameter's name: operand 1 differs between devices, which
// exchange it with one bit per element and take the mean.
inline constexpr char kOneBitMeanAttr[] = "nn.one_bit_mean";

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_DEVICE_MARKS_H_
