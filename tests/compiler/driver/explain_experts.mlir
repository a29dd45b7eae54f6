// RUN: partita explain %s --mesh d=4 --shard "B=d;X=d" | FileCheck %s --check-prefix=ROWS
// RUN: partita explain %s --mesh d=4 --shard "B=d;X=d" --experts gather | FileCheck %s --check-prefix=GATHER
// RUN: partita explain %s --mesh d=2,t=2 --shard "B=d;X=t" --experts rows 2>&1 | FileCheck %s --check-prefix=IDLE
// RUN: not partita explain %s --mesh d=4 --shard "B=d;X=d" --experts gather=2 2>&1 | FileCheck %s --check-prefix=REFUSED

// Of 2 rows with 1 choice, 3/4 travel on average: 1.5 rounds to 2 rows of 8 numbers each way, and as many numbers of experts.
// ROWS-DAG: send_rows over d (4 devices)
// ROWS-DAG: why   each row travels to the devices that have its experts (the exchange moves {{[0-9]+}} bytes, gathering rows would move {{[0-9]+}}), for nn.experts
// ROWS-DAG: return_rows over d (4 devices): 64 B x 1
// ROWS-NOT: all_gather

// GATHER: all_gather over d (4 devices)
// GATHER: Axis 'd' stays with dimension 0 (X) of 'gate': this operation keeps it there, although the entry of dimension 0 (B) of {{.*}} comes before it {{.*}}; gathering rows moves {{[0-9]+}} bytes, sending each to its experts would move {{[0-9]+}}
// GATHER-NOT: send_rows

// IDLE: warning: experts: the choice has no effect, because no axis divides both experts (X) and the rows that choose them (B, L)

// REFUSED: --experts: expected gather, rows, or rows=1.25 (rows per device at most, over the even share), found 'gather=2'
func.func @main(%x: tensor<8x8xf32> {nn.kind = "input", nn.name = "x", nn.dims = ["B", "E"]},
    %router: tensor<8x4xf32> {nn.kind = "parameter", nn.name = "router", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %gate: tensor<4x6x8xf32> {nn.kind = "parameter", nn.name = "gate", nn.dims = ["X", "M", "E"], nn.source = #nn.init<"normal", 1.0 : f64, 1>},
    %up: tensor<4x6x8xf32> {nn.kind = "parameter", nn.name = "up", nn.dims = ["X", "M", "E"], nn.source = #nn.init<"normal", 1.0 : f64, 2>},
    %down: tensor<4x8x6xf32> {nn.kind = "parameter", nn.name = "down", nn.dims = ["X", "E", "M"], nn.source = #nn.init<"normal", 1.0 : f64, 3>}) -> tensor<8x8xf32> {
  %0 = nn.dot_general %x, %router contract = [1] x [0] : tensor<8x8xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = nn.softmax %0 axis = 1 : tensor<8x4xf32>
  %2, %3 = nn.top_k %1 largest = true : tensor<8x4xf32> -> tensor<8x1xf32>, tensor<8x1xi64>
  %4 = nn.experts %x[%3], %2 gate(%gate : tensor<4x6x8xf32>) up(%up : tensor<4x6x8xf32>) down(%down : tensor<4x8x6xf32>) activation = silu : tensor<8x8xf32>, tensor<8x1xi64>, tensor<8x1xf32> -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
