// RUN: partita-opt %s --verify-diagnostics --split-input-file

// expected-error@+1 {{'func.func' op expected 'nn.kind' to be "input", "parameter", "buffer", "constant", "state", "derived" or "coordinate", found "weight"}}
func.func private @kind(tensor<2xf32> {nn.kind = "weight"})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.name' to be a string, found 3 : i64}}
func.func private @name(tensor<2xf32> {nn.name = 3})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.source' to be #nn.file, #nn.init or a list of #nn.file, found "model.safetensors"}}
func.func private @source(tensor<2xf32> {nn.source = "model.safetensors"})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.unsigned' to be a unit attribute of a signless integer, found unit on 'tensor<2xf32>'}}
func.func private @unsigned(tensor<2xf32> {nn.unsigned})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.dims' to be a string for each dimension of 'tensor<2xf32>', found ["E", "M"]}}
func.func private @dims(tensor<2xf32> {nn.dims = ["E", "M"]})

// -----

// expected-error@+1 {{'func.func' op expected an attribute of the nn dialect that is defined here, found 'nn.names'}}
func.func private @unknown(tensor<2xf32> {nn.names = "x"})

// -----

// expected-error@+1 {{'func.func' op expected an attribute of the nn dialect that is defined here, found 'nn.kind'}}
func.func private @on_result(tensor<2xf32>) -> (tensor<2xf32> {nn.kind = "input"})

// -----

// expected-error@+1 {{expected kind 'zeros', 'ones', 'normal' or 'uniform', found 'gauss'}}
func.func private @distribution(tensor<2xf32> {nn.source = #nn.init<"gauss", 1.0 : f64, 7>})

// -----

// expected-error@+1 {{expected a finite scale of type f64, 0 or more, found -1.000000e+00 : f64}}
func.func private @scale(tensor<2xf32> {nn.source = #nn.init<"normal", -1.0 : f64, 7>})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.axes' to be an array of triples of integers, found array<i64: 0, 1>}}
func.func private @axes(tensor<i64> {nn.kind = "coordinate", nn.axes = array<i64: 0, 1>})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.role' to be "learning_rate", "step" or "seed", found "rate"}}
func.func private @role(tensor<f32> {nn.role = "rate"})

// -----

// expected-error@+1 {{'func.func' op expected 'nn.updates' to be the name of an argument, found 3 : i64}}
func.func private @updates() -> (tensor<2xf32> {nn.updates = 3})
