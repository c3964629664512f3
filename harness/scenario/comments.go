package scenario

import "embed"

// Source contains the Go source of this package. Package schema reads the doc comments in it.
// They become the text of the reference documentation and of `gauntlet explain`.
//
//go:embed *.go
var Source embed.FS
