package scenario

import "embed"

// Source contains the Go source of this package. Package schema reads the doc comments of the
// scenario format from it, for the references and for `gauntlet explain`.
//
//go:embed *.go
var Source embed.FS
