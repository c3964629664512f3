package fleet

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
)

// coverageMax is the maximum length of a coverage table as JSON, in bytes. The table is in an
// annotation of the Job, and Kubernetes allows 256 KiB for all annotations of an object.
const coverageMax = 200_000

// EncodeCoverage returns a coverage table as text, for a flag of "gauntlet fleet worker". The text
// is compressed, because Linux limits the length of an argument to 128 KiB.
func EncodeCoverage(table *coverage.Table) string {
	var text strings.Builder
	encoded := base64.NewEncoder(base64.RawURLEncoding, &text)
	compressed := gzip.NewWriter(encoded)
	if err := errors.Join(json.NewEncoder(compressed).Encode(table), compressed.Close(), encoded.Close()); err != nil {
		panic(err) // impossible: the table has only texts and numbers, and a Builder accepts every write
	}
	return text.String()
}

// DecodeCoverage returns the coverage table in a text that EncodeCoverage returned.
func DecodeCoverage(text string) (*coverage.Table, error) {
	compressed, err := gzip.NewReader(base64.NewDecoder(base64.RawURLEncoding, strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(compressed, coverageMax+1))
	if err != nil {
		return nil, err
	}
	var table coverage.Table
	return &table, json.Unmarshal(content, &table)
}

// checkCoverage returns an error if a coverage table is too large for a Job.
func checkCoverage(table *coverage.Table) error {
	content, err := json.Marshal(table)
	if err != nil {
		return err
	}
	if n := len(content); n > coverageMax {
		return fmt.Errorf("--prefer-uncovered: found a coverage table of %d bytes; expected at most %d, which a Job can contain", n, coverageMax)
	}
	return nil
}
