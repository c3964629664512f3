// Package nodeimage contains the sources of a kind node image. Building the image needs no image
// registry.
//
// The script named build, in this directory, builds the image. The Go code in this directory
// consists of the programs pause and coredns, and of imports that keep containerd in go.mod. The
// package harness/internal/setup builds the other programs of the image.
//
// The package is a separate Go module, so that the main go.mod does not contain the dependencies of
// containerd and CoreDNS.
package nodeimage
