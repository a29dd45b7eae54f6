// RUN: partita-opt %s --partita-split-launches --split-input-file --verify-diagnostics

// expected-error@+1 {{expected a list as attribute 'kernel.parts', found 3 : i64}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = 3 : i64} {
  return %x : tensor<8xf32>
}

// -----

// The first part has no number of blocks.
// expected-error@+1 {{expected part 0 of 'kernel.parts' to have the form of {blocks = 0 : i64, code = "",}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = [
    {code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// A word is a number in place of a name.
// expected-error@+1 {{expected part 0 of 'kernel.parts' to have the form of}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = [
    {blocks = 1 : i64, code = 1 : i64, products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expected the last part of 'kernel.parts' to be the kernel 'k', found 'other'}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = [
    {blocks = 1 : i64, code = "other", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expected lists of tensor maps as attribute 'kernel.part_maps', found [3]}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.part_maps = [3], kernel.parts = [
    {blocks = 1 : i64, code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expected a list in 'kernel.part_maps' for each of the 2 parts of the kernel, found 1}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.part_maps = [[]], kernel.parts = [
    {blocks = 1 : i64, code = "k_part_0", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64},
    {blocks = 1 : i64, code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expected part 0 of 'kernel.parts' to have blocks, and no negative memory, found}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = [
    {blocks = -7 : i64, code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expected part 0 of 'kernel.parts' to have the form of}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = [
    {blocks = 18446744073709551616 : i128, code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expected parts of 'kernel.parts' with names that differ, found 'k' as part 1}}
func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel, kernel.parts = [
    {blocks = 1 : i64, code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64},
    {blocks = 1 : i64, code = "k", products_of_keys = 0 : i64, products_of_values = 0 : i64, scratch = 0 : i64, shared = 0 : i64, untouched = 0 : i64}]} {
  return %x : tensor<8xf32>
}
