package history

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// historyText returns the text of a history with the given number of records.
func historyText(records int) string {
	var text strings.Builder
	text.WriteString(`{"seq":1,"start":{"format":1}}` + "\n")
	for i := 2; i <= records; i++ {
		fmt.Fprintf(&text, `{"seq":%d,"closed":{"id":%d}}`+"\n", i, i)
	}
	return text.String()
}

// TestTee requires that each consumer receives, in order, all records that it asks for, and then
// the final error.
func TestTee(t *testing.T) {
	const records = 3*batchLines + 5
	const more = (batchesAhead + 5) * batchLines // more records than Tee buffers between the two consumers
	for _, test := range []struct {
		name, in            string
		stopAt, otherStopAt int
		want, wantOther     int
		wantErr             bool
	}{
		{"whole", historyText(records), 0, 0, records, records, false},
		{"cut short", historyText(records) + "{", 0, 0, records, records, true},
		{"empty", "", 0, 0, 0, 0, false},
		{"the loop stops early", historyText(more), 1, 0, 1, more, false},
		{"the second consumer stops early", historyText(more), 0, batchLines + 1, more, batchLines + 1, false},
		{"both stop early", historyText(more), 2, 1, 2, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			var read, otherRead int
			var lastErr, otherErr error
			all := Tee(Read(strings.NewReader(test.in)), func(records iter.Seq2[*Record, error]) {
				otherRead, otherErr = countRecords(t, records, test.otherStopAt)
			})
			read, lastErr = countRecords(t, all, test.stopAt)
			if read != test.want || otherRead != test.wantOther {
				t.Errorf("got %d records, and %d in the second consumer; want %d and %d", read, otherRead, test.want, test.wantOther)
			}
			for _, err := range []error{lastErr, otherErr} {
				if errors.Is(err, ErrTruncated) != test.wantErr {
					t.Errorf("error %v; want %t", err, test.wantErr)
				}
			}
		})
	}
}

// countRecords counts the records. If stopAt is not 0, it stops after that many records. It
// returns the count and the error that ends the records.
func countRecords(t *testing.T, records iter.Seq2[*Record, error], stopAt int) (n int, lastErr error) {
	for record, err := range records {
		if err != nil {
			lastErr = err
			continue
		}
		n++
		if record.Seq != int64(n) {
			t.Errorf("position %d: found record %d", n, record.Seq)
		}
		if n == stopAt {
			break
		}
	}
	return n, lastErr
}

// TestReadSelected requires that ReadSelected decodes only the selected records, so that other
// lines may be invalid.
func TestReadSelected(t *testing.T) {
	const records = 2*batchLines + 7
	whole := historyText(records)
	broken := strings.Replace(whole, `{"seq":300,`, `{"seq":301,`, 1)
	for _, test := range []struct {
		name, in  string
		positions []int64
		want      []int64
		wantErr   string
	}{
		{"no positions", whole, nil, nil, ""},
		{"several positions", whole, []int64{records, 1, batchLines, batchLines + 1, 1}, []int64{1, batchLines, batchLines + 1, records}, ""},
		{"after the end", whole, []int64{0, 5, records + 1}, []int64{5}, ""},
		{"before an incomplete line", whole + "{", []int64{records, records + 1}, []int64{records}, ""},
		{"before an invalid line", broken, []int64{299}, []int64{299}, ""},
		{"an invalid line", broken, []int64{299, 300}, nil, "line 300: found a record with the sequence number (seq) 301; expected 300"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.jsonl")
			if err := os.WriteFile(path, []byte(test.in), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadSelected(path, test.positions)
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.HasSuffix(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if seqs := slices.Sorted(maps.Keys(got)); !slices.Equal(seqs, test.want) {
				t.Errorf("records %d, want %d", seqs, test.want)
			}
			for seq, record := range got {
				if record.Seq != seq {
					t.Errorf("position %d: found record %d", seq, record.Seq)
				}
			}
		})
	}
	if _, err := ReadSelected(filepath.Join(t.TempDir(), "absent"), []int64{1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want %v", err, os.ErrNotExist)
	}
}
