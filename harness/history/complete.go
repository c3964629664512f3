package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// ErrNoRecord means that a history file contains no complete record.
var ErrNoRecord = errors.New("found no complete record; expected a start record")

// EndWith appends records and an End record to the history file at path. EndWith sets the records'
// sequence numbers and times. Callers use it after the process that recorded the history has died.
// The history then says why its end is missing.
//
// EndWith first removes an incomplete last line. If the history already has an End record, EndWith
// does nothing. If the history has no complete record, the error wraps [ErrNoRecord].
func EndWith(path string, records ...Record) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return inputfile.FileError(err)
	}
	complete := bytes.LastIndexByte(content, '\n') + 1
	if complete == 0 {
		return fmt.Errorf("%s: %w", path, ErrNoRecord)
	}
	var last *Record
	for record, err := range Read(bytes.NewReader(content[:complete])) {
		switch {
		case err == nil:
			last = record
		case !errors.Is(err, ErrTruncated):
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if last.End != nil {
		return nil
	}
	var ending bytes.Buffer
	encoder := json.NewEncoder(&ending)
	encoder.SetEscapeHTML(false)
	for i, r := range append(slices.Clone(records), Record{End: &End{}}) {
		r.Seq, r.At = last.Seq+1+int64(i), last.At
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing the history: %w", inputfile.FileError(err))
	}
	if err = file.Truncate(int64(complete)); err == nil {
		_, err = file.WriteAt(ending.Bytes(), int64(complete))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the history: %w", inputfile.FileError(err))
	}
	return nil
}
