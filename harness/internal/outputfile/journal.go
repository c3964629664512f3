package outputfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// OpenJournal opens a file to append lines to it, and returns the lines that it contains. It
// creates the file if there is none. A program that was killed may have written a part of a last
// line, which OpenJournal removes. Each error begins with the path.
func OpenJournal(path string) (journal *os.File, lines []byte, err error) {
	lines, err = inputfile.Read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1]
	journal, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w; expected a file that can be written", path, inputfile.Reason(err))
	}
	if err := journal.Truncate(int64(len(lines))); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, errors.Join(inputfile.Reason(err), journal.Close()))
	}
	return journal, lines, nil
}
