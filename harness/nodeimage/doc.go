// Package nodeimage holds what the script build makes a kind node image from,
// where there is no image registry: a program of its own (pause), and the pins
// of the programs that come from Go modules other than harness/upstream's. It is
// a module of its own so that their requirements stay out of the main go.mod.
package nodeimage
