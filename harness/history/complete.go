package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// ErrNoRecord means that a history file contains no complete record.
var ErrNoRecord = errors.New("found no complete record; expected a start record")

// EndWithGap appends a gap and an End record to the history file at path. It is called after the
// process that recorded the history has died, so that the history says why its end is missing.
//
// EndWithGap first removes an incomplete last line. If the history already has an End record,
// EndWithGap does nothing. If the history has no complete record, the error wraps [ErrNoRecord].
func EndWithGap(path string, gap Gap) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the history: %w", err)
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
	err = errors.Join(
		encoder.Encode(Record{Seq: last.Seq + 1, At: last.At, Gap: &gap}),
		encoder.Encode(Record{Seq: last.Seq + 2, At: last.At, End: &End{}}),
	)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	if err = file.Truncate(int64(complete)); err == nil {
		_, err = file.WriteAt(ending.Bytes(), int64(complete))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}
