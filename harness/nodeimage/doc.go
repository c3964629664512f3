// Package nodeimage contains the sources of a kind node image that is built without a registry.
//
// The script build in this directory builds the image. The Go code is the program
// pause and the imports that pin containerd in go.mod. harness/upstream pins the
// other programs of the image.
//
// The package is a separate Go module so that the dependencies of containerd stay
// out of the main go.mod.
package nodeimage
