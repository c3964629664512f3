// Package nodeimage contains the sources of a kind node image that is built without an image
// registry.
//
// The script build in this directory builds the image. The Go code of the package is the
// programs pause and coredns, and imports that keep containerd in go.mod. The package
// harness/internal/setup has the other programs of the image.
//
// The package is a separate Go module, so that the main go.mod does not contain the dependencies of
// containerd and CoreDNS.
package nodeimage
