// The command `partita`.
#include "compiler/driver/cli.h"

int main(int argc, char** argv) {
  return partita::driver::runPartita(argc, argv);
}
